package program

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/jupyter"
	"github.com/omni-perf/omni-perf/sidecar/recorder"
	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

const (
	// readyWait is how long a kernel may take to show on IOPub, and startWait one that
	// has just been started, on a busy machine.
	readyWait = 10 * time.Second
	startWait = 60 * time.Second
	// lastWait is how long an ended process's last messages may take to come.
	lastWait = time.Second
)

// AttachKernel follows the cells of the running kernel of a connection file, which needs
// nothing of ours in it, and writes one result for each, named by its execution count. It
// returns when d is over (0: never), ctx ends or the kernel does.
//
// A restart gives the kernel another process, which is followed in turn. No recording spans
// two processes: a cell does not outlive its own, so there is no gap in one to tell of. A cell
// that the restart cut short ends with its process, as "kernel restarted"; whether it was one
// is known a little later, so its result waits for that. Cells then count from 1 again:
// results of the second process are named NAME.2-1, NAME.2-2, those of the third NAME.3-1.
//
// tools are those for a process.
func AttachKernel(ctx context.Context, tools func(pid int) Tools, file jupyter.ConnectionFile, d time.Duration, o Options) error {
	if err := Check(o.Results.Files(cellSuffix(0, 1))); err != nil {
		return err
	}
	pid, err := KernelProcess(file)
	if err != nil {
		return err
	}
	if d > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, d)
		defer stop()
	}
	defer outliveReaders()()
	for restarts := 0; ; restarts++ {
		k, err := attachKernel(ctx, tools, pid, restarts, file.Connection, o)
		if err == nil {
			err = k.follow(ctx)
		}
		switch {
		case errors.Is(err, errEnded) || restarts > 0 && errors.Is(err, unix.ESRCH):
		case err != nil && restarts > 0 && ctx.Err() != nil: // while it was waited for
			k.close()
			return nil
		default:
			k.close()
			return err
		}
		fmt.Fprintln(o.Messages, "omni-perf: the kernel's process has ended; waiting for its restart")
		next, restarted := awaitRestart(ctx, file)
		k.tellCut(restarted)
		k.close()
		if !restarted {
			fmt.Fprintln(o.Messages, "omni-perf: the kernel has ended")
			return nil
		}
		pid, file = next.pid, next.file
	}
}

// cellSuffix names the result of a cell of the process after so many restarts.
func cellSuffix(restarts, executionCount int) string {
	if restarts == 0 {
		return fmt.Sprintf("-%d", executionCount)
	}
	return fmt.Sprintf(".%d-%d", restarts+1, executionCount)
}

// errEnded says that the process of the kernel has ended.
var errEnded = errors.New("the kernel has ended")

// follower turns the cells of one process of a kernel into reports.
type follower struct {
	tools    Tools
	options  Options
	restarts int // of the kernel before this process
	recorder *recorder.Recorder
	observer *jupyter.Observer
	names    func(code string) string
	gone     <-chan struct{}
	running  map[string]bool // by msg_id
	cut      []*timeline.Recording
	stop     context.CancelFunc // of the observer
}

// attachKernel begins to follow a process, which may have just been started. What it returns
// is to be closed, with an error too.
func attachKernel(ctx context.Context, tools func(pid int) Tools, pid, restarts int, conn jupyter.Connection, o Options) (*follower, error) {
	k := &follower{options: o, restarts: restarts, running: make(map[string]bool)}
	ctx, k.stop = context.WithCancel(ctx)
	var err error
	if k.gone, err = watch(ctx, pid); err != nil {
		return k, err
	}
	if k.observer, err = jupyter.Observe(ctx, conn); err != nil {
		return k, err
	}
	if err := k.ready(ctx); err != nil {
		return k, err
	}
	// Only now: a process that has just been started may have become the kernel by exec.
	target := describe(pid)
	target.Restarts = restarts
	k.tools, k.names = tools(pid), cellNames(pid)
	k.recorder = k.tools.Recorder(target)
	if err := k.recorder.Attach(); err != nil {
		if k.ended() {
			return k, errEnded
		}
		return k, fmt.Errorf("the kernel (process %d) cannot be profiled: %w", pid, err)
	}
	if restarts > 0 {
		fmt.Fprintf(o.Messages, "omni-perf: the kernel was restarted; its results are %s from now on\n", o.Results.Files(cellSuffix(restarts, 1))[0].Path)
	}
	fmt.Fprintf(o.Messages, "omni-perf: following the cells of kernel %d; end with Ctrl-C\n", pid)
	return k, nil
}

// ready waits until the kernel's messages arrive.
func (k *follower) ready(ctx context.Context) error {
	patience := readyWait
	if k.restarts > 0 {
		patience = startWait
	}
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	answered := make(chan error, 1)
	go func() { answered <- k.observer.Ready(ctx) }()
	select {
	case err := <-answered:
		return err
	case <-k.gone:
		return errEnded
	}
}

func (k *follower) ended() bool {
	select {
	case <-k.gone:
		return true
	default:
		return false
	}
}

func (k *follower) close() {
	k.stop()
	if k.recorder != nil {
		k.recorder.Close()
	}
}

// follow returns errEnded when the process has ended; then tellCut is due.
func (k *follower) follow(ctx context.Context) error {
	connected := true
	for {
		select {
		case <-ctx.Done():
			return k.endAll("still running")
		case <-k.gone:
			at := timeline.Monotonic()
			if connected {
				if err := k.takeLast(); err != nil {
					return err
				}
			}
			if err := k.cutAll(at); err != nil {
				return err
			}
			return errEnded
		case e, ok := <-k.observer.Events():
			if !ok {
				return k.endAll("still running")
			}
			connected = e.Kind != jupyter.Disconnected
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
			ID: e.MsgID, Interval: k.options.Interval, FigureInterval: k.options.FigureInterval,
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

// takeLast takes what the process said before its end: of several cells that ended then.
// The connection breaks behind its last message.
func (k *follower) takeLast() error {
	timeout := time.After(lastWait)
	for len(k.running) > 0 {
		select {
		case <-timeout:
			return nil
		case e, ok := <-k.observer.Events():
			if !ok || e.Kind == jupyter.Disconnected {
				return nil
			}
			if e.Kind == jupyter.CellEnded {
				if err := k.take(e); err != nil {
					return err
				}
			}
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

// cutAll ends the recordings of the cells that were running when the process ended.
func (k *follower) cutAll(at int64) error {
	for id := range k.running {
		rec, err := k.recorded(id, recorder.Ending{At: at})
		if err != nil {
			return err
		}
		k.cut = append(k.cut, rec)
	}
	return nil
}

// tellCut shows the cells that the end of the process cut short.
func (k *follower) tellCut(restarted bool) {
	for _, rec := range k.cut {
		rec.Target.Cell.Outcome = "kernel died"
		if restarted {
			rec.Target.Cell.Outcome = "kernel restarted"
		}
		k.show(rec)
	}
	k.cut = nil
}

func (k *follower) end(id, outcome string) error {
	rec, err := k.recorded(id, recorder.Ending{Outcome: outcome})
	if err != nil {
		return err
	}
	k.show(rec)
	return nil
}

func (k *follower) recorded(id string, ending recorder.Ending) (*timeline.Recording, error) {
	delete(k.running, id)
	if out, ok := k.observer.Output(id); ok {
		ending.Output = &timeline.Output{Messages: out.Messages, Bytes: out.Bytes, AtLeast: out.AtLeast}
	}
	return k.recorder.End(id, ending)
}

func (k *follower) show(rec *timeline.Recording) {
	files := k.options.Results.Files(cellSuffix(k.restarts, rec.Target.Cell.ExecutionCount))
	if err := k.tools.show(rec, files, k.options); err != nil {
		fmt.Fprintf(k.options.Messages, "omni-perf: %v\n", err) // the next cell may fare better
	}
}
