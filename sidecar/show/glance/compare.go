package glance

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/compare/comparison"
	"github.com/omni-perf/omni-perf/sidecar/understand/significance"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// ComparisonKind is what the document of a comparison calls itself.
const ComparisonKind = "omni_perf.notebook_comparison"

// cellNoise is the standard deviation that a cell's length has by itself: of the kernel's messages, and of
// when its process gets a CPU.
const cellNoise = 5 * time.Millisecond

var errNothing = errors.New("there is nothing to compare on one of the sides")

// Difference is what a notebook's cells took before and after a change.
type Difference struct {
	Document string  `json:"document"`
	Version  int     `json:"version"`
	Level    float64 `json:"level"` // with which the intervals of all cells together have the true differences
	// AssumedSpread is the deviation between runs that is taken of a side with one run, relative to the figure: spreadOf;
	// null: both sides have several.
	AssumedSpread *float64 `json:"assumed_spread"`
	Before        Side     `json:"before"`
	After         Side     `json:"after"`
	Whole         Change   `json:"whole"` // the time of all cells
	Cells         []Change `json:"cells"` // in the order of the notebook after the change; behind them those that are gone
}

// Side is one side of a comparison.
type Side struct {
	Name string `json:"name"`
	Runs int    `json:"runs"`
	// NoCPUNS is for how long, at most, no CPU was free for its cells together, the mean of the runs.
	NoCPUNS int64 `json:"no_cpu_ns"`
}

func sideOf(runs []*Document) Side {
	s := Side{Name: runs[0].Name, Runs: len(runs)}
	for _, run := range runs {
		for _, cell := range run.Cells {
			s.NoCPUNS += min(value(cell.NoCPUNS), cell.DurationNS) / int64(len(runs))
		}
	}
	return s
}

// Change is how the time of a cell differs: after minus before, means of the runs.
type Change struct {
	Number   int                  `json:"number"` // execution count after the change; 0: not known
	Code     string               `json:"code"`
	Edited   bool                 `json:"edited"` // its first line was
	BeforeNS int64                `json:"before_ns"`
	AfterNS  int64                `json:"after_ns"`
	LowNS    int64                `json:"low_ns"` // of the difference
	HighNS   int64                `json:"high_ns"`
	Verdict  significance.Verdict `json:"verdict"`
	// Peak memory before and after; null where it is not known.
	PeakBeforeBytes *int64 `json:"peak_before_bytes"`
	PeakAfterBytes  *int64 `json:"peak_after_bytes"`
}

// ChangeNS is after minus before.
func (c Change) ChangeNS() int64 { return c.AfterNS - c.BeforeNS }

// Compare compares the cells of a notebook before and after a change; each side was executed once or more often. Cells
// are paired by their first lines, in order; those whose line was edited by what is left between these.
func Compare(before, after []*Document) (*Difference, error) {
	if len(before) == 0 || len(after) == 0 {
		return nil, errNothing
	}
	d := &Difference{
		Document: ComparisonKind, Version: Version, Level: comparison.Level, Cells: []Change{},
		Before: sideOf(before), After: sideOf(after),
	}
	spread := spreadOf(before[0], after[0])
	if len(before) == 1 || len(after) == 1 {
		d.AssumedSpread = &spread
	}
	sides := [2][]map[int]*Row{pairedWith(after[0], before), pairedWith(after[0], after)}
	gone := goneFrom(before[0], sides[0][0])
	// Bonferroni, as in package comparison.
	each := 1 - (1-d.Level)/float64(max(len(after[0].Cells)+len(gone), 1))
	busy := [2][]float64{elsewhereOf(before), elsewhereOf(after)}
	for i := range after[0].Cells {
		c := &after[0].Cells[i]
		var there [2][]occurrence
		for side, runs := range [2][]*Document{before, after} {
			for k := range runs {
				there[side] = append(there[side], occurrence{sides[side][k][i], busy[side][k]})
			}
		}
		change := changeOf(there, spread, each)
		change.Number, change.Code = c.Number, c.title()
		change.Edited = slices.ContainsFunc(there[0], func(o occurrence) bool { return o.row != nil && o.row.Code != c.Code })
		d.Cells = append(d.Cells, change)
	}
	for _, c := range gone {
		change := changeOf([2][]occurrence{{{c, busy[0][0]}}, {{}}}, spread, each)
		change.Code = c.title()
		d.Cells = append(d.Cells, change)
	}
	d.Whole = wholeOf(before, after, spread, d.Level)
	return d, nil
}

// pairedWith are, of each run, the cells by those of a run that they are.
func pairedWith(as *Document, runs []*Document) (list []map[int]*Row) {
	for _, run := range runs {
		cells := make(map[int]*Row)
		for to, from := range comparison.Pair(as.codes(), run.codes()) {
			cells[to] = &run.Cells[from]
		}
		list = append(list, cells)
	}
	return list
}

func (d *Document) codes() (list []string) {
	for _, c := range d.Cells {
		list = append(list, c.Code)
	}
	return list
}

// goneFrom are the cells of a run with which none of another one was paired: by the same pairs as the other rows, since of
// two cells that changed places either may be the one that stays, by the order in which the runs are compared.
func goneFrom(before *Document, paired map[int]*Row) (list []*Row) {
	there := make(map[*Row]bool)
	for _, row := range paired {
		there[row] = true
	}
	for i := range before.Cells {
		if row := &before.Cells[i]; !there[row] {
			list = append(list, row)
		}
	}
	return list
}

func elsewhereOf(runs []*Document) (list []float64) {
	for _, run := range runs {
		list = append(list, run.elsewhere())
	}
	return list
}

// occurrence is a cell in a run; the row is nil where that run does not have it.
type occurrence struct {
	row       *Row
	elsewhere float64 // the run's
}

// changeOf is that of one cell, in each run of both sides.
func changeOf(cells [2][]occurrence, spread, level float64) (c Change) {
	var amounts [2][]amount
	var peaks [2]*int64
	for side, runs := range cells {
		for _, o := range runs {
			if o.row == nil {
				amounts[side] = append(amounts[side], amount{absent: true})
				continue
			}
			amounts[side] = append(amounts[side], o.row.amount(o.elsewhere))
			if p := o.row.PeakBytes; p != nil && (peaks[side] == nil || *p > *peaks[side]) {
				peaks[side] = p
			}
		}
	}
	c.set(differenceOf(amounts[0], amounts[1], spread, level))
	c.PeakBeforeBytes, c.PeakAfterBytes = peaks[0], peaks[1]
	return c
}

func (c *Change) set(d significance.Difference) {
	c.BeforeNS, c.AfterNS, c.Verdict = int64(d.Before), int64(d.After), d.Verdict
	c.LowNS, c.HighNS = int64(math.Round(d.Low)), int64(math.Round(d.High))
}

func wholeOf(before, after []*Document, spread, level float64) (c Change) {
	sums := func(runs []*Document) (list []amount) {
		for _, run := range runs {
			var sum amount
			elsewhere := run.elsewhere()
			for i := range run.Cells {
				sum = sum.and(run.Cells[i].amount(elsewhere))
			}
			list = append(list, sum)
		}
		return list
	}
	c.set(differenceOf(sums(before), sums(after), spread, level))
	return c
}

// Judge returns a significance.Exceeded where the notebook, or a cell that it had before, is slower by more than the limit.
func (d *Difference) Judge(limit significance.Limit) error {
	var slower []string
	add := func(what string, c Change) {
		if limit.Exceeded(c.Verdict, float64(c.BeforeNS), float64(c.ChangeNS())) {
			slower = append(slower, fmt.Sprintf("%s is slower by %s%s, beyond the limit of %s and beyond noise", what, c.by(), c.percent(), limit))
		}
	}
	add("the notebook", d.Whole)
	for _, c := range d.Cells {
		add("cell "+c.name(), c)
	}
	if len(slower) == 0 {
		return nil
	}
	return significance.Exceeded(strings.Join(slower, "; "))
}

// by is a change as a time without its sign; percent is what follows it, the change as a share of the time before.
func (c Change) by() string { return words.Seconds(math.Abs(float64(c.ChangeNS())) / 1e9) }

func (c Change) percent() string {
	if c.BeforeNS <= 0 {
		return ""
	}
	return " (" + words.SignedPercent(float64(c.ChangeNS())/float64(c.BeforeNS)) + ")"
}

func (c Change) name() string {
	if c.Number <= 0 {
		return c.Code
	}
	return fmt.Sprintf("[%d] %s", c.Number, c.Code)
}

func (r *Row) title() string { return Cell{Name: r.Name, Code: r.Code}.title() }

// JSON writes it.
func (d *Difference) JSON() ([]byte, error) { return indented(d) }

// Text is the comparison for a terminal.
func (d *Difference) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n\n", d.title(), d.sentence())
	rows := [][]string{{"cell", "before", "after", "change"}}
	for _, c := range d.Cells {
		number := unknown
		if c.Number > 0 {
			number = fmt.Sprintf("[%d]", c.Number)
		}
		rows = append(rows, []string{number, c.time(c.BeforeNS, significance.New), c.time(c.AfterNS, significance.Gone), c.verdict()})
	}
	whole, verdict := d.Whole, d.Whole.verdict()
	if d.isHidden() {
		verdict = words.Signed(float64(whole.ChangeNS())/1e9) + ", may be noise"
	}
	rows = append(rows, []string{"all", whole.time(whole.BeforeNS, ""), whole.time(whole.AfterNS, ""), verdict})
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, text := range row {
			widths[i] = max(widths[i], words.Columns(text))
		}
	}
	var above int64 // by how much the peak of the last cell differs of which it is known
	for i, row := range rows {
		line := ""
		for k, text := range row {
			line += words.PadLeft(text, widths[k]) + "  "
		}
		if i > 0 && i <= len(d.Cells) {
			c := &d.Cells[i-1]
			by, known := c.peakChange()
			line += c.remark(by - above)
			if known {
				above = by
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	fmt.Fprintf(&b, "\n%s\n", d.basis())
	return b.String()
}

// title names what was compared.
func (d *Difference) title() string {
	before, after := d.Before.label(), d.After.label()
	if before == after {
		return before + ", before and after"
	}
	return before + " → " + after
}

func (s Side) label() string {
	name := words.Clean(s.Name, words.MaxName)
	if name == "" {
		name = "notebook"
	}
	if s.Runs > 1 {
		name += " (" + words.Plural(s.Runs, "run", "runs") + ")"
	}
	return name
}

// time is one side's; absent is the verdict with which the cell is not there on this side.
func (c Change) time(ns int64, absent significance.Verdict) string {
	if absent != "" && c.Verdict == absent || ns == 0 {
		return unknown
	}
	return words.Seconds(float64(ns) / 1e9)
}

// verdict says what a change amounts to.
func (c Change) verdict() string {
	switch c.Verdict {
	case significance.WithinNoise:
		return "no difference"
	case significance.New, significance.Gone:
		return string(c.Verdict)
	}
	return words.Signed(float64(c.ChangeNS())/1e9) + c.percent()
}

// worthPeak is the part by which peaks of memory differ, at least, to be mentioned; so are less than leastPeak bytes.
const (
	worthPeak = 0.1
	leastPeak = 64 << 20
)

// peakChange is by how much its peak of memory differs.
func (c *Change) peakChange() (by int64, known bool) {
	if c.PeakBeforeBytes == nil || c.PeakAfterBytes == nil {
		return 0, false
	}
	return *c.PeakAfterBytes - *c.PeakBeforeBytes, true
}

// remark is a cell's code, with what else has changed. What cells have kept is in the peaks of those that follow: a peak is no change of
// this one's if it differs by as much as that of the cell above, or by hardly more.
func (c *Change) remark(more int64) string {
	text := c.Code
	if c.Edited {
		text += " · edited"
	}
	if by, known := c.peakChange(); known {
		a, b := *c.PeakBeforeBytes, *c.PeakAfterBytes
		if least := max(worthPeak*float64(max(a, b)), leastPeak); math.Abs(float64(by)) > least && math.Abs(float64(more)) > least {
			text += " · peak memory " + words.Quantity(float64(a), "B") + " → " + words.Quantity(float64(b), "B")
		}
	}
	return text
}

// sentence says it in one.
func (d *Difference) sentence() string {
	differ := slices.DeleteFunc(slices.Clone(d.Cells), func(c Change) bool { return c.Verdict == significance.WithinNoise })
	slices.SortStableFunc(differ, func(a, b Change) int { return cmp.Compare(abs(b.ChangeNS()), abs(a.ChangeNS())) })
	more := "less"
	if d.Whole.ChangeNS() > 0 {
		more = "more"
	}
	text := "Took " + d.Whole.by() + " " + more + " than before" + d.Whole.percent()
	switch {
	case d.isHidden():
		text += ", which for all cells together may be noise; of single cells it is not."
	case d.Whole.Verdict == significance.WithinNoise:
		text = "All cells together took as long as before, as far as noise lets it be seen."
	default:
		text += "."
	}
	if len(differ) == 0 {
		return text
	}
	return text + " What changed most is cell " + strings.TrimRight(differ[0].name(), ":") + ": " + differ[0].verdict() + "."
}

// isHidden reports whether the whole is within noise only for the noise of cells that did not change: those that did took more
// time together, or less, by all that is known of them, as the whole did.
func (d *Difference) isHidden() bool {
	var low, high int64
	for _, c := range d.Cells {
		if c.Verdict != significance.WithinNoise {
			low, high = low+c.LowNS, high+c.HighNS
		}
	}
	by := d.Whole.ChangeNS()
	return d.Whole.Verdict == significance.WithinNoise && (low > 0 && by > 0 || high < 0 && by < 0)
}

func abs(v int64) int64 { return max(v, -v) }

// busyShare is the part of the time without a CPU from which on it is mentioned.
const busyShare = 0.05

// basis says what a difference was judged by.
func (d *Difference) basis() (text string) {
	b, a := d.Before, d.After
	if float64(b.NoCPUNS) > busyShare*float64(d.Whole.BeforeNS) || float64(a.NoCPUNS) > busyShare*float64(d.Whole.AfterNS) {
		text = fmt.Sprintf("Other programs used the CPUs: none was free for up to %s before and %s after. Only what is beyond that is a difference.\n",
			words.Seconds(float64(b.NoCPUNS)/1e9), words.Seconds(float64(a.NoCPUNS)/1e9))
	}
	if d.AssumedSpread == nil {
		return text + fmt.Sprintf("Means of %d runs before and %d after; a difference is one beyond what they vary by.", b.Runs, a.Runs)
	}
	return text + fmt.Sprintf("Where there is one run of a side, runs are taken to vary by %s and %s, imports by %s; several of each, as in a1.json a2.json -- b1.json b2.json, show it.",
		words.Percent(*d.AssumedSpread), words.Duration(cellNoise), words.Percent(importSpread))
}
