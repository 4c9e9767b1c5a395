package recorder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/retry"
)

const targetPID = 4242

// fakeStacks is one thread whose stack is always the same.
type fakeStacks struct {
	refusal  error
	attached atomic.Int64
	running  atomic.Int64
	closed   atomic.Bool
}

func (f *fakeStacks) Attach(int) error {
	f.attached.Add(1)
	return f.refusal
}

func (f *fakeStacks) Close() { f.closed.Store(true) }

func (f *fakeStacks) Collect(ctx context.Context, run Run) error {
	if f.running.Add(1) > 1 {
		panic("two samplers at once")
	}
	defer f.running.Add(-1)
	b := run.Builder
	thread := b.Thread(timeline.Thread{PID: run.PID, NativeID: run.PID, Main: true, OnCPU: 5})
	node := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "f", File: "cell.py", Line: 1}))
	b.Set(thread, 0, node, timeline.StatePython, false)
	<-ctx.Done()
	b.Describe(func(r *timeline.Recording) { r.Sampling.Samples = 10 })
	return nil
}

// fakeFigures adds a point at each start and each end.
type fakeFigures struct {
	delay   time.Duration // before it looks at ctx
	err     error
	panics  bool
	ended   atomic.Int64
	release chan struct{} // if not nil: hangs until it is closed
}

func (f *fakeFigures) Collect(ctx context.Context, run Run) error {
	time.Sleep(f.delay)
	if f.panics {
		panic("a bad index")
	}
	if f.err != nil {
		return f.err
	}
	track := run.Builder.Track(timeline.TrackSpec{ID: "cpu", Kind: timeline.KindGauge})
	track.Add(run.Builder.Since(timeline.Monotonic()), 1)
	<-ctx.Done()
	if f.release != nil {
		<-f.release
	}
	track.Add(run.Builder.Since(timeline.Monotonic()), 2)
	f.ended.Add(1)
	return nil
}

func newTestRecorder(stacks *fakeStacks, figures ...Collector) *Recorder {
	o := Options{Target: timeline.Target{PID: targetPID}, Stacks: stacks}
	for i, f := range figures {
		o.Collectors = append(o.Collectors, Named{Name: fmt.Sprintf("figures %d", i), Collector: f})
	}
	return New(o)
}

func mustBegin(t testing.TB, r *Recorder, spec Spec) {
	t.Helper()
	if outside, err := r.Begin(spec); outside != nil || err != nil {
		t.Fatalf("Begin(%q) = %v, %v", spec.ID, outside, err)
	}
}

func mustEnd(t testing.TB, r *Recorder, id string, e Ending) *timeline.Recording {
	t.Helper()
	rec, err := r.End(id, e)
	if err != nil {
		t.Fatalf("End(%q): %v", id, err)
	}
	return rec
}

func TestCellGetsStacksFiguresAndItsDescription(t *testing.T) {
	figures := &fakeFigures{}
	r := newTestRecorder(&fakeStacks{}, figures)
	begun := timeline.Monotonic()
	mustBegin(t, r, Spec{ID: "a", Started: begun, Cell: &timeline.Cell{ExecutionCount: 7, File: "cell.py", Text: "f()", Name: "n"}})
	time.Sleep(5 * time.Millisecond)
	ended := timeline.Monotonic()
	rec := mustEnd(t, r, "a", Ending{At: ended, Outcome: "error: ValueError", Marks: []Mark{{Kind: "step", Name: "s", Start: begun, End: ended}}})

	if got, want := rec.Duration, timeline.Nanos(ended-begun); got != want {
		t.Errorf("duration %v, want the cell's own %v", got, want)
	}
	if c := rec.Target.Cell; c == nil || c.Outcome != "error: ValueError" || c.ExecutionCount != 7 {
		t.Errorf("cell %+v", c)
	}
	if len(rec.Threads) != 1 || !rec.Threads[0].RunsCell || rec.Threads[0].OnCPU != 5 {
		t.Errorf("threads %+v, want one that runs the cell", rec.Threads)
	}
	if len(rec.Marks) != 1 || rec.Marks[0].End != rec.Duration {
		t.Errorf("marks %+v", rec.Marks)
	}
	if len(rec.Sources) != 1 || rec.Sources[0].Text != "f()" {
		t.Errorf("sources %+v, want the cell's", rec.Sources)
	}
	if rec.Sampling.Samples != 10 || figures.ended.Load() != 1 {
		t.Errorf("%d samples, %d collectors ended; want 10 and 1", rec.Sampling.Samples, figures.ended.Load())
	}
	if got := r.Recording(); len(got) != 0 {
		t.Errorf("still recording %v", got)
	}
}

// A recording may begin before what it is of, and of what that was its end may know more: the times and the code.
func TestWhatIsKnownLaterOfACell(t *testing.T) {
	for _, c := range []struct {
		name  string
		began time.Duration // after the recording
		want  time.Duration
	}{
		{"not known", 0, 10 * time.Millisecond},
		{"before the recording", -time.Second, 10 * time.Millisecond},
		{"later", 4 * time.Millisecond, 6 * time.Millisecond},
		{"after its end", 20 * time.Millisecond, 0},
	} {
		r := newTestRecorder(&fakeStacks{})
		begun := timeline.Monotonic() - int64(30*time.Millisecond)
		mustBegin(t, r, Spec{ID: "a", Started: begun, Cell: &timeline.Cell{ExecutionCount: 7, File: "cell.py", Text: "f()"}})
		r.Know([]timeline.Source{{File: "cell.py", ExecutionCount: 7, Text: "f()", Lines: []int{1}}}, nil)
		ending := Ending{At: begun + int64(10*time.Millisecond)}
		if c.began != 0 {
			ending.Began = begun + int64(c.began)
		}
		rec := mustEnd(t, r, "a", ending)
		if rec.Duration != timeline.Nanos(c.want) {
			t.Errorf("%s: %v, want %v", c.name, rec.Duration.Duration(), c.want)
		}
		if len(rec.Sources) != 1 || len(rec.Sources[0].Lines) != 1 {
			t.Errorf("%s: sources %+v", c.name, rec.Sources)
		}
	}
}

func TestNestedAndConcurrentCellsShareOneSampler(t *testing.T) {
	stacks := &fakeStacks{}
	r := newTestRecorder(stacks, &fakeFigures{})
	outer := timeline.Monotonic()
	mustBegin(t, r, Spec{ID: "outer", Started: outer, ThreadID: targetPID})
	time.Sleep(3 * time.Millisecond)
	inner := timeline.Monotonic()
	mustBegin(t, r, Spec{ID: "inner", Started: inner, ThreadID: 99, Interval: 100 * time.Microsecond})
	if got := r.Recording(); len(got) != 2 {
		t.Fatalf("recording %v, want both", got)
	}
	time.Sleep(3 * time.Millisecond)
	end := timeline.Monotonic()
	in := mustEnd(t, r, "inner", Ending{At: end, Outcome: "ok"})
	if stacks.running.Load() != 1 {
		t.Error("the sampler stopped with the inner cell")
	}
	if in.Duration != timeline.Nanos(end-inner) || in.Origin != inner {
		t.Errorf("inner cell lasts %v from %d, want %v from %d", in.Duration, in.Origin, end-inner, inner)
	}
	if len(in.Threads) != 1 || in.Threads[0].RunsCell || in.Threads[0].OnCPU != -1 {
		t.Errorf("threads %+v: the main thread does not run the inner cell, and its CPU time is the whole run's", in.Threads)
	}
	if want := int64(in.Duration) / int64(time.Millisecond); in.Sampling.Samples != want || !hasNote(in, "number of samples") {
		t.Errorf("the inner cell has %d samples, want %d and a note", in.Sampling.Samples, want)
	}
	if !hasNote(in, "sampling interval") {
		t.Errorf("notes %v do not say that the finer interval was not to be had", in.Notes)
	}
	last := timeline.Monotonic()
	out := mustEnd(t, r, "outer", Ending{At: last})
	if out.Duration != timeline.Nanos(last-outer) || !out.Threads[0].RunsCell {
		t.Errorf("outer cell lasts %v, runs on the main thread: %v", out.Duration, out.Threads[0].RunsCell)
	}
	if stacks.running.Load() != 0 || out.Threads[0].OnCPU != 5 {
		t.Errorf("%d samplers run after the last cell; the outer one has CPU time %v, want the whole run's", stacks.running.Load(), out.Threads[0].OnCPU)
	}
}

func TestCellsFromManyGoroutines(t *testing.T) {
	r := newTestRecorder(&fakeStacks{}, &fakeFigures{}, &fakeFigures{err: errors.New("nothing here")})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for k := range 20 {
				id := fmt.Sprintf("%d.%d", i, k)
				if _, err := r.Begin(Spec{ID: id}); err != nil {
					t.Error(err)
					return
				}
				if k%3 == 0 {
					if err := r.Discard(id); err != nil {
						t.Error(err)
					}
				} else if _, err := r.End(id, Ending{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

func TestASlowCollectorHoldsUpNeitherBeginNorEnd(t *testing.T) {
	retry.Again(t, func(t *retry.Attempt) {
		hung := &fakeFigures{release: make(chan struct{})}
		r := newTestRecorder(&fakeStacks{}, &fakeFigures{delay: 300 * time.Millisecond}, hung)
		begin := time.Now()
		mustBegin(t, r, Spec{ID: "a"})
		started := time.Since(begin)
		time.Sleep(2 * time.Millisecond) // let the hanging one begin
		end := time.Now()
		rec := mustEnd(t, r, "a", Ending{})
		if took := time.Since(end); started > 250*time.Millisecond || took > 2*time.Second {
			t.Errorf("Begin took %v, End %v; the collector's own delay must not show", started, took)
		}
		if !hasNote(rec, "figures 0") || !hasNote(rec, "figures 1") {
			t.Errorf("notes %v do not say whose figures are missing", rec.Notes)
		}
		close(hung.release)
		r.Close()
	})
}

// A cell begins while the recording of the one before comes to rest, with a run of its own.
func TestTheNextRecordingBeginsWhileOneIsPutAway(t *testing.T) {
	figures := &fakeFigures{release: make(chan struct{})}
	r := newTestRecorder(&fakeStacks{}, figures)
	defer r.Close()
	mustBegin(t, r, Spec{ID: "a"})
	time.Sleep(5 * time.Millisecond)
	seen, err := r.Stop("a", Ending{})
	if err != nil {
		t.Fatal(err)
	}
	mustBegin(t, r, Spec{ID: "b"})
	if _, err := r.Stop("a", Ending{}); !errors.Is(err, ErrUnknown) {
		t.Errorf("stopped twice: %v", err)
	}
	time.Sleep(5 * time.Millisecond)
	close(figures.release)
	next := mustEnd(t, r, "b", Ending{})
	before := seen()
	for name, rec := range map[string]*timeline.Recording{"the one before": before, "the next": next} {
		if len(rec.Threads) != 1 || rec.Sampling.Samples != 10 || hasNote(rec, "number of samples") {
			t.Errorf("%s: %d threads, %d samples, notes %v", name, len(rec.Threads), rec.Sampling.Samples, rec.Notes)
		}
	}
	if end := before.Origin + int64(before.Duration); end > next.Origin {
		t.Errorf("the one before ends %v after the begin of the next", time.Duration(end-next.Origin))
	}
}

func TestCollectorsErrorsAndPanicsAreNotes(t *testing.T) {
	r := newTestRecorder(&fakeStacks{}, &fakeFigures{err: errors.New("no such file")}, &fakeFigures{panics: true})
	mustBegin(t, r, Spec{ID: "a"})
	time.Sleep(20 * time.Millisecond)
	rec := mustEnd(t, r, "a", Ending{})
	var notes []string
	for _, n := range rec.Notes {
		notes = append(notes, n.What+": "+n.Reason)
	}
	text := strings.Join(notes, "\n")
	for _, want := range []string{"figures 0: no such file", "figures 1: failed while reading: a bad index"} {
		if !strings.Contains(text, want) {
			t.Errorf("notes %q, want %q", text, want)
		}
	}
}

func TestAttachIsTriedAgainUnlessItIsHopeless(t *testing.T) {
	for _, c := range []struct {
		refusal error
		want    int64
	}{{nil, 3}, {errors.New("CPython 2.7 cannot be read"), 1}, {fs.ErrPermission, 3}} {
		stacks := &fakeStacks{refusal: c.refusal}
		r := newTestRecorder(stacks)
		for range 3 {
			if err := r.Attach(); !errors.Is(err, c.refusal) {
				t.Errorf("Attach: %v, want %v", err, c.refusal)
			}
		}
		if got := stacks.attached.Load(); got != c.want {
			t.Errorf("refused with %v: tried %d times, want %d", c.refusal, got, c.want)
		}
	}
}

func TestErrorsACallerDecidesOn(t *testing.T) {
	r := newTestRecorder(&fakeStacks{})
	if _, err := r.End("x", Ending{}); !errors.Is(err, ErrUnknown) {
		t.Errorf("End of nothing: %v", err)
	}
	mustBegin(t, r, Spec{ID: "x"})
	if _, err := r.Begin(Spec{ID: "x"}); !errors.Is(err, ErrRunning) {
		t.Errorf("Begin twice: %v", err)
	}
	r.Close()
	if _, err := r.Begin(Spec{ID: "y"}); !errors.Is(err, ErrClosed) {
		t.Errorf("Begin after Close: %v", err)
	}
	if _, err := r.End("x", Ending{}); !errors.Is(err, ErrUnknown) {
		t.Errorf("End after Close: %v", err)
	}
}

func TestTimesOutsideTheRunAreMended(t *testing.T) {
	for _, started := range []int64{-1, 1, timeline.Monotonic() + int64(time.Hour)} {
		r := newTestRecorder(&fakeStacks{})
		mustBegin(t, r, Spec{ID: "a", Started: started})
		rec := mustEnd(t, r, "a", Ending{At: timeline.Monotonic() + int64(time.Hour)})
		if rec.Duration < 0 || rec.Duration > timeline.Nanos(time.Minute) {
			t.Errorf("a cell said to begin at %d lasts %v", started, rec.Duration.Duration())
		}
	}
}

func hasNote(rec *timeline.Recording, what string) bool {
	for _, n := range rec.Notes {
		if n.What == what {
			return true
		}
	}
	return false
}
