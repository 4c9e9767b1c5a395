package export

import "github.com/omni-perf/omni-perf/sidecar/understand/report"

// sample is a thread's time in one stack and state: what formats without a time axis have.
type sample struct {
	node      int32
	state     report.State
	step      string // as stepNames has it; empty: none
	wall, cpu int64  // nanoseconds
}

// samplesOf adds up a thread's time by stack and state, and by step where there are some; in order of
// first appearance.
func samplesOf(r *report.View, t int, steps stepNames) []sample {
	type key struct {
		node  int32
		state report.State
		step  string
	}
	at := make(map[key]int)
	var samples []sample
	for _, s := range r.History(t) {
		if s.Node == 0 {
			continue // no Python code ran
		}
		for name, length := range steps.cut(s.Start, s.End) {
			k := key{s.Node, s.State, name}
			i, ok := at[k]
			if !ok {
				i = len(samples)
				at[k] = i
				samples = append(samples, sample{node: s.Node, state: s.State, step: name})
			}
			samples[i].wall += length
			if s.State.Computes() {
				samples[i].cpu += length
			}
		}
	}
	return samples
}
