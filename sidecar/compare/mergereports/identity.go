package mergereports

import (
	"errors"
	"fmt"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// errTwice is of two reports of one process over the same time, of which only one can be shown.
var errTwice = errors.New("both are of the same process at the same time; leave one of them out")

// sameStart is how far apart two reports may place the start of one process: the kernel
// reports it in ticks of 10 ms, and each report relates it to its own origin. A pid is not
// used again so soon.
const sameStart = int64(20e6)

// sighting is a process as one report describes it.
type sighting struct {
	report, process int
}

// processID is a pid of one machine.
type processID struct{ host, pid int }

// identify finds which processes of several reports are one: those of one pid that began at
// the same time. A launcher's report and the reports of its ranks have them in common.
func (m *merging) identify() {
	type known struct {
		start  int64
		merged int
	}
	byPID := make(map[processID][]known)
	for i, r := range m.reports {
		shift := m.shift(i)
		places := make([]int, len(r.Processes))
		for k, process := range r.Processes {
			places[k] = -1
			id := processID{m.clocks.host[i], process.PID}
			start := process.StartNS + shift
			for _, other := range byPID[id] {
				if distance := start - other.start; process.PID > 0 && -sameStart <= distance && distance <= sameStart && !m.seenIn(other.merged, i) {
					places[k] = other.merged
				}
			}
			if places[k] < 0 {
				places[k] = len(m.sightings)
				m.sightings = append(m.sightings, nil)
				byPID[id] = append(byPID[id], known{start, places[k]})
			}
			m.sightings[places[k]] = append(m.sightings[places[k]], sighting{i, k})
		}
		m.places = append(m.places, places)
	}
}

// seenIn reports whether a merged process is one of a report already.
func (m *merging) seenIn(merged, report int) bool {
	for _, s := range m.sightings[merged] {
		if s.report == report {
			return true
		}
	}
	return false
}

// recordedTwice finds two reports whose target is one process at one time.
func (m *merging) recordedTwice(names []string) error {
	for i, r := range m.reports {
		for k := range m.reports[:i] {
			if m.places[i][r.Target().Process] == m.places[k][m.reports[k].Target().Process] && m.overlap(i, k) {
				return fmt.Errorf("%s and %s: %w", names[k], names[i], errTwice)
			}
		}
	}
	return nil
}

// overlap reports whether two reports were recorded at the same time.
func (m *merging) overlap(a, b int) bool {
	first, second := m.clocks.begin[a], m.clocks.begin[b]
	return first < second+m.reports[b].DurationNS && second < first+m.reports[a].DurationNS
}

// describes reports whether what a process did is taken from this report. Of several that saw it at the
// same time that is the one whose target it is, else the one that read its stacks most often.
func (m *merging) describes(of sighting) bool {
	for _, other := range m.sightings[m.places[of.report][of.process]] {
		if other.report != of.report && m.overlap(of.report, other.report) && m.better(other, of) {
			return false
		}
	}
	return true
}

func (m *merging) better(a, b sighting) bool {
	if x, y := m.closeness(a), m.closeness(b); x != y {
		return x < y
	}
	return a.report < b.report
}

// closeness orders what reports know of one process: less is more.
func (m *merging) closeness(s sighting) int64 {
	const unread = int64(1) << 62
	r := m.reports[s.report]
	switch p := &r.Processes[s.process]; {
	case r.Target().Process == s.process:
		return -1
	case !p.Stacks.Read:
		return unread
	case p.Stacks.IntervalNS == nil:
		return unread - 1
	default:
		return *p.Stacks.IntervalNS
	}
}

// within reports whether a report's target descends from another report's target: then what
// that one used counts what this one used.
func (m *merging) within(i int) bool {
	at := m.places[i][m.reports[i].Target().Process]
	for range len(m.doc.Processes) { // a damaged file may have a circle
		parent := m.doc.Processes[at].Parent
		if parent == nil {
			return false
		}
		at = *parent
		for k, r := range m.reports {
			if k != i && at == m.places[k][r.Target().Process] && m.overlap(i, k) {
				return true
			}
		}
	}
	return false
}

// complete takes over what another report knows of a process.
func complete(into *report.Process, other report.Process) {
	if into.Parent == nil {
		into.Parent = other.Parent
	}
	if into.EndNS == nil {
		into.EndNS, into.EndReason, into.ExitCode = other.EndNS, other.EndReason, other.ExitCode
	}
	if into.CPUNS == nil {
		into.CPUNS = other.CPUNS
	}
	if into.Work == nil {
		into.Work = other.Work
	}
	if into.Rank == nil {
		into.Rank = other.Rank
	}
}
