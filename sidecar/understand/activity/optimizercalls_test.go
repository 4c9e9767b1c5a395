package activity

import (
	"slices"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

func TestWhatIsSampledEndsWhereTheOptimizersCallIsKnownTo(t *testing.T) {
	backward, forward, optimizer := origin.Backward, origin.Forward, origin.Optimizer
	at := func(start, end int, phase origin.Phase) PhaseStretch {
		return PhaseStretch{Start: timeline.Nanos(start), End: timeline.Nanos(end), Phase: phase}
	}
	in := func(start, end int, phase origin.Phase) PhaseStretch {
		p := at(start, end, phase)
		p.stepping = true
		return p
	}
	one := []timeline.Interval{timeline.Between(100, 110)}
	for _, c := range []struct {
		what    string
		calls   []timeline.Interval
		sampled []PhaseStretch
		want    []PhaseStretch
	}{
		{"nobody was met in the call",
			one, []PhaseStretch{at(0, 105, backward), at(105, 200, forward)},
			[]PhaseStretch{at(0, 100, backward), at(100, 110, optimizer), at(110, 200, forward)}},
		{"it was met, and seems long",
			one, []PhaseStretch{at(0, 90, backward), in(90, 120, optimizer), at(120, 200, forward)},
			[]PhaseStretch{at(0, 100, backward), at(100, 110, optimizer), at(110, 200, forward)}},
		{"it seems to begin late, and to end too soon",
			one, []PhaseStretch{at(0, 104, backward), in(104, 106, optimizer), at(106, 200, forward)},
			[]PhaseStretch{at(0, 100, backward), at(100, 110, optimizer), at(110, 200, forward)}},
		{"gradients are clipped before, and a schedule is asked after it",
			one, []PhaseStretch{at(0, 80, backward), at(80, 98, optimizer), in(98, 112, optimizer), at(112, 120, optimizer), at(120, 200, forward)},
			[]PhaseStretch{at(0, 80, backward), at(80, 120, optimizer), at(120, 200, forward)}},
		{"a closure runs the model in it",
			one, []PhaseStretch{at(0, 98, backward), in(98, 105, forward), in(105, 115, optimizer), at(115, 200, forward)},
			[]PhaseStretch{at(0, 100, backward), at(100, 105, forward), at(105, 110, optimizer), at(110, 200, forward)}},
		{"more than one call comes between two readings",
			append(one, timeline.Between(115, 125)), []PhaseStretch{at(0, 105, backward), in(105, 135, optimizer), at(135, 200, forward)},
			[]PhaseStretch{at(0, 100, backward), at(100, 110, optimizer), at(110, 115, backward), at(115, 125, optimizer), at(125, 200, forward)}},
		{"the stacks of more than two readings differ",
			one, []PhaseStretch{at(0, 60, backward), in(60, 200, optimizer)},
			[]PhaseStretch{at(0, 60, backward), at(60, 200, optimizer)}},
		{"no stack was read in the call",
			one, []PhaseStretch{at(0, 100, backward), at(110, 200, forward)},
			[]PhaseStretch{at(0, 100, backward), at(110, 200, forward)}},
	} {
		got := exactly(slices.Clone(c.sampled), c.calls, 20)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\ngot  %v\nwant %v", c.what, got, c.want)
		}
		var sampled, known timeline.Nanos
		for _, p := range c.sampled {
			sampled += p.End - p.Start
		}
		for _, p := range got {
			known += p.End - p.Start
		}
		if sampled != known {
			t.Errorf("%s: %d ns of %d are left", c.what, known, sampled)
		}
	}
}

func TestCallsOfAnOptimizerBesideAnotherAreNotKnownFromItsOwn(t *testing.T) {
	rec := &timeline.Recording{Processes: make([]timeline.Process, 1)}
	step := func(optimizer, end timeline.Nanos) timeline.Mark {
		return timeline.Mark{Kind: "step", Source: timeline.StepOptimizer, Optimizer: optimizer, End: end}
	}
	rec.Marks = []timeline.Mark{step(100, 110), step(0, 210), step(300, 310)}
	s := &Stacks{Rec: rec}
	if got, want := s.optimizerCalls(0), []timeline.Interval{{Start: 100, End: 110}, {Start: 300, End: 310}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	rec.Marks = append(rec.Marks, timeline.Mark{Kind: "optimizer", Name: "Adam", Start: 50, End: 50})
	if got := s.optimizerCalls(0); got != nil {
		t.Errorf("beside another one: got %v, want none", got)
	}
}
