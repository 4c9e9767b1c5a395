package chart

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/report"
	"github.com/omni-perf/omni-perf/sidecar/words"
)

// table is a ranked list below the chart. Columns without text in any row are
// not shown.
type table struct {
	heading, note string
	advises       bool // the hints say what to change: never left out
	rows          []row
}

// row is one line of a table.
type row struct {
	name    string
	seconds float64
	share   float64 // of what the table divides, 0..1: the bar's length
	aside   string  // behind the bar
	place   string  // "3", "train.py:3"
	code    string
	hint    string
	rest    bool // sums up what is not listed
}

const (
	maxCauses    = 8
	maxLines     = 8
	maxFunctions = 6
	maxRegions   = 6
	maxDevices   = 8

	// worthAdvice is the share of the idle time from which on a cause is told
	// what to do about it.
	worthAdvice = 0.03
)

func tablesOf(r *report.Report, gpus gpuSummary, duration float64) []table {
	var ts []table
	if gpus.used {
		ts = append(ts, idleTable(r))
		if len(r.Idle.Devices) > 1 {
			ts = append(ts, deviceTable(r))
		}
	} else {
		ts = append(ts, linesTable(r, duration), functionsTable(r, duration))
	}
	ts = append(ts, stepsTable(r, duration), regionsTable(r, duration))
	return slices.DeleteFunc(ts, func(t table) bool { return len(t.rows) == 0 })
}

// idleTable ranks what the GPUs waited for; its rows add up to the idle time.
func idleTable(r *report.Report) table {
	t := table{heading: "Where the GPU waited", advises: true, note: words.Clean(r.Idle.Certainty, 200)}
	if len(r.Idle.Devices) > 1 {
		t.heading = "Where the GPUs waited"
		t.note = joinNote("idle "+words.Seconds(finite(r.Idle.GPUIdleS))+" over "+words.Plural(len(r.Idle.Devices), "device", "devices"), t.note)
	}
	causes := slices.Clone(r.Idle.Causes)
	slices.SortStableFunc(causes, func(a, b report.Cause) int { return cmp.Compare(finite(b.Seconds), finite(a.Seconds)) })
	rest := row{rest: true}
	left := 0
	told := make(map[string]bool) // advice, once
	for i, c := range causes {
		s, share := max(finite(c.Seconds), 0), max(finite(c.Share), 0)
		if i >= maxCauses-1 && len(causes) > maxCauses {
			rest.seconds += s
			rest.share += share
			left++
			continue
		}
		aside := words.Percent(share)
		if c.BoundS != nil && finite(*c.BoundS) > 0 {
			aside += " " + bounds(c)
		}
		rw := row{
			name: words.Clean(c.Cause, 80), seconds: s, share: share, aside: aside,
			place: placeOf(r, c.File, c.Line), code: codeOf(c.SourceText),
		}
		if share >= worthAdvice && !told[c.Hint] {
			rw.hint = words.Clean(c.Hint, words.MaxName)
			told[c.Hint] = true
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

// bounds are what an estimate may truly be.
func bounds(c report.Cause) string {
	if c.LowS == nil || c.HighS == nil {
		return "(± " + words.Seconds(finite(*c.BoundS)) + ")"
	}
	return "[" + words.Seconds(max(finite(*c.LowS), 0)) + " – " + words.Seconds(max(finite(*c.HighS), 0)) + "]"
}

func joinNote(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + " · " + b
}

// deviceTable compares the devices.
func deviceTable(r *report.Report) table {
	t := table{heading: "Idle by device"}
	duration := durationOf(r)
	for i, d := range r.Idle.Devices {
		if i == maxDevices {
			t.note = words.Plural(len(r.Idle.Devices)-i, "more device", "more devices") + " in the report"
			break
		}
		idle := max(finite(d.IdleS), 0)
		rw := row{name: fmt.Sprintf("GPU %d", d.Device), seconds: idle, share: idle / duration, aside: words.Percent(idle / duration)}
		if len(d.Causes) > 0 {
			c := d.Causes[0]
			rw.place, rw.code = placeOf(r, c.File, c.Line), codeOf(c.SourceText)
			rw.hint = "mostly " + words.Clean(c.Cause, 80)
		}
		t.rows = append(t.rows, rw)
	}
	return t
}

// linesTable ranks the user's lines by the time for which each was the innermost
// of them: these times add up.
func linesTable(r *report.Report, duration float64) table {
	t := table{heading: "Where the time went", note: "by your own lines, the innermost one on the stack"}
	lines := slices.Clone(r.CellLines)
	for _, a := range r.Around {
		lines = append(lines, report.CellLine{Text: a.Name, SelfS: a.Seconds})
	}
	slices.SortStableFunc(lines, func(a, b report.CellLine) int { return cmp.Compare(finite(b.SelfS), finite(a.SelfS)) })
	for i, l := range lines {
		self, total := min(max(finite(l.SelfS), 0), duration), max(finite(l.TotalS), 0)
		if i == maxLines || self < 0.005*duration || self == 0 {
			break
		}
		rw := row{
			name: linePlace(r, l.File, l.Line), seconds: self, share: self / duration,
			aside: words.Percent(self / duration), code: codeOf(l.Text),
		}
		if l.Line == 0 { // no line: what the notebook did around them
			rw.name, rw.code = words.Clean(l.Text, 80), ""
		}
		if total > 1.05*self {
			rw.hint = words.Seconds(total) + " in all"
		}
		t.rows = append(t.rows, rw)
	}
	return t
}

// functionsTable ranks functions by their own time, over all threads.
func functionsTable(r *report.Report, duration float64) table {
	t := table{heading: "Busiest functions", note: "own time, all threads"}
	fns := slices.Clone(r.Functions)
	slices.SortStableFunc(fns, func(a, b report.Function) int { return cmp.Compare(finite(b.SelfS), finite(a.SelfS)) })
	for i, f := range fns {
		self, total := max(finite(f.SelfS), 0), max(finite(f.TotalS), 0)
		if i == maxFunctions || self < 0.005*duration || self == 0 {
			break
		}
		rw := row{
			name: functionName(f.Function, f.File), seconds: self, share: min(self/duration, 1),
			code: functionPlace(f),
		}
		if self <= duration { // else of many threads: no share of the time
			rw.aside = words.Percent(self / duration)
		}
		if total > 1.05*self {
			rw.hint = words.Seconds(total) + " in all"
		}
		t.rows = append(t.rows, rw)
	}
	return t
}

func functionPlace(f report.Function) string {
	file := words.ShortFile(f.File)
	if f.Line <= 0 {
		return file
	}
	return fmt.Sprintf("%s:%d", file, f.Line)
}

// stepsTable sums up the training steps.
func stepsTable(r *report.Report, duration float64) table {
	var lengths []float64
	var total, wait, busy float64
	for _, s := range r.Steps {
		if d := finite(s.EndS) - finite(s.StartS); d > 0 {
			lengths = append(lengths, d)
			total += d
			wait += max(finite(s.DataWaitS), 0)
			if s.BusyS != nil {
				busy += max(finite(*s.BusyS), 0)
			}
		}
	}
	if len(lengths) < 2 {
		return table{}
	}
	slices.Sort(lengths)
	n := len(lengths)
	t := table{heading: "Steps", note: fmt.Sprintf("shares of their time · %d steps, median %s, 95 %% within %s, slowest %s", n,
		words.Seconds(lengths[n/2]), words.Seconds(lengths[min(n*95/100, n-1)]), words.Seconds(lengths[n-1]))}
	add := func(name string, s float64) {
		if s > 0 {
			t.rows = append(t.rows, row{name: name, seconds: s, share: s / total, aside: words.Percent(s / total)})
		}
	}
	add("waiting for data", min(wait, total))
	add("GPU busy", min(busy, total))
	if len(t.rows) == 0 {
		add("in steps", total)
		t.rows[0].share, t.rows[0].aside = min(total/duration, 1), words.Percent(min(total/duration, 1))+" of the cell"
	}
	return t
}

// regionsTable lists what the user named.
func regionsTable(r *report.Report, duration float64) table {
	t := table{heading: "Regions"}
	regions := slices.Clone(r.Regions)
	slices.SortStableFunc(regions, func(a, b report.Region) int { return cmp.Compare(finite(b.TotalS), finite(a.TotalS)) })
	for i, g := range regions {
		if i == maxRegions {
			t.note = words.Plural(len(regions)-i, "more region", "more regions") + " in the report"
			break
		}
		total := max(finite(g.TotalS), 0)
		t.rows = append(t.rows, row{
			name: words.Clean(g.Name, 80), seconds: total, share: min(total/duration, 1), aside: words.Percent(total / duration),
			code: fmt.Sprintf("%d ×  median %s  95 %% within %s", g.Count, words.Seconds(finite(g.P50S)), words.Seconds(finite(g.P95S))),
		})
	}
	return t
}
