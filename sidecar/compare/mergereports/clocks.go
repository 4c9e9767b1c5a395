package mergereports

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// axis relates the clocks of all reports to that of the first one's machine.
//
// Reports of one machine between two starts of it have one clock, CLOCK_MONOTONIC. Machines
// are related to the first one's by readings of one beside the other, if their documents have
// some: see readings. Else by the collectives in which ranks of both met: see meetings. Else by
// their wall clocks, of which nobody knows how far they agree.
type axis struct {
	hosts []hostClock
	host  []int   // of each report
	begin []int64 // of each report, by the first machine's clock
}

// hostClock is a machine, and how its clock lies to the first machine's.
type hostClock struct {
	report.Host
	offset int64 // to add to its clock
	report.Alignment
	readings []report.ClockReading // of all its reports
}

// wallAgreement is how far the wall clocks of machines are taken to agree: those that NTP
// keeps agree to a few milliseconds, in most networks.
const wallAgreement = int64(50e6)

// axisOf relates the reports; names are what to call them in errors. Those of several runs are refused, unless they are asked for.
func axisOf(reports []*report.View, names []string, anyRuns bool) (*axis, error) {
	a := &axis{}
	for i, r := range reports {
		h := r.Hosts[r.Target().Host]
		if h.BootID == nil || *h.BootID == "" {
			return nil, fmt.Errorf("%s %w", names[i], ErrNoClock)
		}
		at := slices.IndexFunc(a.hosts, func(known hostClock) bool { return *known.BootID == *h.BootID })
		if at < 0 {
			at = len(a.hosts)
			a.hosts = append(a.hosts, hostClock{Host: h})
		}
		a.host = append(a.host, at)
		a.hosts[at].readings = append(a.hosts[at].readings, h.Readings...)
	}
	for h := 1; h < len(a.hosts); h++ {
		if a.align(h, reports); a.hosts[h].offset > longest || a.hosts[h].offset < -longest {
			return nil, errTooLong
		}
	}
	if anyRuns {
		a.place(reports)
		return a, nil
	}
	if slices.ContainsFunc(a.hosts, func(h hostClock) bool { return h.Method != "" && h.Method != report.AlignedByReadings }) {
		if err := oneRun(reports, names); err != nil {
			return nil, err
		}
	}
	a.place(reports)
	for i := range reports {
		if a.host[i] > 0 && a.hosts[a.host[i]].Method != report.AlignedByReadings && !a.together(0, i, reports) {
			return nil, fmt.Errorf("%s and %s %w", names[0], names[i], ErrApart)
		}
	}
	return a, nil
}

// place puts the reports' beginnings on the axis.
func (a *axis) place(reports []*report.View) {
	for i, r := range reports {
		a.begin = append(a.begin, clockOf(r)+a.hosts[a.host[i]].offset)
	}
}

// together reports whether two reports were recorded at the same time, as far as the clocks say.
func (a *axis) together(i, k int, reports []*report.View) bool {
	doubt := a.bound()
	return a.begin[i] < a.begin[k]+reports[k].DurationNS+doubt && a.begin[k] < a.begin[i]+reports[i].DurationNS+doubt
}

// align relates one machine's clock to the first one's.
func (a *axis) align(h int, reports []*report.View) {
	first, other := a.hosts[0].Clock, &a.hosts[h]
	if offset, bound, known := readings(&a.hosts[0], other); known {
		other.offset, other.BoundNS, other.Method = offset, bound, report.AlignedByReadings
		return
	}
	other.offset = (other.Clock.WallNS - other.Clock.MonotonicNS) - (first.WallNS - first.MonotonicNS)
	other.Method, other.BoundNS = report.AlignedByWall, wallAgreement+errorOf(first)+errorOf(other.Clock)
	var here, there []rendezvous
	for i, r := range reports {
		switch a.host[i] {
		case 0:
			here = append(here, rendezvousOf(r))
		case h:
			there = append(there, rendezvousOf(r))
		}
	}
	if m := meetings(here, there, other.offset, other.BoundNS); m.known {
		other.offset, other.BoundNS, other.Method = m.offset, m.bound, report.AlignedByCollectives
	}
}

func errorOf(c report.Clock) int64 {
	if c.ErrorNS == nil {
		return 0
	}
	return *c.ErrorNS
}

// oneRun requires that reports of several machines are of the ranks of one run: of anything
// else nobody can say that it happened together.
func oneRun(reports []*report.View, names []string) error {
	seen := make(map[int]string)
	for i, r := range reports {
		t, first := r.Target(), reports[0].Target()
		switch {
		case t.Rank == nil || t.WorldSize == nil:
			return fmt.Errorf("%s %w", names[i], ErrNoRank)
		case first.WorldSize == nil || *t.WorldSize != *first.WorldSize:
			return fmt.Errorf("%s and %s: %w", names[0], names[i], ErrRuns)
		case seen[*t.Rank] != "":
			return fmt.Errorf("%s and %s are both of rank %d: %w", seen[*t.Rank], names[i], *t.Rank, ErrRuns)
		}
		seen[*t.Rank] = names[i]
	}
	return nil
}

// note says how the machines' clocks were related.
func (a *axis) note() (report.Note, bool) {
	if len(a.hosts) < 2 {
		return report.Note{}, false
	}
	worst := slices.MaxFunc(a.hosts, func(a, b hostClock) int { return cmp.Compare(a.BoundNS, b.BoundNS) })
	how := "by the collectives in which their ranks met"
	switch is := func(method string) bool {
		return slices.ContainsFunc(a.hosts, func(h hostClock) bool { return h.Method == method })
	}; {
	case is(report.AlignedByWall):
		how = "by their wall clocks, as far as those agree"
	case is(report.AlignedByReadings) && !is(report.AlignedByCollectives):
		how = "by readings of one beside the other"
	}
	bound := words.Seconds(report.Seconds(worst.BoundNS))
	return report.Note{ID: "clocks", Args: map[string]any{"bound_ns": worst.BoundNS, "hosts": len(a.hosts)},
		Text: fmt.Sprintf("clocks of %s were related %s: to %s; what is closer together has no order", words.Plural(len(a.hosts), "machine", "machines"), how, bound)}, true
}

// bound is how exactly the clocks of all machines are related; 0 for one machine.
func (a *axis) bound() (most int64) {
	for _, h := range a.hosts {
		most = max(most, h.BoundNS)
	}
	return most
}
