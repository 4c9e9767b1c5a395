package timeline

import "math"

// Limits of what is kept of awaits: stacks of coroutines, and windows of each.
const (
	maxAwaits       = 1 << 12
	maxAwaitWindows = 1 << 11
	// maxAllWindows bounds those of all stacks together: 4 MB.
	maxAllWindows = 1 << 17
)

// Await is a stack of coroutines that tasks of event loops were suspended with, over time.
type Await struct {
	Process int    // index in Recording.Processes
	Node    NodeID // the task's own coroutine first; each frame is Suspended
	Kind    AwaitKind
	Windows []AwaitWindow
}

// AwaitKind is what tasks wait for.
type AwaitKind uint8

// What they wait for; the zero value is anything that is no task.
const (
	AwaitsOther AwaitKind = iota
	AwaitsTasks           // other tasks
	AwaitsTurn            // nothing any more: they are ready, and the loop is busy with another
)

// AwaitKinds lists them.
func AwaitKinds() []AwaitKind { return []AwaitKind{AwaitsOther, AwaitsTasks, AwaitsTurn} }

// AwaitWindow is a stretch of time in which tasks waited there. Windows of one Await are in
// order and do not overlap; between them none waited.
type AwaitWindow struct {
	Start, End Nanos
	Waiting    Nanos // sum over the tasks
	Most       int   // of them at once
	Begun      int   // awaits that began in it, as far as readings show
}

// TaskReading says how the tasks of event loops were read, as it was. The zero value: no
// event loop was seen.
type TaskReading struct {
	Reads int64 // of all tasks
	// Longest is the longest time between two of them in which tasks may have changed.
	Longest Nanos
	Most    int   // tasks at once
	Cut     int64 // tasks read whose innermost coroutines were not sure …
	Lost    int64 // … and of which nothing was
	CPU     Nanos // that the reading used
}

// awaitKey is whose await it is, and where.
type awaitKey struct {
	process int
	node    NodeID
	kind    AwaitKind
}

// AddAwaits says how many tasks of a process waited with each stack between two times, and how many of these awaits
// began at the first. The calls for one process and kind come in order of time.
func (b *Builder) AddAwaits(process int, from, to Nanos, kind AwaitKind, tasks, begun map[NodeID]int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if from = max(from, 0); to <= from {
		return
	}
	for node, count := range tasks {
		if count <= 0 {
			continue
		}
		key := awaitKey{process, node, kind}
		i, known := b.awaitAt[key]
		if !known {
			if len(b.awaits) >= maxAwaits {
				b.note(Note{NoteLeftOut, "awaits", "tasks waited in more ways than are kept apart; later ones are left out"})
				continue
			}
			if b.awaitAt == nil {
				b.awaitAt = make(map[awaitKey]int)
			}
			i = len(b.awaits)
			b.awaitAt[key] = i
			b.awaits = append(b.awaits, Await{Process: process, Node: node, Kind: kind})
		}
		a := &b.awaits[i]
		before := len(a.Windows)
		a.add(AwaitWindow{Start: from, End: to, Waiting: Nanos(count) * (to - from), Most: count, Begun: begun[node]})
		b.awaitWindows += len(a.Windows) - before
	}
	for b.awaitWindows > maxAllWindows {
		b.thinAwaits()
	}
}

// add appends a window, or prolongs the last one if it only goes on.
func (a *Await) add(w AwaitWindow) {
	if n := len(a.Windows); n > 0 {
		last := &a.Windows[n-1]
		if w.Start < last.End {
			return
		}
		even := last.Waiting == Nanos(last.Most)*(last.End-last.Start)
		if even && last.End == w.Start && last.Most == w.Most {
			last.End, last.Waiting, last.Begun = w.End, last.Waiting+w.Waiting, last.Begun+w.Begun
			return
		}
	}
	if a.Windows = append(a.Windows, w); len(a.Windows) > maxAwaitWindows {
		a.thin()
	}
}

// thin joins neighbours that follow each other; others where that does not help.
func (a *Await) thin() {
	before := len(a.Windows)
	a.join(false)
	if len(a.Windows) > before*3/4 {
		a.join(true)
	}
}

func (a *Await) join(apart bool) {
	out := a.Windows[:0]
	for i := 0; i < len(a.Windows); i++ {
		w := a.Windows[i]
		if i+1 < len(a.Windows) && (apart || w.End == a.Windows[i+1].Start) {
			next := a.Windows[i+1]
			w.End, w.Waiting, w.Most, w.Begun = next.End, w.Waiting+next.Waiting, max(w.Most, next.Most), w.Begun+next.Begun
			i++
		}
		out = append(out, w)
	}
	a.Windows = out
}

// thinAwaits makes room where all stacks together have too many windows: those with the
// most are thinned first.
func (b *Builder) thinAwaits() {
	most := 0
	for i := range b.awaits {
		most = max(most, len(b.awaits[i].Windows))
	}
	b.awaitWindows = 0
	for i := range b.awaits {
		if len(b.awaits[i].Windows) > most/2 {
			b.awaits[i].thin()
		}
		b.awaitWindows += len(b.awaits[i].Windows)
	}
}

// cutAwaits keeps what was between two times; place is the new index of a process.
func cutAwaits(awaits []Await, from, to Nanos, place func(int) int) []Await {
	var out []Await
	for _, a := range awaits {
		var windows []AwaitWindow
		for _, w := range a.Windows {
			start, end := max(w.Start, from), min(w.End, to)
			if start >= end {
				continue
			}
			part := float64(end-start) / float64(w.End-w.Start)
			waiting, begun := Nanos(float64(w.Waiting)*part), int(math.Round(float64(w.Begun)*part))
			if end-start == w.End-w.Start {
				waiting = w.Waiting
			}
			windows = append(windows, AwaitWindow{Start: start - from, End: end - from, Waiting: waiting, Most: w.Most, Begun: begun})
		}
		if len(windows) > 0 {
			out = append(out, Await{Process: place(a.Process), Node: a.Node, Kind: a.Kind, Windows: windows})
		}
	}
	return out
}
