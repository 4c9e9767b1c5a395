// Package compared shows two reports and what differs between them: as a picture, as the HTML that a notebook
// displays, as a page of its own and as text.
//
// In flow a comparison.Comparison and the reports of both sides; out flow bytes. As in package chart, digestOf
// says in words and rows what there is to say, lay places it, and text reads the same digest.
package compared

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/compare/comparison"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/inhtml"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/labels"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/significance"
	"github.com/omni-perf/omni-perf/sidecar/understand/wording"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Pair is a comparison and the first report of each of its sides, to be shown.
type Pair struct {
	*comparison.Comparison
	Before, After *report.View
}

// digest is what there is to say of a comparison, in words and rows.
type digest struct {
	title   []scene.Phrase
	finding []scene.Phrase
	tables  []changeTable
	graph   *changeGraph
	notes   []string
	summary string
}

// changeTable is one table of changes.
type changeTable struct {
	heading, note string
	rows          []changeRow
	rest          string // what is not listed
}

// changeRow is one row of it.
type changeRow struct {
	name, aside string
	change      wording.Change
	code        string
}

// Rows of a table: those that differ, and of the others as many as give an idea.
const (
	maxChanges  = 10
	maxConstant = 3
)

func digestOf(p Pair) *digest {
	c := &digest{}
	wall := changeOf(p.Wall())
	c.title = []scene.Phrase{
		{Text: sideName(p.Comparison.Before) + " → " + sideName(p.Comparison.After), Tone: scene.Plain, Face: scene.Bold},
		{Text: words.Seconds(wall.Before) + " → " + words.Seconds(wall.After), Tone: scene.Muted, Face: scene.Sans},
	}
	parts := wording.ComparedParts(differing(p.Lines), differing(p.Functions), differing(p.Causes), differing(p.Steps))
	c.finding = []scene.Phrase{{Text: wording.Compared(wall, parts), Tone: toneOf(wall.Verdict), Face: scene.Bold}}
	if most, found := p.most(); found {
		c.finding = append(c.finding, scene.Phrase{Text: wording.ComparedMost(most.name, most.change), Tone: scene.Plain, Face: scene.Sans})
		if most.code != "" {
			c.finding = append(c.finding, scene.Phrase{Text: most.code, Tone: scene.Plain, Face: scene.Mono})
		}
	}
	if m := p.Memory; m != nil && m.Verdict != significance.WithinNoise {
		text := wording.ComparedPeak(m.BeforeBytes, m.AfterBytes, m.AtLeast)
		c.finding = append(c.finding, scene.Phrase{Text: text, Tone: toneOf(m.Verdict), Face: scene.Sans})
	}
	c.tables = slices.DeleteFunc([]changeTable{
		p.table("As a whole", "", p.Whole, p.figureRow),
		p.table("GPU idle by cause", "", p.Causes, p.causeRow),
		p.table("Lines", "of your own code, the innermost one on the stack", p.Lines, p.lineRow),
		p.table("Steps", "means", p.Steps, p.figureRow),
		p.table("Functions", "own time", p.Functions, p.functionRow),
	}, func(t changeTable) bool { return len(t.rows) == 0 })
	c.graph = p.graph()
	sides := wording.Sides{Before: len(p.Comparison.Before.Runs), After: len(p.Comparison.After.Runs), Level: p.Level}
	if p.AssumedSpread != nil {
		sides.Assumed = *p.AssumedSpread
	}
	sides.StarvedBefore, sides.StarvedAfter = p.Comparison.Before.Runs[0].Starved, p.Comparison.After.Runs[0].Starved
	if p.Unrelated() {
		c.notes = append(c.notes, wording.DifferentPrograms(p.Comparison.Before.Name, p.Comparison.After.Name))
	}
	c.notes = append(append(c.notes, wording.ComparedBy(sides)...), runsNote("before", p.Comparison.Before), runsNote("after", p.Comparison.After))
	c.summary = scene.Join(c.title, ", ") + ". " + scene.Join(c.finding, " · ")
	return c
}

// Headline is the answer in a sentence or two.
func Headline(p Pair) string {
	var parts []string
	for _, f := range digestOf(p).finding {
		if f.Face != scene.Mono {
			parts = append(parts, f.Text)
		}
	}
	return strings.Join(parts, " ")
}

func sideName(s comparison.Side) string {
	name := words.Clean(s.Name, 80)
	if n := len(s.Runs); n > 1 {
		name += fmt.Sprintf(" (%d runs)", n)
	}
	return name
}

// runsNote says what was recorded of a side.
func runsNote(which string, s comparison.Side) string {
	ticks := int64(0)
	for _, r := range s.Runs {
		ticks += r.Ticks
	}
	return fmt.Sprintf("%s: %s of %s, %s, stacks read %s times, each %s", which, words.Plural(len(s.Runs), "run", "runs"), words.Clean(s.Name, 80),
		s.Runs[0].StartedAt, words.Count(ticks), words.Resolution(report.Seconds(s.Runs[0].IntervalNS)))
}

func differing(list []comparison.Change) (n int) {
	for _, c := range list {
		if c.Verdict != significance.WithinNoise {
			n++
		}
	}
	return n
}

func changeOf(c comparison.Change) wording.Change {
	return wording.Change{
		Before: report.Seconds(c.BeforeNS), After: report.Seconds(c.AfterNS), Low: report.Seconds(c.LowNS), High: report.Seconds(c.HighNS), Verdict: c.Verdict,
	}
}

func toneOf(v significance.Verdict) scene.Tone {
	switch v {
	case significance.Less, significance.Gone:
		return scene.Good
	case significance.More, significance.New:
		return scene.Warn
	}
	return scene.Plain
}

// most is the line that makes most of a difference of the whole, where one does.
func (p Pair) most() (most changeRow, found bool) {
	whole := p.Wall()
	const share = 0.3
	for _, l := range p.Lines {
		if whole.Verdict == significance.WithinNoise || l.Verdict == significance.WithinNoise || l.Role != "" {
			continue
		}
		part := float64(l.ChangeNS) / float64(whole.ChangeNS)
		if row := p.lineRow(l); part >= share && (!found || abs(row.change.After-row.change.Before) > abs(most.change.After-most.change.Before)) {
			most, found = row, true
		}
	}
	return most, found
}

func abs(v float64) float64 { return max(v, -v) }

// table lists changes; what differs comes first in them.
func (p Pair) table(heading, note string, list []comparison.Change, row func(comparison.Change) changeRow) changeTable {
	t := changeTable{heading: heading, note: note}
	differ, constant := 0, 0
	for _, c := range list {
		if c.Verdict != significance.WithinNoise {
			if differ++; differ > maxChanges {
				continue
			}
		} else if constant++; constant > maxConstant {
			continue
		}
		t.rows = append(t.rows, row(c))
	}
	if n := max(differ-maxChanges, 0); n > 0 {
		t.rest = words.Plural(n, "more differs", "more differ")
	}
	if n := max(constant-maxConstant, 0); n > 0 {
		t.rest = labels.Join(t.rest, words.Plural(n, "more within noise", "more within noise"))
	}
	return t
}

func (p Pair) figureRow(c comparison.Change) changeRow {
	row := changeRow{name: wording.ComparedFigure(c.ID), change: changeOf(c)}
	if c.Count != nil {
		if c.Name != "" && c.Name != "step" {
			row.aside = words.Clean(c.Name, 40)
		}
		if c.ID == comparison.StepTime {
			row.aside = labels.Join(row.aside, words.Count(int64(c.Count[0]))+" → "+words.Count(int64(c.Count[1]))+" steps")
		}
	}
	return row
}

func (p Pair) lineRow(c comparison.Change) changeRow {
	at := cmp.Or(c.After, c.Before)
	row := changeRow{name: p.placeName(at), change: changeOf(c), code: labels.Code(at.Text), aside: c.Role}
	switch {
	case c.Edited:
		row.aside = labels.Join(row.aside, "edited")
	case c.After == nil:
		row.aside = labels.Join(row.aside, "before")
	}
	return row
}

// placeName names a line: "line 3" where all lines are in the recorded cells.
func (p Pair) placeName(at *comparison.Place) string {
	for _, l := range p.Lines {
		for side, place := range []*comparison.Place{l.Before, l.After} {
			if v := []*report.View{p.Before, p.After}[side]; place != nil && (v.Target().Cell == nil || v.Files[v.Target().Cell.File].Name != place.File) {
				return fmt.Sprintf("%s:%d", words.ShortFile(at.File), at.Line)
			}
		}
	}
	return fmt.Sprint("line ", at.Line)
}

func (p Pair) causeRow(c comparison.Change) changeRow {
	row := changeRow{name: words.Clean(c.Name, 80), change: changeOf(c)}
	if at := cmp.Or(c.After, c.Before); at != nil {
		row.aside, row.code = p.placeName(at), labels.Code(at.Text)
	}
	return row
}

func (p Pair) functionRow(c comparison.Change) changeRow {
	row := changeRow{name: words.Clean(c.Name, words.MaxName), change: changeOf(c), aside: c.Role}
	if at := cmp.Or(c.After, c.Before); at != nil {
		row.code = fmt.Sprintf("%s:%d", words.ShortFile(at.File), at.Line)
	}
	return row
}

// identity keeps ids of pictures on one page apart.
func (p Pair) identity() uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, inhtml.Identity(p.Before), inhtml.Identity(p.After))
	return h.Sum64()
}
