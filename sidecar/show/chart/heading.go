package chart

import (
	"math"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// head is the answer: title line, main finding.
func (l *layouter) head() {
	right := l.Width - margin
	if l.d.badge != "" {
		w := widthOf(l.d.badge, textSize, bold) + 14
		l.Badge = &Badge{Box: Box{right - w, l.y + 1, right, l.y + 20}}
		l.Badge.Text = Label{X: right - w/2, Y: l.y + 14.5, S: l.d.badge, Size: textSize, Tone: Warn, face: bold, Anchor: Middle}
		right -= w + 12
	}
	l.y += 16
	l.flow(l.d.title, margin, right, titleSize, 2)
	l.y += 10
	if len(l.d.finding) > 0 {
		l.y += 15
		l.Bullet = &Dot{margin + 4, l.y - 4}
		l.flow(l.d.finding, margin+16, l.Width-margin, 12.5, hintLines)
	}
	l.y += 20
}

// flow sets phrases one after the other from baseline y on, breaking lines
// between them and inside long ones; y becomes the last baseline.
func (l *layouter) flow(ps []phrase, left, right, size float64, limit int) {
	x, lines := left, 1
	newline := func() {
		x, lines = left, lines+1
		l.y += size * 1.5
	}
	for _, p := range ps {
		text := p.text
		for text != "" {
			w := widthOf(text, size, p.face)
			if x+w <= right {
				l.text(x, l.y, text, size, p.tone, p.face, Left)
				x += w + size*0.9
				break
			}
			if lines == limit {
				l.text(x, l.y, fit(text, right-x, size, p.face), size, p.tone, p.face, Left)
				return
			}
			if p.face == mono || right-x < 0.3*(right-left) {
				if x > left {
					newline()
					continue
				}
			}
			if p.face == mono { // code does not wrap
				text = fit(text, right-x, size, p.face)
				continue
			}
			head := wrap(text, right-x, size, p.face, 2)
			l.text(x, l.y, head[0], size, p.tone, p.face, Left)
			if len(head) == 1 { // one word, cut
				x += widthOf(head[0], size, p.face) + size*0.9
				break
			}
			text = afterWords(text, head[0])
			newline()
		}
	}
}

// afterWords is what follows the words that already stand in line.
func afterWords(text, line string) string {
	words := strings.Fields(text)
	return strings.Join(words[min(len(strings.Fields(line)), len(words)):], " ")
}

// axis sets the ticks and the steps.
func (l *layouter) axis() {
	l.y += 8
	l.AxisY = l.y
	step, label := tickStep(l.d.duration, (l.Plot.X1-l.Plot.X0)/60)
	for i := 0; float64(i)*step <= l.d.duration*(1+1e-9); i++ {
		x := l.x(float64(i) * step)
		text := label(float64(i) * step)
		if w := widthOf(text, labelSize, sans) / 2; x-w > 0 && x+w < l.Width-margin {
			l.text(x, l.y, text, labelSize, Muted, sans, Middle)
		}
		l.Gridlines = append(l.Gridlines, x)
	}
	l.y += 5
	if s := l.d.steps; s.count > 1 {
		l.text(l.Plot.X0-26, l.y-5, fit(words.Plural(s.count, "step", "steps"), gutterLeft-34, smallSize, sans), smallSize, Muted, sans, Right)
		last := math.Inf(-1)
		for _, t := range s.ends {
			if x := l.x(t); x-last >= 2.5 {
				l.Steps = append(l.Steps, x)
				last = x
			}
		}
	}
	l.StepsY = l.y
	l.y += 7
}
