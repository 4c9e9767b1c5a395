package program

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/omni-perf/omni-perf/jupyter"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// A cell that runs when one comes tells nothing of itself: its beginning was on IOPub before,
// its end will be. That it runs, and in which line, its stack tells; its text and number the
// kernel's history, on the control channel, unless the cell keeps the interpreter to itself
// (the GIL), as some that hang do. One that awaits is on no stack: the shell channel, which is
// not answered meanwhile, tells of it.

// met is the id of the recording of a cell that ran already. There is one at most: a kernel's
// shell runs one cell at a time.
const met = "met running"

var metNote = timeline.Note{What: "cell", Reason: "it ran already when it was attached to; what it did before is not in this report"}

// meet records the cell that is on the main thread's stack, if one is; it ran at an instant.
func (k *follower) meet(ran time.Time) error {
	at := k.position()
	if at.cell == "" {
		return nil
	}
	fmt.Fprintf(k.options.Messages, "omni-perf: a cell runs already, in %v; it is recorded from now on\n", at)
	return k.begin(met, &watched{cell: &timeline.Cell{File: at.cell}, began: ran, already: true})
}

func (k *follower) position() position {
	if k.tools.Stack == nil {
		return position{}
	}
	stack, err := k.tools.Stack(k.pid)
	if err != nil {
		return position{} // the recorder says it
	}
	return positionIn(stack, k.names(""))
}

// greeting is what the kernel answered at first.
type greeting struct {
	input jupyter.Input // its last cell, which may run; zero: not known
	asked time.Time     // when it was asked whether one runs
	busy  bool          // it does not answer on its shell channel
}

// greet waits until the kernel's messages arrive, and asks what it is doing.
func (k *follower) greet(ctx context.Context) {
	if k.observer.Ready(ctx) != nil {
		return
	}
	var g greeting
	asking, stop := context.WithTimeout(ctx, historyWait)
	g.input, _ = k.observer.LastInput(asking) // without it, the text is not known
	stop()
	g.asked = time.Now()
	answered := make(chan error, 1)
	go func() { answered <- k.observer.AwaitShell(ctx) }()
	var err error
	select {
	case err = <-answered:
		k.greeting <- g
	case <-time.After(shellWait):
		g.busy = true
		k.greeting <- g
		err = <-answered
	}
	if err == nil {
		k.free(ctx, g.asked)
	}
}

// ask finds out, in time, whether the cells that run now have ended.
func (k *follower) ask(ctx context.Context) {
	asked := time.Now()
	go func() {
		if k.observer.AwaitShell(ctx) == nil {
			k.free(ctx, asked)
		}
	}()
}

// free tells that the shell channel has answered what was asked at an instant. What IOPub
// says of the end of a cell, and of its outcome, goes first: it may be on its way.
func (k *follower) free(ctx context.Context, asked time.Time) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(lastWait):
	}
	select {
	case <-ctx.Done():
	case k.shell <- asked:
	}
}

// greeted goes on when the kernel has answered.
func (k *follower) greeted(g greeting) error {
	if k.recorder == nil {
		if err := k.read(); err != nil {
			return err
		}
	}
	// What was told before it was asked counts as told.
	for len(k.observer.Events()) > 0 {
		if e, ok := <-k.observer.Events(); ok {
			if err := k.take(e); err != nil {
				return err
			}
		}
	}
	if k.restarts > 0 && k.options.Audience == nil {
		fmt.Fprintf(k.options.Messages, "omni-perf: the kernel was restarted; its results are %s from now on\n", k.options.Results.Files(cellSuffix(k.restarts, 1))[0].Path)
	}
	if err := k.settle(g); err != nil {
		return err
	}
	k.journal.begin()
	if k.options.Folder != nil {
		fmt.Fprintf(k.options.Messages, "omni-perf: the cells are listed in %s\n", k.options.Folder.Page())
	}
	fmt.Fprintf(k.options.Messages, "omni-perf: following the cells of kernel %d; end with Ctrl-C\n", k.pid)
	return nil
}

// settle brings together what was met and what the kernel says.
func (k *follower) settle(g greeting) error {
	busy := g.busy && !k.ended.After(g.asked)
	if busy && len(k.running) == 0 {
		if err := k.meetLate(g); err != nil {
			return err
		}
	}
	if w := k.running[met]; w != nil && k.names(g.input.Code) == w.cell.File {
		w.cell.ExecutionCount, w.cell.Text = g.input.ExecutionCount, g.input.Code
		k.journal.rename(w)
	}
	return nil
}

// meetLate records the cell that keeps the kernel busy, which was on no stack at first.
func (k *follower) meetLate(g greeting) error {
	ran := g.asked.Add(-time.Nanosecond)
	switch at := k.position(); {
	case at.cell != "":
		return k.meet(ran)
	case at.own || g.input.Code == "": // a callback of a widget's, say
		return nil
	}
	fmt.Fprintf(k.options.Messages, "omni-perf: cell [%d] runs already and awaits something; it is recorded from now on\n", g.input.ExecutionCount)
	return k.begin(met, &watched{cell: &timeline.Cell{File: k.names(g.input.Code)}, began: ran, already: true})
}

// unanswered is due when the kernel has not answered for a while.
func (k *follower) unanswered() error {
	why := fmt.Sprintf("the kernel (process %d) does not answer to the address and key of %s", k.pid, k.file.Path)
	switch {
	case isStopped(k.pid):
		why = fmt.Sprintf("the kernel (process %d) is stopped; kill -CONT %d lets it go on", k.pid, k.pid)
	case k.observer.OtherKey():
		why = fmt.Sprintf("the messages of the kernel (process %d) are signed with another key than that of %s", k.pid, k.file.Path)
	}
	if k.running[met] == nil {
		if k.recorder == nil {
			if err := k.read(); err != nil {
				return err
			}
		}
		return errors.New(why)
	}
	fmt.Fprintf(k.options.Messages, "omni-perf: %s; maybe the cell that runs keeps the interpreter to itself. It is recorded all the same; end with Ctrl-C\n", why)
	return nil
}
