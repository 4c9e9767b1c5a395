package chart

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/labels"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/wording"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// table is a ranked list below the chart. Columns without text in any row are
// not shown.
type table struct {
	heading, note string
	barNote       string // about bars that are divided: not where they are plain
	advises       bool   // the hints say what to change: never left out
	asItIs        bool   // the viewer does not make it of a stretch: it shows this one while all is in view
	rows          []row
}

// row is one line of a table.
type row struct {
	name    string
	seconds float64
	unknown bool     // what would be its seconds is not known
	figure  string   // what there is in place of seconds
	share   float64  // of what the table divides, 0..1: the bar's length
	plain   *float64 // the length of a bar that is not divided, as in text; nil: share
	aside   string   // behind the bar
	place   string   // "3", "train.py:3"
	code    string
	states  report.StateTimes // what the time was spent with, where that is known: divides the bar
	hint    string
	keeps   bool // the hint is never left out: the time is not only the row's own, or a process ended badly
	rest    bool // sums up what is not listed
}

// remark says beside a row what its bar's division shows, and its hint.
func (r row) remark() string {
	return strings.Trim(labels.Split(r.states)+" · "+r.hint, " ·")
}

// time is what its seconds read as.
func (r *row) time() string {
	switch {
	case r.unknown:
		return "–"
	case r.figure != "":
		return r.figure
	}
	return words.Seconds(r.seconds)
}

const (
	maxThreadRows = 6
	maxCauses     = 8
	maxLines      = 8
	maxFunctions  = 6
	maxRegions    = 6
	maxAwaits     = 6
	maxBlocked    = 5
	maxDevices    = 8
	maxMemory     = 6

	// worthMemory is the growth of the program in its own lines from which on they are listed:
	// any program imports modules. worthMemoryLine is a line's part of the growth.
	worthMemory     = 32 << 20
	worthMemoryLine = 0.01

	// worthAdvice is the share of the idle time from which on a cause is mentioned
	// what to do about it.
	worthAdvice = 0.03
)

func tablesOf(r *report.View, gpus gpuSummary, pools []pool, duration float64) []table {
	together := isOfWorkers(r, pools)
	ts := append(outOfMemoryTables(r), asTheyAre(ranksTable(r), rankLinesTable(r))...)
	if gpus.used {
		ts = append(ts, idleTable(r))
		if len(r.Idle.Devices) > 1 {
			ts = append(ts, deviceTable(r))
		}
	} else if len(r.Ranks) < 2 && !together { // else those of all, below
		ts = append(ts, linesTable(r, duration))
		ts = append(ts, asTheyAre(awaitsTable(r, duration))...)
	}
	ts = append(ts, workerTables(r, pools)...)
	ts = append(ts, programTables(r, duration)...)
	if len(r.Ranks) < 2 { // a launcher's own are of no interest
		ts = append(ts, asTheyAre(blockedTable(r, duration))...)
		if !gpus.used && !together {
			ts = append(ts, functionsTable(r, duration), threadsTable(r, duration))
		}
	}
	memory := memoryTable(r)
	ts = append(ts, asTheyAre(allocationsTable(r), memory, memoryFunctionsTable(r, memory), gpuMemoryTable(r), torchMemoryTable(r), processesTable(r, duration), stepsTable(r, duration), epochsTable(r), slowStepsTable(r),
		phasesTable(r), regionsTable(r, duration), operatorsTable(r), kernelsTable(r))...)
	return slices.DeleteFunc(ts, func(t table) bool { return len(t.rows) == 0 })
}

// asTheyAre marks tables that the viewer shows as they are.
func asTheyAre(ts ...table) []table {
	for i := range ts {
		ts[i].asItIs = true
	}
	return ts
}

// idleTable ranks what the GPUs waited for; its rows add up to the idle time.
func idleTable(r *report.View) table {
	t := table{heading: "Where the GPU waited", advises: true, note: words.Clean(r.Idle.Text, 200)}
	if len(r.Idle.Devices) > 1 {
		t.heading = "Where the GPUs waited"
		t.note = labels.Join("idle "+words.Seconds(report.Seconds(r.Idle.IdleNS))+" over "+words.Plural(len(r.Idle.Devices), "device", "devices"), t.note)
	}
	causes := slices.Clone(r.Idle.Causes)
	slices.SortStableFunc(causes, func(a, b report.Cause) int { return cmp.Compare(b.NS, a.NS) })
	rest := row{rest: true}
	left := 0
	given := make(map[string]bool) // advice, once
	for i, c := range causes {
		if i >= maxCauses-1 && len(causes) > maxCauses {
			rest.seconds += report.Seconds(c.NS)
			rest.share += c.Share
			left++
			continue
		}
		rw := row{
			name: words.Clean(c.Text, 80), seconds: report.Seconds(c.NS), share: c.Share, aside: words.Percent(c.Share) + bounds(c),
			place: placeOf(r, c.File, c.Line), code: labels.Code(r.LineText(c.File, c.Line)),
		}
		if c.Share >= worthAdvice && !given[c.Hint] {
			rw.hint = words.Clean(c.Hint, words.MaxName)
			given[c.Hint] = true
		}
		t.rows = append(t.rows, rw)
	}
	if left > 0 {
		rest.name = words.Plural(left, "smaller cause", "smaller causes")
		rest.aside = words.Percent(rest.share)
		t.rows = append(t.rows, rest)
	}
	return t
}

// bounds are what an estimate may truly be; empty for what is none, and where both are
// written alike.
func bounds(c report.Cause) string {
	if c.LowNS == nil || c.HighNS == nil {
		return ""
	}
	low, high := words.Seconds(report.Seconds(*c.LowNS)), words.Seconds(report.Seconds(*c.HighNS))
	if low == high {
		return ""
	}
	return " [" + low + " – " + high + "]"
}

// deviceTable compares the devices.
func deviceTable(r *report.View) table {
	t := table{heading: "Idle by device"}
	duration := durationOf(r)
	for i, d := range r.Idle.Devices {
		if i == maxDevices {
			t.note = words.Plural(len(r.Idle.Devices)-i, "more device", "more devices") + " in the report"
			break
		}
		idle := report.Seconds(d.IdleNS)
		rw := row{
			name: fmt.Sprintf("GPU %d", r.Devices[d.Device].Number), seconds: idle, share: idle / duration, aside: words.Percent(idle / duration),
		}
		if len(d.Causes) > 0 {
			c := d.Causes[0]
			rw.place, rw.code = placeOf(r, c.File, c.Line), labels.Code(r.LineText(c.File, c.Line))
			rw.hint = "mostly " + words.Clean(c.Text, 80)
		}
		t.rows = append(t.rows, rw)
	}
	return t
}

// linesTable ranks the user's lines by the time for which each was the innermost
// of them, and what the notebook did around them: these times add up.
func linesTable(r *report.View, duration float64) table {
	t := table{heading: "Where the time went", note: "by your own lines, the innermost one on the stack"}
	type part struct {
		row
		total float64
	}
	var parts []part
	for _, l := range r.Lines {
		if l.Process != r.Program() {
			continue
		}
		rw := row{name: linePlace(r, l.File, l.Line), seconds: report.Seconds(l.SelfNS), code: labels.Code(r.Text(l.File, l.Line)), states: l.StateNS}
		rw.noteCut(l.SelfNS, l.IncompleteNS)
		rw.noteFreed(r, &l)
		rw.noteCollected(&l)
		parts = append(parts, part{rw, report.Seconds(l.TotalNS)})
	}
	for _, p := range r.Phases {
		parts = append(parts, part{row: row{name: words.Clean(p.Text, 80), seconds: report.Seconds(p.SelfNS)}})
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(b.seconds, a.seconds) })
	for i, p := range parts {
		if p.seconds = min(p.seconds, duration); i == maxLines || p.seconds < 0.005*duration || p.seconds == 0 {
			break
		}
		p.share, p.aside = p.seconds/duration, words.Percent(p.seconds/duration)
		if p.total > 1.05*p.seconds {
			p.hint = labels.Join(p.hint, words.Seconds(p.total)+" in all")
		}
		t.rows = append(t.rows, p.row)
	}
	return t
}

// blockedTable ranks what threads of the program were blocked on in system calls, and for other threads and processes.
func blockedTable(r *report.View, duration float64) table {
	t := table{heading: "What threads were blocked on", note: "by your own lines, the main thread's first"}
	list := slices.Clone(r.Blocked)
	slices.SortStableFunc(list, func(a, b report.Blocked) int { return cmp.Compare(b.MainNS, a.MainNS) })
	for i := range list {
		w := &list[i]
		seconds := report.Seconds(w.BlockedNS)
		if len(t.rows) == maxBlocked || w.Process != r.Program() || waitedThroughout(r, w, duration) || seconds < worthBlocked*duration || seconds == 0 {
			continue
		}
		rw := row{
			name: wording.BlockedOn(w.Call, w.Kind, w.Object), seconds: seconds, share: min(seconds/duration, 1),
			aside: linePlace(r, w.File, w.Line), code: labels.Code(r.Text(w.File, w.Line)),
		}
		if w.MainNS == 0 {
			rw.hint = "other threads"
		}
		if w.Holder != nil {
			rw.hint, rw.keeps = labels.Join(heldAt(r, w), rw.hint), true
		}
		if w.OwnerPID > 0 {
			rw.hint, rw.keeps = labels.Join(lockedBy(r, w), rw.hint), true
		}
		if w.Connections > 1 {
			rw.hint, rw.keeps = labels.Join(rw.hint, words.Count(int64(w.Connections))+" connections"), true
		}
		if w.Times > 1 {
			rw.hint = labels.Join(rw.hint, words.Plural(w.Times, "time", "times")+", "+words.Seconds(report.Seconds(w.LongestNS))+" at once")
		}
		t.rows = append(t.rows, rw)
	}
	return t
}

// heldAt is where the thread was meanwhile that was waited for.
func heldAt(r *report.View, w *report.Blocked) string {
	text := "it was at " + linePlace(r, w.Holder.File, w.Holder.Line)
	if float64(w.Holder.HeldNS) < mostlyHeld*float64(w.BlockedNS) {
		text = "it was mostly at " + linePlace(r, w.Holder.File, w.Holder.Line)
	}
	if w.Holder.File == w.File && w.Holder.Line == w.Line { // the row has its code
		return text
	}
	return labels.Join(text, labels.Code(r.Text(w.Holder.File, w.Holder.Line)))
}

// lockedBy is the process that had the lock of a file or a database.
func lockedBy(r *report.View, w *report.Blocked) string {
	if r.Processes[w.Process].PID == w.OwnerPID {
		return "the process itself had it"
	}
	name := "process " + strconv.Itoa(w.OwnerPID)
	if i := slices.IndexFunc(r.Processes, func(p report.Process) bool { return p.PID == w.OwnerPID }); i >= 0 { // one of the program's own
		name += " (" + r.Processes[i].Text + ")"
	}
	return name + " had it"
}

// awaitsTable ranks the lines at which tasks of event loops waited, of the program's process first. Where no two waited at once,
// the lines of the thread that runs the loop say the same.
func awaitsTable(r *report.View, duration float64) table {
	t := table{heading: "Where tasks waited", note: "of event loops, by your own lines; the time is that in which any waited"}
	t.rows = awaitRows(r, duration, func(a *report.Await) bool { return a.Process == r.Program() })
	t.rows = append(t.rows, awaitRows(r, duration, func(a *report.Await) bool { return a.Process != r.Program() })...)
	t.rows = t.rows[:min(len(t.rows), maxAwaits)]
	return t
}

// awaitRows are the lines of some processes, each once: in the process in which tasks waited most.
func awaitRows(r *report.View, duration float64, of func(*report.Await) bool) (rows []row) {
	type line struct{ file, line int }
	processes := make(map[line]int)
	for i := range r.Awaits {
		if a := &r.Awaits[i]; of(a) {
			processes[line{a.File, a.Line}]++
		}
	}
	several := false
	for i := range r.Awaits {
		a := &r.Awaits[i]
		some := report.Seconds(a.SomeNS)
		others := processes[line{a.File, a.Line}] - 1
		if !of(a) || others < 0 || some < 0.005*duration || some == 0 {
			continue
		}
		delete(processes, line{a.File, a.Line})
		rw := row{
			name: linePlace(r, a.File, a.Line), seconds: some, share: min(some/duration, 1), code: labels.Code(r.Text(a.File, a.Line)),
			aside: words.Plural(a.MaxTasks, "task", "tasks"),
		}
		if a.MaxTasks > 1 {
			several = true
			rw.aside += " at once"
			if mean := a.MeanTasks(); mean < wording.FewerOnAverage*float64(a.MaxTasks) {
				rw.aside += ", " + words.Fixed(mean, 1) + " on average"
			}
			rw.hint = words.Seconds(report.Seconds(a.WaitingNS)) + " over all tasks"
		}
		if a.Process != r.Program() {
			rw.aside += ", in " + words.Clean(r.ProcessName(a.Process), 40)
			if others > 0 {
				rw.aside += fmt.Sprintf(" + %d more", others)
			}
		}
		rows = append(rows, rw)
	}
	if !several {
		return nil
	}
	return rows
}

// mostlyHeld is the part of a wait below which the line of the thread that was waited for is one of several.
const mostlyHeld = 0.9

// worthBlocked is the share of the time from which on what a thread was blocked on is shown.
const worthBlocked = 0.02

// worthDoubt is the share of a line's growth from which on it is said, wherever the line is shown, that it may be another's.
const worthDoubt = 0.1

// worthAtPeak is the share of a line's growth below which it is said how much of it made the peak.
const worthAtPeak = 0.9

// memoryFunctionsTable ranks the functions in which the memory of the program grew, each without those that it
// called: with the lines above, which show the program's own, it says which call of a library it was.
func memoryFunctionsTable(r *report.View, lines table) table {
	t := table{heading: "Growth of resident memory by function", note: "the innermost, yours or a library's"}
	sum, libraries := int64(0), false
	if len(lines.rows) == 0 {
		return table{}
	}
	functions := slices.DeleteFunc(slices.Clone(r.FunctionMemory), func(f report.MemoryFunction) bool { return f.Process != r.Program() })
	slices.SortStableFunc(functions, func(a, b report.MemoryFunction) int { return cmp.Compare(b.SelfBytes, a.SelfBytes) })
	for _, f := range functions {
		sum += f.SelfBytes
	}
	if sum < worthMemory { // the lines are those of worker processes
		return table{}
	}
	for i, f := range functions {
		share := float64(f.SelfBytes) / float64(sum)
		if i == maxMemory || share < worthMemoryLine {
			break
		}
		libraries = libraries || !r.Functions[f.Function].Code.Own()
		rw := row{name: labels.FunctionName(r, f.Function), figure: words.Quantity(float64(f.SelfBytes), "B"), share: share, aside: words.Percent(share), code: functionPlace(r, f.Function)}
		if float64(f.TotalBytes) > 1.05*float64(f.SelfBytes) {
			rw.hint = words.Quantity(float64(f.TotalBytes), "B") + " with what it called"
		}
		t.rows = append(t.rows, rw)
	}
	if len(t.rows) < 2 && !libraries {
		return table{} // the table of lines has it all
	}
	return t
}

// mostlyGivenBack is the part of the growth below which what made the peak is ranked in place of the growth: the rest
// was given back, and grew again and again.
const mostlyGivenBack = 0.5

// worthElsewhere is the part of the growth from which on it is said that it was in no line.
const worthElsewhere = 0.05

// worthRegrowing is the part of the growth from which on a line is shown that has little or none of the peak.
const worthRegrowing = 0.25

// memoryTable ranks the lines while which ran the resident memory of the program grew, and that of its worker processes.
func memoryTable(r *report.View) table {
	lines, grown, atPeak := programsMemory(r)
	workers := workersMemory(r)
	elsewhere, ofWorkers := unplaced(r), int64(0)
	for i := range workers {
		ofWorkers += workers[i].GrownBytes
	}
	if grown+ofWorkers < worthMemory {
		return table{}
	}
	if atPeak >= worthMemory && float64(atPeak) < mostlyGivenBack*float64(grown) {
		return peakTable(r, lines, grown, atPeak)
	}
	t := table{heading: "Growth of resident memory", note: memoryNote(r)}
	all := float64(grown + elsewhere + ofWorkers)
	type ranked struct {
		bytes int64
		row
	}
	var rows []ranked
	for i := range lines {
		m := &lines[i]
		rows = append(rows, ranked{m.GrownBytes, memoryRow(r, m, m.GrownBytes, float64(m.GrownBytes)/all, words.Quantity(float64(m.AtPeakBytes), "B")+" at the peak")})
	}
	for i := range workers {
		rows = append(rows, ranked{workers[i].GrownBytes, workers[i].row(r, all)})
	}
	slices.SortStableFunc(rows, func(a, b ranked) int { return cmp.Compare(b.bytes, a.bytes) })
	for _, one := range rows {
		if len(t.rows) == maxMemory || one.share < worthMemoryLine {
			break
		}
		t.rows = append(t.rows, one.row)
	}
	if share := float64(elsewhere) / all; share >= worthElsewhere {
		t.rows = append(t.rows, row{
			name: "elsewhere", figure: words.Quantity(float64(elsewhere), "B"), share: share, aside: words.Percent(share),
			hint: "in none of your lines", keeps: true,
		})
	}
	return t
}

// programsMemory are the lines of the program's own process, with what they grew by and have of the peak in all.
func programsMemory(r *report.View) (lines []report.Memory, grown, atPeak int64) {
	for _, m := range r.Memory {
		if m.Process == r.Program() {
			lines = append(lines, m)
			grown += m.GrownBytes
			atPeak += m.AtPeakBytes
		}
	}
	return lines, grown, atPeak
}

// workersLine is a line with what it grew by in all worker processes of the program, and in the one in which it was most.
type workersLine struct {
	report.Memory
	processes int
	most      int64
}

func workersMemory(r *report.View) (lines []workersLine) {
	for _, m := range r.Memory {
		switch timeline.Role(r.Processes[m.Process].Role) {
		case timeline.RolePoolWorker, timeline.RoleLoaderWorker, timeline.RoleWorker:
		default:
			continue
		}
		if m.Process == r.Program() {
			continue
		}
		i := slices.IndexFunc(lines, func(l workersLine) bool { return l.File == m.File && l.Line == m.Line })
		if i < 0 {
			i, lines = len(lines), append(lines, workersLine{Memory: report.Memory{File: m.File, Line: m.Line}})
		}
		l := &lines[i]
		l.processes, l.most = l.processes+1, max(l.most, m.GrownBytes)
		l.GrownBytes, l.UncertainBytes = l.GrownBytes+m.GrownBytes, l.UncertainBytes+m.UncertainBytes
	}
	return lines
}

func (l *workersLine) row(r *report.View, all float64) row {
	l.AtPeakBytes = l.GrownBytes // each process has a peak of its own, of which nothing is said here
	rw := memoryRow(r, &l.Memory, l.GrownBytes, float64(l.GrownBytes)/all, "")
	where := "in a worker process"
	if l.processes > 1 {
		where = fmt.Sprintf("in %d worker processes, at most %s in one", l.processes, words.Quantity(float64(l.most), "B"))
	}
	rw.hint, rw.keeps = labels.Join(where, rw.hint), true
	return rw
}

// unplaced is what the memory of the program grew by in no line of the user's own.
func unplaced(r *report.View) int64 {
	for _, m := range r.MemoryReading {
		if m.Process == r.Program() {
			return m.UnplacedBytes
		}
	}
	return 0
}

// peakTable ranks the lines by what they have of the peak.
func peakTable(r *report.View, lines []report.Memory, grown, atPeak int64) table {
	t := table{heading: "What the peak of resident memory was made of", note: memoryNote(r)}
	slices.SortStableFunc(lines, func(a, b report.Memory) int { return cmp.Compare(b.AtPeakBytes, a.AtPeakBytes) })
	for i := range lines {
		m := &lines[i]
		share := float64(m.AtPeakBytes) / float64(atPeak)
		if len(t.rows) == maxMemory || share < worthMemoryLine && float64(m.GrownBytes) < worthRegrowing*float64(grown) {
			continue
		}
		t.rows = append(t.rows, memoryRow(r, m, m.AtPeakBytes, share, words.Quantity(float64(m.GrownBytes), "B")+" in all, given back and grown anew"))
	}
	return t
}

// memoryRow is a line with an amount of memory, and the other one where the line's growth is more than what it has of the peak.
func memoryRow(r *report.View, m *report.Memory, bytes int64, share float64, other string) row {
	rw := row{
		name: linePlace(r, m.File, m.Line), figure: words.Quantity(float64(bytes), "B"), share: share, aside: words.Percent(share),
		code: labels.Code(r.Text(m.File, m.Line)),
	}
	if float64(m.UncertainBytes) >= worthDoubt*float64(m.GrownBytes) {
		part := "of it " + words.Quantity(float64(m.UncertainBytes), "B")
		if m.UncertainBytes == m.GrownBytes {
			part = "all of it"
		}
		rw.hint, rw.keeps = part+" perhaps of a line before or after", true
	}
	if float64(m.AtPeakBytes) < worthAtPeak*float64(m.GrownBytes) {
		rw.hint = labels.Join(other, rw.hint)
		rw.keeps = true
	}
	return rw
}

// gpuMemoryTable ranks the lines while which ran the memory of the program on GPUs grew.
func gpuMemoryTable(r *report.View) table {
	t := table{heading: "Growth of memory on GPUs"}
	sum := int64(0)
	for i := range r.GPUMemoryReads {
		m := &r.GPUMemoryReads[i]
		if m.Process != r.Program() {
			continue
		}
		sum += m.GrownBytes
		t.note = labels.Join(t.note, fmt.Sprintf("GPU %d: at least %s at its peak, %s given back, read every %s", r.Devices[m.Device].Number,
			words.Quantity(float64(m.PeakBytes), "B"), words.Quantity(float64(m.ReleasedBytes), "B"), words.Resolution(report.Seconds(m.ResolutionNS))))
	}
	if sum < worthMemory {
		return table{}
	}
	for i := range r.GPUMemory {
		m := &r.GPUMemory[i]
		share := float64(m.GrownBytes) / float64(sum)
		if len(t.rows) == maxMemory || m.Process != r.Program() || share < worthMemoryLine {
			continue
		}
		rw := row{
			name: linePlace(r, m.File, m.Line), figure: words.Quantity(float64(m.GrownBytes), "B"), share: share, aside: words.Percent(share),
			code: labels.Code(r.Text(m.File, m.Line)),
		}
		if len(r.Devices) > 1 {
			rw.hint = fmt.Sprintf("GPU %d", r.Devices[m.Device].Number)
		}
		if float64(m.UncertainBytes) >= worthCut*float64(m.GrownBytes) {
			rw.hint = labels.Join(rw.hint, "of it "+words.Quantity(float64(m.UncertainBytes), "B")+" while other lines ran, too")
		}
		t.rows = append(t.rows, rw)
	}
	return t
}

// allocationsTable ranks the lines by what they had allocated when a cell had most, where every allocation was recorded.
func allocationsTable(r *report.View) table {
	a := r.Allocations
	if a == nil {
		return table{}
	}
	bytes := func(n int64) string { return words.Quantity(float64(n), "B") }
	t := table{heading: "Allocated at the cell's peak", note: fmt.Sprintf("%s in all, %s left at the end · by %s, whose cost is in the cell's times", bytes(a.PeakBytes), bytes(a.KeptBytes), words.Clean(a.Tool, 40))}
	for i := range a.Lines {
		l := &a.Lines[i]
		share := float64(l.PeakBytes) / float64(max(a.PeakBytes, 1))
		if len(t.rows) == maxMemory || l.PeakBytes == 0 || share < worthMemoryLine {
			break
		}
		rw := row{
			name: linePlace(r, l.File, l.Line), figure: bytes(l.PeakBytes), share: min(share, 1), aside: words.Percent(min(share, 1)), code: labels.Code(r.Text(l.File, l.Line)), keeps: true,
			hint: words.Plural(int(l.PeakAllocations), "allocation", "allocations") + ", most in " + words.Clean(l.Function, 60),
		}
		if l.KeptBytes > 0 {
			rw.hint = labels.Join(rw.hint, bytes(l.KeptBytes)+" left at the end")
		}
		t.rows = append(t.rows, rw)
	}
	return t
}

// torchMemoryTable says what torch's allocator had of each device.
func torchMemoryTable(r *report.View) table {
	t := table{heading: "Memory of torch's allocator", note: "the most that tensors had in this cell, by torch"}
	for i := range r.TorchMemory {
		m := &r.TorchMemory[i]
		peak, at := m.PeakBytes, ""
		if peak == nil {
			peak, at = m.PeakAtLeastBytes, "at least"
		}
		if peak == nil || m.ReservedBytes < worthMemory && *peak < worthMemory || len(t.rows) == maxDevices {
			continue
		}
		bytes := func(n int64) string { return words.Quantity(float64(n), "B") }
		t.rows = append(t.rows, row{
			name: fmt.Sprintf("cuda:%d", m.Device), figure: bytes(*peak), share: min(float64(*peak)/float64(max(m.ReservedBytes, *peak)), 1), aside: at, keeps: true,
			hint: fmt.Sprintf("in use %s before, %s after it; reserved %s before, %s after it", bytes(m.AllocatedBeforeBytes), bytes(m.AllocatedBytes), bytes(m.ReservedBeforeBytes), bytes(m.ReservedBytes)),
		})
	}
	return t
}

// memoryNote is what is known of the memory of the program in all.
func memoryNote(r *report.View) string {
	note := ""
	switch peak, atLeast := r.Processes[r.Program()].PeakMemory(); {
	case atLeast:
		note = labels.Join(note, "peak at least "+words.Quantity(float64(*peak), "B"))
	case peak != nil:
		note = labels.Join(note, "peak "+words.Quantity(float64(*peak), "B"))
	}
	for i := range r.MemoryReading {
		m := &r.MemoryReading[i]
		if m.Process == r.Program() {
			if m.ReleasedBytes > 0 {
				note = labels.Join(note, words.Quantity(float64(m.ReleasedBytes), "B")+" given back")
			}
		}
	}
	if kept := r.Processes[r.Program()].KeptBytes; kept != nil && *kept > 0 {
		note = labels.Join(note, words.Quantity(float64(*kept), "B")+" kept")
	}
	return labels.Join(note, "by your own lines")
}

// worthCut is the share of a line's or a function's own time from which on it is mentioned
// that its stacks were cut: single ones always are.
const worthCut = 0.05

// noteCut notes what part of an own time may have been spent in something that was called
// and could not be read.
func (r *row) noteCut(self, incomplete int64) {
	if incomplete > 0 && float64(incomplete) >= worthCut*float64(self) {
		r.hint, r.keeps = labels.Join("of it "+words.Seconds(report.Seconds(incomplete))+" with its callee cut", r.hint), true
	}
}

// noteFreed notes what part of a line's time the freeing of a function's locals took, which is in no line of the function.
func (r *row) noteFreed(v *report.View, l *report.Line) {
	if l.FreeingFunction == nil {
		return
	}
	r.hint = labels.Join(r.hint, "of it "+words.Seconds(report.Seconds(l.FreeingNS))+" freeing what "+labels.FunctionName(v, *l.FreeingFunction)+"() held")
	r.keeps = true
}

// noteCollected notes what part of a line's time the garbage collector took.
func (r *row) noteCollected(l *report.Line) {
	if l.GCNS > 0 && float64(l.GCNS) >= worthCut*float64(l.SelfNS) {
		r.hint, r.keeps = labels.Join(r.hint, "of it "+words.Seconds(report.Seconds(l.GCNS))+" in garbage collection"), true
	}
}

// worthBusy is the share of its own time that a library's function did something in, if it is to be a busy one.
const worthBusy = 0.05

// onlyWaits reports whether a function that is not the user's did nothing but wait, as Condition.wait does: the line
// that called it has that time.
func onlyWaits(r *report.View, f *report.FunctionTime) bool {
	function := &r.Functions[f.Function]
	own := function.Code.Own() || r.Files[function.File].Code.Own()
	idle := f.StateNS.Of(report.State.Idle)
	return !own && idle > 0 && float64(f.SelfNS-idle) < worthBusy*float64(f.SelfNS)
}

// functionsTable ranks functions by their own time, over all threads.
func functionsTable(r *report.View, duration float64) table {
	t := table{heading: "Busiest functions", note: "own time, all threads"}
	times := slices.DeleteFunc(slices.Clone(r.FunctionTimes), func(f report.FunctionTime) bool {
		return f.Process != r.Program() || onlyWaits(r, &f)
	})
	slices.SortStableFunc(times, func(a, b report.FunctionTime) int { return cmp.Compare(b.SelfNS, a.SelfNS) })
	for i, f := range times {
		self, total := report.Seconds(f.SelfNS), report.Seconds(f.TotalNS)
		if i == maxFunctions || self < 0.005*duration || self == 0 {
			break
		}
		rw := row{name: labels.FunctionName(r, f.Function), seconds: self, share: min(self/duration, 1), code: functionPlace(r, f.Function), states: f.StateNS}
		rw.noteCut(f.SelfNS, f.IncompleteNS)
		if self <= duration { // else of many threads: no share of the time
			rw.aside = words.Percent(self / duration)
		}
		if total > 1.05*self {
			rw.hint = labels.Join(rw.hint, words.Seconds(total)+" in all")
		}
		t.rows = append(t.rows, rw)
	}
	return t
}

// threadsTable says what the target's threads did, where several did something.
func threadsTable(r *report.View, duration float64) table {
	t := table{heading: "Threads", note: "running Python and native code", barNote: "the bars are all of their time"}
	left := 0
	for i := range r.Threads {
		th := &r.Threads[i]
		computed := report.Seconds(th.StateNS.Of(report.State.Computes))
		active := report.Seconds(th.StateNS.Sum() - th.StateNS.Of(report.State.Idle))
		if th.Internal || th.Process != r.Program() || active < worthOwnLane*duration {
			continue
		}
		if len(t.rows) == maxThreadRows {
			left++
			continue
		}
		plain := min(computed/duration, 1)
		rw := row{
			name: threadName(r, th), seconds: computed, share: min(report.Seconds(th.StateNS.Sum())/duration, 1), plain: &plain,
			aside: words.Percent(computed/duration) + " busy", states: th.StateNS,
		}
		t.rows = append(t.rows, rw)
	}
	if len(t.rows) < 2 {
		return table{}
	}
	if left > 0 {
		t.note += " · " + words.Plural(left, "more thread", "more threads") + " in the report"
	}
	return t
}

func functionPlace(r *report.View, function int) string {
	f := &r.Functions[function]
	file := words.ShortFile(r.FileName(&f.File))
	if f.FirstLine <= 0 {
		return file
	}
	return fmt.Sprintf("%s:%d", file, f.FirstLine)
}

// stepsTable sums up the training steps of the leading process, by the phases of the training where
// these are known; the table of ranks compares those of all.
func stepsTable(r *report.View, duration float64) table {
	s := r.StepTimes()
	if s.Count < 2 {
		return table{}
	}
	pace := throughput(&s)
	if float64(s.EvaluationNS) >= worthEvaluation*float64(s.TotalNS) && s.EvaluationNS > 0 {
		pace += " without evaluation"
	}
	t := table{heading: "Steps", note: fmt.Sprintf("shares of their time · %d steps, %s, median %s, 95 %% within %s, slowest %s", s.Count,
		pace, words.Seconds(report.Seconds(s.MedianNS)), words.Seconds(report.Seconds(s.P95NS)), words.Seconds(report.Seconds(s.SlowestNS)))}
	if by := samplesBy(r); by != "" {
		t.note += " · " + by
		if known := s.SamplesKnown; float64(known) < mostKnown*float64(s.Count) {
			t.note += fmt.Sprintf(", known of %d of them", known)
		}
	}
	if slices.ContainsFunc(r.Notes, func(n report.Note) bool { return n.ID == report.OneOfOptimizers }) {
		t.note += " · of one of several optimizers"
	}
	elsewhere := r.StepsElsewhere()
	if s.Others || elsewhere.Processes > 0 {
		leading, _ := r.LeadingSteps()
		t.heading += " of " + words.Clean(r.ProcessName(leading[0].Process), 40)
	}
	if elsewhere.Processes > 0 {
		t.note += " · " + wording.Elsewhere(elsewhere)
	}
	total := report.Seconds(s.TotalNS)
	add := func(name string, s float64) {
		if s > 0 {
			t.rows = append(t.rows, row{name: name, seconds: s, share: s / total, aside: words.Percent(s / total)})
		}
	}
	seen := 0.0
	for _, p := range r.StepPhases() {
		add(words.Clean(p.Phase.Text, 40), report.Seconds(p.NS))
		t.rows[len(t.rows)-1].code = perStep(p.Phase)
		if float64(p.Outside) >= worthOutside*float64(p.Phase.TotalNS) {
			// It comes first: a narrow terminal cuts the end. No share has it.
			t.rows[len(t.rows)-1].code = words.Seconds(report.Seconds(p.Outside)) + " more in no step · " + t.rows[len(t.rows)-1].code
		}
		if p.Phase.ID == origin.Loading.String() {
			rw := &t.rows[len(t.rows)-1]
			rw.hint = labels.Join(batchesReady(r), workersTook(r))
			rw.keeps = rw.hint != ""
		}
		seen += report.Seconds(p.NS)
	}
	switch {
	case len(t.rows) > 0 && total-seen >= worthUnseen*total:
		add("not known", total-seen)
		t.rows[len(t.rows)-1].rest = true
	case len(t.rows) == 0:
		add("waiting for data", min(report.Seconds(s.DataWaitNS), total))
	}
	add("GPU busy", min(report.Seconds(s.BusyNS), total))
	if len(t.rows) == 0 {
		add("in steps", total)
		t.rows[0].share, t.rows[0].aside = min(total/duration, 1), words.Percent(min(total/duration, 1))+" of the time"
	}
	return t
}

// mostKnown is the share of the steps up to which it is said of how many the samples, or the tokens, are known.
const mostKnown = 0.9

// worthEvaluation is the share of the steps from which on it is said that their pace is without evaluation.
const worthEvaluation = 0.005

// throughput is how many steps, and of what is known samples and tokens, there were in a second; and in how many steps, where
// these are known of some only: those may be of another training, at another pace.
func throughput(s *report.StepTimes) string {
	text := words.Significant(s.PerSecond(), 3) + "/s"
	for _, part := range []struct {
		report.Worked
		unit string
	}{{s.Samples, " samples/s"}, {s.Tokens, " tokens/s"}} {
		perSecond := part.PerSecond()
		if perSecond <= 0 {
			continue
		}
		text += ", " + words.Significant(perSecond, 3) + part.unit
		if float64(part.Steps) < mostKnown*float64(s.Count) {
			text += fmt.Sprintf(" (in %d of the steps)", part.Steps)
		}
	}
	return text
}

// samplesBy is what the samples of steps are known by where it is a loader; empty where the program reported them.
func samplesBy(r *report.View) string {
	var parts []string
	for _, l := range r.LeadingLoaders() {
		if l.CountedSteps == 0 || l.BatchSize == nil || l.BatchesPerStep == nil {
			continue
		}
		part := words.Count(int64(*l.BatchSize)) + " samples a batch"
		if n := *l.BatchesPerStep; n > 1 {
			part = fmt.Sprintf("%s of %s samples a step", words.Plural(n, "batch", "batches"), words.Count(int64(*l.BatchSize)))
		}
		if !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + ", by the DataLoader"
}

// maxEpochRows bounds the table of epochs.
const maxEpochRows = 10

// epochsTable compares the epochs of the leading process, as far as the program, or its loader, has numbered them: the pace in each.
func epochsTable(r *report.View) table {
	epochs := r.EpochTimes()
	if len(epochs) < 2 {
		return table{}
	}
	t := table{heading: "Epochs", note: "time in their steps"}
	var without []string
	if slices.ContainsFunc(epochs, func(e report.EpochTimes) bool { return e.EvaluationNS > 0 }) {
		without = append(without, "evaluation")
	}
	if slices.ContainsFunc(epochs, func(e report.EpochTimes) bool { return e.BetweenNS > 0 }) {
		without = append(without, "what was between epochs")
	}
	if len(without) > 0 {
		t.note += ", without " + strings.Join(without, " and ")
	}
	if slices.ContainsFunc(r.LeadingLoaders(), func(l *report.Loader) bool { return l.Epochs > 0 }) {
		t.note += " · passes over the DataLoader"
	}
	all := int64(0)
	for i := range epochs {
		all += epochs[i].TotalNS - epochs[i].EvaluationNS
	}
	rest := row{rest: true}
	for i := range epochs {
		e := &epochs[i]
		training := e.TotalNS - e.EvaluationNS
		seconds, share := report.Seconds(training), float64(training)/float64(max(all, 1))
		if i >= maxEpochRows {
			rest.seconds, rest.share = rest.seconds+seconds, rest.share+share
			continue
		}
		t.rows = append(t.rows, row{
			name: fmt.Sprintf("epoch %d", e.Epoch), seconds: seconds, share: share, aside: words.Plural(e.Count, "step", "steps"),
			code: throughput(&e.StepTimes) + ", median " + words.Seconds(report.Seconds(e.MedianNS)),
		})
	}
	if more := len(epochs) - maxEpochRows; more > 0 {
		rest.name = words.Plural(more, "more epoch", "more epochs")
		t.rows = append(t.rows, rest)
	}
	return t
}

// worthOutside is the share of a phase from which on it is said that it was in no step: less is how exactly its begins are known.
const worthOutside = 0.1

// worthUnseen is the share of the steps from which on it is mentioned that the stacks did not show it.
const worthUnseen = 0.005

// perStep is how long a phase takes in a step, and the GPU's idle time in it.
func perStep(p *report.TrainingPhase) string {
	var parts []string
	seconds := func(ns *int64) string { return words.Seconds(report.Seconds(*ns)) }
	if p.Count != nil {
		parts = append(parts, words.Plural(*p.Count, "step", "steps"), "mean "+seconds(p.MeanNS), "median "+seconds(p.P50NS), "95 % within "+seconds(p.P95NS), "longest "+seconds(p.MaxNS))
	} else if p.MeanNS != nil {
		parts = append(parts, "mean of all steps "+seconds(p.MeanNS))
	}
	if p.IdleNS != nil {
		parts = append(parts, "GPU idle "+seconds(p.IdleNS))
	}
	return strings.Join(parts, " · ")
}

// phasesTable is of a training whose steps are not known: it says what its time went to.
func phasesTable(r *report.View) table {
	if len(r.Steps) > 0 {
		return table{}
	}
	t := table{heading: "Phases of the training", note: "by the stacks; shares are of the time after start-up"}
	for i := range r.TrainingPhases {
		p := &r.TrainingPhases[i]
		if p.Process != r.TrainingPhases[0].Process || p.Epoch != nil {
			continue
		}
		rw := row{name: words.Clean(p.Text, 40), seconds: report.Seconds(p.TotalNS)}
		if p.Share != nil {
			rw.share, rw.aside = *p.Share, words.Percent(*p.Share)
		}
		if p.IdleNS != nil {
			rw.code = "GPU idle " + words.Seconds(report.Seconds(*p.IdleNS))
		}
		t.rows = append(t.rows, rw)
	}
	return t
}

// slowStepsTable says what slow steps of the leading process had that others had not.
func slowStepsTable(r *report.View) table {
	t := table{heading: "Slow steps", note: "what took longer in them than in the median step"}
	leading, _ := r.LeadingSteps()
	for i := range r.SlowSteps {
		s := &r.SlowSteps[i]
		if len(leading) == 0 || s.Process != leading[0].Process || len(t.rows) == maxSlowReasons {
			continue
		}
		rw := row{name: words.Clean(s.Text, 40), seconds: report.Seconds(s.ExtraNS), aside: words.Plural(s.Count, "step", "steps"), code: stepNumbers(s)}
		if total := r.StepTimes().TotalNS; total > 0 {
			rw.share = min(float64(s.ExtraNS)/float64(total), 1)
		}
		if s.File != nil && s.Line != nil {
			rw.place, rw.hint = linePlace(r, *s.File, *s.Line), labels.Code(r.Text(*s.File, *s.Line))
		}
		t.rows = append(t.rows, rw)
	}
	return t
}

// maxSlowReasons and shownSteps bound the table of slow steps.
const (
	maxSlowReasons = 4
	shownSteps     = 5
)

// stepNumbers names steps: step 40, 80, 120 …
func stepNumbers(s *report.SlowSteps) string {
	var list []string
	for _, n := range s.Steps[:min(len(s.Steps), shownSteps)] {
		list = append(list, words.Count(int64(n)))
	}
	text := "step "
	if s.Count > 1 {
		text = "steps "
	}
	text += strings.Join(list, ", ")
	if s.Count > len(list) {
		text += " …"
	}
	return text
}

// workersTime is the time of an engine's workers, of which their tasks are a part, in seconds; 0 where nothing is said of tasks.
func workersTime(r *report.View) float64 {
	for i := range r.Findings {
		if f := &r.Findings[i]; f.ID == string(diagnose.EngineTasks) {
			if whole := f.Number("whole_ns") / 1e9; whole > 0 {
				return whole
			}
		}
	}
	return 0
}

// wholeOf is what the time of regions of one name is a share of: the time of an engine's workers, as the headline has it,
// else that of the processes that have some.
func (g *namedRegions) wholeOf(r *report.View, workers, duration float64) float64 {
	if workers > 0 && timeline.Role(r.Processes[g.of[0].Process].Role).OfEngine() {
		return workers
	}
	return duration * float64(len(g.of))
}

// regionsTable lists what the user named.
func regionsTable(r *report.View, duration float64) table {
	t := table{heading: "Regions"}
	workers := workersTime(r)
	if workers > 0 {
		t.note = "shares of the workers' " + words.Seconds(workers)
	}
	regions := regionsByName(r)
	for i, g := range regions {
		if i == maxRegions {
			t.note = labels.Join(t.note, words.Plural(len(regions)-i, "more region", "more regions")+" in the report")
			break
		}
		total := report.Seconds(g.total)
		share := total / g.wholeOf(r, workers, duration)
		rw := row{name: words.Clean(g.of[0].Name, 80), seconds: total, share: min(share, 1), aside: words.Percent(share)}
		if one := g.of[0]; len(g.of) == 1 {
			rw.code = fmt.Sprintf("%d × · median %s · 95 %% within %s", g.count, words.Seconds(report.Seconds(one.P50NS)), words.Seconds(report.Seconds(one.P95NS)))
		} else {
			rw.code = fmt.Sprintf("%d × in %d processes · medians %s to %s", g.count, len(g.of), words.Seconds(report.Seconds(g.least)), words.Seconds(report.Seconds(g.most)))
		}
		t.rows = append(t.rows, rw)
	}
	return t
}

// namedRegions are the regions of one name, each of a process.
type namedRegions struct {
	of          []report.Region
	count       int
	total       int64
	least, most int64 // of the medians
}

// regionsByName are those of all processes together, most time first.
func regionsByName(r *report.View) (list []namedRegions) {
	at := make(map[string]int)
	for _, g := range r.Regions {
		i, known := at[g.Name]
		if !known {
			i = len(list)
			at[g.Name] = i
			list = append(list, namedRegions{least: g.P50NS})
		}
		n := &list[i]
		n.of, n.count, n.total = append(n.of, g), n.count+g.Count, n.total+g.TotalNS
		n.least, n.most = min(n.least, g.P50NS), max(n.most, g.P50NS)
	}
	slices.SortStableFunc(list, func(a, b namedRegions) int { return cmp.Compare(b.total, a.total) })
	return list
}
