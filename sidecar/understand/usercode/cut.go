package usercode

import (
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// cut leaves of a recording what is between two times. What was counted over the whole recording and
// not by time is apportioned: a thread's CPU time by the time in which it computed or wanted to, as the
// formatting of a traceback computes without a pause, of which its process has used as much less, and the sampler's counts
// by time.
func cut(rec *timeline.Recording, from, to timeline.Nanos) *timeline.Recording {
	whole := *rec
	whole.Threads, whole.Processes = slices.Clone(rec.Threads), slices.Clone(rec.Processes)
	for i := range whole.Threads {
		t := &whole.Threads[i]
		all, kept := runnable(t.Spans, 0, rec.Duration), runnable(t.Spans, from, to)
		if t.OnCPU > 0 && all > 0 {
			used := t.OnCPU
			t.OnCPU = min(share(used, kept, all), to-from)
			if t.Process >= 0 && t.Process < len(whole.Processes) && whole.Processes[t.Process].CPU >= used {
				whole.Processes[t.Process].CPU -= used - t.OnCPU
			}
		}
	}
	out := whole.Slice(from, to)
	s := &out.Sampling
	for _, count := range []*int64{&s.Samples, &s.Missed, &s.Reads, &s.Lost, &s.Truncated} {
		*count = share(*count, to-from, rec.Duration)
	}
	if s.CPU > 0 {
		s.CPU = share(s.CPU, to-from, rec.Duration)
	}
	return out
}

// share is a part of an amount, for times as well as counts.
func share[N ~int64](amount N, part, of timeline.Nanos) N {
	return N(float64(amount) * (float64(part) / float64(of)))
}

// runnable is for how long a thread ran, or was said to, or wanted to.
func runnable(spans []timeline.Span, from, to timeline.Nanos) (sum timeline.Nanos) {
	for _, s := range spans {
		switch s.State {
		case timeline.StatePython, timeline.StateNative, timeline.StateOff:
			sum += max(min(s.End, to)-max(s.Start, from), 0)
		}
	}
	return sum
}

// inPhase is for how long a notebook did something, format a traceback, say, after a cell had ended at a time.
func inPhase(phase timeline.Phase, t timeline.Thread, positions []position, ended timeline.Nanos) (sum timeline.Nanos) {
	for _, s := range t.Spans {
		if s.Start >= ended && at(positions, s.Node).phase == phase {
			sum += s.End - s.Start
		}
	}
	return sum
}
