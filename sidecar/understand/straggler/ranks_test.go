package straggler

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

func TestOf(t *testing.T) {
	for where, want := range map[[2]string]Collective{
		{"/v/site-packages/torch/distributed/distributed_c10d.py", "all_reduce"}:                    "all_reduce",
		{"/v/site-packages/torch/distributed/distributed_c10d.py", "all_gather_object"}:             "all_gather",
		{"/v/site-packages/torch/distributed/distributed_c10d.py", "barrier"}:                       "barrier",
		{"/v/site-packages/torch/distributed/distributed_c10d.py", "reduce_scatter_tensor"}:         "reduce_scatter",
		{"/v/site-packages/torch/distributed/distributed_c10d.py", "init_process_group"}:            SetUp,
		{"/v/site-packages/torch/distributed/utils.py", "_sync_module_states"}:                      SetUp,
		{"/v/site-packages/torch/distributed/distributed_c10d.py", "get_rank"}:                      None,
		{"/v/site-packages/torch/distributed/c10d_logger.py", "_exception_logger.<locals>.wrapper"}: None,
		{"/v/site-packages/torch/autograd/graph.py", "_engine_run_backward"}:                        Backward,
		{"/v/site-packages/horovod/torch/mpi_ops.py", "synchronize"}:                                "synchronize",
		{"/home/u/train.py", "barrier"}:                                                             None,
		{"/home/u/train.py", ""}:                                                                    None,
	} {
		if got := Of(origin.KnownByName(where[0]), where[1]); got != want {
			t.Errorf("%v is %q, want %q", where, got, want)
		}
	}
}

// steps of ten units: a rank works for so many, then waits in a collective for the others.
func lanes(work ...timeline.Nanos) (out []Lane) {
	for rank, units := range work {
		l := Lane{Process: rank + 1, Rank: rank}
		l.Spans = append(l.Spans, Span{timeline.Between(0, 20), SetUp, Place{"train.py", 1}})
		for at := timeline.Nanos(20); at < 220; at += 10 {
			l.Spans = append(l.Spans, Span{timeline.Between(at, at+units), None, Place{"train.py", 7 + rank}})
			if units < 10 {
				l.Spans = append(l.Spans, Span{timeline.Between(at+units, at+10), "all_reduce", Place{"train.py", 9}})
			}
		}
		out = append(out, l)
	}
	return out
}

func TestTheOneThatIsWaitedForIsFound(t *testing.T) {
	s := FindStraggler(lanes(4, 9, 4, 4))
	if s == nil || s.Lane != 1 || s.Of != 200 || s.Time != 100 || s.Place != (Place{"train.py", 8}) || s.More != 180 || s.In != "all_reduce" || s.Mean != 0 {
		t.Errorf("straggler %+v, want rank 1, 180 more than the others in its line 8", s)
	}
	if s != nil && (len(s.Intervals) != 20 || s.Intervals[0] != timeline.Between(24, 29)) {
		t.Errorf("waited for it in %v", s.Intervals)
	}
	if s := FindStraggler(lanes(3, 9)); s == nil || s.Lane != 1 || s.Time != 120 {
		t.Errorf("of two ranks: %+v", s)
	}
}

func TestWhereNobodyStandsOutNobodyIsNamed(t *testing.T) {
	turns := lanes(4, 4)
	for i := range turns { // late by turns
		turns[i].Spans = nil
		for at := timeline.Nanos(0); at < 200; at += 10 {
			units := timeline.Nanos(4)
			if (at/10)%2 == timeline.Nanos(i) {
				units = 9
			}
			turns[i].Spans = append(turns[i].Spans, Span{timeline.Between(at, at+units), None, Place{}}, Span{timeline.Between(at+units, at+10), "barrier", Place{}})
		}
	}
	for name, l := range map[string][]Lane{
		"one rank": lanes(4), "balanced": lanes(6, 6, 6, 6), "by turns": turns, "nothing known of one": append(lanes(4, 9), Lane{Rank: 2}),
		"no rank": nil,
	} {
		if s := FindStraggler(l); s != nil && name != "a little" {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func TestLateStepsAreCounted(t *testing.T) {
	l := lanes(4, 9, 4, 4)
	for at := timeline.Nanos(10); at < 220; at += 10 { // the first before all are set up
		l[1].Steps = append(l[1].Steps, timeline.Between(at, at+10))
	}
	l[1].Spans = append(l[1].Spans[:3], l[1].Spans[5:]...) // unknown for one step: as if it had worked
	if s := FindStraggler(l); s == nil || s.Steps != 21 || s.Late != 20 {
		t.Errorf("straggler %+v, want to be late in 20 of all its 21 steps", s)
	}
	even := lanes(9, 9, 9, 9)
	for at := timeline.Nanos(20); at < 220; at += 10 {
		even[1].Steps = append(even[1].Steps, timeline.Between(at, at+10))
		if at >= 120 {
			continue
		}
		for _, i := range []int{0, 2, 3} {
			even[i].Spans[1+(at-20)/5].End = at + 3
			even[i].Spans[2+(at-20)/5].Start = at + 3
		}
	}
	if s := FindStraggler(even); s == nil || s.Lane != 1 || s.Steps != 20 || s.Late != 10 {
		t.Errorf("straggler %+v, want to be late in the first 10 of 20 steps", s)
	}
}

// saving is two ranks that train for some steps of ten units and meet in backward for one of each; after each tenth step
// the first saves for so long, and the other waits in barrier. After the last step it does so, too.
func saving(steps int, save timeline.Nanos) []Lane {
	l := []Lane{{Process: 1}, {Process: 2, Rank: 1}}
	at := timeline.Nanos(0)
	for step := 1; step <= steps; step++ {
		begin := at
		for i := range l {
			l[i].Spans = append(l[i].Spans, Span{timeline.Between(at, at+8), None, Place{"train.py", 5}}, Span{timeline.Between(at+8+timeline.Nanos(i), at+10), Backward, Place{"train.py", 6}})
		}
		if at += 10; step%10 == 0 {
			l[0].Spans = append(l[0].Spans, Span{timeline.Between(at, at+save), None, Place{"train.py", 8}})
			l[1].Spans = append(l[1].Spans, Span{timeline.Between(at, at+save), "barrier", Place{"train.py", 9}})
			at += save
		}
		for i := range l {
			end := at
			if step == steps {
				end = begin + 10
			}
			l[i].Steps = append(l[i].Steps, timeline.Between(begin, end))
		}
	}
	return l
}

// The name is of the collective that has most of the waiting, and with it the steps: what is waited for a moment in each
// other step is not counted as that.
func TestTheCollectiveIsThatWithMostOfTheWaiting(t *testing.T) {
	l := saving(100, 50)
	for i := range l[0].Spans { // the first is late in each backward, too
		if s := &l[0].Spans[i]; s.In == Backward {
			s.Start += 2
		}
	}
	s := FindStraggler(l)
	if s == nil || s.Lane != 0 || s.In != "barrier" || s.InTime != 500 || s.Time <= s.InTime || s.Steps != 100 || s.Late != 9 || s.After != 50 {
		t.Fatalf("straggler %+v, want 500 in barrier in 9 of 100 steps and once after them", s)
	}
	if !s.Alone || s.Place != (Place{"train.py", 8}) {
		t.Errorf("straggler %+v, want it to have been alone in line 8", s)
	}
	if s := FindStraggler(lanes(4, 9)); s == nil || s.Alone {
		t.Errorf("straggler %+v is late in each step, not alone in few", s)
	}
}

// A wait that is seen to end late reaches into steps that nobody was late in.
func TestStepsAfterAWaitAreNotLate(t *testing.T) {
	l := saving(100, 50)
	for i := range l[1].Spans[:len(l[1].Spans)-1] {
		if s := &l[1].Spans[i]; s.In == "barrier" {
			s.End += 8
			l[1].Spans[i+1].Start += 8
		}
	}
	if s := FindStraggler(l); s == nil || s.Late != 9 {
		t.Errorf("straggler %+v, want it late in 9 steps", s)
	}
}

// No name where no collective has most of the waiting.
func TestNoCollectiveHasMostOfTheWaiting(t *testing.T) {
	l := lanes(4, 9)
	for i := range l[0].Spans {
		if s := &l[0].Spans[i]; s.In == "all_reduce" {
			s.In = []Collective{"all_reduce", "broadcast", "barrier"}[i/2%3]
		}
	}
	if s := FindStraggler(l); s == nil || s.In != None || s.InTime != 0 {
		t.Errorf("straggler %+v, want no collective", s)
	}
}

func TestPartsAddUp(t *testing.T) {
	if got, want := fmt.Sprint(lanes(4)[0].Parts()), "[{all_reduce 120} {set-up 20}]"; got != want {
		t.Errorf("parts %s, want %s", got, want)
	}
}

// Lanes that are cut at a time keep what had begun, up to it, and those that they were cut from are as they were.
func TestLanesUntilATime(t *testing.T) {
	at := timeline.Between
	lane := Lane{Rank: 1, Spans: []Span{{Interval: at(0, 4)}, {Interval: at(4, 9), In: Backward}, {Interval: at(9, 12)}}, Steps: []timeline.Interval{at(0, 6), at(6, 12)}}
	for end, want := range map[timeline.Nanos]Lane{
		0:  {Rank: 1, Spans: []Span{}, Steps: []timeline.Interval{}},
		5:  {Rank: 1, Spans: []Span{{Interval: at(0, 4)}, {Interval: at(4, 5), In: Backward}}, Steps: []timeline.Interval{at(0, 5)}},
		99: lane,
	} {
		if got := Until([]Lane{lane}, end); !reflect.DeepEqual(got, []Lane{want}) {
			t.Errorf("until %d: got %+v, want %+v", end, got, want)
		}
	}
	if lane.Spans[1].End != 9 || lane.Steps[0].End != 6 {
		t.Errorf("the lane was changed: %+v", lane)
	}
}
