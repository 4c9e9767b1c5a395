package diagnose

import (
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// raisedCode is the exit code of a Python program that an exception ended.
const raisedCode = 1

// failed reports whether a process is a rank that its own code ended badly. A signal is whoever sent it: a launcher ends
// the others so when one has failed.
func failed(p *timeline.Process) bool {
	return p.Role == timeline.RoleRank && p.End > 0 && p.Signal == 0 && p.Exit != nil && *p.Exit != 0 && *p.Exit < 128
}

// rankFailed finds the rank that failed first. What others raise in a collective within a second of it is that it has
// failed, and how long an interpreter takes to end says nothing: who raised outside of collectives comes first.
func rankFailed(e *evidence) measured {
	first, count := -1, int64(0)
	for i := range e.rec.Processes {
		p := &e.rec.Processes[i]
		if i == 0 || !failed(p) {
			continue
		}
		if count++; first < 0 || before(p, &e.rec.Processes[first]) {
			first = i
		}
	}
	if first < 0 {
		return nothing
	}
	p := *e.failedProcess(first)
	if killed := workerKilled(e); killed.low >= 1 && killed.At <= p.End {
		return nothing // then the others' failures are of that
	}
	f := Finding{
		Process: &p, At: p.End, Count: count, Place: e.lastPlace(first), Value: float64(count), Cores: math.NaN(),
		Evidence: []timeline.Interval{timeline.Between(max(p.Start, 0), min(p.End, e.rec.Duration))},
	}
	if p.Rank != nil {
		f.Rank = *p.Rank
	}
	if p.Raised != nil {
		f.Place = activity.Place{}
		for _, at := range p.Raised.Stack {
			if at.Line > 0 && e.stacks.Files.Own(at.File) {
				f.Place = activity.Place(at)
				break
			}
		}
	}
	return measured{Finding: f, low: f.Value, lost: 1}
}

// failedProcess is a process without an exception that did not end it, as its exit code says.
func (e *evidence) failedProcess(i int) *timeline.Process {
	p := e.rec.Processes[i]
	if p.Raised != nil && *p.Exit != raisedCode {
		p.Raised = nil
	}
	return &p
}

// before reports whether a rank failed before another did.
func before(p, other *timeline.Process) bool {
	if apart := p.End - other.End; apart > together || apart < -together || raisedTogether(p) == raisedTogether(other) {
		return p.End < other.End
	}
	return !raisedTogether(p)
}

// raisedTogether reports whether a rank's exception was raised in a module in which ranks wait for each other, or is not known.
func raisedTogether(p *timeline.Process) bool {
	return p.Raised == nil || slices.ContainsFunc(p.Raised.Stack, func(at timeline.RaisedAt) bool {
		return origin.KnownByName(at.File).Mentions(origin.Communicates | origin.RunsBackward)
	})
}
