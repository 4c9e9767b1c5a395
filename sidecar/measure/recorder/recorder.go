// Package recorder records one process: it starts the collectors when the first
// cell begins, stops them when the last one has ended, and hands over what each
// cell saw as a timeline.Recording.
//
// In flow Begin and End (or nothing but one of each, for a script or an attached
// process) and, where stacks cannot be read from outside, the samples of the
// in-kernel sampler (Push). Nested and concurrent cells share one run: one set of
// collectors and one timeline.Builder, of which each gets its slice of time.
//
// The package knows no protocol, no display and no particular collector.
package recorder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// maxStartLag: a cell's start is measured by the kernel's clock, which is ours; more than this
// off, it is no time of this run.
const maxStartLag = int64(10 * time.Second)

// Run is what a collector gets to know about the recording it writes into.
type Run struct {
	Builder        *timeline.Builder
	PID            int           // the target
	Interval       time.Duration // between two reads of the stacks
	FigureInterval time.Duration // between two reads of figures …
	FigureLater    time.Duration // … and from timeline.FirstFigures on; 0: the same
	Patient        bool          // the target began with the run and may not run Python yet
	Children       Children      // what is recorded of the target's descendants
	Tree           Tree          // knows who they are; nil: nobody looks for them
	// Coroutine returns the coroutine object that a thread's event loop runs a recorded
	// cell in, by the thread's native id; 0 if there is none. From any goroutine.
	Coroutine func(threadID int) uint64
	// Own reports whether a thread of the target is the profiler's own, by native id. From any
	// goroutine.
	Own   func(threadID int) bool
	Rings string // folder in which processes leave what their GPUs did; empty: none does
}

// Tree knows the processes that descend from the target, and itself. Its methods may be
// called from any goroutine.
type Tree interface {
	Has(pid int) bool  // whether one of them lives
	Index(pid int) int // in Recording.Processes; 0, the target's, for a pid that is none of theirs
}

// Collector reads figures of one kind while a run lasts.
//
// Collect is called in a goroutine of its own, so it may be slow to start. It
// writes until ctx ends, takes a last reading where that makes sense, and returns;
// after that nothing more is written. An error says why there is nothing from this
// collector, or nothing more, and becomes a note of the recording.
type Collector interface {
	Collect(ctx context.Context, run Run) error
}

// Stacks is the collector of Python stacks.
type Stacks interface {
	Collector
	// Attach finds the interpreter in the target and tries to read it; at once when
	// that was done before, so that Collect starts in no time. An error that is
	// fs.ErrPermission may go away when the target grants access.
	Attach(pid int) error
	Close() // lets go of the target
}

// Named gives a collector the name its notes carry.
type Named struct {
	Name string
	Collector
	// Patience is how long the end of a recording waits for its last readings; 0: 150 ms.
	// What comes later goes into a Builder that nobody reads any more.
	Patience time.Duration
}

// Options of a Recorder.
type Options struct {
	Target     timeline.Target // Cell is set for each cell
	Stacks     Stacks          // nil where there is none for this system
	Collectors []Named
	Clock      timeline.Clock // nil: CLOCK_MONOTONIC
	// Own takes in the profiler's own threads in the target; nil where nobody else asks.
	Own *OwnThreads
	// Threads gives the stacks that are pushed their state; nil: it stays unknown.
	Threads ThreadStates
	// Tree makes the tree of processes of one run; nil: there is none.
	Tree func(*timeline.Builder, Children) Tree
	// Code looks at the files that the stacks name and where the target's Python
	// lies; nil: neither is known.
	Code Code
	// Host describes the machine; nil: it is not known.
	Host func() timeline.Host
}

// Code knows the target's code on disk.
type Code interface {
	// Describe adds to a recording what is to be found under the files that its
	// frames name and, unless that is known, where Python and its packages lie.
	Describe(*timeline.Recording)
}

// ThreadStates knows what the target's threads did lately.
type ThreadStates interface {
	Watch(ctx context.Context) // reads until ctx ends
	Read()                     // reads once more
	State(tid int, monotonic int64) (timeline.State, bool)
}

// Recorder records one process. Its methods may be called from any goroutine.
type Recorder struct {
	opts    Options
	stacks  *worker   // of Options.Stacks
	figures []*worker // of Options.Collectors

	mu       sync.Mutex
	run      *run // nil while nothing is recorded
	cells    map[string]*cell
	sources  sourceBook
	install  *timeline.Installation // as the target reported; nil where it did not
	loaded   map[string]time.Time   // likewise
	fallback fallback
	denied   error // why the stacks cannot be read from outside; nil when they can, or were not tried
	closed   bool
}

// cell is a recording in progress.
type cell struct {
	spec    Spec
	started int64             // CLOCK_MONOTONIC
	first   bool              // its run began with it
	before  timeline.Sampling // of the run, when it joined
	clamps  []timeline.Clamp
}

// Spec says what begins.
type Spec struct {
	ID             string // unique among those in progress
	Started        int64  // CLOCK_MONOTONIC; 0 = now
	ThreadID       int    // native id of the thread that runs it; 0 = the main thread
	Coroutine      uint64 // address of the coroutine object that the thread's event loop runs it in; 0 = none
	Interval       time.Duration
	FigureInterval time.Duration
	FigureLater    time.Duration // instead of it, from timeline.FirstFigures on; 0: the same
	Patient        bool          // the target begins now: its stacks are waited for until it runs Python
	Children       Children
	OwnThreads     []int          // native ids of the profiler's own threads in the target
	Rings          string         // folder in which processes leave what their GPUs did; empty: none does
	Cell           *timeline.Cell // nil for a script or process
	Sources        []timeline.Source
}

// Ending says how it ended.
type Ending struct {
	Began   int64 // CLOCK_MONOTONIC, if later than its recording did; 0 = as that did
	At      int64 // likewise; 0 = now
	Outcome string
	Marks   []Mark
	Sources []timeline.Source
	Files   []string // whose sources are kept besides those of the stacks
	Output  *timeline.Output
	Loaded  map[string]time.Time // times that files had when their code was loaded
}

// Mark is a step or region in CLOCK_MONOTONIC.
type Mark struct {
	Kind, Name string
	Start, End int64
	Source     timeline.MarkSource // of a step
	Thread     int                 // native id of the thread that a region is of; 0: it is of the process
	Batch      timeline.Batch      // of a step
	Anew       bool                // as in timeline.Mark
	Optimizer  int64               // likewise
}

// The errors a caller decides on.
var (
	ErrClosed  = errors.New("the recorder is closed")
	ErrUnknown = errors.New("no such recording in progress")
	ErrRunning = errors.New("a recording of that id is in progress")
)

// New makes a Recorder; nothing is read before the first Begin or Attach.
func New(opts Options) *Recorder {
	if opts.Clock == nil {
		opts.Clock = timeline.Monotonic
	}
	if opts.Own == nil {
		opts.Own = &OwnThreads{}
	}
	r := &Recorder{opts: opts, cells: make(map[string]*cell)}
	if opts.Stacks != nil {
		r.stacks = newWorker(Named{Name: timeline.NoteStacks, Collector: opts.Stacks, Patience: StackPatience})
	}
	for _, c := range opts.Collectors {
		r.figures = append(r.figures, newWorker(c))
	}
	return r
}

// Describe changes what is known about the target from the next cell on.
func (r *Recorder) Describe(change func(*timeline.Target)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.opts.Target)
}

// Installed takes over what the target itself says of its installation.
func (r *Recorder) Installed(i timeline.Installation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.install = &i
}

// Attach tries to read the target's stacks from outside and returns why not:
// fs.ErrPermission where the target may grant it, another error for good.
func (r *Recorder) Attach() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.attachLocked()
}

// Refusal is why there were no stacks, or no more of them, in the last run that ended.
func (r *Recorder) Refusal() error {
	if r.stacks == nil {
		return errNoReader
	}
	r.stacks.mu.Lock()
	defer r.stacks.mu.Unlock()
	return r.stacks.refused
}

var errNoReader = errors.New("stacks are read from outside on Linux only")

func (r *Recorder) attachLocked() error {
	if r.denied != nil && !errors.Is(r.denied, fs.ErrPermission) {
		return r.denied
	}
	r.denied = errNoReader
	if r.opts.Stacks != nil {
		r.denied = r.opts.Stacks.Attach(r.opts.Target.PID)
	}
	return r.denied
}

// Begin starts recording. outside says why the stacks are not read, as Attach
// does; with err nothing was started.
func (r *Recorder) Begin(spec Spec) (outside error, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, ErrClosed
	}
	if r.cells[spec.ID] != nil {
		return nil, fmt.Errorf("%w: %q", ErrRunning, spec.ID)
	}
	spec, clamps := spec.withDefaults()
	now := r.opts.Clock()
	if spec.Started <= 0 || spec.Started > now || now-spec.Started > maxStartLag {
		spec.Started = now
	}
	r.sources.add(spec.Sources...)
	r.opts.Own.add(spec.OwnThreads)
	outside = r.attachLocked()
	c := &cell{spec: spec, started: spec.Started, first: r.run == nil, clamps: clamps}
	r.cells[spec.ID] = c
	if c.first {
		r.run = r.startLocked(spec, outside == nil || spec.Patient)
	} else {
		r.joinLocked(c)
		r.publishCoroutinesLocked()
	}
	return outside, nil
}

// Know takes in what became known of the target's code, and of the profiler's own threads in it, after a recording began.
func (r *Recorder) Know(sources []timeline.Source, ownThreads []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sources.add(sources...)
	r.opts.Own.add(ownThreads)
}

// publishCoroutinesLocked reports to the collectors of the run in which coroutines its cells run.
func (r *Recorder) publishCoroutinesLocked() {
	if r.run != nil {
		r.run.coroutines.Store(r.coroutinesLocked())
	}
}

// coroutinesLocked are those that the cells run in, by thread: of cells on one thread the
// innermost's counts, which began last.
func (r *Recorder) coroutinesLocked() *map[int]uint64 {
	began := make(map[int]int64)
	coroutines := make(map[int]uint64)
	for _, c := range r.cells {
		if t := c.spec.ThreadID; c.spec.Coroutine != 0 && c.started >= began[t] {
			began[t], coroutines[t] = c.started, c.spec.Coroutine
		}
	}
	return &coroutines
}

// joinLocked lets c share the run that is in progress.
func (r *Recorder) joinLocked(c *cell) {
	b := r.run.Builder
	if r.run.Interval > c.spec.Interval {
		b.Note(timeline.NoteOtherInterval, "sampling interval", fmt.Sprintf("this cell asked for %s but ran inside another that is sampled every %s",
			timeline.IntervalText(c.spec.Interval), timeline.IntervalText(r.run.Interval)))
	}
	b.Describe(func(rec *timeline.Recording) { c.before = rec.Sampling })
	// The run may have begun a little after a cell of another thread did.
	c.started = max(c.started, b.Origin())
}

// End stops recording and returns what was seen between the cell's start and end.
func (r *Recorder) End(id string, ending Ending) (*timeline.Recording, error) {
	seen, err := r.Stop(id, ending)
	if err != nil {
		return nil, err
	}
	return seen(), nil
}

// Stop stops recording. What was seen is returned by a function that waits until the collectors have come to rest, which
// takes some milliseconds: the next recording may begin meanwhile.
func (r *Recorder) Stop(id string, ending Ending) (seen func() *timeline.Recording, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, run := r.cells[id], r.run
	if c == nil {
		return nil, fmt.Errorf("%w: %q", ErrUnknown, id)
	}
	delete(r.cells, id)
	now := r.opts.Clock()
	ended := ending.At
	if ended <= 0 || ended > now {
		ended = now
	}
	started := min(max(c.started, ending.Began), now)
	ended = max(ended, started)
	r.sources.add(ending.Sources...)
	r.noteLoadedLocked(ending.Loaded)
	last := len(r.cells) == 0
	if last {
		r.run = nil
		run.cancel()
	}
	r.publishCoroutinesLocked()
	target := r.opts.Target

	return func() *timeline.Recording {
		b := run.Builder
		for _, m := range ending.Marks {
			b.Mark(m.in(b, 0))
		}
		if last {
			run.stop()
		}
		rec := b.Snapshot(max(b.Since(now), b.Since(ended))).Slice(b.Since(started), b.Since(ended))
		r.complete(rec, run, func() { c.describe(rec, target, ending, c.first && last) })
		if len(ending.Files) > 0 {
			r.mu.Lock()
			rec.Sources = r.sources.of(rec, ending.Files...)
			r.mu.Unlock()
		}
		return rec
	}, nil
}

// complete adds to what was seen what is known besides. own adds what is true of the
// cell alone.
func (r *Recorder) complete(rec *timeline.Recording, run *run, own func()) {
	rec.Wall.End = timeline.Measure(r.opts.Clock, timeline.Realtime)
	if r.opts.Host != nil {
		rec.Host = r.opts.Host()
	}
	r.describe(rec, run, own)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range rec.CodeFiles {
		rec.CodeFiles[i].Loaded = r.loaded[rec.CodeFiles[i].Name]
	}
}

// describe adds what target and kernel know of the samples and the code in them.
func (r *Recorder) describe(rec *timeline.Recording, run *run, own func()) {
	r.mu.Lock()
	run.push.describe(rec)
	own()
	rec.Sources = r.sources.of(rec)
	if r.install != nil {
		rec.Installation = *r.install
	}
	r.mu.Unlock()
	if r.opts.Code != nil {
		r.opts.Code.Describe(rec)
	}
}

// maxLoaded bounds the files that a target reports.
const maxLoaded = 1 << 14

func (r *Recorder) noteLoadedLocked(loaded map[string]time.Time) {
	if r.loaded == nil {
		r.loaded = make(map[string]time.Time)
	}
	for file, at := range loaded {
		if _, known := r.loaded[file]; known || len(r.loaded) < maxLoaded {
			r.loaded[file] = at
		}
	}
}

// Discard stops recording without a result.
func (r *Recorder) Discard(id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cells[id] == nil {
		return fmt.Errorf("%w: %q", ErrUnknown, id)
	}
	delete(r.cells, id)
	r.publishCoroutinesLocked()
	if len(r.cells) == 0 {
		// Nobody waits for the figures: let the collectors come to rest alone.
		go r.run.stop()
		r.run = nil
	}
	return nil
}

// Recording returns the ids of what is being recorded, in order.
func (r *Recorder) Recording() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	ids := make([]string, 0, len(r.cells))
	for id := range r.cells {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Close ends everything, as when the target is dead. What was in progress is lost
// unless End was called before.
func (r *Recorder) Close() {
	r.mu.Lock()
	run := r.run
	r.run, r.closed = nil, true
	clear(r.cells)
	r.mu.Unlock()
	if run != nil {
		run.stop()
	}
	if r.opts.Stacks != nil {
		r.opts.Stacks.Close()
	}
}

// withDefaults fills in what was not said and keeps what was within its limits.
func (s Spec) withDefaults() (Spec, []timeline.Clamp) {
	if s.Interval <= 0 {
		s.Interval = timeline.DefaultInterval
	}
	if s.FigureInterval <= 0 {
		s.FigureInterval = timeline.DefaultFigureInterval
	}
	var clamps []timeline.Clamp
	clamp := func(option string, d *time.Duration, least time.Duration) {
		if used := min(max(*d, least), timeline.MaxInterval); used != *d {
			clamps = append(clamps, timeline.Clamp{Option: option, Asked: *d, Used: used})
			*d = used
		}
	}
	clamp("interval", &s.Interval, timeline.MinInterval)
	clamp("figure_interval", &s.FigureInterval, timeline.MinFigureInterval)
	return s, clamps
}

// describe reports in rec what is true of this cell alone. whole is false where it
// had only a part of its run, whose counts are then not its own.
func (c *cell) describe(rec *timeline.Recording, target timeline.Target, ending Ending, whole bool) {
	if c.spec.Cell != nil {
		cell := *c.spec.Cell
		cell.Outcome = ending.Outcome
		target.Cell = &cell
	}
	rec.Target = target
	rec.Output = ending.Output
	rec.Sampling.Clamps = c.clamps
	rec.Sampling.Asked = c.spec.Interval
	for _, clamp := range c.clamps {
		if clamp.Option == "interval" {
			rec.Sampling.Asked = clamp.Asked
		}
		limit := "shortest"
		if clamp.Asked > clamp.Used {
			limit = "longest"
		}
		rec.Notes = append(slices.Clone(rec.Notes), timeline.Note{
			ID: timeline.NoteClamped, What: strings.ReplaceAll(clamp.Option, "_", " "), Reason: fmt.Sprintf("%s was asked for; %s is the %s", timeline.IntervalText(clamp.Asked), timeline.IntervalText(clamp.Used), limit),
		})
	}
	for i := range rec.Threads {
		t := &rec.Threads[i]
		if t.PID == target.PID {
			t.RunsCell = t.NativeID == c.spec.ThreadID || (c.spec.ThreadID == 0 && t.Main)
		}
		if !whole {
			t.OnCPU = -1
		}
	}
	if whole {
		return
	}
	// The sampler shows its counts now and then only: what it reported meanwhile is
	// this cell's, but the number of samples is better known from the time.
	s := &rec.Sampling
	s.Samples = int64(rec.Duration) / int64(max(s.Kept(rec.Duration), 1))
	s.Missed -= c.before.Missed
	s.Reads -= c.before.Reads
	s.Lost -= c.before.Lost
	s.Truncated -= c.before.Truncated
	s.CPU = -1
	rec.Notes = append(slices.Clone(rec.Notes), timeline.Note{
		ID: timeline.NoteEstimated, What: "number of samples", Reason: "estimated from the interval: the recording of another cell had not ended when its own began",
	})
}
