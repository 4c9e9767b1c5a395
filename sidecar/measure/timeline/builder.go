package timeline

import (
	"slices"
	"sync"
	"time"
)

const (
	// defaultMaxSpans bounds all threads' spans together: 6 MB.
	defaultMaxSpans = 1 << 18
	maxMarks        = 1 << 16
	// maxThreads bounds a program that starts a thread per request for a week.
	maxThreads = 4096
	maxNotes   = 200
	maxGaps    = 1000
	openEnd    = Nanos(-1) // of a gap that lasts
)

// Options of a Builder; the zero value is usable.
type Options struct {
	Origin    int64         // CLOCK_MONOTONIC of the start; 0 = now
	StartedAt time.Time     // wall clock of the start; zero = now
	Interval  time.Duration // stack sampling interval, the first step of thinning; 0 = 1 ms
	MaxSpans  int           // 0 = 262,144
}

// Builder collects a recording while it runs. Its methods may be called from
// any goroutine; a thread's Set calls must come in order of time.
type Builder struct {
	mu       sync.Mutex
	opts     Options
	stacks   *stacks
	grid     grid
	spans    int // closed spans of all threads
	threads  []Thread
	lists    []spanList
	tracks   []*trackData
	byID     map[string]*trackData
	rec      Recording // everything but threads, frames, nodes and tracks
	hasNote  map[Note]bool
	marksCut bool

	objects      objects
	awaits       []Await
	awaitAt      map[awaitKey]int
	awaitWindows int // of all awaits

	loaders loaders

	growth     []Growth
	growthStep Nanos // of the windows that it was joined in; 0: it was not
}

// NewBuilder starts a recording.
func NewBuilder(opts Options) *Builder {
	if opts.Origin == 0 {
		opts.Origin = Monotonic()
	}
	if opts.StartedAt.IsZero() {
		opts.StartedAt = time.Now()
	}
	if opts.Interval <= 0 {
		opts.Interval = DefaultInterval
	}
	if opts.MaxSpans <= 0 {
		opts.MaxSpans = defaultMaxSpans
	}
	return &Builder{
		opts:    opts,
		stacks:  newStacks(),
		byID:    make(map[string]*trackData),
		hasNote: make(map[Note]bool),
		rec: Recording{
			Origin: opts.Origin, StartedAt: opts.StartedAt,
			Sampling: Sampling{Asked: opts.Interval, Interval: opts.Interval, CPU: -1},
		},
	}
}

// Origin returns the CLOCK_MONOTONIC time of Nanos 0.
func (b *Builder) Origin() int64 { return b.opts.Origin }

// Since converts an absolute CLOCK_MONOTONIC time.
func (b *Builder) Since(monotonic int64) Nanos { return Nanos(monotonic - b.opts.Origin) }

// Frame interns a frame.
func (b *Builder) Frame(f Frame) FrameID {
	b.mu.Lock()
	defer b.mu.Unlock()
	id, ok := b.stacks.frame(f)
	if !ok {
		return ^FrameID(0) // Child counts it for the caller
	}
	return id
}

// Child interns the stack made of parent's and one more frame called from it.
func (b *Builder) Child(parent NodeID, f FrameID) NodeID {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stacks.child(parent, f)
}

// Thread registers a thread and returns its id; Spans of t are ignored. A thread that
// was lost goes on in its lane. Beyond 4,096 threads those that follow share one lane,
// which a note says.
func (b *Builder) Thread(t Thread) ThreadID {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.lists {
		if known := &b.threads[i]; b.lists[i].lost && known.PID == t.PID && known.Process == t.Process && known.NativeID == t.NativeID && known.Main == t.Main {
			b.lists[i].lost = false
			known.RunsCell = t.RunsCell
			return ThreadID(i)
		}
	}
	if len(b.threads) == maxThreads {
		b.note(Note{NoteLeftOut, "threads", "more threads than are kept apart; later ones share one lane"})
		return maxThreads - 1
	}
	t.Spans = nil
	t.Name = clip(t.Name)
	b.threads = append(b.threads, t)
	b.lists = append(b.lists, spanList{})
	return ThreadID(len(b.threads) - 1)
}

// UpdateThread changes what is known of a thread: name, CPU time, role.
func (b *Builder) UpdateThread(id ThreadID, update func(*Thread)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	update(&b.threads[id])
	b.threads[id].Spans = nil
}

// Set says that from at on the thread's stack is node and it is in state; it
// holds until the next Set or End. Calls that change nothing cost next to
// nothing and need not be made.
func (b *Builder) Set(id ThreadID, at Nanos, node NodeID, state State, truncated bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at = max(at, 0)
	s := Span{Start: at, Node: node, State: state, Truncated: truncated}
	b.cutBack(id, at)
	if ended, ok := b.lists[id].set(s); ok {
		b.keep(id, ended)
	}
}

// Account says what the scheduler has counted of the thread up to a time: how long it
// computed since the reading before. The spans since then get these times.
func (b *Builder) Account(id ThreadID, now Scheduled) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := &b.lists[id]
	if !l.alive || now.At <= l.window.last.At && l.window.known {
		return
	}
	if now.At > l.open.Start {
		ended := l.open
		ended.End, l.open.Start = now.At, now.At
		b.keep(id, ended)
	}
	for _, s := range l.window.read(now, l.open.State) {
		b.commit(id, s)
	}
}

// endWindow gives up the weighing of what has not been until now.
func (b *Builder) endWindow(id ThreadID) {
	for _, s := range b.lists[id].window.end() {
		b.commit(id, s)
	}
}

// cutBack takes back what was said of a time from an instant on.
func (b *Builder) cutBack(id ThreadID, at Nanos) {
	l := &b.lists[id]
	if !l.alive || at >= l.open.Start {
		return
	}
	l.window.spans = cutAfter(l.window.spans, at)
	before := len(l.closed)
	l.closed = cutAfter(l.closed, at)
	b.spans += len(l.closed) - before
}

// SetWait says what the thread is blocked in from at on, and on what, until its stack or state
// changes.
func (b *Builder) SetWait(id ThreadID, at Nanos, w Wait, on ObjectID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ended, ok := b.lists[id].wait(max(at, 0), w, on); ok {
		b.keep(id, ended)
	}
}

// End says that the thread is gone, or no longer observed, from at on.
func (b *Builder) End(id ThreadID, at Nanos) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ended, ok := b.lists[id].end(at); ok {
		b.keep(id, ended)
	}
	b.endWindow(id)
}

// Lose says that nothing is known of the thread from at on, until it is registered
// again; if that is not to be expected any more, EndLost ends it.
func (b *Builder) Lose(id ThreadID, at Nanos) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := &b.lists[id]
	at = max(at, 0, l.open.Start)
	if ended, ok := l.set(Span{Start: at, Node: RootNode, State: StateUnknown}); ok {
		b.keep(id, ended)
	}
	l.lost = true
	b.endWindow(id)
	if b.threads[id].OnCPU >= 0 {
		b.threads[id].OnCPUAtLeast = true
	}
}

// EndLost ends the process's threads that were lost and not registered again.
func (b *Builder) EndLost(pid int, at Nanos) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.lists {
		if l := &b.lists[i]; l.lost && b.threads[i].PID == pid {
			l.lost = false
			if ended, ok := l.end(at); ok {
				b.keep(ThreadID(i), ended)
			}
			b.endWindow(ThreadID(i))
		}
	}
}

// BeginGap says that from at on the process's stacks show nothing. While a gap of it
// lasts, that one goes on, for the reason given last.
func (b *Builder) BeginGap(pid int, at Nanos, reason GapReason) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if g := b.openGap(pid); g != nil {
		g.Reason = reason
	} else if len(b.rec.Gaps) < maxGaps {
		b.rec.Gaps = append(b.rec.Gaps, Gap{Start: max(at, 0), End: openEnd, PID: pid, Reason: reason})
	}
}

// EndGap ends the process's gap, if there is one.
func (b *Builder) EndGap(pid int, at Nanos) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if g := b.openGap(pid); g != nil {
		g.End = max(at, g.Start)
	}
}

// CorrectGaps gives the gaps of a process that were taken to have one reason another one, which was found out since.
func (b *Builder) CorrectGaps(pid int, from, to GapReason) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.rec.Gaps {
		if g := &b.rec.Gaps[i]; g.PID == pid && g.Reason == from {
			g.Reason = to
		}
	}
}

func (b *Builder) openGap(pid int) *Gap {
	for i := range b.rec.Gaps {
		if g := &b.rec.Gaps[i]; g.PID == pid && g.End == openEnd {
			return g
		}
	}
	return nil
}

// keep takes a span that has ended, to be weighed if its thread is.
func (b *Builder) keep(id ThreadID, s Span) {
	if w := &b.lists[id].window; w.known {
		w.add(s)
		return
	}
	b.commit(id, s)
}

// commit takes a span as it is.
func (b *Builder) commit(id ThreadID, s Span) {
	l := &b.lists[id]
	before := len(l.closed)
	l.closed = b.grid.append(l.closed, s)
	b.spans += len(l.closed) - before
	for b.spans > b.opts.MaxSpans {
		b.thin()
	}
}

// thin doubles the grid's step until a quarter of the room is free again.
func (b *Builder) thin() {
	for b.spans > b.opts.MaxSpans*3/4 {
		b.grid.step = max(2*b.grid.step, 2*Nanos(b.opts.Interval))
		b.spans = 0
		for i := range b.lists {
			l := &b.lists[i]
			l.closed = b.grid.resample(l.closed)
			b.spans += len(l.closed)
		}
	}
}

// Track registers a series of figures, or returns the one of that ID.
func (b *Builder) Track(spec TrackSpec) *TrackWriter {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.byID[spec.ID]
	if t == nil {
		t = newTrackData(spec)
		b.byID[spec.ID] = t
		b.tracks = append(b.tracks, t)
	}
	return &TrackWriter{b: b, t: t}
}

// Reading is the last value of a track.
type Reading struct {
	ID    string
	Value float64
}

// Last returns the last values of all tracks that have some.
func (b *Builder) Last() []Reading {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []Reading
	for _, t := range b.tracks {
		if n := len(t.Points); n > 0 {
			out = append(out, Reading{t.ID, t.Points[n-1].Value})
		}
	}
	return out
}

// TrackWriter adds points to a track; it may be used from any goroutine.
type TrackWriter struct {
	b *Builder
	t *trackData
}

// Add appends a point: a gauge's value at at, or a rate's mean since the point
// before (for the first one: since the recording's start).
func (w *TrackWriter) Add(at Nanos, value float64) {
	w.b.mu.Lock()
	defer w.b.mu.Unlock()
	w.t.add(Point{From: w.t.last, At: at, Value: value})
}

// AddWindow appends a rate's mean over (from, at]; what lies between the last
// point and from stays unknown.
func (w *TrackWriter) AddWindow(from, at Nanos, value float64) {
	w.b.mu.Lock()
	defer w.b.mu.Unlock()
	w.t.add(Point{From: from, At: at, Value: value})
}

// Coarsen says that the source is read less often from now on: the track has no finer resolution than that.
func (w *TrackWriter) Coarsen(resolution time.Duration) {
	w.b.mu.Lock()
	defer w.b.mu.Unlock()
	w.t.Resolution = max(w.t.Resolution, resolution)
}

// End says why no more points come.
func (w *TrackWriter) End(reason string) {
	w.b.mu.Lock()
	defer w.b.mu.Unlock()
	w.t.Ended = reason
}

// Mark adds a step or region; beyond 65,536 they are counted in a note only.
func (b *Builder) Mark(m Mark) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.rec.Marks) >= maxMarks {
		b.marksCut = true
		return
	}
	m.Name = clip(m.Name)
	b.rec.Marks = append(b.rec.Marks, m)
}

// Note records what could not be read, or is less exact than asked; a note
// made twice is kept once.
func (b *Builder) Note(id NoteID, what, reason string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.note(Note{ID: id, What: what, Reason: reason})
}

func (b *Builder) note(n Note) {
	if b.hasNote[n] || len(b.hasNote) >= maxNotes {
		return
	}
	b.hasNote[n] = true
	b.rec.Notes = append(b.rec.Notes, n)
}

// Describe changes what is known about the recording as a whole: Target,
// Sampling, Processes, Sources, Output. It must not keep the pointer.
func (b *Builder) Describe(change func(*Recording)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(&b.rec)
}

// Snapshot returns the recording up to the given time. The Builder
// goes on; the Recording shares nothing with it that changes.
func (b *Builder) Snapshot(at Nanos) *Recording {
	b.mu.Lock()
	defer b.mu.Unlock()
	rec := b.rec
	rec.Duration = at
	rec.Sampling.Changes = slices.Clone(b.rec.Sampling.Changes)
	rec.Sampling.Clamps = slices.Clone(b.rec.Sampling.Clamps)
	rec.Resolution = max(time.Duration(b.grid.step), rec.Sampling.Taken(at))
	rec.Gaps = cutGaps(b.rec.Gaps, 0, at)
	rec.Frames = slices.Clone(b.stacks.frames)
	rec.Nodes = slices.Clone(b.stacks.nodes)
	rec.Processes = slices.Clone(b.rec.Processes)
	rec.Marks = slices.Clone(b.rec.Marks)
	rec.Sources = slices.Clone(b.rec.Sources)
	rec.Notes = slices.Clone(b.rec.Notes)
	rec.Objects = slices.Clone(b.objects.list)
	rec.Awaits = cutAwaits(b.awaits, 0, at, func(process int) int { return process })
	rec.Growth = cutGrowth(b.growth, 0, at, func(process int) int { return process })
	rec.Work = cutWork(b.rec.Work, 0, at)
	rec.Loaders, rec.Batches = slices.Clone(b.loaders.list), cutReadings(b.loaders.readings, 0, at, (*LoaderReading).at)
	rec.Queues = cutReadings(b.loaders.queues, 0, at, (*QueueReading).at)
	if b.loaders.left {
		rec.Notes = append(rec.Notes, Note{NoteLeftOut, "data loaders", "more loaders, or passes over them, than are kept; later ones are left out"})
	}
	if b.stacks.full {
		rec.Notes = append(rec.Notes, Note{NoteLeftOut, "stack tree", "the table of stacks is full: deeper frames are attributed to their caller"})
	}
	if b.marksCut {
		rec.Notes = append(rec.Notes, Note{NoteLeftOut, "marks", "more steps and regions than are kept; later ones are left out"})
	}
	rec.Threads = make([]Thread, len(b.threads))
	for i, t := range b.threads {
		l := b.lists[i] // a copy: closing the open span leaves the Builder's alone
		t.Spans = slices.Clone(l.closed)
		for _, s := range l.window.sofar() {
			t.Spans = b.grid.append(t.Spans, s)
		}
		if ended, ok := l.end(at); ok {
			t.Spans = b.grid.append(t.Spans, ended)
		}
		t.Spans = cut(t.Spans, 0, at)
		rec.Threads[i] = t
	}
	rec.Tracks = make([]Track, len(b.tracks))
	for i, t := range b.tracks {
		rec.Tracks[i] = t.Track
		rec.Tracks[i].Points = cutPoints(t.Points, 0, at)
	}
	return &rec
}
