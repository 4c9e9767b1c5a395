package page

import (
	"fmt"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// difference shows the whole before and after, and below each part of the change, which begins where the one above
// it ends.
func (d drawing) difference(t *table.Table) (Chart, bool) {
	of, ok := differenceOf(t, d.kernelKinds())
	if !ok {
		return Chart{}, false
	}
	low, high := of.reach()
	if high-low < leastDrawn*max(of.whole.before, of.whole.after) {
		return Chart{}, false // as good as the same run
	}
	what := "the devices' time per " + of.per
	if of.ofStep {
		what = "a step"
	}
	return of.draw(d.theme, "What changed in "+what, d.Name), true
}

// reach is between what the changes lie, one after the other.
func (of difference) reach() (low, high float64) {
	sum := 0.0
	for _, c := range append(slices.Clone(of.parts), of.rest) {
		sum += c.change
		low, high = min(low, sum), max(high, sum)
	}
	return low, high
}

// paint is green for less and red for more, as in comparisons of recordings; grey is no difference beyond noise, or one
// that is not judged.
func (c changed) paint() paint {
	switch {
	case c.verdict == "":
		return paintOther
	case c.change < 0:
		return paintCompute
	}
	return paintLate
}

func (c changed) figure() string {
	text := words.Signed(c.change / 1e6)
	switch c.verdict {
	case "new", "gone":
		text += " · " + c.verdict
	}
	return text
}

// draw makes the picture: two bars on one scale, and below the changes on another.
func (of difference) draw(theme Theme, title, run string) Chart {
	const apart, nameColumns = 8.0, 42
	rows := append(slices.Clone(of.parts), of.rest)
	total := of.total()
	w := waterfall{scale: max(of.whole.before, of.whole.after)}
	w.low, w.high = of.reach()
	w.canvas = newCanvas(theme, stepHeight*float64(len(rows)+3)+apart, title, w.aside(), legendOf(append(rows, total)))
	w.side("before: "+words.CutFront(plain(of.run), nameColumns), of.whole.before)
	w.side("after: "+words.CutFront(plain(run), nameColumns), of.whole.after)
	w.y += apart
	names, rooms := make([]string, len(rows)), make([]float64, len(rows))
	for i, p := range rows {
		names[i], rooms[i] = plain(p.name), roomBeside(p.figure())
	}
	sum := 0.0
	for i, name := range distinguished(names, rooms) {
		w.change(name, rows[i].figure(), rows[i], sum)
		sum += rows[i].change
		if x := w.place(sum); i < len(rows)-1 {
			w.Line(x, w.y-stepHeight+barBelow+barHeight, x, w.y+barBelow, `class="opl"`)
		}
	}
	figure := total.figure() + " · " + words.SignedPercent(total.change/total.before)
	if total.judged && total.verdict == "" {
		figure += ", noise"
	}
	w.change(total.name, figure, total, 0)
	return w.chart("difference", title)
}

// total is the bar at the end.
func (of difference) total() changed {
	t := of.whole
	t.name, t.about = "in all", "in all: "+words.Signed(t.change/1e6)
	if t.judged {
		t.about = "in all: " + t.judgement()
	}
	return t
}

func legendOf(rows []changed) (used []legend) {
	for _, l := range []legend{
		{paintCompute, "less than before"}, {paintLate, "more"}, {paintOther, "within noise or not judged"},
	} {
		if slices.ContainsFunc(rows, func(c changed) bool { return c.paint() == l.paint }) {
			used = append(used, l)
		}
	}
	return used
}

// waterfall draws changes one after the other, µs.
type waterfall struct {
	*canvas
	scale     float64 // what the width is of the two bars on top
	low, high float64 // what the changes reach to
}

// A row has its name above its bar.
const stepHeight, barBelow, barHeight = 27.0, 17.0, 6.0

func (w *waterfall) aside() string {
	text := "each change begins where the one above it ends"
	if zoom := w.scale / (w.high - w.low); zoom >= 1.5 {
		text += fmt.Sprintf(", drawn %s times as long as the two bars on top", words.Significant(zoom, 2))
	}
	return text + "; thin line: bounds"
}

// place is where a time after the begin of the first change is.
func (w *waterfall) place(us float64) float64 {
	return min(max((us-w.low)/(w.high-w.low), 0), 1) * chartWidth
}

// side is the bar of a run.
func (w *waterfall) side(name string, us float64) {
	w.named(scene.Fit(name, roomBeside(length(us)), textSize, scene.Sans), length(us))
	w.stack(bar{parts: []part{{us, paintOverhead, name + ": " + length(us)}}}, 0, chartWidth, barHeight, barBelow, w.scale)
	w.y += stepHeight
}

// change is the bar of a change that begins at a time, with its bounds and a mark where nothing had changed.
func (w *waterfall) change(name, figure string, p changed, from float64) {
	w.named(name, figure)
	w.Rect(0, w.y+barBelow, chartWidth, barHeight, class(paintTrack))
	a, b := w.place(min(from, from+p.change)), w.place(max(from, from+p.change))
	w.box(a, w.y+barBelow, max(b-a, 0.7), barHeight, p.paint(), p.about)
	if p.judged {
		a, b = w.place(from+p.low), w.place(from+p.high)
		w.Rect(a, w.y+barBelow+barHeight/2-0.5, b-a, 1, `class="opd"`)
	}
	w.Rect(w.place(0)-0.5, w.y+barBelow-2, 1, barHeight+4, `class="opd"`)
	w.y += stepHeight
}

func (w *waterfall) named(name, figure string) {
	w.Text(0, w.y+12, name, `class="opt"`)
	w.Text(chartWidth, w.y+12, figure, `class="opt opr"`)
}

// roomBeside is what a figure leaves of a line.
func roomBeside(figure string) float64 {
	return chartWidth - charWidth*float64(words.Columns(figure)) - textSize
}
