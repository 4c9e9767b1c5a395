package mergereports

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// asked are readings of a clock that is ahead and drifts, at some instants of the asking machine: each takes up to a while each way.
func asked(rnd *rand.Rand, boot string, ahead func(at int64) int64, instants []int64, while int64) (list []report.ClockReading) {
	for _, at := range instants {
		low, high := at-rnd.Int64N(while), at+rnd.Int64N(while)
		list = append(list, report.ClockReading{BootID: boot, MonotonicNS: at + ahead(at), LowNS: low, HighNS: high})
	}
	return list
}

// The stated bound holds in a thousand of a thousand draws, from the first reading to the last: clocks that are off and drift,
// answers that take long one way, one machine asked by the other, both by a third one, and each way round.
func TestTheBoundOfReadingsHolds(t *testing.T) {
	rnd := rand.New(rand.NewPCG(27, 3))
	for range 1000 {
		off, rate := rnd.Int64N(1e15), (rnd.Float64()*2-1)*drift*0.99
		begin, every, count := int64(1e15)+rnd.Int64N(1e12), int64(1e9)+rnd.Int64N(600e9), 1+rnd.Int64N(6)
		ahead := func(at int64) int64 { return off + int64(rate*float64(at-begin)) }
		var instants []int64
		for k := range count {
			instants = append(instants, begin+k*every)
		}
		while := int64(1e5) + rnd.Int64N(40e6)
		one, two := hostClock{Host: hostNamed("one")}, hostClock{Host: hostNamed("two")}
		add := func(at int64) int64 { return -ahead(at) } // to two's clock, to have one's
		switch rnd.IntN(3) {
		case 0:
			two.readings = asked(rnd, "one", ahead, instants, while)
		case 1:
			one.readings = asked(rnd, "two", ahead, instants, while)
			add = ahead
		case 2:
			still := func(int64) int64 { return 77e9 }
			two.readings = asked(rnd, "client", ahead, instants, while)
			one.readings = asked(rnd, "client", still, instants, while)
			add = func(at int64) int64 { return 77e9 - ahead(at) }
		}
		offset, bound, known := readings(&one, &two)
		if !known {
			t.Fatal("clocks that were read are not related")
		}
		for _, at := range []int64{begin, begin + (count-1)*every/2, begin + (count-1)*every} {
			if is := add(at) - offset; max(is, -is) > bound {
				t.Fatalf("off by %d ns, stated are %d", is, bound)
			}
		}
		if most := 3*while + int64(2.5*drift*float64((count-1)*every)); bound > most {
			t.Fatalf("stated are %d ns, where answers took %d and %d readings were %d apart", bound, while, count, every)
		}
	}
}

func hostNamed(boot string) report.Host { return report.Host{BootID: &boot} }

// Machines that nobody has asked for their clocks, or that different ones have asked, are not related by readings.
func TestReadingsOfOthersRelateNothing(t *testing.T) {
	one, two := hostClock{Host: hostNamed("one")}, hostClock{Host: hostNamed("two")}
	one.readings = []report.ClockReading{{BootID: "client", MonotonicNS: 1, LowNS: 1, HighNS: 2}}
	two.readings = []report.ClockReading{{BootID: "another client", MonotonicNS: 1, LowNS: 1, HighNS: 2}}
	if _, _, known := readings(&one, &two); known {
		t.Error("clocks are related that were never beside each other")
	}
}

// Workers of an engine are of no rank, and need not be recorded at the same time: their machines' clocks were read.
func TestWorkersOfTwoMachinesAreMergedByReadings(t *testing.T) {
	var in []*report.View
	for n := range 2 {
		in = append(in, rankedReport(t, n, 1, 4, "boot", false))
		in[n].Targets[0].Rank, in[n].Targets[0].WorldSize = nil, nil
	}
	hour := 3600 * second
	in[1] = onMachine(in[1], "two", hour, 0)
	its := in[1].Hosts[0].Clock.MonotonicNS
	in[1].Hosts[0].Readings = []report.ClockReading{{BootID: "boot", MonotonicNS: its, LowNS: its - int64(hour) - 2e6, HighNS: its - int64(hour) + 4e6}}
	r, err := Merge(in, names)
	if err != nil {
		t.Fatal(err)
	}
	aligned := r.Hosts[1].Aligned
	if aligned == nil || aligned.Method != report.AlignedByReadings || aligned.BoundNS != 3e6 {
		t.Fatalf("related by %+v", aligned)
	}
	if off := r.Targets[1].StartNS - r.Targets[0].StartNS; off != 1e6 {
		t.Errorf("the second one begins %d ns after the first", off)
	}
	if note := r.Notes[0]; !strings.Contains(note.Text, "2 machines were related by readings of one beside the other: to 3.0 ms") {
		t.Errorf("note %q", note.Text)
	}
}

// Where an engine numbers the workers of each machine, those of all machines get numbers of their own.
func TestWorkersOfSeveralMachinesHaveEachANumber(t *testing.T) {
	var in []*report.View
	for n, number := range []int{0, 1, 0} {
		r := rankedReport(t, n, 1, 4, "boot", false)
		r.Targets[0].Rank, r.Targets[0].WorldSize = nil, nil
		p := &r.Processes[r.Targets[0].Process]
		p.Role, p.RoleNumber, p.Rank = string(timeline.RoleRayWorker), &number, nil
		if n == 2 {
			r = onMachine(r, "two", second, 0)
			its := r.Hosts[0].Clock.MonotonicNS
			r.Hosts[0].Readings = []report.ClockReading{{BootID: "boot", MonotonicNS: its, LowNS: its - int64(second), HighNS: its - int64(second)}}
		}
		in = append(in, r)
	}
	merged, err := Merge(in, names)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"Ray worker 0 0", "Ray worker 2 1", "Ray worker 1 0"} { // in the order of the machines' numbers
		p := merged.Processes[merged.Targets[i].Process]
		if got := fmt.Sprint(p.Text, " ", p.Host); got != want {
			t.Errorf("worker %d is %q, want %q", i, got, want)
		}
	}
	if !strings.HasSuffix(merged.Name, "3 Ray workers on 2 machines") {
		t.Errorf("it is called %q", merged.Name)
	}
}
