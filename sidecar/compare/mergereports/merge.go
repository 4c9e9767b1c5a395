// Package mergereports puts the reports of several processes of one machine into one, on one
// time axis: those of the ranks of a distributed run, each recorded by itself.
//
// In flow reports, out flows a report; all functions are pure and the reports that go in
// stay as they are. The clock of a machine between two starts is one, so that documents
// with the same boot id are laid over each other exactly. Those of other machines are
// refused: their clocks need to be compared first.
package mergereports

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

var (
	// ErrMachines is of reports of several machines, or of one that was started anew in between.
	ErrMachines = errors.New("the reports are of different machines, or of one machine before and after a restart: their clocks cannot be compared; merge those of each machine by themselves")
	// ErrNoClock is of a report that does not name its machine.
	ErrNoClock = errors.New("does not name the machine on which it was recorded; record it anew by this version of omni-perf")
	errNothing = errors.New("there is no report to merge")
	errTooLong = errors.New("the reports are more than a year apart")
)

// longest bounds the time from the first report's beginning to the last one's end.
const longest = int64(366 * 24 * time.Hour)

// Merge puts reports together; names are what to call them in errors.
func Merge(reports []*report.View, names []string) (*report.View, error) {
	if len(reports) == 0 {
		return nil, errNothing
	}
	first, end := int64(0), int64(0)
	for i, r := range reports {
		host := r.Hosts[r.Target().Host]
		switch {
		case host.BootID == nil || *host.BootID == "":
			return nil, fmt.Errorf("%s %w", names[i], ErrNoClock)
		case *host.BootID != *reports[0].Hosts[reports[0].Target().Host].BootID:
			return nil, fmt.Errorf("%s and %s: %w", names[0], names[i], ErrMachines)
		}
		if at := host.Clock.MonotonicNS; i == 0 || at < first {
			first = at
		}
		end = max(end, host.Clock.MonotonicNS+r.DurationNS)
	}
	if end-first > longest {
		return nil, errTooLong
	}
	order := make([]int, len(reports))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(rankOf(reports[a]), rankOf(reports[b])), cmp.Compare(clockOf(reports[a]), clockOf(reports[b])))
	})
	sorted, sortedNames := make([]*report.View, len(order)), make([]string, len(order))
	for to, from := range order {
		sorted[to], sortedNames[to] = reports[from], names[from]
	}
	m := newMerging(sorted, first, end-first)
	if err := m.recordedTwice(sortedNames); err != nil {
		return nil, err
	}
	for i := range sorted {
		m.add(i)
	}
	m.finish()
	merged, err := report.Check(&m.doc)
	if err != nil {
		return nil, fmt.Errorf("the reports do not fit together: %w", err)
	}
	addStraggler(merged)
	return merged, nil
}

func clockOf(r *report.View) int64 { return r.Hosts[r.Target().Host].Clock.MonotonicNS }

// rankOf is the rank that a report is of; those of none come last.
func rankOf(r *report.View) int {
	if rank := r.Target().Rank; rank != nil {
		return *rank
	}
	return 1 << 30
}

// merging is a merged document in the making.
type merging struct {
	reports []*report.View
	first   int64 // CLOCK_MONOTONIC of the merged origin
	doc     report.Document
	code    *dictionary
	devices map[deviceKey]int // merged index
	owner   map[int]int       // which report describes a merged device

	places    [][]int      // by report and its process, the merged process
	sightings [][]sighting // by merged process
}

func newMerging(reports []*report.View, first, duration int64) *merging {
	base := reports[0]
	m := &merging{reports: reports, first: first, devices: make(map[deviceKey]int), owner: make(map[int]int)}
	m.doc = report.Document{
		Document: report.Kind, Version: report.Version, Generator: base.Generator, Name: base.Name, StartedAt: base.StartedAt, DurationNS: duration,
		Devices: []report.Device{}, Steps: []report.Step{}, Regions: []report.Region{}, Lines: []report.Line{}, Phases: []report.Phase{},
		FunctionTimes: []report.FunctionTime{}, Findings: []report.Finding{}, Gaps: []report.Gap{}, Notes: []report.Note{},
		Headline: report.Headline{Kind: report.HeadlineSummary, Limits: []int{}}, Enumerations: base.Enumerations,
	}
	m.doc.Spans = report.Spans{First: report.Column{0}, GapUS: report.Column{}, LengthUS: report.Column{}, Node: report.Column{}, State: report.Column{}, Incomplete: report.Column{}}
	m.code = newDictionary(&m.doc)
	m.host()
	m.identify()
	m.doc.Processes = make([]report.Process, len(m.sightings))
	m.chooseDevices()
	return m
}

// host takes over the machine, with its clock at the merged origin and end.
func (m *merging) host() {
	for _, r := range m.reports {
		h := r.Hosts[r.Target().Host]
		if h.Clock.MonotonicNS == m.first {
			m.doc.Hosts, m.doc.StartedAt = []report.Host{h}, r.StartedAt
			break
		}
	}
	clock := &m.doc.Hosts[0].Clock
	for _, r := range m.reports {
		if c := r.Hosts[r.Target().Host].Clock; c.EndMonotonicNS != nil && (clock.EndMonotonicNS == nil || *c.EndMonotonicNS > *clock.EndMonotonicNS) {
			clock.EndMonotonicNS, clock.EndWallNS = c.EndMonotonicNS, c.EndWallNS
		}
		if c := r.Hosts[r.Target().Host].Clock; c.ErrorNS != nil && clock.ErrorNS != nil && *c.ErrorNS > *clock.ErrorNS {
			clock.ErrorNS = c.ErrorNS
		}
	}
}

// finish brings the tables into their order.
func (m *merging) finish() {
	d := &m.doc
	slices.SortStableFunc(d.Lines, func(a, b report.Line) int { return cmp.Compare(b.SelfNS, a.SelfNS) })
	slices.SortStableFunc(d.FunctionTimes, func(a, b report.FunctionTime) int { return cmp.Compare(b.SelfNS, a.SelfNS) })
	m.groupSteps()
	slices.SortStableFunc(d.Ranks, func(a, b report.Rank) int { return cmp.Compare(a.Rank, b.Rank) })
	d.Tracks = append(m.sums(), d.Tracks...)
	if d.Idle != nil {
		m.finishIdle()
	}
	if d.Name == "" {
		d.Name = words.Plural(len(m.reports), "report", "reports") + " together"
	}
}

// groupSteps puts the steps of each process together, in the order in which processes come.
func (m *merging) groupSteps() {
	first := make(map[int]int)
	for i, s := range m.doc.Steps {
		if _, known := first[s.Process]; !known {
			first[s.Process] = i
		}
	}
	slices.SortStableFunc(m.doc.Steps, func(a, b report.Step) int {
		return cmp.Or(cmp.Compare(first[a.Process], first[b.Process]), cmp.Compare(a.StartNS, b.StartNS))
	})
}
