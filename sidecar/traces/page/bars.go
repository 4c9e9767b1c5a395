package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// bar is one row of a bar chart: a name at the left, parts, a figure at the right.
type bar struct {
	name, figure string
	parts        []part
	// weight is what the rows of a heat strip are judged by: the heaviest is named.
	weight float64
}

type part struct {
	value float64
	paint paint
	about string
}

const (
	// maxBars is how many bars are below each other; more are a heat strip, and
	// what has a line of its own is listed by the tables.
	maxBars = 8
	// maxCells bounds the cells of a heat strip; of more rows several share one.
	maxCells = 128
)

// room says where the names of bars stand.
type room uint8

const (
	shortNames room = iota // beside them: ranks, devices
	longNames              // above them: kernels, functions
)

// bars draws rows of stacked parts on one scale; full is the value of the whole
// width, 0 for the largest row. Ranks and streams are a heat strip where they are many.
func bars(theme Theme, names room, name, title, aside string, legend []legend, list []bar, full float64) Chart {
	if full <= 0 {
		for _, b := range list {
			full = max(full, b.sum())
		}
	}
	if names == longNames {
		return ranked(theme, name, title, aside, legend, list, full)
	}
	if len(list) > maxBars {
		return heat(theme, name, title, aside, legend, list)
	}
	const row, gap = 24.0, 6.0
	c := newCanvas(theme, row*float64(len(list)), title, aside, legend)
	for _, b := range list {
		c.Text(plotLeft-10, c.y+row/2+4, cut(b.name, 10), `class="opt opr"`)
		c.Text(plotRight+10, c.y+row/2+4, cut(b.figure, 12), `class="opt"`)
		c.stack(b, plotLeft, plotRight, row-gap, gap/2, full)
		c.y += row
	}
	return c.chart(name, title)
}

// ranked draws a list in which every bar has its name above it.
func ranked(theme Theme, name, title, aside string, legend []legend, list []bar, full float64) Chart {
	const row, thick = 27.0, 6.0
	c := newCanvas(theme, row*float64(len(list)), title, aside, legend)
	names, rooms := make([]string, len(list)), make([]float64, len(list))
	for i, b := range list {
		names[i], rooms[i] = plain(b.name), chartWidth-scene.WidthOf(cut(b.figure, 24), textSize, scene.Sans)-textSize
	}
	for i, name := range distinguished(names, rooms) {
		b := list[i]
		c.Text(0, c.y+12, name, `class="opt"`)
		c.Text(chartWidth, c.y+12, cut(b.figure, 24), `class="opt opr"`)
		c.stack(b, 0, chartWidth, thick, 17, full)
		c.y += row
	}
	return c.chart(name, title)
}

// distinguished cuts each name to its room. Names that would then read the same, as kernels of one template do, keep
// a beginning and what differs behind it.
func distinguished(names []string, rooms []float64) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = scene.Fit(name, rooms[i], textSize, scene.Sans)
	}
	for i, name := range names {
		begin := strings.TrimSuffix(out[i], "…")
		if begin == name {
			continue
		}
		// Others may be cut a little earlier or later, by their figures.
		differs := len(name)
		for j, other := range names {
			if j != i && name != other && out[j] != other && (strings.HasPrefix(name, strings.TrimSuffix(out[j], "…")) || strings.HasPrefix(other, begin)) {
				differs = min(differs, commonLength(name, other))
			}
		}
		if differs == len(name) {
			continue
		}
		head := scene.Fit(name, 0.3*rooms[i], textSize, scene.Sans)
		if tail := lastWord(name, differs); tail > len(head) {
			out[i] = head + scene.Fit(name[tail:], rooms[i]-scene.WidthOf(head, textSize, scene.Sans), textSize, scene.Sans)
		}
	}
	return out
}

// commonLength is how much of their beginning two names share, in bytes of whole characters.
func commonLength(a, b string) int {
	n := 0
	for _, r := range a {
		size := utf8.RuneLen(r)
		if size < 0 || len(b) < n+size || a[n:n+size] != b[n:n+size] {
			break
		}
		n += size
	}
	return n
}

// lastWord is where the word that a place of a name is in begins.
func lastWord(name string, at int) int {
	return strings.LastIndexFunc(name[:at], func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) + 1
}

// stack draws a bar's parts on their ground.
func (c *canvas) stack(b bar, left, right, height, below, full float64) {
	c.Rect(left, c.y+below, right-left, height, class(paintTrack))
	x := left
	for _, p := range b.parts {
		if !(p.value > 0) || full <= 0 {
			continue
		}
		w := min(p.value/full*(right-left), right-x)
		c.box(x, c.y+below, w, height, p.paint, p.about)
		x += w
	}
}

func (b bar) sum() (sum float64) {
	for _, p := range b.parts {
		sum += max(0, p.value)
	}
	return sum
}

// heat draws a strip for each kind of part, with a cell per row: the more of it, the
// darker, compared with the row that has most of that kind. Where rows share a cell it
// shows the one that has most. Kinds of which there is next to nothing are left out.
// The heaviest row is at the bottom.
func heat(theme Theme, name, title, aside string, entries []legend, list []bar) Chart {
	const row, gap, visible = 22.0, 4.0, 0.02
	kinds := strips(list)
	all := 0.0
	for _, k := range kinds {
		all += k.sum
	}
	kinds = slices.DeleteFunc(kinds, func(k strip) bool { return k.sum <= visible*all })
	var used []legend
	for _, e := range entries {
		if slices.ContainsFunc(kinds, func(k strip) bool { return k.paint == e.paint }) {
			used = append(used, legend{strong(e.paint), e.text})
		}
	}
	c := newCanvas(theme, row*float64(len(kinds))+2*lineHeight, title, aside, used)
	cells := min(len(list), maxCells)
	width := chartWidth / float64(cells)
	for _, k := range kinds {
		c.Rect(0, c.y, chartWidth, row-gap, class(paintTrack))
		for cell := range cells {
			var shown part
			for _, b := range list[cell*len(list)/cells : (cell+1)*len(list)/cells] {
				if p := b.parts[k.at]; shown.about == "" || p.value > shown.value {
					shown = p
				}
			}
			if shown.value > 0 {
				shown.paint = strong(shown.paint)
				c.shade(float64(cell)*width, c.y, max(width-0.5, 0.5), row-gap, shown, shown.value/k.most)
			}
		}
		c.y += row
	}
	c.Text(0, c.y+8, cut(list[0].name, 24), `class="opd"`)
	c.Text(chartWidth, c.y+8, cut(list[len(list)-1].name, 24), `class="opd opr"`)
	if b := slices.MaxFunc(list, func(a, b bar) int { return cmp.Compare(a.weight, b.weight) }); b.weight > 0 {
		c.Text(0, c.y+8+lineHeight, cut("most: "+b.name+", "+b.figure, 56), `class="opt"`)
	}
	return c.chart(name, title)
}

// strip is one kind of part over all bars.
type strip struct {
	at        int // in a bar's parts
	paint     paint
	sum, most float64
}

// strips are the kinds that every bar has.
func strips(list []bar) []strip {
	kinds := make([]strip, len(list[0].parts))
	for _, b := range list {
		kinds = kinds[:min(len(kinds), len(b.parts))]
	}
	for i := range kinds {
		kinds[i].at, kinds[i].paint = i, list[0].parts[i].paint
		for _, b := range list {
			kinds[i].sum += max(0, b.parts[i].value)
			kinds[i].most = max(kinds[i].most, b.parts[i].value)
		}
	}
	return kinds
}

// strong is a colour that can be weakened: idle time is pale in other charts.
func strong(p paint) paint {
	if p == paintIdle {
		return paintHost
	}
	return p
}

// shade is a box of a strength between 0 and 1; the weakest is still seen.
func (c *canvas) shade(x, y, w, h float64, p part, strength float64) {
	c.Group(class(p.paint))
	c.SVG.Title(plain(p.about))
	c.Rect(x, y, w, h, fmt.Sprintf(`fill-opacity="%.2f"`, 0.08+0.92*strength))
	c.Gend()
}

// columnBin is one bin of a histogram.
type columnBin struct {
	label string
	parts []part
}

// histogram draws bins side by side.
func histogram(theme Theme, name, title, aside string, legend []legend, bins []columnBin, unit func(float64) string) Chart {
	const plot, plotRight = 120.0, chartWidth
	c := newCanvas(theme, 10+plot+24, title, aside, legend)
	c.y += 10
	most := 0.0
	for _, b := range bins {
		sum := 0.0
		for _, p := range b.parts {
			sum += max(0, p.value)
		}
		most = max(most, sum)
	}
	bottom := c.y + plot
	c.Line(plotLeft, bottom, plotRight, bottom, `class="opl"`)
	if most > 0 {
		c.Line(plotLeft, c.y, plotRight, c.y, `class="opl"`)
		c.Text(plotLeft-10, c.y+4, unit(most), `class="opd opr"`)
	}
	step := (plotRight - plotLeft) / float64(max(1, len(bins)))
	every := int(math.Ceil(62 / step)) // labels must not touch
	for i, b := range bins {
		x, y := plotLeft+step*float64(i), bottom
		for _, p := range b.parts {
			if !(p.value > 0) || most <= 0 {
				continue
			}
			h := p.value / most * plot
			y -= h
			c.box(x+1, y, step-2, h, p.paint, p.about)
		}
		if i%every == 0 {
			if x+charWidth*float64(words.Columns(b.label)) > chartWidth {
				c.Text(chartWidth, bottom+16, b.label, `class="opd opr"`)
			} else {
				c.Text(x, bottom+16, b.label, `class="opd"`)
			}
		}
	}
	return c.chart(name, title)
}
