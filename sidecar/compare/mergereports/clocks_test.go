package mergereports

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// onMachine is a report as another machine would have made it, whose clocks differ.
func onMachine(r *report.View, boot string, monotonic, wall timeline.Nanos) *report.View {
	d := *r.Document
	d.Hosts = slices.Clone(d.Hosts)
	h := &d.Hosts[0]
	h.BootID = &boot
	h.Clock.MonotonicNS += int64(monotonic)
	h.Clock.WallNS += int64(wall)
	h.Clock.EndMonotonicNS, h.Clock.EndWallNS = nil, nil
	moved, err := report.Check(&d)
	if err != nil {
		panic(err)
	}
	return moved
}

// twoMachines are four ranks, two of them on a machine whose clocks differ.
func twoMachines(t *testing.T, monotonic, wall timeline.Nanos) []*report.View {
	var in []*report.View
	for rank, tenths := range []int{4, 9, 4, 4} {
		in = append(in, rankedReport(t, rank, 1, tenths, "boot", false))
	}
	return []*report.View{in[0], in[1], onMachine(in[2], "two", monotonic, wall), onMachine(in[3], "two", monotonic, wall)}
}

// Each rank lies where it was, within the stated bound, whatever the clocks of its machine show.
func TestRanksOfTwoMachinesMeetInCollectives(t *testing.T) {
	hour := 3600 * second
	for _, clocks := range [][2]timeline.Nanos{{0, 0}, {5 * hour, second / 100}, {second, -second / 50}, {200 * hour, 3 * hour}, {3 * hour, -second / 3}} {
		r, err := Merge(twoMachines(t, clocks[0], clocks[1]), names)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Hosts) != 2 || r.Hosts[0].Aligned != nil || r.Hosts[1].Aligned == nil || r.Hosts[1].Aligned.Method != report.AlignedByCollectives {
			t.Fatalf("%v: hosts %+v", clocks, r.Hosts)
		}
		bound := r.Hosts[1].Aligned.BoundNS
		if bound > int64(second)/20 {
			t.Errorf("%v: related to %d ns only", clocks, bound)
		}
		for rank := range 4 {
			off := r.Targets[rank].StartNS - r.Targets[0].StartNS
			if max(off, -off) > bound {
				t.Errorf("%v: rank %d is %d ns off, stated are %d", clocks, rank, off, bound)
			}
			if host := r.Processes[r.Targets[rank].Process].Host; host != rank/2 {
				t.Errorf("%v: rank %d is on machine %d", clocks, rank, host)
			}
		}
		if f := r.MainFinding(); f == nil || f.ID != string(diagnose.Straggler) || *f.Line != 3 {
			t.Errorf("%v: the headline is %+v", clocks, r.Headline)
		}
		if note := r.Notes[0]; note.ID != "clocks" || !strings.Contains(note.Text, "2 machines were related by the collectives") {
			t.Errorf("%v: note %+v", clocks, note)
		}
	}
}

func TestProcessesOfTwoMachinesAreNeverOne(t *testing.T) {
	in := twoMachines(t, 0, 0)
	for _, r := range in {
		r.Processes[0].PID = 7
	}
	r, err := Merge([]*report.View{in[0], in[2]}, names)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Processes) != 4 || r.Targets[0].Process == r.Targets[1].Process {
		t.Errorf("%d processes", len(r.Processes))
	}
}

func TestWithoutCollectivesTheWallClocksDecide(t *testing.T) {
	here, there := rendezvous{}, rendezvous{}
	if m := meetings([]rendezvous{here}, []rendezvous{there}, 0, wallAgreement); m.known {
		t.Errorf("nobody met, and the clocks are related: %+v", m)
	}
	one, two := hostNamed("one"), hostNamed("two")
	one.Clock, two.Clock = report.Clock{MonotonicNS: 5e9, WallNS: 100e9}, report.Clock{MonotonicNS: 7e9, WallNS: 101e9}
	a := &axis{hosts: []hostClock{{Host: one}, {Host: two}}}
	if a.align(1, nil); a.hosts[1].offset != -1e9 || a.hosts[1].BoundNS != wallAgreement || a.hosts[1].Method != report.AlignedByWall {
		t.Errorf("got %+v", a.hosts[1])
	}
	if note, _ := a.note(); !strings.Contains(note.Text, "by their wall clocks, as far as those agree: to 50 ms") {
		t.Errorf("note %q", note.Text)
	}
}

func TestReportsOfSeveralMachinesAreOfOneRun(t *testing.T) {
	in := twoMachines(t, 0, 0)
	alone := *in[2].Document
	alone.Targets = slices.Clone(alone.Targets)
	alone.Targets[0].Rank, alone.Targets[0].WorldSize = nil, nil
	noRank, err := report.Check(&alone)
	if err != nil {
		t.Fatal(err)
	}
	years := onMachine(in[2], "three", 0, 1e9*second)
	for name, test := range map[string]struct {
		reports []*report.View
		want    error
	}{
		"one is of no rank":             {[]*report.View{in[0], noRank}, ErrNoRank},
		"two are of one rank":           {[]*report.View{in[2], onMachine(in[2], "three", 0, 0)}, ErrRuns},
		"years apart by the wall clock": {[]*report.View{in[0], years}, nil}, // they met
	} {
		if _, err := Merge(test.reports, names); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
}

// The stated bound holds in a thousand of a thousand draws: clocks that are off and drift, ranks
// that are late, a sampling that sees begins and ends late, collectives too short to be seen.
func TestTheStatedBoundHolds(t *testing.T) {
	rnd := rand.New(rand.NewPCG(27, 1))
	related, drawn := 0, 1000
	for range drawn {
		d := draw(rnd)
		m := meetings(d.here, d.there, d.wall, d.doubt)
		if !m.known {
			continue
		}
		related++
		for _, offset := range []int64{d.first, d.last} {
			if off := offset - m.offset; max(off, -off) > m.bound {
				t.Fatalf("off by %d ns, stated are %d: %+v", off, m.bound, d)
			}
		}
	}
	if related < drawn*9/10 {
		t.Errorf("only %d of %d pairs of clocks could be related", related, drawn)
	}
}

// drawnClocks are two machines: first and last are what to add to the other one's clock, at the
// begin and at the end.
type drawnClocks struct {
	here, there        []rendezvous
	wall, doubt        int64
	first, last, count int64
}

func draw(rnd *rand.Rand) drawnClocks {
	interval := int64(1e6) + rnd.Int64N(9e6)
	d := drawnClocks{doubt: 50e6, count: 5 + rnd.Int64N(60), first: rnd.Int64N(1e15) - 5e14}
	rate := (rnd.Float64()*2 - 1) * drift * 0.99
	step := int64(300e6) + rnd.Int64N(1e9)
	d.last = d.first + int64(rate*float64((d.count+1)*step))
	d.wall = d.first + rnd.Int64N(80e6) - 40e6
	ranks := make([]rendezvous, 2+rnd.IntN(6))
	missing := rnd.IntN(4) == 0
	for k := range d.count {
		all := (k + 1) * step
		offset := d.first + int64(rate*float64(all))
		late := rnd.IntN(len(ranks))
		for i := range ranks {
			leave := all + rnd.Int64N(15e6)
			enter := all - rnd.Int64N(step/2)
			if i == late {
				enter = all - rnd.Int64N(interval)
			}
			if missing && i == late && rnd.IntN(2) == 0 {
				continue // it was too short to be seen
			}
			from, to := enter+rnd.Int64N(interval), leave+rnd.Int64N(interval)
			if i%2 == 1 {
				from, to = from-offset, to-offset
			}
			ranks[i].met = append(ranks[i].met, timeline.Between(timeline.Nanos(min(from, to)), timeline.Nanos(to)))
		}
	}
	for i, r := range ranks {
		r.exactly = interval
		if i%2 == 0 {
			d.here = append(d.here, r)
		} else {
			d.there = append(d.there, r)
		}
	}
	return d
}
