package recorder

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// How long the end of a recording waits for the last readings of collectors of stacks,
// which come to rest within their interval, and of figures, which may hang in a driver.
const (
	StackPatience  = time.Second
	figurePatience = 150 * time.Millisecond
)

// run is the time in which at least one cell is active: from its start the
// collectors write into one Builder.
type run struct {
	Run
	cancel  context.CancelFunc
	pending []pending // the stacks first
	push    pushState // guarded by Recorder.mu

	coroutines atomic.Pointer[map[int]uint64] // of the cells, by thread
}

// pending is a collector at work.
type pending struct {
	name     string
	patience time.Duration
	stopped  <-chan struct{}
}

// startLocked starts the collectors for a run that begins with spec.
func (r *Recorder) startLocked(spec Spec, outside bool) *run {
	ctx, cancel := context.WithCancel(context.Background())
	run := &run{
		Run: Run{
			Builder: timeline.NewBuilder(timeline.Options{
				Origin:    spec.Started,
				StartedAt: time.Now().Add(-time.Duration(r.opts.Clock() - spec.Started)),
				Interval:  spec.Interval,
			}),
			PID:            r.opts.Target.PID,
			Interval:       spec.Interval,
			FigureInterval: spec.FigureInterval,
			FigureLater:    spec.FigureLater,
			Patient:        spec.Patient,
			Children:       spec.Children,
			Own:            r.opts.Own.Has,
			Rings:          spec.Rings,
		},
		cancel: cancel,
	}
	wall := timeline.Measure(r.opts.Clock, timeline.Realtime)
	run.Builder.Describe(func(rec *timeline.Recording) { rec.Wall.Begin = wall })
	run.Coroutine = run.coroutine
	run.coroutines.Store(r.coroutinesLocked()) // before there are collectors that look at them
	if r.opts.Tree != nil {
		run.Tree = r.opts.Tree(run.Builder, spec.Children)
	}
	if outside {
		run.begin(ctx, r.stacks)
	} else if r.opts.Threads != nil {
		go r.opts.Threads.Watch(ctx)
	}
	for _, w := range r.figures {
		run.begin(ctx, w)
	}
	return run
}

func (r *run) coroutine(threadID int) uint64 {
	if coroutines := r.coroutines.Load(); coroutines != nil {
		return (*coroutines)[threadID]
	}
	return 0
}

func (r *run) begin(ctx context.Context, w *worker) {
	r.pending = append(r.pending, pending{w.Name, cmp.Or(w.Patience, figurePatience), w.begin(ctx, r.Run)})
}

// stop ends the collectors and waits for their last readings, each as long as its
// patience lasts.
func (r *run) stop() {
	start := time.Now()
	r.cancel()
	for _, p := range r.pending {
		timer := time.NewTimer(p.patience - time.Since(start))
		select {
		case <-p.stopped:
		case <-timer.C:
			r.Builder.Note(timeline.NoteLate, p.name, fmt.Sprintf("the last readings were still missing %d ms after the end", p.patience.Milliseconds()))
		}
		timer.Stop()
	}
}

// worker runs one collector for one run after the other, in goroutines of its
// own: a slow driver must not hold up a cell.
type worker struct {
	Named
	idle chan struct{} // closed when the previous run's Collect has returned

	mu      sync.Mutex
	refused error // why the last Collect ended early
}

func newWorker(c Named) *worker {
	idle := make(chan struct{})
	close(idle)
	return &worker{Named: c, idle: idle}
}

// begin starts the collector as soon as it has come to rest from the run before.
// The channel closes when it has returned. The Recorder's lock is held.
func (w *worker) begin(ctx context.Context, run Run) <-chan struct{} {
	previous, stopped := w.idle, make(chan struct{})
	w.idle = stopped
	go func() {
		defer close(stopped)
		<-previous
		if ctx.Err() != nil {
			return
		}
		defer func() {
			if p := recover(); p != nil {
				run.Builder.Note(timeline.NoteFault, w.Name, fmt.Sprintf("failed while reading: %v; this is a bug of omni_perf", p))
			}
		}()
		err := w.Collect(ctx, run)
		if err != nil {
			run.Builder.Note(timeline.NoteFailed, w.Name, err.Error())
		}
		w.mu.Lock()
		w.refused = err
		w.mu.Unlock()
	}()
	return stopped
}
