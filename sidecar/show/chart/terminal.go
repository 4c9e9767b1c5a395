package chart

import (
	"fmt"
	"math"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/labels"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Text says the same in plain text of at most width columns: for terminals,
// screen readers and pages that show nothing else.
func Text(r *report.View, width int) string {
	if r == nil {
		return ""
	}
	return textOf(digestOf(r), width)
}

func textOf(d *digest, width int) string {
	t := &textWriter{words.NewWriter(width)}
	badge := ""
	if d.badge != "" {
		badge = "  (" + d.badge + ")"
	}
	phrases := d.title // whole ones: of a figure that is cut in two, a wrong one is left
	for len(phrases) > 2 && words.Columns(scene.Join(phrases, "  ")+badge) > t.Width {
		phrases = scene.Shorter(phrases)
	}
	t.Line(scene.Join(phrases, "  ") + badge)
	t.Paragraph("", scene.Join(d.finding, " · "))
	t.Line("")
	t.tracks(d)
	for _, tb := range d.tables {
		t.Line("")
		t.table(tb)
	}
	if len(d.findings) > 0 {
		t.Line("")
		t.Line("Also")
		for _, f := range d.findings {
			t.Paragraph("  ", strings.TrimSuffix(f.text+" · "+f.hint, " · "))
		}
	}
	t.Line("")
	for _, n := range d.notes {
		t.Paragraph("", n)
	}
	return t.String()
}

// textWriter writes what a digest says, in lines of bounded width.
type textWriter struct{ words.Writer }

// tracks are sparklines, one per lane.
func (t *textWriter) tracks(d *digest) {
	if len(d.tracks) == 0 {
		return
	}
	names, values := 0, 0
	for _, l := range d.tracks {
		names = max(names, words.Columns(l.name))
		values = max(values, words.Columns(l.beside()))
	}
	names, values = min(names, 16), min(values, 34)
	room := t.Width - names - values - 4
	for _, l := range d.tracks {
		t.Line(words.Pad(l.name, names) + "  " + words.Pad(sparkline(l, d.duration, room), room) + "  " + l.beside())
	}
}

// beside is what is said to the right of a sparkline: where its scale does not begin at 0 the least and the
// largest value.
func (t *trackLane) beside() string {
	if t.base > 0 {
		return t.extent
	}
	text := t.value + " " + t.aside
	if t.who != "" {
		text += ", " + t.who
	}
	return text
}

// sparkline draws a lane in n characters; unknown is blank.
func sparkline(l trackLane, duration float64, n int) string {
	var sum, time [words.MaxWidth]float64
	for _, p := range l.points {
		if math.IsNaN(p.Value) {
			continue
		}
		first, last := int(p.From/duration*float64(n)), int(p.To/duration*float64(n))
		for i := max(first, 0); i <= min(last, n-1); i++ {
			from := max(p.From, float64(i)*duration/float64(n))
			to := min(p.To, float64(i+1)*duration/float64(n))
			if to > from {
				sum[i] += p.Value * (to - from)
				time[i] += to - from
			}
		}
	}
	line := make([]rune, n)
	for i := range line {
		line[i] = ' '
		if time[i] > 0 && l.top > l.base {
			line[i] = words.Spark((sum[i]/time[i] - l.base) / (l.top - l.base))
		}
	}
	return string(line)
}

// table is a heading and aligned rows with a bar.
func (t *textWriter) table(tb table) {
	heading := tb.heading
	if tb.note != "" {
		heading += "  (" + tb.note + ")"
	}
	if words.Columns(heading) <= t.Width {
		t.Line(heading)
	} else {
		t.Line(tb.heading)
		t.Paragraph("  ", tb.note)
	}
	const bar = 12
	var name, secs, aside, place, code int
	largest := largestShare(tb)
	for _, r := range tb.rows {
		name = max(name, words.Columns(r.name))
		secs = max(secs, words.Columns(r.time()))
		aside = max(aside, words.Columns(r.aside))
		place = max(place, words.Columns(r.place))
		code = max(code, words.Columns(r.code))
	}
	name, place = min(name, t.Width*2/5), min(place, 24)
	room := t.Width - 2 - name - 2 - secs - 2 - bar - 1 - aside
	if place > 0 {
		room -= 2 + place
	}
	code = min(code, max(room-2, 0))
	for _, r := range tb.rows {
		share := r.share
		if r.plain != nil {
			share = *r.plain
		}
		n := int(math.Round(share / largest * bar))
		if share > 0 {
			n = max(n, 1)
		}
		s := fmt.Sprintf("  %s  %s  %s %s", words.Pad(r.name, name), words.PadLeft(r.time(), secs),
			words.Pad(strings.Repeat("█", min(n, bar)), bar), words.PadLeft(r.aside, aside))
		if place > 0 {
			s += "  " + words.PadLeft(words.CutFront(r.place, place), place)
		}
		if room >= 12 {
			s += "  " + words.Pad(r.code, code)
		}
		remark := r.remark()
		beside := words.Columns(remark) <= room-code-4
		if beside && remark != "" {
			s += "  " + remark
		}
		t.Line(s)
		switch {
		case beside:
		case tb.advises && r.hint != "":
			t.Paragraph("      ", "→ "+r.hint)
		case r.keeps, labels.Split(r.states) != "":
			t.Paragraph("      ", remark)
		}
	}
}
