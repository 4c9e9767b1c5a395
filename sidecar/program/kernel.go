package program

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/omni-perf/omni-perf/jupyter"
	"github.com/omni-perf/omni-perf/sidecar/recorder"
	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// readyWait is how long a kernel may take to show on IOPub.
const readyWait = 10 * time.Second

// AttachKernel follows the cells of the running kernel pid, which needs nothing
// of ours in it, and writes one result for each, named by its execution count. It
// returns when d is over (0: never), ctx ends or the kernel does.
func AttachKernel(ctx context.Context, t Tools, pid int, conn jupyter.Connection, d time.Duration, o Options) error {
	if err := Check(o.Results.Files("-1")); err != nil {
		return err
	}
	if d > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, d)
		defer stop()
	}
	defer outliveReaders()()
	gone, err := watch(ctx, pid)
	if err != nil {
		return err
	}
	observer, err := jupyter.Observe(ctx, conn)
	if err != nil {
		return err
	}
	wait, stop := context.WithTimeout(ctx, readyWait)
	defer stop()
	if err := observer.Ready(wait); err != nil {
		return err
	}
	r := t.Recorder(describe(pid))
	defer r.Close()
	if err := r.Attach(); err != nil {
		return fmt.Errorf("the kernel (process %d) cannot be profiled: %w", pid, err)
	}
	k := &follower{
		tools: t, options: o, recorder: r, observer: observer,
		names: cellNames(pid), running: make(map[string]bool),
	}
	fmt.Fprintf(o.Messages, "omni-perf: following the cells of kernel %d; end with Ctrl-C\n", pid)
	return k.follow(ctx, gone)
}

// follower turns a kernel's cells into reports.
type follower struct {
	tools    Tools
	options  Options
	recorder *recorder.Recorder
	observer *jupyter.Observer
	names    func(code string) string
	running  map[string]bool // by msg_id
}

func (k *follower) follow(ctx context.Context, gone <-chan struct{}) error {
	for {
		select {
		case <-ctx.Done():
			return k.endAll("still running")
		case <-gone:
			fmt.Fprintln(k.options.Messages, "omni-perf: the kernel has ended")
			return k.endAll("kernel died")
		case e, ok := <-k.observer.Events():
			if !ok {
				return k.endAll("still running")
			}
			if err := k.take(e); err != nil {
				return err
			}
		}
	}
}

func (k *follower) take(e jupyter.Event) error {
	switch e.Kind {
	case jupyter.CellStarted:
		file := k.names(e.Code)
		_, err := k.recorder.Begin(recorder.Spec{
			ID: e.MsgID, Interval: k.options.Interval, FigureInterval: k.options.FigureInterval, Children: k.options.Children,
			Cell:    &timeline.Cell{ExecutionCount: e.ExecutionCount, File: file, Text: e.Code},
			Sources: []timeline.Source{{File: file, ExecutionCount: e.ExecutionCount, Text: e.Code}},
		})
		if err != nil {
			return err
		}
		k.running[e.MsgID] = true
	case jupyter.CellEnded:
		if k.running[e.MsgID] {
			return k.end(e.MsgID, e.Outcome)
		}
	}
	return nil
}

func (k *follower) endAll(outcome string) error {
	var errs []error
	for id := range k.running {
		errs = append(errs, k.end(id, outcome))
	}
	return errors.Join(errs...)
}

func (k *follower) end(id, outcome string) error {
	delete(k.running, id)
	ending := recorder.Ending{Outcome: outcome}
	if out, ok := k.observer.Output(id); ok {
		ending.Output = &timeline.Output{Messages: out.Messages, Bytes: out.Bytes, AtLeast: out.AtLeast}
	}
	rec, err := k.recorder.End(id, ending)
	if err != nil {
		return err
	}
	files := k.options.Results.Files(fmt.Sprintf("-%d", rec.Target.Cell.ExecutionCount))
	if err := k.tools.show(rec, files, k.options); err != nil {
		fmt.Fprintf(k.options.Messages, "omni-perf: %v\n", err) // the next cell may fare better
	}
	return nil
}

// cellNames tells the co_filename ipykernel gives to a cell: a hash of its text
// in a folder of the process (ipykernel/compiler.py), unless IPYKERNEL_CELL_NAME
// names all cells.
func cellNames(pid int) func(code string) string {
	env := environment(pid)
	if fixed := env["IPYKERNEL_CELL_NAME"]; fixed != "" {
		return func(string) string { return fixed }
	}
	tmp := "/tmp"
	for _, name := range []string{"TMPDIR", "TEMP", "TMP"} { // as tempfile.gettempdir() has it
		if env[name] != "" {
			tmp = env[name]
			break
		}
	}
	folder := filepath.Join(tmp, fmt.Sprintf("ipykernel_%d", ownPID(pid)))
	return func(code string) string {
		return filepath.Join(folder, strconv.FormatUint(uint64(murmur2(code, 0xC70F6907)), 10)+".py")
	}
}

func environment(pid int) map[string]string {
	env := make(map[string]string)
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)) // unreadable: as if empty
	for _, entry := range strings.Split(string(text), "\x00") {
		if name, value, ok := strings.Cut(entry, "="); ok {
			env[name] = value
		}
	}
	return env
}

// ownPID is the id the process has in its own pid namespace.
func ownPID(pid int) int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return pid
	}
	for _, line := range strings.Split(string(status), "\n") {
		if ids, ok := strings.CutPrefix(line, "NSpid:"); ok {
			fields := strings.Fields(ids)
			if own, err := strconv.Atoi(fields[len(fields)-1]); err == nil {
				return own
			}
		}
	}
	return pid
}

// murmur2 is Austin Appleby's MurmurHash2 for 32 bits, which ipykernel names
// cells by.
func murmur2(text string, seed uint32) uint32 {
	const m = 0x5bd1e995
	data := []byte(text)
	h := seed ^ uint32(len(data))
	for ; len(data) >= 4; data = data[4:] {
		k := binary.LittleEndian.Uint32(data) * m
		k = (k ^ k>>24) * m
		h = h*m ^ k
	}
	var tail uint32
	for i, b := range data {
		tail |= uint32(b) << (8 * i)
	}
	if len(data) > 0 {
		h = (h ^ tail) * m
	}
	h = (h ^ h>>13) * m
	return h ^ h>>15
}
