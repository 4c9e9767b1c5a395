package program

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// A kernel is asked nothing: to answer, it would run code that its user did not ask for. What
// it does is known from the messages that it sends to everybody (IOPub) and, for a cell whose
// start was not seen, from its memory: that the cell runs, in which line, its text and its
// number. One that awaits is on no stack and is found when it runs again.

// met is the id of the recording of a cell whose start was not seen. There is one at most: a
// kernel's shell runs one cell at a time.
const met = "met running"

var metNote = timeline.Note{What: "cell", Reason: "it ran already when it was attached to; what it did before is not in this report"}

// meet records the cell that is on the main thread's stack, if one is.
func (k *follower) meet(at position) error {
	if at.cell == "" {
		return nil
	}
	fmt.Fprintf(k.options.Messages, "omni-perf: a cell runs already, in %v; it is recorded from now on\n", at)
	cell := &timeline.Cell{File: at.cell}
	if text, count, err := k.tools.Cell(k.pid); err == nil && k.names(text) == at.cell {
		cell.Text, cell.ExecutionCount = text, count
	}
	return k.record(met, &watched{cell: cell, began: time.Now(), already: true})
}

// position is where the main thread is; false if that cannot be read now.
func (k *follower) position() (position, bool) {
	stack, err := k.tools.Stack(k.pid)
	if err != nil {
		return position{}, false // the recorder says it
	}
	return positionIn(stack, k.names("")), true
}

// inShell is the cell of the kernel's shell that is recorded; empty: none is.
func (k *follower) inShell() (id string, w *watched) {
	for id, w := range k.running {
		if !w.subshell {
			return id, w
		}
	}
	return "", nil
}

// lookForStart meets a cell whose start was not seen: it awaited when it was attached to, or
// IOPub lost the message. The message may also be on its way, so that two looks have to agree.
func (k *follower) lookForStart() error {
	before := k.glimpsed
	k.glimpsed = ""
	if id, _ := k.inShell(); id != "" {
		return nil
	}
	at, ok := k.position()
	if !ok || at.cell == "" {
		return nil
	}
	if at.cell != before {
		k.glimpsed = at.cell
		return nil
	}
	return k.meet(at)
}

// mayAwait finds what a cell must have in it to await something.
var mayAwait = regexp.MustCompile(`\b(await|async)\b`)

// lookForEnd ends a cell that is not executed any more, although no message has said so: in a
// flood of output IOPub loses some, and what was met may have ended before the connection was
// made. The message may also be on its way, so that two looks have to agree.
func (k *follower) lookForEnd() error {
	id, w := k.inShell()
	if id == "" || w.cell.Text == "" || mayAwait.MatchString(w.cell.Text) {
		return nil
	}
	if out, _ := k.observer.Output(id); !out.AtLeast && !w.already {
		return nil
	}
	at, ok := k.position()
	if !ok {
		return nil
	}
	if !at.idle && (at.cell == "" || at.cell == w.cell.File) {
		w.absent = 0
		return nil
	}
	if w.absent++; w.absent < 2 {
		return nil
	}
	return k.end(id, id, "")
}

// begin says that the kernel is followed: its address has answered, and its welcome has
// arrived, or none came in time.
func (k *follower) begin(welcomed bool) error {
	if k.begun {
		return nil
	}
	if k.observer.OtherKey() {
		return k.unreadable()
	}
	if k.recorder == nil {
		if err := k.read(); err != nil {
			return err
		}
	}
	k.begun = true
	if g := k.options.gathered; g != nil {
		g.ready()
		return nil
	}
	if k.restarts > 0 && k.options.Audience == nil {
		fmt.Fprintf(k.options.Messages, "omni-perf: the kernel was restarted; its results are %s from now on\n", k.options.Results.Files(cellSuffix(k.restarts, 1))[0].Path)
	}
	k.journal.begin()
	if k.options.Folder != nil {
		fmt.Fprintf(k.options.Messages, "omni-perf: the cells are listed in %s\n", k.options.Folder.Page())
	}
	if !welcomed {
		fmt.Fprint(k.options.Messages, "omni-perf: the kernel has sent nothing yet: before version 7 ipykernel sends nothing until a cell runs, and no kernel does while a cell holds the GIL; cells count from its first message on\n")
	}
	fmt.Fprintf(k.options.Messages, "omni-perf: following the cells of kernel %d; end with Ctrl-C\n", k.pid)
	return nil
}

// unreadable is due when the kernel's messages do not come, or cannot be read.
func (k *follower) unreadable() error {
	k.refused = true
	why := fmt.Sprintf("the kernel (process %d) does not answer at the address in %s", k.pid, k.file.Path)
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
	fmt.Fprintf(k.options.Messages, "omni-perf: %s. The cell that runs is recorded all the same; end with Ctrl-C\n", why)
	return nil
}
