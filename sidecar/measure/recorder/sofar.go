package recorder

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// in is the mark as a recording has it.
func (m Mark) in(b *timeline.Builder, process int) timeline.Mark {
	mark := timeline.Mark{Kind: m.Kind, Name: m.Name, Start: max(b.Since(m.Start), 0), End: b.Since(m.End), Process: process, Source: m.Source, Thread: m.Thread, Batch: m.Batch, Anew: m.Anew}
	if m.Optimizer > 0 {
		mark.Optimizer = b.Since(m.Optimizer)
	}
	return mark
}

// knowWait is how long a process that marks something may be unknown: it is found
// within 50 ms of its start.
const knowWait = 200 * time.Millisecond

// Marks returns what adds the steps and regions of a process of the target's tree, while a recording is in progress; false if it
// is none of them, or nothing is recorded. The last ones may come when the process has ended, and is no member of the tree any more.
func (r *Recorder) Marks(id string, pid int) func(Mark) bool {
	var of *run // in which the process was found
	var process int
	return func(m Mark) bool {
		for deadline := time.Now().Add(knowWait); ; time.Sleep(10 * time.Millisecond) {
			r.mu.Lock()
			run, target := r.run, r.opts.Target.PID
			known := r.cells[id] != nil
			r.mu.Unlock()
			if known && run != of && run.Tree != nil && (pid == target || run.Tree.Has(pid)) {
				of, process = run, run.Tree.Index(pid)
			}
			if known && of != nil && run == of {
				run.Builder.Mark(m.in(run.Builder, process))
				return true
			}
			if time.Now().After(deadline) {
				return false
			}
		}
	}
}

// SoFar is what a recording in progress would be if it ended now.
func (r *Recorder) SoFar(id string) (*timeline.Recording, error) {
	r.mu.Lock()
	c, run, target := r.cells[id], r.run, r.opts.Target
	r.mu.Unlock()
	if c == nil {
		return nil, fmt.Errorf("%w: %q", ErrUnknown, id)
	}
	b := run.Builder
	now := b.Since(r.opts.Clock())
	rec := b.Snapshot(now).Slice(b.Since(c.started), now)
	r.complete(rec, run, func() { c.describe(rec, target, Ending{}, c.first) })
	return rec, nil
}

// Figures are the latest of a recording in progress; NaN where there are none.
type Figures struct {
	Samples int64
	Cores   float64 // that the target and its descendants use
	GPU     float64 // mean of the devices, in %
}

// Latest returns how a recording is going.
func (r *Recorder) Latest(id string) Figures {
	f := Figures{Cores: math.NaN(), GPU: math.NaN()}
	r.mu.Lock()
	c, run := r.cells[id], r.run
	r.mu.Unlock()
	if c == nil {
		return f
	}
	devices, sum := 0, 0.0
	for _, t := range run.Builder.Last() {
		switch {
		case t.ID == "cpu":
			f.Cores = t.Value
		case strings.HasPrefix(t.ID, "gpu") && strings.HasSuffix(t.ID, ".util") && !math.IsNaN(t.Value):
			devices, sum = devices+1, sum+t.Value
		}
	}
	if devices > 0 {
		f.GPU = sum / float64(devices)
	}
	run.Builder.Describe(func(rec *timeline.Recording) {
		f.Samples = rec.Sampling.Samples
		for _, p := range rec.Processes {
			f.Samples += p.Stacks.Samples
		}
	})
	return f
}
