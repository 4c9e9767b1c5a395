package activity

import (
	"cmp"
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Blocked is for how long threads of a process were blocked in a system call on one object, by the innermost line of the
// user's own on their stacks.
type Blocked struct {
	Process  int // index in Recording.Processes
	Place    Place
	Function timeline.FrameID // a frame there
	Object   timeline.ObjectID
	Time     timeline.Nanos // summed over threads
	Main     timeline.Nanos // of it, of the thread that runs the cell, or of the process's main thread
	Longest  timeline.Nanos
	Times    int
	// Connections is how many sockets with one peer it was; 0: it is no connection, or there were too many to keep apart.
	Connections int
	Holder      Holding // of a lock, or a thread that was to end
	Threads     string  // those that had the lock in turn, by what their names have in common; empty: it was one
}

// Holding is where a thread was for most of the time that another waited for it, or for a lock that it had, by the innermost line
// of the user's own on its stack.
type Holding struct {
	Place    Place            // zero: no line of the user's own is known
	Function timeline.FrameID // a frame there
	Time     timeline.Nanos   // of the wait
}

// BlockedOn sums up what threads were blocked on, the longest first. owner is the process that a thread is charged to.
func BlockedOn(rec *timeline.Recording, owner func(*timeline.Thread) int, own func(timeline.FrameID) bool) []Blocked {
	type key struct {
		process int
		place   Place
		object  timeline.ObjectID
	}
	sums := make(map[key]*Blocked)
	held := make(map[*Blocked]map[timeline.FrameID]timeline.Nanos)
	connections := make(map[*Blocked]map[int]bool)
	peers := onePeer(rec.Objects)
	for i := range rec.Threads {
		t := &rec.Threads[i]
		var goesOn *Blocked      // the span before was of this one …
		var on timeline.ObjectID // … and of this object
		var end, since timeline.Nanos
		whole := wholeWaits(t.Spans, rec.Objects)
		for i, span := range t.Spans {
			span.On = whole[i]
			if span.On == 0 || int(span.On) >= len(rec.Objects) || t.Internal {
				continue
			}
			frame, known := InnermostOwn(rec, span.Node, own)
			if !known {
				continue
			}
			f := &rec.Frames[frame]
			k := key{owner(t), Place{File: f.File, Line: f.Line}, peers[span.On]}
			sum := sums[k]
			if sum == nil {
				sum = &Blocked{Process: k.process, Place: k.place, Function: frame, Object: k.object}
				sums[k] = sum
				connections[sum] = make(map[int]bool)
			}
			if sum != goesOn || span.On != on || span.Start > end {
				since = span.Start
				sum.Times++
			}
			goesOn, on, end = sum, span.On, span.End
			connections[sum][rec.Objects[span.On].Connection] = true
			sum.Time += span.End - span.Start
			if t.Main || t.RunsCell {
				sum.Main += span.End - span.Start
			}
			sum.Longest = max(sum.Longest, end-since)
			if object := rec.Objects[span.On]; object.IsOfThread() {
				if held[sum] == nil {
					held[sum] = make(map[timeline.FrameID]timeline.Nanos)
				}
				runsMeanwhile(rec, object.Holder, span, own, held[sum])
			}
		}
	}
	for sum, numbers := range connections {
		if !numbers[0] {
			sum.Connections = len(numbers)
		}
	}
	for sum, frames := range held {
		sum.Holder = holding(rec, frames)
	}
	out := make([]Blocked, 0, len(sums))
	turns := make(map[turn][]*Blocked)
	for _, sum := range sums {
		object := rec.Objects[sum.Object]
		if !object.IsOfThread() || object.Holder < 0 || int(object.Holder) >= len(rec.Threads) {
			out = append(out, *sum)
			continue
		}
		t := turn{kind: object.Kind, process: sum.Process, place: sum.Place, held: sum.Holder.Place}
		if object.Kind == timeline.ObjectThread || t.held.Line == 0 { // which thread it was is what the row says
			t.name = shortName(rec.Threads[object.Holder].Name, 1)
		}
		turns[t] = append(turns[t], sum)
	}
	for _, had := range turns {
		out = append(out, inTurn(rec, had))
	}
	slices.SortFunc(out, func(a, b Blocked) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Process, b.Process), cmp.Compare(a.Place.File, b.Place.File),
			cmp.Compare(a.Place.Line, b.Place.Line), cmp.Compare(a.Object, b.Object))
	})
	return out
}

// wholeWaits is of each span what it waits for. Who has the lock of a file or a database, and which thread it is that began a moment ago, is
// known some time after a wait has begun; its beginning was for the same.
func wholeWaits(spans []timeline.Span, all []timeline.Object) []timeline.ObjectID {
	out := make([]timeline.ObjectID, len(spans))
	var next *timeline.Span // the next one of the same wait, with what it waits for
	var on timeline.ObjectID
	for i := len(spans) - 1; i >= 0; i-- {
		s := &spans[i]
		if next != nil && (s.Node != next.Node || s.End != spans[i+1].Start) {
			next = nil
		}
		if out[i] = s.On; int(s.On) >= len(all) || s.State != timeline.StateWaiting && s.State != timeline.StateIO {
			continue
		}
		if next != nil && s.State == next.State && s.Wait == next.Wait && completes(s, &all[s.On], &all[on]) {
			out[i] = on
		}
		next, on = s, out[i]
	}
	return out
}

// newThread is for how long a thread may run before the recording has it.
const newThread = timeline.Nanos(100 * time.Millisecond)

// completes reports whether what a wait was for is what was known of it in a span before, and more. A future that nobody computes for longer
// has been in the queue of its pool.
func completes(s *timeline.Span, before, after *timeline.Object) bool {
	if s.On == 0 {
		return after.Kind == timeline.ObjectDatabase || after.Kind == timeline.ObjectThread
	}
	more := *before
	if more.Kind == timeline.ObjectFuture && more.Holder < 0 && s.End-s.Start < newThread {
		more.Holder = after.Holder
	}
	if more.Owner == 0 {
		more.Owner = after.Owner
	}
	return more != *before && more == *after
}

// onePeer is of each object the first one that differs from it in nothing but the number of its connection.
func onePeer(all []timeline.Object) []timeline.ObjectID {
	first, out := make(map[timeline.Object]timeline.ObjectID), make([]timeline.ObjectID, len(all))
	for i, o := range all {
		o.Connection = 0
		if _, known := first[o]; !known {
			first[o] = timeline.ObjectID(i)
		}
		out[i] = first[o]
	}
	return out
}

// turn is a line at which a lock, a future or the end of a thread was waited for, and the line at which that thread had it, or was.
type turn struct {
	kind        timeline.ObjectKind
	process     int
	place, held Place
	name        string // of a thread that was to end, or whose line is not known, without its number
}

// SeveralThreads is in place of the names of threads that have nothing in common.
const SeveralThreads = "threads"

// inTurn sums up the waits for a lock that several threads had at one line, or for what they computed there, as those of a pool do, or for
// the ends of threads of one kind.
func inTurn(rec *timeline.Recording, had []*Blocked) Blocked {
	slices.SortFunc(had, func(a, b *Blocked) int { return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Object, b.Object)) })
	sum := *had[0]
	var names []string
	for i, b := range had {
		if i > 0 {
			sum.Time, sum.Main, sum.Times, sum.Longest = sum.Time+b.Time, sum.Main+b.Main, sum.Times+b.Times, max(sum.Longest, b.Longest)
			sum.Holder.Time += b.Holder.Time
		}
		if h := rec.Objects[b.Object].Holder; h >= 0 && int(h) < len(rec.Threads) && !slices.Contains(names, rec.Threads[h].Name) {
			names = append(names, rec.Threads[h].Name)
		}
	}
	if len(names) > 1 {
		sum.Threads = cmp.Or(commonName(names), SeveralThreads)
	}
	return sum
}

// runsMeanwhile adds for how long a thread was at which frames of the user's own during a span of another one.
func runsMeanwhile(rec *timeline.Recording, id timeline.ThreadID, during timeline.Span, own func(timeline.FrameID) bool, frames map[timeline.FrameID]timeline.Nanos) {
	if id < 0 || int(id) >= len(rec.Threads) {
		return
	}
	spans := rec.Threads[id].Spans
	for _, s := range spans[firstSpan(spans, during.Start):] {
		if s.Start >= during.End {
			return
		}
		if frame, known := InnermostOwn(rec, s.Node, own); known {
			frames[frame] += max(min(s.End, during.End)-max(s.Start, during.Start), 0)
		}
	}
}

// holding is the line with most of the time; its function is that of its longest frame.
func holding(rec *timeline.Recording, frames map[timeline.FrameID]timeline.Nanos) (h Holding) {
	lines, longest := make(map[Place]timeline.Nanos), make(map[Place]timeline.FrameID)
	for frame, time := range frames {
		f := &rec.Frames[frame]
		at := Place{File: f.File, Line: f.Line}
		lines[at] += time
		if other, known := longest[at]; !known || time > frames[other] || time == frames[other] && frame < other {
			longest[at] = frame
		}
	}
	if len(lines) == 0 {
		return h
	}
	h.Place = Most(lines, Place.Compare)
	h.Function, h.Time = longest[h.Place], lines[h.Place]
	return h
}
