package report

import (
	"cmp"
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

// Blocked is a line of the user's own in which threads were blocked in a system call, or for other threads and processes, and what they waited for.
type Blocked struct {
	File     int    `json:"file"`
	Line     int    `json:"line"`
	Function *int   `json:"function"`
	Process  int    `json:"process"`
	Call     string `json:"call"`
	Kind     string `json:"kind"`
	// Object is a file's path, whom a socket is connected to, or the thread that had a lock (of several that had it at one line what their
	// names have in common), was to end or computed a future, or
	// the process that was to end; empty: not known, or left out by the user's wish.
	Object    string `json:"object"`
	BlockedNS int64  `json:"blocked_ns"` // summed over threads
	MainNS    int64  `json:"main_ns"`    // of it, of the thread that runs the cell, or of the process's main thread
	LongestNS int64  `json:"longest_ns"`
	Times     int    `json:"times"` // as far as readings tell them apart
	// Connections is how many sockets with this peer it was; absent for anything else, and where there were too many to keep apart.
	Connections int `json:"connections,omitempty"`
	// OwnerPID is the process that had the lock of a file or a database; absent for anything else, and where it is not known.
	OwnerPID int `json:"owner_pid,omitempty"`
	// Holder is where that thread was; absent for anything else, and where no line of the user's own is known.
	Holder *Holder `json:"holder,omitempty"`
}

// Holder is the line of the user's own in which a thread was for most of the time that others waited for it.
type Holder struct {
	File     int   `json:"file"`
	Line     int   `json:"line"`
	Function *int  `json:"function"`
	HeldNS   int64 `json:"held_ns"` // part of the wait in which it was there
}

// maxBlocked bounds the table; what is further down was waited for the least.
const maxBlocked = 300

func (b *builder) blocked() {
	own := func(id timeline.FrameID) bool { return b.names.code(b.rec.Frames[id]).Own() }
	list := activity.BlockedOn(b.rec, b.ownerOf, own)
	for _, w := range list[:min(len(list), maxBlocked)] {
		b.wanted[w.Place] = true
		object := b.rec.Objects[w.Object]
		row := Blocked{
			File: b.codes.file(w.Place.File), Line: w.Place.Line, Function: pointer(b.codes.functionOf(w.Function)), Process: b.placed(w.Process),
			Call: clean(object.Call), Kind: string(object.Kind), Object: clean(object.Name), BlockedNS: int64(w.Time), MainNS: int64(w.Main), LongestNS: int64(w.Longest), Times: w.Times,
			Connections: w.Connections, OwnerPID: object.Owner,
		}
		switch object.Kind {
		case timeline.ObjectFile, timeline.ObjectFolder, timeline.ObjectDatabase:
			row.Object = b.names.file(object.Name)
		case timeline.ObjectLock, timeline.ObjectThread, timeline.ObjectFuture:
			if h := object.Holder; h >= 0 && int(h) < len(b.rec.Threads) {
				row.Object, row.Holder = clean(cmp.Or(w.Threads, b.rec.Threads[h].Name)), b.holder(w.Holder)
			}
		}
		b.doc.Blocked = append(b.doc.Blocked, row)
	}
}

// holder is where the thread was that had a lock; nil where that is not known.
func (b *builder) holder(h activity.Holding) *Holder {
	if h.Place.Line == 0 {
		return nil
	}
	b.wanted[h.Place] = true
	return &Holder{File: b.codes.file(h.Place.File), Line: h.Place.Line, Function: pointer(b.codes.functionOf(h.Function)), HeldNS: int64(h.Time)}
}

func (c *checker) blocked() {
	for i := range c.d.Blocked {
		w := &c.d.Blocked[i]
		c.index("blocked.file", w.File, len(c.d.Files))
		c.indexOrNull("blocked.function", w.Function, len(c.d.Functions))
		c.index("blocked.process", w.Process, len(c.d.Processes))
		c.must(w.Line > 0 && w.Line <= math.MaxInt32, "blocked.line is %d", w.Line)
		c.must(slices.Contains(timeline.ObjectKinds(), timeline.ObjectKind(w.Kind)), "blocked.kind is %q", w.Kind)
		c.amount("blocked.blocked_ns", w.BlockedNS)
		c.amount("blocked.main_ns", w.MainNS)
		c.amount("blocked.longest_ns", w.LongestNS)
		c.count("blocked.times", w.Times)
		c.count("blocked.connections", w.Connections)
		c.count("blocked.owner_pid", w.OwnerPID)
		if h := w.Holder; h != nil {
			c.index("blocked.holder.file", h.File, len(c.d.Files))
			c.indexOrNull("blocked.holder.function", h.Function, len(c.d.Functions))
			c.must(h.Line > 0 && h.Line <= math.MaxInt32, "blocked.holder.line is %d", h.Line)
			c.amount("blocked.holder.held_ns", h.HeldNS)
		}
	}
}
