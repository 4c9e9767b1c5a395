package program

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/jupyter"
)

const (
	// readyWait is how long a kernel's address may take to answer, and startWait that of
	// one that has just been started, on a busy machine.
	readyWait = 10 * time.Second
	startWait = 60 * time.Second
	// welcomeWait is how long the welcome of a kernel that has answered may take.
	welcomeWait = 2 * time.Second
	// lastWait is how long the last messages of a process that has ended may take to come.
	lastWait = time.Second
)

// AttachKernel follows the cells of the running kernel of a connection file, which needs
// nothing of ours in it, and writes one result for each, named by its execution count. It
// returns when d is over (0: never), ctx ends or the kernel does. A cell that runs already
// is recorded from now on.
//
// A restart gives the kernel another process, which is followed in turn. No recording spans
// two processes: a cell does not outlive its own, so there is no gap in a recording to report. A cell
// that the restart cut short ends with its process, as "kernel restarted"; whether it was one
// is known a little later, so its result waits for that. Cells then count from 1 again:
// results of the second process are named NAME.2-1, NAME.2-2, those of the third NAME.3-1.
//
// An Audience is shown the cells as they run, in place of results. tools are those for a process.
func AttachKernel(ctx context.Context, tools func(pid int) Tools, file jupyter.ConnectionFile, d time.Duration, o Options) error {
	if err := Check(o.Results.Files(cellSuffix(0, 1))); err != nil { // of all, as far as can be known
		return err
	}
	pid, err := KernelProcess(file)
	if err != nil {
		return err
	}
	index := newJournal(o, nameOf(pid, file), pid)
	defer index.close()
	if d > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, d)
		defer stop()
	}
	if o.Audience != nil {
		o.Audience.Watch(nameOf(pid, file))
	}
	defer outliveReaders()()
	defer spareCPUs()()
	for restarts := 0; ; restarts++ {
		k, err := attachKernel(ctx, tools, pid, restarts, file, o, index)
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
		cut := kernelDied
		if restarted {
			cut = kernelRestarted
		}
		k.showCut(cut)
		k.close()
		if !restarted {
			fmt.Fprintln(o.Messages, "omni-perf: the kernel has ended")
			return nil
		}
		pid, file = next.pid, next.file
	}
}

// cellSuffix names the result of a cell of the process after so many restarts. Of a cell that
// was met running the execution count need not be known: 0.
func cellSuffix(restarts, executionCount int) string {
	cell := "-running"
	if executionCount > 0 {
		cell = fmt.Sprintf("-%d", executionCount)
	}
	if restarts == 0 {
		return cell
	}
	return fmt.Sprintf(".%d%s", restarts+1, cell)
}

// nameOf is what a kernel is called on the page of its cells.
func nameOf(pid int, file jupyter.ConnectionFile) string {
	return shortHome(Kernel{File: file, Notebook: environment(pid)["JPY_SESSION_NAME"]}.Name())
}
