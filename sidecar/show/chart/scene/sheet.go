package scene

import "strings"

// Sizes of text and distances, in pixels.
const (
	Margin = 16.0

	titleSize   = 15.0
	HeadingSize = 12.5
	TextSize    = 11.5
	LabelSize   = 10.5 // in boxes
	SmallSize   = 9.5
	LineHeight  = 19.0
	ColumnGap   = 12.0 // between the columns of a table

	GutterLeft  = 122.0 // lane names
	GutterRight = 104.0 // figures
	Gap         = 8.0   // between lanes
	RowHeight   = 17.0  // of a flame chart
)

// Sheet fills a scene with text from top to bottom.
type Sheet struct {
	*Scene
	Y float64 // what is above is done
}

// NewSheet is an empty scene of a width, and where its first line is.
func NewSheet(width float64, summary string) Sheet {
	return Sheet{Scene: &Scene{Width: width, Summary: summary}, Y: 8}
}

// Text puts a text on the baseline y.
func (l *Sheet) Text(x, y float64, s string, size float64, tone Tone, f Face, a Anchor) {
	if s != "" {
		l.Texts = append(l.Texts, Label{X: x, Y: y, S: s, Size: size, Tone: tone, Face: f, Anchor: a})
	}
}

// Head is the answer: title line, main finding, and a badge where there is one.
func (l *Sheet) Head(title, finding []Phrase, badge string) {
	right := l.Width - Margin
	if badge != "" {
		w := WidthOf(badge, TextSize, Bold) + 14
		l.Badge = &Badge{Box: Box{right - w, l.Y + 1, right, l.Y + 20}}
		l.Badge.Text = Label{X: right - w/2, Y: l.Y + 14.5, S: badge, Size: TextSize, Tone: Warn, Face: Bold, Anchor: Middle}
		right -= w + 12
	}
	l.Y += 16
	l.Flow(title, Margin, right, titleSize, 2)
	l.Y += 10
	if len(finding) > 0 {
		l.Y += 15
		l.Bullet = &Dot{Margin + 4, l.Y - 4}
		l.Flow(finding, Margin+16, l.Width-Margin, HeadingSize, MaxLines)
	}
	l.Y += 20
}

// Flow sets phrases one after the other from baseline y on, breaking lines
// between them and inside long ones; y becomes the last baseline.
func (l *Sheet) Flow(ps []Phrase, left, right, size float64, limit int) {
	x, lines := left, 1
	newline := func() {
		x, lines = left, lines+1
		l.Y += size * 1.5
	}
	for _, p := range ps {
		text := p.Text
		for text != "" {
			w := WidthOf(text, size, p.Face)
			if x+w <= right {
				l.Text(x, l.Y, text, size, p.Tone, p.Face, Left)
				x += w + size*0.9
				break
			}
			if lines == limit {
				l.Text(x, l.Y, Fit(text, right-x, size, p.Face), size, p.Tone, p.Face, Left)
				return
			}
			if p.Face == Mono || right-x < 0.3*(right-left) {
				if x > left {
					newline()
					continue
				}
			}
			if p.Face == Mono { // code does not wrap
				text = Fit(text, right-x, size, p.Face)
				continue
			}
			head := Wrap(text, right-x, size, p.Face, 2)
			l.Text(x, l.Y, head[0], size, p.Tone, p.Face, Left)
			if len(head) == 1 { // one word, cut
				x += WidthOf(head[0], size, p.Face) + size*0.9
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

// MaxLines are more than the longest hint needs where it has leastHint of room: what
// someone is to do is not cut.
const MaxLines = 12

// Rule is a line from one side to the other.
func (l *Sheet) Rule() {
	l.Y += 14
	l.Rules = append(l.Rules, l.Y)
	l.Y += 2
}

// Notes are the footer.
func (l *Sheet) Notes(notes []string) {
	l.Rule()
	for _, n := range notes {
		for _, line := range Wrap(n, l.Width-2*Margin, SmallSize, Sans, MaxLines) {
			l.Y += 14
			l.Text(Margin, l.Y, line, SmallSize, Muted, Sans, Left)
		}
	}
}
