package panel

import (
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/show/live"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Text is a look at a recording in progress as lines of at most width columns: for
// terminals, screen readers and front ends without HTML. With colour they have the
// terminal's bold and faint faces, and nothing else that a terminal takes for a command.
func Text(n *live.Now, width int, colour bool) []string {
	d := digestOf(n)
	t := writer{width: max(width, 1), colour: colour}
	t.add(piece{d.title, strong}, piece{gapped(d.progress), normal})
	if d.hasShare {
		t.add(piece{bar(d.share, min(t.width, 60)), normal})
	}
	t.add()
	for i, p := range d.now {
		label := "now"
		if i > 0 {
			label = ""
		}
		where := strings.TrimSpace(p.place + " " + p.function)
		t.row(label, piece{where, strong}, piece{gapped(p.text), normal}, piece{gapped(p.since), faint})
	}
	if d.doing != "" {
		t.row("doing", piece{d.doing, normal}, piece{" of the last seconds", faint})
	}
	for _, f := range d.figures {
		if curve := curveOf(f.history, sparkColumns); curve != "" && t.width >= 60 {
			t.row(f.name, piece{words.Pad(f.value, figureColumns), normal}, piece{curve, normal})
			continue
		}
		t.row(f.name, piece{f.value, normal})
	}
	for _, line := range words.Wrap(d.waiting, t.width-min(labelColumns, t.width/4)) {
		t.row("", piece{line, normal})
	}
	for _, alarm := range d.alarms {
		for _, line := range words.Wrap("! "+alarm, t.width) {
			t.add(piece{line, strong})
		}
	}
	if len(d.lines) > 0 {
		t.add()
		t.add(piece{"hottest lines so far", faint})
	}
	place := 0
	for _, l := range d.lines {
		place = max(place, words.Columns(l.place))
	}
	place = min(place, 28, t.width/3)
	for _, l := range d.lines {
		t.add(piece{"  " + words.PadLeft(l.seconds, 11) + "  " + words.PadLeft(l.percent, 6) + "  ", normal},
			piece{words.Pad(words.CutFront(l.place, place), place) + "  ", strong}, piece{l.text, normal})
	}
	return t.lines
}

// Line is the same in one line, for logs.
func Line(n *live.Now) string {
	d := digestOf(n)
	parts := []string{d.title}
	if d.progress != "" {
		parts = append(parts, d.progress)
	}
	if len(d.now) > 0 {
		p := d.now[len(d.now)-1]
		parts = append(parts, strings.TrimSpace(words.Cut(strings.TrimSpace(p.place+" "+p.text), 60)+" "+p.since))
	}
	for _, f := range d.figures {
		parts = append(parts, f.name+" "+f.value)
	}
	if d.waiting != "" {
		parts = append(parts, "GPU "+d.waiting)
	}
	for _, alarm := range d.alarms {
		parts = append(parts, "! "+alarm)
	}
	return strings.Join(parts, " · ")
}

func gapped(s string) string {
	if s == "" {
		return ""
	}
	return "  " + s
}

type textFace uint8

const (
	normal textFace = iota
	strong
	faint
)

// piece is a part of a line.
type piece struct {
	text string
	face textFace
}

// writer writes lines of bounded width.
type writer struct {
	width  int
	colour bool
	lines  []string
}

const labelColumns = 12 // columns of what figures are called

func (t *writer) row(label string, pieces ...piece) {
	t.add(append([]piece{{words.Pad(label, min(labelColumns, t.width/4)), faint}}, pieces...)...)
}

func (t *writer) add(pieces ...piece) {
	var b strings.Builder
	room := t.width
	for _, p := range pieces {
		text := words.Cut(p.text, room)
		if text == "" {
			continue
		}
		room -= words.Columns(text)
		switch {
		case t.colour && p.face == strong:
			text = "\x1b[1m" + text + "\x1b[0m"
		case t.colour && p.face == faint:
			text = "\x1b[2m" + text + "\x1b[0m"
		}
		b.WriteString(text)
		if room <= 0 {
			break
		}
	}
	t.lines = append(t.lines, strings.TrimRight(b.String(), " "))
}

func bar(share float64, width int) string {
	full := int(share * float64(width))
	return strings.Repeat("━", full) + strings.Repeat("─", width-full)
}

const (
	sparkColumns  = 40
	figureColumns = 20
)

// curveOf draws the last n values; unknown is blank.
func curveOf(history []*float64, n int) string {
	if len(history) < 2 {
		return ""
	}
	history = history[max(len(history)-n, 0):]
	line := make([]rune, 0, n)
	for _, v := range history {
		if v == nil {
			line = append(line, ' ')
			continue
		}
		line = append(line, words.Spark(*v))
	}
	return string(line)
}
