// Package glance shows the cells of a notebook at a glance: a table with what each cell took, as an
// output of the notebook or as text, and a page with the table and a picture of each cell.
//
// In flow facts of cells, out flow HTML and text that load nothing and run no script. It knows neither
// where the cells ran nor where its bytes go.
package glance

import (
	"math"
	"regexp"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/compare/comparison"
	"github.com/omni-perf/omni-perf/sidecar/show/chart"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// Notebook is what is shown.
type Notebook struct {
	Name  string // of the notebook; empty: not known
	Note  string // what there is to know besides; or empty
	Cells []Cell // in the order in which they began
	Kept  *int64 // bytes of all cells together, from the first one's begin to the last one's end; nil: not known
}

// Cell is one row.
type Cell struct {
	Number   int      // execution count; 0: not known
	Name     string   // as its user called it; or empty
	Code     string   // its first line that says something
	Lines    []string // all that do, by Lines: of two cells that have the same first one
	Outcome  string   // "ok", "error: ValueError"; empty: not known
	Duration time.Duration
	Headline string
	Figures  Figures
	// Output is the id of the element of the notebook that shows the cell's chart; empty: there is none.
	Output string
	// Chart is the picture for a page, as SVG; nil: there is none, and Missing says why.
	Chart   []byte
	Missing string
}

// Figures are what a cell used; nil is not known, or that there was nothing of the kind.
type Figures struct {
	CPU         *time.Duration // of the program and its children
	Peak        *int64         // most resident memory of the program, in bytes …
	PeakAtLeast bool           // … of what was seen
	Kept        *int64         // that its resident memory grew by, less what was given back, in bytes
	Idle        *time.Duration // that the devices in use were idle, in all …
	Known       time.Duration  // … of so much that is known of them
	Energy      *float64       // joules that these devices used, whoever used them
	Traceback   *time.Duration // for which a traceback was formatted, which is not in the cell's time
	NoCPU       *time.Duration // for which no CPU was free for it, at most
	IO          *time.Duration // for which it waited for input and output
	Imports     *time.Duration // that its imports took, where they are worth a finding
	Elsewhere   *float64       // share of the machine's CPUs that other programs used, 0 to 1
}

// missing is the share of a cell that was not recorded from which on what it used is not known.
const missing = 0.25

// FiguresOf reads the figures of a report.
func FiguresOf(r *report.View) (f Figures) {
	f.CPU = cpuOf(r)
	f.Peak, f.PeakAtLeast = r.Processes[r.Program()].PeakMemory()
	f.Kept = keptBytes(r)
	waited := time.Duration(comparison.WithoutCPU(r))
	var io time.Duration
	for _, t := range r.Subject.Threads {
		io += time.Duration(r.Threads[t].StateNS[report.StateIO])
	}
	f.NoCPU, f.IO, f.Elsewhere = &waited, &io, elsewhere(r, f.CPU)
	for _, finding := range r.Findings {
		if finding.ID == string(diagnose.BegunLate) && finding.Value != nil && *finding.Value >= missing {
			f.CPU = nil
		}
		if finding.ID == string(diagnose.Imports) && finding.CostNS != nil {
			imports := time.Duration(*finding.CostNS)
			f.Imports = &imports
		}
	}
	var idle time.Duration
	var joules float64
	for _, d := range r.Devices {
		if d.Used && d.EnergyJ != nil {
			joules += *d.EnergyJ
			f.Energy = &joules
		}
		if d.Used && d.BusyNS+d.IdleNS > 0 {
			idle += time.Duration(d.IdleNS)
			f.Known += time.Duration(d.BusyNS + d.IdleNS)
			f.Idle = &idle
		}
	}
	return f
}

// cpuOf is what the processes used together. The time of one that has ended, and was waited for, is in that of its parent, too. Where an exception came out of a cell, its report ends there and the
// count has the traceback's formatting, too: more than there was time for is not known.
func cpuOf(r *report.View) *time.Duration {
	var used time.Duration
	known := false
	for _, p := range r.Processes {
		if p.CPUNS != nil && !isInParent(r, &p) {
			used, known = used+time.Duration(*p.CPUNS), true
		}
	}
	c := r.Target().Cell
	if !known || c != nil && c.Exception != nil && used > time.Duration(r.DurationNS) {
		return nil
	}
	return &used
}

// isInParent reports whether the CPU time of a process is in that of its parent, which has waited for it.
func isInParent(r *report.View, p *report.Process) bool {
	if p.EndNS == nil || p.Parent == nil {
		return false
	}
	parent := r.Processes[*p.Parent].CPUNS
	return parent != nil && *parent >= *p.CPUNS
}

// elsewhere is the share of the machine's CPUs that others than the program used.
func elsewhere(r *report.View, used *time.Duration) *float64 {
	t := r.HostTrack("cpu.system")
	if t == nil || t.Mean == nil || t.Limit == nil || *t.Limit <= 0 || used == nil || r.DurationNS <= 0 {
		return nil
	}
	share := (*t.Mean - used.Seconds()/report.Seconds(r.DurationNS)) / *t.Limit
	share = min(max(share, 0), 1)
	return &share
}

// keptBytes is what the program's resident memory grew by: as the report has it, else, but for a cell, as the track of it
// has it at the begin and at the end.
func keptBytes(r *report.View) *int64 {
	if kept := r.Processes[r.Program()].KeptBytes; kept != nil || r.Target().Cell != nil {
		return kept
	}
	t := r.HostTrack("rss")
	if t == nil || t.Process != nil && *t.Process != r.Program() || len(t.Value) < 2 {
		return nil
	}
	first, last := t.Value[0], t.Value[len(t.Value)-1]
	if math.IsNaN(first) || math.IsNaN(last) {
		return nil
	}
	kept := int64(last - first)
	return &kept
}

// SetReport takes over what a report says of the cell.
func (c *Cell) SetReport(r *report.View) {
	c.Duration, c.Headline, c.Figures = time.Duration(r.DurationNS), r.Headline.Text, FiguresOf(r)
	if cell := r.Target().Cell; cell != nil {
		c.Outcome = cell.Ending()
	}
}

// chartBytes bounds a cell's picture on a page: what surrounds it has room in 40 kB, too.
const chartBytes = 38_000

// Draw draws the cell's picture for a page.
func (c *Cell) Draw(r *report.View) error {
	svg, err := chart.SVGWithin(r, chartBytes, scene.Options{Inline: true})
	switch {
	case err != nil:
		return err
	case len(svg) > chartBytes:
		c.Missing = "its picture would be too large for this page"
	default:
		c.Chart = svg
	}
	return nil
}

// otherLanguage is a magic at the top of a cell whose text is not run as Python's in this kernel: the row would claim what the
// cell does not do.
var otherLanguage = regexp.MustCompile(`^%%(!|bash|cmd|html|HTML|javascript|js|latex|markdown|perl|pypy|python[23]?|ruby|R|script|sh|sql|svg|SVG|system|sx|writefile|file)\b`)
