package mergereports

import (
	"cmp"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/wording"
)

// workersOf names the targets of a document that are all an engine's workers of one role: "3 Dask workers"; empty where
// they are not. The cell that uses the engine may be among them.
func workersOf(d *report.Document) string {
	p := timeline.Pool{}
	for _, t := range d.Targets {
		if t.Kind == report.TargetCell {
			continue
		}
		role := timeline.Role(d.Processes[t.Process].Role)
		if !role.OfEngine() || p.Role != "" && p.Role != role {
			return ""
		}
		p.Role = role
		p.Members = append(p.Members, t.Process)
	}
	if len(p.Members) == 0 {
		return ""
	}
	return wording.Pool(p)
}

// newNumbers numbers an engine's workers, machine by machine, where workers of several machines have one number: some
// engines number those of a machine. nil: each has a number of its own.
func (m *merging) newNumbers() map[int]int {
	var workers []int
	hosts, twice := make(map[int]int), false
	for i, r := range m.reports {
		number := numberOf(r)
		if number == unnumbered {
			continue
		}
		workers = append(workers, i)
		host, known := hosts[number]
		twice = twice || known && host != m.clocks.host[i]
		hosts[number] = m.clocks.host[i]
	}
	if !twice {
		return nil
	}
	slices.SortStableFunc(workers, func(a, b int) int {
		return cmp.Or(cmp.Compare(m.clocks.host[a], m.clocks.host[b]), cmp.Compare(numberOf(m.reports[a]), numberOf(m.reports[b])))
	})
	numbers := make(map[int]int)
	for number, i := range workers {
		numbers[i] = number
	}
	return numbers
}

// addTasks adds how much of the time of an engine's workers was tasks, and which of them took most. It is the first
// finding then, and the headline: what a single worker did explains nothing of a cluster.
func addTasks(r *report.View) {
	workers := workersOf(r.Document)
	if workers == "" {
		return
	}
	tasks, whole := tasksIn(r)
	if len(tasks) == 0 {
		return
	}
	all := timeline.Nanos(0)
	for _, t := range tasks {
		all += t.Time
	}
	share, unit, cost := float64(all)/float64(whole), string(diagnose.Share), int64(whole-all)
	named := make([]map[string]any, 0, wording.MostTasks)
	for _, t := range tasks[:min(len(tasks), wording.MostTasks)] {
		named = append(named, map[string]any{"name": t.Name, "time_ns": int64(t.Time)})
	}
	out := report.Finding{
		ID: string(diagnose.EngineTasks), Severity: string(diagnose.Info), Value: &share, Unit: &unit, CostNS: &cost,
		Args:     map[string]any{"time_ns": int64(all), "whole_ns": int64(whole), "tasks": named},
		Evidence: []report.Interval{}, Text: wording.Tasks(workers, tasks, all, whole),
	}
	r.Findings = append([]report.Finding{out}, r.Findings...)
	first := 0
	r.Headline = report.Headline{Kind: report.HeadlineFinding, Finding: &first, Limits: []int{}, Text: out.Text}
}

// tasksIn sums up the tasks by name, most time first, by the engine's own times of them; whole is the time of the
// threads that ran some, from the first to the last instant of their processes that was recorded.
func tasksIn(r *report.View) (tasks []wording.TaskTime, whole timeline.Nanos) {
	sums := make(map[string]timeline.Nanos)
	for _, region := range r.Regions {
		sums[region.Name] += timeline.Nanos(region.TotalNS)
	}
	for name, time := range sums {
		tasks = append(tasks, wording.TaskTime{Name: name, Time: time})
	}
	slices.SortFunc(tasks, func(a, b wording.TaskTime) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Name, b.Name))
	})
	lives := make(map[int]timeline.Nanos) // by process
	for _, t := range r.Targets {
		lives[t.Process] = timeline.Nanos(t.EndNS - t.StartNS)
	}
	runs := threadsWithTasks(r)
	for t := range r.Threads {
		if runs[t] {
			whole += lives[r.Threads[t].Process]
		}
	}
	return tasks, whole
}

// threadsWithTasks reports of each thread whether it ran a task.
func threadsWithTasks(r *report.View) []bool {
	isTask := make([]bool, len(r.Nodes.Parent))
	for n := 1; n < len(isTask); n++ {
		f := &r.Functions[r.FunctionOf(r.FrameOf(int32(n)))]
		isTask[n] = isTask[r.Nodes.Parent[n]] || f.Task && f.Name != ""
	}
	runs := make([]bool, len(r.Threads))
	for t := range r.Threads {
		runs[t] = slices.ContainsFunc(r.History(t), func(s report.Span) bool { return isTask[s.Node] })
	}
	return runs
}
