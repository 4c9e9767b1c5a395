package interpret

import "github.com/omni-perf/omni-perf/sidecar/measure/timeline"

// program is the process whose code the user asked about, where the target only starts
// it: the Python that a shell script, uv or "accelerate launch" has run the longest, or the
// only rank. It is 0, the target, for every other recording, and for several ranks, which
// are explained together.
//
// A target that runs Python itself, though nothing of the user's own, only starts what
// ran the user's own for half of the time at least: pip is no wrapper of what it builds.
func (r *reader) program() int {
	rec := r.rec
	if rec.Target.Cell != nil || len(rec.Processes) < 2 {
		return 0
	}
	times := r.times()
	if times[0].own {
		return 0
	}
	best, least, ranks := 0, timeline.Nanos(1), 0
	if times[0].python {
		least = rec.Duration / 2
	}
	for i := 1; i < len(rec.Processes); i++ {
		role := rec.Processes[i].Role
		if role == timeline.RoleRank {
			ranks++
		} else if role != timeline.RoleChild {
			continue
		}
		if t := times[i]; t.main >= least && (t.own || !times[0].python) && !startedByOwn(rec, times, i) {
			best, least = i, t.main+1
		}
	}
	if ranks > 1 {
		return 0
	}
	return best
}

// times sums up the stacks of each process.
func (r *reader) times() []programTimes {
	times := make([]programTimes, len(r.rec.Processes))
	for i := range r.rec.Threads {
		t := &r.rec.Threads[i]
		if t.Process < 0 || t.Process >= len(times) {
			continue
		}
		for _, s := range t.Spans {
			times[t.Process].add(s, t.Main, r)
		}
	}
	return times
}

// programTimes is what is known of a process's stacks.
type programTimes struct {
	main   timeline.Nanos // that its main thread ran Python
	python bool
	own    bool // it ran code of the user's own
}

func (p *programTimes) add(s timeline.Span, main bool, r *reader) {
	if s.Node == timeline.RootNode {
		return
	}
	p.python = true
	if main {
		p.main += s.End - s.Start
	}
	p.own = p.own || r.stack(s.Node).line.Own
}

// startedByOwn recognises a process that another one's own code has started.
func startedByOwn(rec *timeline.Recording, times []programTimes, i int) bool {
	for range rec.Processes { // damaged files have rings
		i = rec.Processes[i].ParentIndex
		if i <= 0 || i >= len(rec.Processes) {
			return false
		}
		if times[i].own {
			return true
		}
	}
	return false
}
