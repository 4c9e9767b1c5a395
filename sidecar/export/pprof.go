package export

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/google/pprof/profile"

	"github.com/omni-perf/omni-perf/sidecar/report"
)

// Pprof writes the stacks for go tool pprof, gzipped: wall time and time on a
// CPU, labelled by thread and state.
func Pprof(r *report.Report) ([]byte, error) {
	p := pprofOf(historyOf(r), r)
	if err := p.CheckValid(); err != nil {
		return nil, fmt.Errorf("the pprof profile is not valid: %w", err)
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		return nil, fmt.Errorf("write the pprof profile: %w", err)
	}
	return b.Bytes(), nil
}

func pprofOf(h *history, r *report.Report) *profile.Profile {
	p := &profile.Profile{
		SampleType:        []*profile.ValueType{{Type: "wall", Unit: "nanoseconds"}, {Type: "cpu", Unit: "nanoseconds"}},
		DefaultSampleType: "wall",
		TimeNanos:         r.StartedAt.UnixNano(),
		DurationNanos:     nanos(r.DurationS),
		PeriodType:        &profile.ValueType{Type: "wall", Unit: "nanoseconds"},
		Period:            nanos(r.Sampling.IntervalS),
	}
	for _, s := range []string{title(r), clean(r.Headline)} {
		if s != "" {
			p.Comments = append(p.Comments, s)
		}
	}
	functions := make(map[profile.Function]*profile.Function)
	for i, f := range h.frames {
		p.Location = append(p.Location, &profile.Location{
			ID:   uint64(i + 1),
			Line: []profile.Line{{Function: pprofFunction(p, functions, f), Line: int64(max(f.Line, 0))}},
		})
	}
	for t := range h.spans {
		p.Sample = append(p.Sample, pprofSamples(p.Location, h, r, t)...)
	}
	return p
}

// pprofFunction is the profile's function of a frame; each is there once.
func pprofFunction(p *profile.Profile, known map[profile.Function]*profile.Function, f report.Frame) *profile.Function {
	name := clean(f.Function)
	key := profile.Function{Name: name, SystemName: name, Filename: clean(f.File), StartLine: int64(max(f.FirstLine, 0))}
	if known[key] == nil {
		function := key
		function.ID = uint64(len(p.Function) + 1)
		known[key] = &function
		p.Function = append(p.Function, &function)
	}
	return known[key]
}

// pprofSamples adds up a thread's time by stack and state.
func pprofSamples(locations []*profile.Location, h *history, r *report.Report, t int) []*profile.Sample {
	type key struct {
		node  int
		state string
	}
	samples := make(map[key]*profile.Sample)
	var inOrder []*profile.Sample
	for _, s := range h.spans[t] {
		if s.node == 0 {
			continue // no Python code ran
		}
		k := key{s.node, s.state}
		sample := samples[k]
		if sample == nil {
			sample = &profile.Sample{
				Value:    []int64{0, 0},
				Label:    map[string][]string{"thread": {h.threadName(r, t)}, "state": {clean(s.state)}},
				NumLabel: map[string][]int64{"thread_id": {int64(h.threads[t].NativeID)}},
				NumUnit:  map[string][]string{"thread_id": {"id"}},
			}
			stack := h.stack(s.node)
			slices.Reverse(stack) // leaf first
			for _, frame := range stack {
				sample.Location = append(sample.Location, locations[frame])
			}
			samples[k] = sample
			inOrder = append(inOrder, sample)
		}
		sample.Value[0] += s.end - s.start
		if computes(s.state) {
			sample.Value[1] += s.end - s.start
		}
	}
	return inOrder
}
