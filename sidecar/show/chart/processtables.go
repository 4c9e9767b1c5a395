package chart

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/labels"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/wording"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

const (
	maxRanks       = 16
	maxWorkerLines = 5
	maxRankLines   = 5
	maxPrograms    = 3 // beside the one that the report is about
	maxProcesses   = 10
)

// ranksTable compares the processes of a distributed run.
func ranksTable(r *report.View) table {
	t := table{heading: "Ranks", advises: true, note: "median step, share of the time that its main thread computed, and in what it waited for others, by its stack"}
	if len(r.Ranks) < 2 {
		return table{}
	}
	shown := shownRanks(r)
	if more := len(r.Ranks) - len(shown); more > 0 {
		t.note = "those that computed most first; " + words.Plural(more, "more rank", "more ranks") + " in the report"
	}
	for _, at := range shown {
		rank := &r.Ranks[at]
		known := max(float64(rank.KnownNS), 1)
		rw := row{name: words.Clean(r.Processes[rank.Process].Text, 40), unknown: rank.StepNS == nil, share: float64(rank.ComputingNS) / known}
		rw.aside = words.Percent(rw.share) + " computing"
		if rank.StepNS != nil {
			rw.seconds, rw.code = report.Seconds(*rank.StepNS), words.Plural(rank.Steps, "step", "steps")
			if slowest := slowestStep(r, rank.Process); slowest > rw.seconds {
				rw.code += ", slowest " + words.Seconds(slowest)
			}
		}
		sum, parts := 0.0, []string{}
		for k, c := range rank.Collectives {
			sum += float64(c.NS)
			if k < 3 && float64(c.NS) >= 0.01*known {
				parts = append(parts, words.Clean(c.Text, 40)+" "+words.Percent(float64(c.NS)/known))
			}
		}
		rw.hint = "waited for others " + words.Percent(sum/known)
		if len(parts) > 0 {
			rw.hint += ": " + strings.Join(parts, ", ")
		}
		if waited := waitedForRank(r, rank.Rank); waited > 0 {
			rw.hint = wording.WaitedForRank(waited) + "; " + rw.hint
		}
		rw.hint += idleOfRank(r, rank.Process)
		t.rows = append(t.rows, rw)
	}
	return t
}

// rankLinesTable compares ranks by their time in each line; none where no rank is longer in one, beyond chance.
func rankLinesTable(r *report.View) table {
	t := table{heading: "Lines in which ranks differ", advises: true, note: "time per step outside of collectives, of the rank that took most; 95 % of the ranks took no more than p95"}
	lines := slices.DeleteFunc(slices.Clone(r.RankLines), func(l report.RankLine) bool { return !l.More })
	step := 0.0
	for i := range r.Ranks {
		if ns := r.Ranks[i].StepNS; ns != nil {
			step = max(step, float64(*ns))
		}
	}
	for i := range lines[:min(len(lines), maxRankLines)] {
		l := &lines[i]
		rw := row{name: linePlace(r, l.File, l.Line), seconds: report.Seconds(l.MostNS), code: labels.Code(r.Text(l.File, l.Line)),
			hint: wording.RankLine(l.Rank, timeline.Nanos(l.MostNS), timeline.Nanos(l.MedianNS), timeline.Nanos(l.LowNS), timeline.Nanos(l.HighNS), l.Above, l.Steps, l.More)}
		if step > 0 {
			rw.share = min(float64(l.MostNS)/step, 1)
		}
		if l.Ranks > few {
			rw.aside = "p95 " + words.Seconds(report.Seconds(l.P95NS))
		}
		t.rows = append(t.rows, rw)
	}
	return t
}

// shownRanks are the ranks that have a row and a lane: all of few, in order; of many those that computed for the largest
// share of their time, of whom the one comes first for which the others waited.
func shownRanks(r *report.View) []int {
	list := make([]int, len(r.Ranks))
	for i := range list {
		list[i] = i
	}
	if len(list) <= maxRanks {
		return list
	}
	computed := func(i int) float64 {
		return float64(r.Ranks[i].ComputingNS) / float64(max(r.Ranks[i].KnownNS, 1))
	}
	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(computed(b), computed(a)) })
	return list[:maxRanks]
}

// waitedForRank is for how long the others waited for a rank, of the one that is a finding.
func waitedForRank(r *report.View, rank int) timeline.Nanos {
	for _, f := range r.Findings {
		if f.ID == string(diagnose.Straggler) && f.Number("rank") == float64(rank) {
			return timeline.Nanos(f.Number("time_ns"))
		}
	}
	return 0
}

// slowestStep is the length of a process's longest step, 0 where there are none.
func slowestStep(r *report.View, process int) (slowest float64) {
	for _, s := range r.Steps {
		if s.Process == process {
			slowest = max(slowest, report.Seconds(s.EndNS-s.StartNS))
		}
	}
	return slowest
}

// idleOfRank says how long the devices of a rank were idle, and mostly why.
func idleOfRank(r *report.View, process int) string {
	if r.Idle == nil {
		return ""
	}
	text := ""
	for _, d := range r.Idle.Devices {
		device := &r.Devices[d.Device]
		if !slices.Contains(device.Processes, process) {
			continue
		}
		text += fmt.Sprintf("; GPU %d idle %s", device.Number, words.Percent(report.Seconds(d.IdleNS)/durationOf(r)))
		if len(d.Causes) > 0 {
			text += ", mostly " + words.Clean(d.Causes[0].Text, 60)
		}
	}
	return text
}

// workerTables rank the lines that the members of each pool worked at.
func workerTables(r *report.View, pools []pool) (tables []table) {
	for _, f := range pools {
		if slices.Equal(f.members, []int{r.Program()}) {
			continue // shown as the program
		}
		if t := f.linesTable(r); len(t.rows) > 0 {
			tables = append(tables, t)
		}
	}
	return tables
}

// programTables rank the lines of other Python programs that were started, where they
// had a part in what was done.
func programTables(r *report.View, duration float64) (tables []table) {
	work := func(t table) (sum float64) {
		for _, rw := range t.rows {
			sum += rw.seconds
		}
		return sum
	}
	for _, f := range programsOf(r) {
		if t := f.linesTable(r); work(t) >= 0.01*duration {
			tables = append(tables, t)
		}
	}
	slices.SortStableFunc(tables, func(a, b table) int { return cmp.Compare(work(b), work(a)) })
	return tables[:min(len(tables), maxPrograms)]
}

func (f pool) linesTable(r *report.View) table {
	t := table{heading: "What the " + f.name() + " did", note: "by your own lines, waiting included"}
	if len(f.members) == 1 {
		t.heading = "What " + words.Clean(r.Processes[f.members[0]].Text, 40) + " did"
	}
	did := f.work(r)
	if whole := workersTime(r); whole > 0 && f.ofEngine() && len(f.members) == len(f.Members) { // as in the headline, and for the regions
		did.ThreadNS = int64(whole * 1e9)
	}
	type place struct{ file, line int }
	type sum struct {
		self, incomplete int64
		states           report.StateTimes
		parts            map[int]float64
	}
	sums := make(map[place]*sum)
	var order []place
	for _, l := range r.Lines {
		if !slices.Contains(f.members, l.Process) || l.SelfNS <= 0 {
			continue
		}
		p := place{l.File, l.Line}
		one := sums[p]
		if one == nil {
			one = &sum{parts: make(map[int]float64)}
			sums[p], order = one, append(order, p)
		}
		one.self, one.incomplete = one.self+l.SelfNS, one.incomplete+l.IncompleteNS
		one.states = one.states.Plus(l.StateNS)
		one.parts[l.Process] += report.Seconds(l.SelfNS)
	}
	slices.SortStableFunc(order, func(a, b place) int { return cmp.Compare(sums[b].self, sums[a].self) })
	for _, p := range order[:min(len(order), maxWorkerLines)] {
		one := sums[p]
		share := min(float64(one.self)/max(float64(did.ThreadNS), 1), 1)
		if share < 0.01 {
			break
		}
		rw := row{
			name: linePlace(r, p.file, p.line), seconds: report.Seconds(one.self), share: share, aside: words.Percent(share), code: labels.Code(r.Text(p.file, p.line)),
			states: one.states, hint: f.shares(r, one.parts),
		}
		rw.noteCut(one.self, one.incomplete)
		t.rows = append(t.rows, rw)
	}
	if len(t.rows) > 0 {
		t.rows = append(t.rows, beside(did)...)
	}
	return t
}

// work is what the members of a pool spent their time with. A report that does not have it has the time of
// their main threads, or of those that run an engine's tasks.
func (f pool) work(r *report.View) (did report.Work) {
	for _, i := range f.members {
		if w := r.Processes[i].Work; w != nil {
			did.ThreadNS, did.StartingNS = did.ThreadNS+w.ThreadNS, did.StartingNS+w.StartingNS
			did.NoTaskNS, did.PassingNS = did.NoTaskNS+w.NoTaskNS, did.PassingNS+w.PassingNS
			continue
		}
		for _, th := range r.Threads {
			if th.Process == i && (th.Main && !f.ofEngine() || th.AtWork && f.ofEngine()) {
				did.ThreadNS += th.StateNS.Sum()
			}
		}
	}
	return did
}

// worthBeside is the share of the time of workers from which on what they did beside their work is a row.
const worthBeside = 0.03

// beside are rows for what workers did that is no line of the user's own.
func beside(did report.Work) (rows []row) {
	for _, part := range []struct {
		name string
		ns   int64
	}{{"handing over tasks and results", did.PassingNS}, {"waiting for a task", did.NoTaskNS}, {"starting up", did.StartingNS}} {
		share := float64(part.ns) / max(float64(did.ThreadNS), 1)
		if share >= worthBeside {
			rows = append(rows, row{name: part.name, seconds: report.Seconds(part.ns), share: share, aside: words.Percent(share)})
		}
	}
	return rows
}

// processesTable lists the processes beside the target.
func processesTable(r *report.View, duration float64) table {
	t := table{heading: "Processes", note: "CPU time, and its share of their lives"}
	idle := leftovers(r, duration)
	shown, left := listedProcesses(r, idle, duration)
	failed := make(map[string]bool) // by role
	for _, i := range shown {
		if p := &r.Processes[i]; p.ExitCode != nil && !succeeded(p) {
			failed[p.Role] = true
		}
	}
	for _, i := range shown {
		t.rows = append(t.rows, processRow(r, &r.Processes[i], failed[r.Processes[i].Role]))
	}
	if len(t.rows) == 0 {
		return table{}
	}
	if len(left) > 0 {
		rest := row{rest: true, name: words.Plural(len(left), "more process", "more processes")}
		for _, i := range left {
			rest.seconds += cpuOf(&r.Processes[i])
		}
		t.rows = append(t.rows, rest)
	}
	if text := idleText(idle); text != "" {
		rest := row{rest: true, name: text}
		for i, is := range idle {
			if is {
				rest.seconds += cpuOf(&r.Processes[i])
			}
		}
		t.rows = append(t.rows, rest)
	}
	return t
}

// listedProcesses are the processes beside the target, by their CPU time, and those that are
// summed up in one row.
func listedProcesses(r *report.View, idle map[int]bool, duration float64) (shown, left []int) {
	for i := range r.Processes {
		p := &r.Processes[i]
		switch {
		case i == r.Target().Process && !isOneOfMany(p) || isOurs(p) || idle[i]:
		case onlyCleansUp(p) || isBrief(r, p, duration):
			left = append(left, i)
		default:
			shown = append(shown, i)
		}
	}
	slices.SortStableFunc(shown, func(a, b int) int { return cmp.Compare(cpuOf(&r.Processes[b]), cpuOf(&r.Processes[a])) })
	if len(shown) > maxProcesses {
		left = append(left, shown[maxProcesses-1:]...)
		shown = shown[:maxProcesses-1]
	}
	if followEachOther(r, shown) {
		slices.SortStableFunc(shown, func(a, b int) int { return cmp.Compare(r.Processes[a].StartNS, r.Processes[b].StartNS) })
	}
	return shown, left
}

// overlap is for how long a process may seem to live together with the one that was waited for before it was started.
const overlap = int64(30e6)

// followEachOther reports whether processes are parts of the program that ran one after the other: they are in the
// order of time.
func followEachOther(r *report.View, processes []int) bool {
	for _, a := range processes {
		p := &r.Processes[a]
		if p.Role != string(timeline.RoleWorker) {
			return false
		}
		for _, b := range processes {
			if q := &r.Processes[b]; a != b && p.StartNS <= q.StartNS && (p.EndNS == nil || *p.EndNS > q.StartNS+overlap) {
				return false
			}
		}
	}
	return true
}

// isOneOfMany recognises a target that is a rank or an engine's worker, as the other targets are.
func isOneOfMany(p *report.Process) bool {
	return p.Role == string(timeline.RoleRank) || timeline.Role(p.Role).OfEngine()
}

// isBrief recognises a program that is of no interest, such as a shell that starts another one.
func isBrief(r *report.View, p *report.Process, duration float64) bool {
	start, end := lifeOf(r, p)
	return p.Role == string(timeline.RoleChild) && end-start < 0.05*duration && (p.CPUNS == nil || report.Seconds(*p.CPUNS) < 0.01*duration)
}

// processRow is a process, which is said to have succeeded where others of its role have not: failed.
func processRow(r *report.View, p *report.Process, failed bool) row {
	start, end := lifeOf(r, p)
	rw := row{name: words.Clean(p.Text, 60), seconds: cpuOf(p), unknown: p.CPUNS == nil, hint: fate(r, p, failed) + ", " + stacksText(p), keeps: r.Ended(p) != "" || failed && succeeded(p)}
	if len(r.Hosts) > 1 { // by number: a notebook's picture is shown to others
		rw.hint = fmt.Sprintf("on machine %d, %s", p.Host+1, rw.hint)
	}
	if rw.share = rw.seconds / max(end-start, 1e-3); p.CPUNS != nil {
		rw.aside = words.Percent(rw.share)
	}
	if p.Command != "" && p.Command != p.Text {
		rw.code = words.Clean(p.Command, 40)
	}
	return rw
}

// isOurs recognises an omni-perf that ran within the program: it is no part of it.
func isOurs(p *report.Process) bool { return p.Role == string(timeline.RoleProfiler) }

// onlyCleansUp recognises multiprocessing's and loky's resource trackers, which read a pipe all their life.
func onlyCleansUp(p *report.Process) bool { return p.Role == string(timeline.RoleTracker) }

func cpuOf(p *report.Process) float64 {
	if p.CPUNS == nil {
		return 0
	}
	return report.Seconds(*p.CPUNS)
}

// lifeOf is when a process lived within the recording.
func lifeOf(r *report.View, p *report.Process) (start, end float64) {
	start, end = max(report.Seconds(p.StartNS), 0), durationOf(r)
	if p.EndNS != nil {
		end = report.Seconds(*p.EndNS)
	}
	return start, end
}

// succeeded reports whether a process has ended with the exit code 0.
func succeeded(p *report.Process) bool { return p.ExitCode != nil && *p.ExitCode == 0 }

// fate says how a process ended; failed: others of its role have failed.
func fate(r *report.View, p *report.Process, failed bool) string {
	if p.EndNS == nil {
		return "ran to the last"
	}
	how := "ended"
	if failed && succeeded(p) {
		how = "exit code 0"
	}
	return cmp.Or(r.Ended(p), how) + " at " + words.Seconds(report.Seconds(*p.EndNS))
}

// stacksText says how often its stacks were read, or why not.
func stacksText(p *report.Process) string {
	switch {
	case p.Stacks.Read && p.Stacks.IntervalNS != nil:
		return "stacks every " + words.Resolution(report.Seconds(*p.Stacks.IntervalNS))
	case p.Stacks.Read:
		return "stacks read"
	}
	return "no stacks: " + words.Clean(p.Stacks.Text, 120)
}
