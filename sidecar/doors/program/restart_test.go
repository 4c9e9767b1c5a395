package program

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/jupyter"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// end kills what pretend started, and returns when it has ended.
func end(t *testing.T, pid int) {
	t.Helper()
	gone, err := watch(context.Background(), pid)
	if err != nil {
		t.Fatal(err)
	}
	syscall.Kill(pid, syscall.SIGKILL)
	<-gone
}

// awaiting is awaitRestart of the file in the background.
func awaiting(ctx context.Context, file jupyter.ConnectionFile) (result func() (nextProcess, bool)) {
	type answer struct {
		next nextProcess
		ok   bool
	}
	answers := make(chan answer, 1)
	go func() {
		next, ok := awaitRestart(ctx, file)
		answers <- answer{next, ok}
	}()
	return func() (nextProcess, bool) {
		a := <-answers
		return a.next, a.ok
	}
}

func TestTheNextProcessOfAKernelIsFound(t *testing.T) {
	file := connectionFile(t, "kernel-1.json", os.Getuid())
	first, says := pretend(t, os.Getuid(), sleeps, "-f", file.Path)
	says()
	end(t, first)
	result := awaiting(context.Background(), file)
	second, says := pretend(t, os.Getuid(), sleeps, "-f", file.Path)
	says()
	if next, ok := result(); !ok || next.pid != second {
		t.Errorf("process %d, %v; want %d", next.pid, ok, second)
	}
}

// A worker that a kernel forked bears its command line and outlives it.
func TestAWorkerThatOutlivesItsKernelIsNotTheNext(t *testing.T) {
	file := connectionFile(t, "kernel-1.json", os.Getuid())
	first, says := pretend(t, os.Getuid(), forks, "-f", file.Path)
	worker, err := strconv.Atoi(says())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Kill(worker, syscall.SIGKILL) })
	end(t, first)
	if got, err := KernelProcess(file); err == nil {
		t.Errorf("process %d is taken for the kernel; its worker is %d", got, worker)
	}
	second, says := pretend(t, os.Getuid(), sleeps, "-f", file.Path)
	says()
	if next, ok := awaitRestart(context.Background(), file); !ok || next.pid != second {
		t.Errorf("process %d, %v; want %d, not the worker %d", next.pid, ok, second, worker)
	}
}

// A restart with other ports deletes the connection file and writes another.
func TestARestartMayWriteAnotherConnectionFile(t *testing.T) {
	file := connectionFile(t, "kernel-1.json", os.Getuid())
	if err := os.Remove(file.Path); err != nil {
		t.Fatal(err)
	}
	result := awaiting(context.Background(), file)
	written := file.Path + ".new"
	if err := os.WriteFile(written, []byte(`{"iopub_port": 12, "control_port": 14, "ip": "127.0.0.1", "key": "k"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(written, file.Path); err != nil {
		t.Fatal(err)
	}
	second, says := pretend(t, os.Getuid(), sleeps, "-f", file.Path)
	says()
	if next, ok := result(); !ok || next.pid != second || next.file.IOPubPort != 12 {
		t.Errorf("process %d at port %d, %v; want %d at 12", next.pid, next.file.IOPubPort, ok, second)
	}
}

func TestAKernelWhoseFileIsGoneIsNotRestarted(t *testing.T) {
	file := connectionFile(t, "kernel-1.json", os.Getuid())
	_, says := pretend(t, os.Getuid(), sleeps, "-f", file.Path)
	says()
	if err := os.Remove(file.Path); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if next, ok := awaitRestart(context.Background(), file); ok {
		t.Errorf("process %d is followed, whose file is gone", next.pid)
	}
	if took := time.Since(began); took < fileWait || took > restartWait {
		t.Errorf("it took %v to give up, want %v or a little more", took, fileWait)
	}
}

func TestNoRestartIsWaitedForAfterTheEnd(t *testing.T) {
	file := connectionFile(t, "kernel-1.json", os.Getuid())
	ctx, stop := context.WithCancel(context.Background())
	result := awaiting(ctx, file)
	stop()
	if next, ok := result(); ok {
		t.Errorf("process %d was found, which nobody started", next.pid)
	}
}

// In a folder that others may write to, somebody puts a file of his own, with a process to it,
// where that of the kernel was.
func TestAConnectionFileOfAnotherOwnerIsNotFollowed(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user to try it")
	}
	const nobody = 65534
	file := connectionFile(t, "kernel-1.json", 0)
	other := connectionFile(t, filepath.Base(file.Path), nobody)
	theirs, says := pretend(t, nobody, sleeps, "-f", other.Path)
	says()
	file.Path = other.Path
	if got, err := KernelProcess(other); err != nil || got != theirs {
		t.Fatalf("process %d, %v; want %d", got, err, theirs)
	}
	ctx, stop := context.WithTimeout(context.Background(), 5*lookEvery)
	defer stop()
	if next, ok := awaitRestart(ctx, file); ok {
		t.Errorf("process %d of another user is followed", next.pid)
	}
}

func TestCellsOfARestartedKernelDoNotReplaceOthers(t *testing.T) {
	for _, c := range []struct {
		restarts, count int
		want            string
	}{{0, 1, "out-1.json"}, {1, 1, "out.2-1.json"}, {2, 12, "out.3-12.json"}} {
		if got := named(t, "out.json").Files(cellSuffix(c.restarts, c.count))[0].Path; got != c.want {
			t.Errorf("cell %d after %d restarts becomes %s, want %s", c.count, c.restarts, got, c.want)
		}
	}
}

func TestAKernelThatEndedByItselfWasNotRestarted(t *testing.T) {
	code := func(n int) *int { return &n }
	for _, c := range []struct {
		exit   *int
		signal unix.Signal
		want   bool
	}{
		{nil, 0, false}, {code(4), 0, true}, {code(0), 0, true}, {code(139), unix.SIGSEGV, true}, {code(137), unix.SIGKILL, false}, {code(143), unix.SIGTERM, false},
	} {
		rec := &timeline.Recording{Processes: []timeline.Process{{Exit: c.exit, Signal: int(c.signal)}}}
		if got := endedItself(rec); got != c.want {
			t.Errorf("signal %v: %v, want %v", c.signal, got, c.want)
		}
	}
}
