package scene

import (
	"slices"
	"strings"
)

// Paint is what a colour means. It is also a CSS class: never text from outside.
type Paint string

// The paints.
const (
	PaintCell      Paint = "cell" // kinds of code
	PaintUser      Paint = "user"
	PaintData      Paint = "data"
	PaintFramework Paint = "frame"
	PaintPicture   Paint = "pic"
	PaintDevice    Paint = "dev"
	PaintIO        Paint = "io"
	PaintOther     Paint = "other"

	PaintGPU       Paint = "gpu" // tracks
	PaintGPUMemory Paint = "gmem"
	PaintCPU       Paint = "cpu"
	PaintMemory    Paint = "mem"
	PaintTraffic   Paint = "disk"
	PaintGIL       Paint = "gil"

	PaintPython Paint = "py" // thread states
	PaintNative Paint = "nat"
	PaintWait   Paint = "wait"

	PaintLineMuch Paint = "l1" // the cell's lines, by their share of the time
	PaintLineSome Paint = "l2"
	PaintLineRare Paint = "l3"

	PaintAlike   Paint = "r0" // a rank's own time in a step beside the median rank's, by rankstrip.Level
	PaintLonger  Paint = "r1"
	PaintLong    Paint = "r2"
	PaintLongest Paint = "r3"

	PaintBar Paint = "bar" // of tables

	PaintIdle Paint = "idle" // shadings, as patches of the legend
	PaintGap  Paint = base
	PaintRule Paint = rule // lines
)

// Tone is what the look of a text means; also a CSS class.
type Tone string

// The tones.
const (
	Plain Tone = "tp"
	Muted Tone = "tm"
	Good  Tone = "tg"
	Warn  Tone = "tw"
	Bad   Tone = "tb"
	OnBox Tone = "tx" // on a coloured box
)

// Phrase is a piece of a line of text.
type Phrase struct {
	Text string
	Tone Tone
	Face Face
	// Share is that of a time, 0 to 1, which the phrase gives: where there is no room for all, those with the least are left
	// out. 0: it gives none.
	Share float64
}

// Shorter leaves out one of some phrases behind the first two: of those that give shares of a time the one with the least,
// where there are several, else the last of the others.
func Shorter(ps []Phrase) []Phrase {
	least, other, shares := -1, -1, 0
	for i, p := range ps {
		switch {
		case p.Share <= 0:
			other = i
			continue
		case least < 0 || p.Share <= ps[least].Share:
			least = i
		}
		shares++
	}
	if shares > 1 || other < 2 {
		other = max(least, 2)
	}
	if other >= len(ps) {
		return ps
	}
	return slices.Delete(slices.Clone(ps), other, other+1)
}

// Join is the text of phrases without their looks.
func Join(ps []Phrase, between string) string {
	var b strings.Builder
	for i, p := range ps {
		if i > 0 {
			b.WriteString(between)
		}
		b.WriteString(p.Text)
	}
	return b.String()
}
