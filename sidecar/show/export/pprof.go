package export

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/google/pprof/profile"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// Pprof writes the stacks for go tool pprof, gzipped: wall time and time on a
// CPU, labelled by thread and state.
func Pprof(r *report.View) ([]byte, error) {
	p := pprofOf(r)
	for t := range r.Threads {
		p.Sample = append(p.Sample, pprofSamples(p.Location, r, t, nil)...)
	}
	return encoded(p)
}

// PprofOfProcess writes those of one process for a server that keeps profiles, labelled by the training step, too.
// Nothing is returned where none of its stacks were read.
func PprofOfProcess(r *report.View, process int) ([]byte, error) {
	p, steps := pprofOf(r), stepNamesOf(r, process)
	for t := range r.Threads {
		if r.Threads[t].Process == process {
			p.Sample = append(p.Sample, pprofSamples(p.Location, r, t, steps)...)
		}
	}
	if len(p.Sample) == 0 {
		return nil, nil
	}
	return encoded(p.Compact())
}

func encoded(p *profile.Profile) ([]byte, error) {
	if err := p.CheckValid(); err != nil {
		return nil, fmt.Errorf("the pprof profile is not valid: %w", err)
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		return nil, fmt.Errorf("write the pprof profile: %w", err)
	}
	return b.Bytes(), nil
}

// pprofOf is a report's profile without samples.
func pprofOf(r *report.View) *profile.Profile {
	p := &profile.Profile{
		SampleType:        []*profile.ValueType{{Type: "wall", Unit: "nanoseconds"}, {Type: "cpu", Unit: "nanoseconds"}},
		DefaultSampleType: "wall",
		TimeNanos:         r.StartedAt.UnixNano(),
		DurationNanos:     r.DurationNS,
		PeriodType:        &profile.ValueType{Type: "wall", Unit: "nanoseconds"},
		Period:            r.Target().Sampling.Interval(r.DurationNS),
	}
	for _, s := range []string{title(r), clean(r.Headline.Text)} {
		if s != "" {
			p.Comments = append(p.Comments, s)
		}
	}
	functions := make(map[profile.Function]*profile.Function)
	for i, f := range framesOf(r) {
		p.Location = append(p.Location, &profile.Location{
			ID:   uint64(i + 1),
			Line: []profile.Line{{Function: pprofFunction(p, functions, f), Line: int64(f.line)}},
		})
	}
	return p
}

// pprofFunction is the profile's function of a frame; each is there once.
func pprofFunction(p *profile.Profile, known map[profile.Function]*profile.Function, f frame) *profile.Function {
	key := profile.Function{Name: f.function, SystemName: f.function, Filename: f.file, StartLine: int64(f.firstLine)}
	if known[key] == nil {
		function := key
		function.ID = uint64(len(p.Function) + 1)
		known[key] = &function
		p.Function = append(p.Function, &function)
	}
	return known[key]
}

// pprofSamples is a thread's time by stack, state and step.
func pprofSamples(locations []*profile.Location, r *report.View, t int, steps stepNames) (samples []*profile.Sample) {
	for _, s := range samplesOf(r, t, steps) {
		sample := &profile.Sample{
			Value:    []int64{s.wall, s.cpu},
			Label:    map[string][]string{"thread": {threadName(r, t)}, "state": {s.state.String()}},
			NumLabel: map[string][]int64{"thread_id": {int64(r.Threads[t].NativeID)}},
			NumUnit:  map[string][]string{"thread_id": {"id"}},
		}
		if s.step != "" {
			sample.Label["step"] = []string{s.step}
		}
		stack := r.Stack(s.node, maxDepth)
		slices.Reverse(stack) // leaf first
		for _, frame := range stack {
			sample.Location = append(sample.Location, locations[frame])
		}
		samples = append(samples, sample)
	}
	return samples
}
