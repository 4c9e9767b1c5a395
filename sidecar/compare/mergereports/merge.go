// Package mergereports puts the reports of several processes into one, on one time axis:
// those of the ranks of a distributed run, each recorded by itself.
//
// In flow reports, out flows a report; all functions are pure and the reports that go in
// stay as they are. The clock of a machine between two starts is one, so that documents
// with the same boot id are laid over each other exactly. Those of several machines are
// related by the collectives of their ranks, else by the wall clocks (see axis); the merged
// report states how exactly.
package mergereports

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

var (
	// ErrRuns is of reports of several machines that are not of the ranks of one run.
	ErrRuns = errors.New("reports of different machines are merged if they are of the ranks of one run, each rank once")
	// ErrNoRank is of a report of another machine that is of no rank.
	ErrNoRank = errors.New("is of no rank of a distributed run; reports of different machines are merged if they are of the ranks of one run")
	// ErrApart is of reports of several machines that were not recorded at the same time.
	ErrApart = errors.New("were not recorded at the same time; reports of different machines are merged if they are of one run")
	// ErrNoClock is of a report that does not name its machine.
	ErrNoClock = errors.New("does not name the machine on which it was recorded; record it anew by this version of omni-perf")
	errNothing = errors.New("there is no report to merge")
	errTooLong = errors.New("the reports are more than a year apart")
)

// longest bounds the time from the first report's beginning to the last one's end.
const longest = int64(366 * 24 * time.Hour)

// Merge puts reports of one run together; names are what to call them in errors.
func Merge(reports []*report.View, names []string) (*report.View, error) {
	return merge(reports, names, Choice{})
}

func merge(reports []*report.View, names []string, choice Choice) (*report.View, error) {
	if len(reports) == 0 {
		return nil, errNothing
	}
	if err := choice.check(reports); err != nil {
		return nil, err
	}
	reports, names = inOrder(reports, names)
	clocks, err := axisOf(reports, names, choice.Force)
	if err != nil {
		return nil, err
	}
	first, end := clocks.begin[0], int64(0)
	for i, r := range reports {
		first = min(first, clocks.begin[i])
		end = max(end, clocks.begin[i]+r.DurationNS)
	}
	if end-first > longest {
		return nil, errTooLong
	}
	m := newMerging(reports, clocks, first, end-first)
	if err := m.recordedTwice(names); err != nil {
		return nil, err
	}
	if !choice.Force {
		if err := m.apart(names); err != nil {
			return nil, err
		}
	}
	for i := range reports {
		m.add(i)
		m.reports[i] = withoutTables(m.reports[i]) // a thousand are not kept beside what is made of them
	}
	m.finish()
	merged, err := report.Check(&m.doc)
	if err != nil {
		return nil, fmt.Errorf("the reports do not fit together: %w", err)
	}
	addTasks(merged)
	addRanks(merged, clocks.bound())
	return merged, nil
}

// withoutTables is what of a report is needed once its tables and stacks have been added: whose it is, devices, tracks.
func withoutTables(r *report.View) *report.View {
	d := *r.Document
	d.Lines, d.FunctionTimes, d.Steps, d.Spans, d.Files, d.Functions, d.Frames = nil, nil, nil, report.Spans{}, nil, nil, report.Frames{}
	d.Nodes, d.Threads, d.Findings, d.Regions = report.Nodes{}, nil, nil, nil
	return &report.View{Document: &d}
}

// inOrder sorts reports: cells first, then by rank, by the number of an engine's worker and by the time of their begin.
func inOrder(reports []*report.View, names []string) ([]*report.View, []string) {
	order := make([]int, len(reports))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(placeOf(reports[a]), placeOf(reports[b])), cmp.Compare(rankOf(reports[a]), rankOf(reports[b])), cmp.Compare(numberOf(reports[a]), numberOf(reports[b])), cmp.Compare(clockOf(reports[a]), clockOf(reports[b])))
	})
	sorted, sortedNames := make([]*report.View, len(order)), make([]string, len(order))
	for to, from := range order {
		sorted[to], sortedNames[to] = reports[from], names[from]
	}
	return sorted, sortedNames
}

func clockOf(r *report.View) int64 { return r.Hosts[r.Target().Host].Clock.MonotonicNS }

// unnumbered is more than any rank.
const unnumbered = 1 << 30

// rankOf is the rank that a report is of; those of none come last.
func rankOf(r *report.View) int {
	if rank := r.Target().Rank; rank != nil {
		return *rank
	}
	return unnumbered
}

// placeOf is before the others for a cell, which uses the workers of an engine.
func placeOf(r *report.View) int {
	if r.Target().Kind == report.TargetCell {
		return 0
	}
	return 1
}

// numberOf is what the engine calls a worker of its; those of none come last.
func numberOf(r *report.View) int {
	if p := &r.Processes[r.Target().Process]; timeline.Role(p.Role).OfEngine() && p.RoleNumber != nil {
		return *p.RoleNumber
	}
	return unnumbered
}

// merging is a merged document in the making.
type merging struct {
	reports []*report.View
	clocks  *axis
	first   int64 // the merged origin, CLOCK_MONOTONIC of the first machine
	doc     report.Document
	code    *dictionary
	devices map[deviceKey]int // merged index
	owner   map[int]int       // which report describes a merged device

	numbers   map[int]int  // by report, what its engine's worker is called here, where several machines have the same numbers
	places    [][]int      // by report and its process, the merged process
	sightings [][]sighting // by merged process
}

func newMerging(reports []*report.View, clocks *axis, first, duration int64) *merging {
	base := reports[0]
	m := &merging{reports: reports, clocks: clocks, first: first, devices: make(map[deviceKey]int), owner: make(map[int]int)}
	m.doc = report.Document{
		Document: report.Kind, Version: report.Version, Generator: base.Generator, Name: base.Name, StartedAt: base.StartedAt, DurationNS: duration,
		Devices: []report.Device{}, Steps: []report.Step{}, Regions: []report.Region{}, Lines: []report.Line{}, Phases: []report.Phase{},
		FunctionTimes: []report.FunctionTime{}, Findings: []report.Finding{}, Gaps: []report.Gap{}, Notes: []report.Note{},
		Headline: report.Headline{Kind: report.HeadlineSummary, Limits: []int{}}, Enumerations: base.Enumerations,
	}
	m.doc.Spans = report.Spans{First: report.Column{0}, GapUS: report.Column{}, LengthUS: report.Column{}, Node: report.Column{}, State: report.Column{}, Incomplete: report.Column{}}
	m.code = newDictionary(&m.doc)
	m.hosts()
	m.identify()
	m.numbers = m.newNumbers()
	m.doc.Processes = make([]report.Process, len(m.sightings))
	m.chooseDevices()
	return m
}

// hosts takes over the machines, with their clocks at the merged origin and end.
func (m *merging) hosts() {
	for at, h := range m.clocks.hosts {
		host := m.earliest(at)
		clock := &host.Clock
		for i, r := range m.reports {
			c := r.Hosts[r.Target().Host].Clock
			if m.clocks.host[i] != at {
				continue
			}
			if c.EndMonotonicNS != nil && (clock.EndMonotonicNS == nil || *c.EndMonotonicNS > *clock.EndMonotonicNS) {
				clock.EndMonotonicNS, clock.EndWallNS = c.EndMonotonicNS, c.EndWallNS
			}
			if c.ErrorNS != nil && clock.ErrorNS != nil && *c.ErrorNS > *clock.ErrorNS {
				clock.ErrorNS = c.ErrorNS
			}
		}
		origin := max(m.first-h.offset, 0) // by its own clock
		clock.WallNS, clock.MonotonicNS = clock.WallNS+origin-clock.MonotonicNS, origin
		if at > 0 {
			aligned := h.Alignment
			host.Aligned = &aligned
		}
		m.doc.Hosts = append(m.doc.Hosts, host)
	}
	if note, needed := m.clocks.note(); needed {
		m.doc.Notes = append(m.doc.Notes, note)
	}
}

// earliest is a machine as the first report that was begun on it has it.
func (m *merging) earliest(host int) report.Host {
	first := -1
	for i := range m.reports {
		if m.clocks.host[i] == host && (first < 0 || m.clocks.begin[i] < m.clocks.begin[first]) {
			first = i
		}
	}
	r := m.reports[first]
	if m.shift(first) == 0 {
		m.doc.StartedAt = r.StartedAt
	}
	return r.Hosts[r.Target().Host]
}

// shift is from the merged origin to that of a report.
func (m *merging) shift(i int) int64 { return m.clocks.begin[i] - m.first }

// finish brings the tables into their order.
func (m *merging) finish() {
	d := &m.doc
	slices.SortStableFunc(d.Lines, func(a, b report.Line) int { return cmp.Compare(b.SelfNS, a.SelfNS) })
	slices.SortStableFunc(d.Blocked, func(a, b report.Blocked) int { return cmp.Compare(b.BlockedNS, a.BlockedNS) })
	slices.SortStableFunc(d.Awaits, func(a, b report.Await) int { return cmp.Compare(b.WaitingNS, a.WaitingNS) })
	slices.SortStableFunc(d.Memory, func(a, b report.Memory) int { return cmp.Compare(b.GrownBytes, a.GrownBytes) })
	slices.SortStableFunc(d.GPUMemory, func(a, b report.GPUMemory) int { return cmp.Compare(b.GrownBytes, a.GrownBytes) })
	slices.SortStableFunc(d.FunctionMemory, func(a, b report.MemoryFunction) int { return cmp.Compare(b.TotalBytes, a.TotalBytes) })
	slices.SortStableFunc(d.FunctionTimes, func(a, b report.FunctionTime) int { return cmp.Compare(b.SelfNS, a.SelfNS) })
	m.groupSteps()
	slices.SortStableFunc(d.Ranks, func(a, b report.Rank) int { return cmp.Compare(a.Rank, b.Rank) })
	d.Tracks = append(m.sums(), d.Tracks...)
	if d.Idle != nil {
		m.finishIdle()
	}
	if workers := workersOf(d); workers != "" && (d.Name == "" || d.Targets[0].Kind != report.TargetCell) {
		if d.Name = workers; d.Targets[0].Kind == report.TargetCell {
			d.Name = "with " + workers
		}
		if len(d.Hosts) > 1 {
			d.Name += " on " + words.Plural(len(d.Hosts), "machine", "machines")
		}
	} else if d.Name == "" && len(m.reports) > 1 {
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
