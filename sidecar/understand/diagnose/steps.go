package diagnose

import (
	"cmp"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/gpuidle"
)

// steps are those of the leading process and of the other ranks, with the busy, idle and
// waiting time in them. The threads are the main ones of ranks. unknown reports whether there were
// steps that could not be found.
func steps(s *activity.Stacks, used []*gpuidle.Device, main *activity.History, threads []*timeline.Thread) (list []Step, unknown bool) {
	rec, found := s.Rec, newStepFinder(s, threads)
	lead := stepsIn(rec.LeadingMarks())
	if runs := s.About.Runs; len(lead) == 0 && len(runs) > 0 {
		lead = found.of(&rec.Threads[runs[0]])
	}
	leader := -1
	if len(lead) > 0 {
		leader = lead[0].Process
	}
	var others []Step
	for _, t := range threads {
		devices := devicesOf(rec, used, t.PID)
		if t.Process == leader && leader > 0 {
			main = s.PlainHistory(t)
			if len(devices) > 0 {
				used = devices
			}
		}
		if t.Process != leader {
			others = append(others, shared(found.of(t), devices, s.PlainHistory(t))...)
		}
	}
	list = append(shared(lead, used, main), others...)
	return list, len(list) == 0 && found.unsure
}

// devicesOf are the devices that a process is known to have used.
func devicesOf(rec *timeline.Recording, used []*gpuidle.Device, pid int) (list []*gpuidle.Device) {
	for _, d := range used {
		if slices.ContainsFunc(rec.GPUs, func(g timeline.GPU) bool { return g.Index == d.Index && slices.Contains(g.PIDs, pid) }) {
			list = append(list, d)
		}
	}
	return list
}

// shared spreads the busy and idle time of devices, and the time for which a process's
// main thread waited for data, over its steps.
func shared(list []Step, used []*gpuidle.Device, main *activity.History) []Step {
	slices.SortStableFunc(list, func(a, b Step) int { return cmp.Compare(a.Start, b.Start) })
	spans := make([]timeline.Interval, len(list))
	for i, s := range list {
		spans[i] = timeline.Between(s.Start, s.End)
	}
	idle, known := make([]timeline.Nanos, len(list)), make([]timeline.Nanos, len(list))
	for _, d := range used {
		d.During(spans, func(step int, measured, unused timeline.Nanos) {
			known[step] += measured
			idle[step] += unused
		})
	}
	starved := main.IntervalsOf(func(state int) bool { return main.States[state].Cause.Kind() == activity.Starvation })
	for _, i := range starved {
		timeline.Overlap(spans, i.Start, i.End, func(step int, part timeline.Nanos) { list[step].DataWait += part })
	}
	for i := range list {
		s := &list[i]
		n := timeline.Nanos(max(len(used), 1))
		s.Idle = idle[i] / n
		s.Busy = (known[i] - idle[i]) / n
		s.Unknown = s.End - s.Start - s.Idle - s.Busy
	}
	return list
}

// maxSetUps is the share of steps that may be the first of an optimizer for them to set up a training each: a program may
// make an optimizer for each of its steps.
const maxSetUps = 0.1

// setUps takes the mark off the first steps of optimizers where these are too many to set up a training each.
func setUps(steps []Step) {
	count, anew := make(map[int]int), make(map[int]int)
	for _, s := range steps {
		if count[s.Process]++; s.Anew {
			anew[s.Process]++
		}
	}
	for i := range steps {
		s := &steps[i]
		s.Anew = s.Anew && float64(anew[s.Process]) <= maxSetUps*float64(count[s.Process])
	}
}

// withoutSetUp leaves out the steps that end with the first step of another optimizer, as that of another training: as
// before the first step of a program there is all that was set up. The step after it begins anew.
func withoutSetUp(steps []Step) (list []Step) {
	left := false
	for i, s := range steps {
		if s.Anew {
			left = true
			continue
		}
		s.Anew = left && i > 0 && steps[i-1].Process == s.Process
		list, left = append(list, s), false
	}
	return list
}

// elsewhere counts the steps of the processes of which none is listed.
func elsewhere(rec *timeline.Recording, listed []Step) (e Elsewhere) {
	if len(listed) == 0 {
		return e
	}
	shown := make(map[int]bool)
	for _, s := range listed {
		shown[s.Process] = true
	}
	for process := range rec.Processes {
		if shown[process] {
			continue
		}
		steps := stepsIn(rec.MarksOf(process))
		setUps(steps)
		if n := len(withoutSetUp(steps)); n > 0 {
			e.Processes, e.Steps = e.Processes+1, e.Steps+n
		}
	}
	return e
}

func stepsIn(marks []timeline.Mark) (list []Step) {
	for _, m := range marks {
		if m.Kind == "step" && m.End > m.Start {
			list = append(list, Step{Process: m.Process, Name: m.Name, Source: m.Source, Batch: m.Batch, Start: m.Start, End: m.End, Anew: m.Anew})
		}
	}
	return list
}

// regions sums the region marks up by name, most total time first.
func regions(rec *timeline.Recording) []Region {
	lengths, process := make(map[string][]float64), 0 // in ns
	for _, m := range rec.LeadingMarks() {
		process = m.Process
		if m.Kind == "region" && m.End >= m.Start {
			lengths[m.Name] = append(lengths[m.Name], float64(m.End-m.Start))
		}
	}
	var list []Region
	for name, l := range lengths {
		slices.Sort(l)
		at := func(p float64) timeline.Nanos { return timeline.Nanos(stat.Quantile(p, stat.Empirical, l, nil)) }
		r := Region{Process: process, Name: name, Count: len(l), P50: at(0.5), P95: at(0.95)}
		for _, n := range l {
			r.Total += timeline.Nanos(n)
		}
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b Region) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), strings.Compare(a.Name, b.Name))
	})
	return list
}
