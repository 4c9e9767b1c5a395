package program

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/omni-perf/omni-perf/jupyter"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// A kernel is asked nothing: to answer, it would run code that its user did not ask for. What
// it does is known from the messages that it sends to everybody (IOPub) and, for a cell whose
// start was not seen, from its memory: that the cell runs, in which line, its text and its
// number. One that awaits is on no stack and is found when it runs again.

// met is the id of the recording of a cell whose start was not seen, announced that of one whose start is still to be
// seen. There is one at most: a kernel's shell runs one cell at a time.
const (
	met       = "met running"
	announced = "announced"
)

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

// announcement is a cell that is about to be executed, as who has it executed says.
type announcement struct {
	text string
	at   time.Time
}

// expect records a cell that is about to be executed, before its message comes: code that keeps the GIL keeps the kernel
// from sending it.
func (k *follower) expect(a announcement) error {
	k.expected = &a
	if id, _ := k.inShell(); id != "" || k.recorder == nil {
		return nil // the message of its end is on its way
	}
	return k.expectNow()
}

// expectNow does so where it had to wait for the cell before, unless its own message has come meanwhile.
func (k *follower) expectNow() error {
	a := k.expected
	k.expected = nil
	if a == nil || !k.started.Before(a.at) {
		return nil
	}
	return k.record(announced, &watched{cell: &timeline.Cell{ExecutionCount: k.count + 1, File: k.names(a.text), Text: a.text}, began: a.at})
}

// hasBegun reports whether the message of a start is that of the cell that is recorded in the shell.
func (k *follower) hasBegun(id string, w *watched, e jupyter.Event) bool {
	switch id {
	case announced:
		return w.cell.Text == e.Code
	case met:
		return w.cell.File == k.names(e.Code) && !e.Sent.IsZero() && e.Sent.Before(w.began)
	}
	return false
}

// adopt takes the message of the start of a cell that is recorded.
func (k *follower) adopt(id string, w *watched, e jupyter.Event) {
	delete(k.running, id)
	k.running[e.MsgID] = w
	w.cell.ExecutionCount, w.cell.Text, w.sent = e.ExecutionCount, e.Code, e.Sent
	k.journal.name(w)
}

// endUnseen ends a cell whose end was not seen; of one that was announced and has not begun nothing is known.
func (k *follower) endUnseen(id string) error {
	if id == announced {
		delete(k.running, id)
		return k.recorder.Discard(id)
	}
	return k.end(id, id, "")
}

// A process that uses a CPU though no cell is known to run may run one whose message it cannot send, since it keeps the GIL.
const (
	glances = 100 * time.Millisecond
	busyFor = glances / 2
)

// glance looks for a cell that runs where the process's main thread was busy since the last glance.
func (k *follower) glance() error {
	if id, _ := k.inShell(); !k.begun || id != "" {
		k.used = 0
		return nil
	}
	before := k.used
	k.used, _, _ = scheduled(k.pid, k.pid)
	if before == 0 || k.used-before < busyFor {
		return nil
	}
	return k.lookForStart()
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
