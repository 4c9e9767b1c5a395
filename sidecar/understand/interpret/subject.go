package interpret

import (
	"cmp"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// decide finds whom a recording is about. The threads that run the cell or the script are
// marked by who recorded it, those of a program that the target launched by Identify.
func decide(rec *timeline.Recording) timeline.Subject {
	s := timeline.Subject{Thread: -1, Why: timeline.SubjectTarget, Launcher: IsLauncher(rec)}
	if s.Runs = threadsWhere(rec, runsCell); len(s.Runs) > 0 {
		s.Program = processOf(rec, s.Runs[0])
	} else {
		s.Runs = threadsWhere(rec, mainOfTarget)
	}
	s.Thread, s.Why = leadingThread(rec)
	if s.Process = s.Program; s.Thread >= 0 {
		s.Process = processOf(rec, s.Thread)
	}
	if s.Why == timeline.SubjectTarget && s.Process > 0 {
		s.Why = timeline.SubjectLaunched
	}
	return s
}

func runsCell(t *timeline.Thread) bool     { return t.RunsCell }
func mainOfTarget(t *timeline.Thread) bool { return t.Main && t.Process == 0 }
func isMain(t *timeline.Thread) bool       { return t.Main }
func isThread(*timeline.Thread) bool       { return true }

// leadingThread is the thread that explains a recording, and why it does: a rank's in place of
// its launcher's, else the one that runs the program, else a main thread of the target, else
// any. One of which stacks are known goes before one of which none are; of several threads of
// one kind it is the one of which the longest time is known: it may have been lost and found again.
func leadingThread(rec *timeline.Recording) (int, timeline.SubjectReason) {
	if rank := leadingRank(rec); rank >= 0 {
		return rank, timeline.SubjectLeadingRank
	}
	kinds := []struct {
		is  func(*timeline.Thread) bool
		why timeline.SubjectReason
	}{
		{runsCell, timeline.SubjectTarget}, {mainOfTarget, timeline.SubjectTarget}, {isMain, timeline.SubjectLongest}, {isThread, timeline.SubjectLongest},
	}
	for _, seen := range []bool{true, false} {
		for _, kind := range kinds {
			best := -1
			for _, i := range threadsWhere(rec, kind.is) {
				if t := &rec.Threads[i]; len(t.Spans) > 0 == seen && (best < 0 || Known(t) > Known(&rec.Threads[best])) {
					best = i
				}
			}
			if best < 0 {
				continue
			}
			if processOf(rec, best) == 0 {
				return best, timeline.SubjectTarget
			}
			return best, kind.why
		}
	}
	return -1, timeline.SubjectTarget
}

// MinRankShare is the share of a recording from which on what its ranks did is the first thing
// to know: the stacks of a rank must be known for it to explain its launcher.
const MinRankShare = 0.10

// mostShare is the share of a recording for which a launcher must have waited, if it runs code
// of the user's own, for a rank to explain it.
const mostShare = 0.5

// leadingRank is the main thread of the first rank, where it explains the launcher; -1 where
// there is none. It is none for a cell and for a target that is a rank itself, that ran code of
// the user's own without waiting meanwhile for most of the recording, or whose ranks are known
// for a small part of it only.
func leadingRank(rec *timeline.Recording) int {
	ranks := RankThreads(rec)
	if len(ranks) == 0 || rec.Target.Cell != nil {
		return -1
	}
	first := &rec.Threads[ranks[0]]
	if first.Process <= 0 || float64(Known(first)) < MinRankShare*float64(rec.Duration) {
		return -1
	}
	waited := timeline.Nanos(0)
	life := []timeline.Interval{LifeOf(rec, first.Process)}
	ranOwn, own := false, ownStacks(rec)
	for i := range rec.Threads {
		t := &rec.Threads[i]
		if t.Process != 0 {
			continue
		}
		for _, span := range t.Spans {
			ranOwn = ranOwn || int(span.Node) < len(own) && own[span.Node]
			if t.Main && !span.State.Computes() {
				timeline.Overlap(life, span.Start, span.End, func(_ int, part timeline.Nanos) { waited += part })
			}
		}
	}
	if ranOwn && float64(waited) < mostShare*float64(rec.Duration) {
		return -1
	}
	return ranks[0]
}

// ownStacks reports for each node whether code of the user's own is on the stack.
func ownStacks(rec *timeline.Recording) []bool {
	files := origin.New(rec)
	own := make([]bool, len(rec.Nodes))
	for i := 1; i < len(rec.Nodes); i++ {
		n := rec.Nodes[i]
		if int(n.Parent) >= i || int(n.Frame) >= len(rec.Frames) { // a damaged file
			continue
		}
		f := rec.Frames[n.Frame]
		own[i] = own[n.Parent] || f.Phase == timeline.PhaseNone && files.Own(f.File)
	}
	return own
}

// LifeOf is the part of the recording in which a process lived.
func LifeOf(rec *timeline.Recording, process int) timeline.Interval {
	p := &rec.Processes[process]
	return timeline.Between(max(p.Start, 0), cmp.Or(min(p.End, rec.Duration), rec.Duration))
}

// IsLauncher reports whether the target runs no Python itself, and processes that descend from
// it do.
func IsLauncher(rec *timeline.Recording) bool {
	others := false
	for i := range rec.Threads {
		if len(rec.Threads[i].Spans) == 0 {
			continue
		}
		if rec.Threads[i].Process == 0 {
			return false
		}
		others = true
	}
	return others
}

// Known is for how long the stacks of a thread are known.
func Known(t *timeline.Thread) (sum timeline.Nanos) {
	for _, s := range t.Spans {
		if s.Node != timeline.RootNode {
			sum += s.End - s.Start
		}
	}
	return sum
}

func threadsWhere(rec *timeline.Recording, is func(*timeline.Thread) bool) (list []int) {
	for i := range rec.Threads {
		if is(&rec.Threads[i]) {
			list = append(list, i)
		}
	}
	return list
}

// processOf is a thread's process; 0, the target, where the recording does not list it.
func processOf(rec *timeline.Recording, thread int) int {
	if p := rec.Threads[thread].Process; p > 0 && p < len(rec.Processes) {
		return p
	}
	return 0
}
