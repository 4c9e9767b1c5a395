package pytasks

import (
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/spare"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// The pace: tasks are read every readEvery at most, and less often where reading those of all processes would take more than budget of
// a core on average, or half of it in a long recording. What was not used is saved up to burst, so that
// the first reads, which cost more and see many tasks begin, are not few. While no thread of a process has run they cannot have
// changed, and are not read. While it runs and they do not change, as when a cell
// computes in a kernel whose loop waits below it, they are read ever less often; even less where that
// has lasted for a while and no CPU is free, since what reads them is then taken from the program.
//
// A process without tasks is looked at ever less often, too, the less the more such processes there are.
const (
	readEvery  = 5 * time.Millisecond
	quietEvery = 40 * time.Millisecond // at the longest, while they do not change …
	quietReads = 4                     // … which this many reads in a row show
	calmAfter  = 5 * time.Second       // they have not changed for so long
	calmEvery  = 200 * time.Millisecond
	budget     = 0.03 // at first …
	// … and less of a recording that is longer than enoughFor, in the end leastOfBudget of it.
	enoughFor     = 10 * time.Second
	leastOfBudget = 0.5
	burst         = 15 * time.Millisecond
	debtEvery     = 50 * time.Millisecond // while more was spent …
	runsOn        = 3                     // … on a process that has run before so many looks in a row
	// describeEvery is how often the recording's own account is brought up to date.
	describeEvery = 250 * time.Millisecond

	// A process in which nothing that has event loops is imported, or cannot be read, is looked at so often at first, half as often after every
	// lookTwice looks until it sleeps for a while, and every lookEvery at last, or every lookEach for each process without tasks, whichever is longer.
	lookFirst = 10 * time.Millisecond
	lookTwice = 8
	lookEvery = 50 * time.Millisecond
	lookEach  = 10 * time.Millisecond
	sleeps    = 250 * time.Millisecond
	// One that sleeps is asked so often whether it runs.
	askEvery, askEach = 10 * time.Millisecond, 2 * time.Millisecond
	// grid is what looks that are farther apart fall on, so that many processes are looked at by one wake-up, and how often others are looked for.
	grid = 20 * time.Millisecond
	// busyShare of the budget is sure for the processes with tasks, the rest for the others.
	busyShare = 0.8
	// pollEach is the least time between two looks for each process with tasks: asking whether it runs costs something, too.
	pollEach = time.Millisecond
	// together is by how much earlier than due a process is looked at where another is: each wake-up costs more than a look.
	together = 2 * time.Millisecond
)

// purse is CPU time that may be spent.
type purse struct {
	saved time.Duration // at that time; negative: too much was spent
	at    int64         // CLOCK_MONOTONIC
}

// spend takes CPU time off what was saved of a share of a core.
func (p *purse) spend(cpu time.Duration, at int64, share float64) {
	most := time.Duration(float64(burst) * share / budget)
	p.saved, p.at = min(most, p.saved+time.Duration(share*float64(at-p.at)))-cpu, at
}

// due is the time from which on nothing is owed.
func (p *purse) due(share float64) int64 {
	return p.at + int64(float64(max(-p.saved, 0))/share)
}

// budget is the share of a core that reading may use by now.
func (r *round) budget() float64 {
	return budget * spare.Falling(time.Duration(timeline.Monotonic()-r.begun), enoughFor, leastOfBudget)
}

// seldom is how often something is done that can wait where no CPU is free.
func (r *round) seldom(often time.Duration) time.Duration {
	return r.c.Spare.Interval(time.Duration(timeline.Monotonic()-r.begun), often, max(often, calmEvery))
}

// some reports whether there are tasks, as far as is known.
func (s *series) some() bool { return s.known && len(s.last.Tasks) > 0 }

// share is the part of a core of which reading the process is sure, whatever the others take.
func (s *series) share() float64 {
	if s.some() {
		return busyShare * s.r.budget() / float64(max(s.r.busy, 1))
	}
	return (1 - busyShare) * s.r.budget() / float64(max(s.r.idle, 1))
}

// poll is after how long it is asked again whether the process runs, that has not.
func (s *series) poll() time.Duration {
	if s.some() {
		return max(readEvery, time.Duration(s.r.busy)*pollEach)
	}
	return s.r.seldom(max(askEvery, time.Duration(s.r.idle)*askEach))
}

// pause is the least time to the next read.
func (s *series) pause(snapshot *Snapshot, at int64) time.Duration {
	if sum := snapshot.sum(); sum != s.sum || s.changed == 0 {
		s.sum, s.quiet, s.changed = sum, 0, at
	} else {
		s.quiet++
	}
	if s.quiet < quietReads {
		return 0
	}
	most := quietEvery
	if len(snapshot.Tasks) == 0 {
		most = max(most, time.Duration(s.r.idle)*lookEach)
	}
	return max(min(readEvery<<min(s.quiet-quietReads, 16), most), s.calm(at))
}

// wait is after how long to look at a process again that has run and is not to be read yet: soon, to see whether
// it runs on, where the read is near. One that has run before each look will do so until then, and tasks that did not change
// while it ran are not about to.
func (s *series) wait(pause time.Duration, at int64) time.Duration {
	if pause <= debtEvery && s.quiet < quietReads && s.ran.runs < runsOn {
		return min(max(pause, readEvery), s.poll())
	}
	return min(max(pause, readEvery), max(debtEvery, s.calm(at)))
}

// spell is when a process has run since its tasks were read, known to between two looks at its CPU time.
type spell struct {
	cpu         int64 // at the last look …
	looked      int64 // … at this time, CLOCK_MONOTONIC
	first, last int64 // amid the looks before and after it first ran, and last; 0: it has not
	runs        int   // looks in a row, the last ones, before which it has
}

// look takes in what its CPU time is.
func (s *spell) look(cpu, at int64) {
	if cpu == s.cpu {
		s.runs = 0
	} else {
		s.runs++
		s.last = s.looked + (at-s.looked)/2
		if s.first == 0 {
			s.first = s.last
		}
	}
	s.cpu, s.looked = cpu, at
}

// middle is amid the spell, or amid the time between two reads where no look says more.
func (s *spell) middle(from, to int64) int64 {
	if s.first == 0 {
		return from + (to-from)/2
	}
	return min(max(s.first+(s.last-s.first)/2, from), to)
}

// calm is the least time between two ticks where nothing changes and no CPU is free; 0: there is none.
func (s *series) calm(at int64) time.Duration {
	if s.changed == 0 || at-s.changed < int64(calmAfter) {
		return 0
	}
	return s.r.c.Spare.Interval(time.Duration(at-s.r.begun), 0, calmEvery)
}
