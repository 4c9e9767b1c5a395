package program

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/doors/program/marks"
	"github.com/omni-perf/omni-perf/sidecar/measure/recorder"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/traces/addtrace"
)

// Attach watches a running process for d, or until ctx ends or the process
// does, and writes what was recorded.
func Attach(ctx context.Context, t Tools, pid int, d time.Duration, o Options) error {
	files := o.Results.Files("")
	if err := Check(files); err != nil {
		return err
	}
	gone, err := watch(ctx, pid)
	if err != nil {
		return err
	}
	defer outliveReaders()()
	defer spareCPUs()()
	memory := watchMemory(pid)
	r := t.Recorder(describe(pid))
	defer r.Close()
	if err := r.Attach(); err != nil {
		return t.unreadable("attach", pid, err)
	}
	if _, err := r.Begin(recorder.Spec{ID: recordingID, Interval: o.Interval, FigureInterval: o.FigureInterval, Children: o.Children}); err != nil {
		return err
	}
	fmt.Fprintf(o.Messages, "omni-perf: watching process %d; end with Ctrl-C\n", pid)
	end, err := receive(r, o.Marks)
	if err != nil {
		return err
	}
	outcome := "ok"
	var timeout <-chan time.Time
	if d > 0 {
		timeout = time.After(d)
	}
	select {
	case <-timeout:
	case <-ctx.Done():
	case <-gone:
		outcome = "the process ended"
	}
	end()
	rec, err := r.End(recordingID, recorder.Ending{Outcome: outcome})
	if err != nil {
		return err
	}
	if cells, err := ReadSources(o.Cells); err == nil { // functions that were sent by value do not name their cell
		rec.Sources = append(rec.Sources, cells...)
	}
	if o.Worker != nil && len(rec.Processes) > 0 {
		rec.Processes[0].Role, rec.Processes[0].Number = o.Worker.Role, o.Worker.Number
	}
	report, _, err := t.shown(rec, addtrace.Traced{}, files, o)
	memory.sayDied(o.Messages, rec, report, true)
	return err
}

// receive takes in the marks that the target, or a descendant, sends to a socket, until end is called. The socket is
// made once the recording has begun, by which a process sees that it has.
func receive(r *recorder.Recorder, socket string) (end func(), err error) {
	if socket == "" {
		return func() {}, nil
	}
	receiver, err := marks.Listen(socket)
	if err != nil {
		return nil, fmt.Errorf("the process cannot send its marks: %w", err)
	}
	go receiver.Serve(into(r))
	return func() {
		receiver.Drain()
		receiver.Close()
	}, nil
}

// into takes marks into the recording.
func into(r *recorder.Recorder) func(pid int) func(marks.Mark) bool {
	return func(pid int) func(marks.Mark) bool {
		add := r.Marks(recordingID, pid)
		return func(m marks.Mark) bool { return add(recorder.Mark(m)) }
	}
}

// watch returns a channel that closes when the process ends.
func watch(ctx context.Context, pid int) (<-chan struct{}, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("there is no process %d here: %w", pid, err)
	}
	gone := make(chan struct{})
	go func() {
		defer unix.Close(fd)
		for ctx.Err() == nil {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 200)
			if n > 0 || (err != nil && err != unix.EINTR) {
				close(gone)
				return
			}
		}
	}()
	return gone, nil
}

// describe reads from /proc what the process is.
func describe(pid int) timeline.Target {
	t := timeline.Target{PID: pid}
	if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil {
		t.Interpreter = exe
	}
	if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil {
		t.Argv = strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")
	}
	return t
}
