package scene

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"

	svg "github.com/ajstarks/svgo/float"
)

// painter writes a Scene. Text from outside goes only where svgo escapes it:
// into Text, Title and Desc; never into attributes or ids.
type painter struct {
	*svg.SVG
	scene *Scene
	hatch string // id of the pattern
}

// SVG writes a scene as an SVG document, or as an element for inside HTML.
func SVG(s *Scene, identity uint64, o Options) ([]byte, error) {
	var buf bytes.Buffer
	if err := writeSVG(&buf, s, identity, o); err != nil {
		return nil, fmt.Errorf("write the chart: %w", err)
	}
	out := buf.Bytes()
	if o.Inline { // svgo always begins with an XML declaration and a comment
		out = out[max(bytes.Index(out, []byte("<svg")), 0):]
	}
	return out, nil
}

// writeSVG reports what svgo does not: that writing failed.
func writeSVG(w io.Writer, s *Scene, identity uint64, o Options) error {
	out := bufio.NewWriterSize(w, 1<<16)
	p := &painter{SVG: svg.New(out), scene: s, hatch: fmt.Sprintf("omni-perf-%016x-hatch", identity)}
	p.Decimals = 1
	p.Start(s.Width, s.Height,
		fmt.Sprintf(`viewBox="0 0 %.1f %.1f"`, s.Width, s.Height),
		`class="`+classOf(o.Theme)+`"`, `role="img"`, `aria-label="omni_perf profile: time runs from left to right"`)
	p.Desc(s.Summary)
	p.Style("text/css", styleSheet(o.Theme))
	p.pattern()
	p.Rect(0, 0, s.Width, s.Height, `class="`+ground+`"`)
	p.ground()
	for i := range s.Lanes {
		p.lane(&s.Lanes[i])
	}
	for i := range s.Merged {
		p.row(&s.Merged[i])
	}
	p.below()
	p.texts()
	p.End()
	return out.Flush()
}

// pattern hatches what waited: strokes in the ground's colour, which also make
// the box below lighter.
func (p *painter) pattern() {
	p.Def()
	p.Pattern(p.hatch, 0, 0, 6, 6, "user", `class="h"`)
	p.Path("M-1 1l2-2M-1 7l8-8M5 7l2-2")
	p.PatternEnd()
	p.DefEnd()
}

// ground is what lies under the lanes: idle time, grid, steps.
func (p *painter) ground() {
	s := p.scene
	if len(s.Shades) > 0 {
		p.Group(`class="f"`)
		p.Path(rectangles(s.Shades), `class="`+string(PaintIdle)+`"`)
		p.Gend()
	}
	if len(s.Gaps) > 0 {
		p.Group(`class="f"`)
		p.Path(rectangles(s.Gaps), `class="`+string(PaintGap)+`"`)
		p.Gend()
	}
	var grid, rules, steps pathData
	for _, x := range s.Gridlines {
		grid.moveTo(x, s.Plot.Y0)
		grid.lineTo(x, s.Plot.Y1)
	}
	for _, y := range s.Rules {
		rules.moveTo(Margin, y)
		rules.lineTo(s.Width-Margin, y)
	}
	for _, x := range s.Steps {
		steps.moveTo(x, s.StepsY-3)
		steps.lineTo(x, s.StepsY+4)
	}
	p.Group(`class="s"`)
	p.pathIn(rule, &grid, `stroke-width="0.7"`)
	p.pathIn(rule, &rules)
	p.pathIn(string(PaintOther), &steps, `stroke-width="1.2"`)
	p.Gend()
}

func (p *painter) pathIn(class string, d *pathData, more ...string) {
	if len(d.b) > 0 {
		p.Path(d.String(), append([]string{`class="` + class + `"`}, more...)...)
	}
}

func rectangles(boxes []Box) string {
	var d pathData
	for _, b := range boxes {
		d.moveTo(b.X0, b.Y0)
		d.lineTo(b.X1, b.Y0)
		d.lineTo(b.X1, b.Y1)
		d.lineTo(b.X0, b.Y1)
		d.lineTo(b.X0, b.Y0)
	}
	return d.String()
}

func (p *painter) lane(l *Lane) {
	p.Group(`class="f"`)
	if l.About != "" {
		p.Title(l.About)
	}
	if l.Base {
		p.Rect(l.X0, l.Y0, l.X1-l.X0, l.Y1-l.Y0, `class="`+base+`"`)
	}
	for _, a := range l.Areas {
		p.Path(areaData(a, l.Y1), `class="`+string(a.Paint)+`"`)
	}
	p.Gend()
	for i := range l.Rows {
		p.row(&l.Rows[i])
	}
}

func areaData(a Area, bottom float64) string {
	var d pathData
	d.moveTo(a.X[0], bottom)
	for i, y := range a.Y {
		d.lineTo(a.X[i], y)
		d.lineTo(a.X[i+1], y)
	}
	d.lineTo(a.X[len(a.X)-1], bottom)
	return d.String()
}

// row draws boxes with a tooltip one by one, and all others of one colour as a
// single thick dashed line: a tenth of the bytes.
func (p *painter) row(r *Row) {
	height, middle := r.Y1-r.Y0, (r.Y0+r.Y1)/2
	lines := make(map[string]*pathData) // by class
	var order []string
	titled := false
	for _, b := range r.Boxes {
		if b.Title != "" {
			titled = true
			continue
		}
		class := classOfBlock(b)
		d := lines[class]
		if d == nil {
			d = &pathData{}
			lines[class] = d
			order = append(order, class)
		}
		d.moveTo(b.X0, middle)
		d.lineTo(b.X0+inked(b), middle)
	}
	var hatch pathData
	for _, h := range r.Hatch {
		hatch.moveTo(h.X0, middle)
		hatch.lineTo(h.X1, middle)
	}
	if len(order) > 0 {
		p.Group(`class="s"`, fmt.Sprintf(`stroke-width="%.1f"`, height))
		for _, class := range order {
			p.pathIn(class, lines[class])
		}
		p.Gend()
	}
	if titled {
		p.Group(`class="f b"`)
		for _, b := range r.Boxes {
			if b.Title != "" {
				p.Group()
				p.Title(b.Title)
				p.Rect(b.X0, r.Y0, inked(b), height, `class="`+classOfBlock(b)+`"`)
				p.Gend()
			}
		}
		p.Gend()
	}
	if len(hatch.b) > 0 {
		p.Path(hatch.String(), fmt.Sprintf(`fill="none" stroke="url(#%s)" stroke-width="%.1f" pointer-events="none"`, p.hatch, height))
	}
}

// classOfBlock is the paint of a box, faint where it stands for several.
func classOfBlock(b Block) string {
	if b.Several {
		return string(b.Paint) + " " + several
	}
	return string(b.Paint)
}

// inked is the drawn width of a box: a hair narrower than its place, so that
// neighbours stay apart.
func inked(b Block) float64 {
	w := b.X1 - b.X0
	if w > 3 {
		return w - 0.8
	}
	return w
}

// below draws the bars of legend and tables, the badge and the finding's mark.
func (p *painter) below() {
	s := p.scene
	p.Group(`class="f b"`)
	patch := func(b Bar) { p.Rect(b.X0, b.Y0, b.X1-b.X0, b.Y1-b.Y0, `class="`+string(b.Paint)+`"`) }
	for _, e := range s.Legend {
		patch(e.Bar)
	}
	for _, b := range s.Bars {
		patch(b)
	}
	if s.Bullet != nil {
		p.Circle(s.Bullet.X, s.Bullet.Y, 4.5, `class="`+string(PaintBar)+`"`)
	}
	p.Gend()
	if waited := s.WaitingBars(); len(waited) > 0 {
		p.Path(rectangles(waited), fmt.Sprintf(`fill="url(#%s)" pointer-events="none"`, p.hatch))
	}
	if b := s.Badge; b != nil {
		p.Group(`class="s"`)
		p.Roundrect(b.X0, b.Y0, b.X1-b.X0, b.Y1-b.Y0, 4, 4, `class="bar" fill="none" stroke="currentColor"`)
		p.Gend()
	}
}

// WaitingBars are the patches and parts of bars that mean waiting, which is hatched wherever it is drawn.
func (s *Scene) WaitingBars() (boxes []Box) {
	for _, e := range s.Legend {
		if e.Paint == PaintWait {
			boxes = append(boxes, e.Box)
		}
	}
	for _, b := range s.Bars {
		if b.Paint == PaintWait {
			boxes = append(boxes, b.Box)
		}
	}
	return boxes
}

// AllTexts returns every text of the scene.
func (s *Scene) AllTexts() []Label {
	texts := slices.Clone(s.Texts)
	rows := slices.Clone(s.Merged)
	for _, l := range s.Lanes {
		rows = append(rows, l.Rows...)
	}
	for _, r := range rows {
		for _, b := range r.Boxes {
			if b.Label != nil {
				texts = append(texts, *b.Label)
			}
		}
	}
	if s.Badge != nil {
		texts = append(texts, s.Badge.Text)
	}
	return texts
}

// texts writes texts of one look together.
func (p *painter) texts() {
	type look struct {
		size   float64
		tone   Tone
		face   Face
		anchor Anchor
	}
	groups := make(map[look][]Label)
	var order []look
	for _, t := range p.scene.AllTexts() {
		k := look{t.Size, t.Tone, t.Face, t.Anchor}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], t)
	}
	for _, k := range order {
		class := string(k.tone) + [...]string{Sans: "", Bold: " bo", Mono: " mo"}[k.face] + [...]string{Left: "", Middle: " mi", Right: " ri"}[k.anchor]
		p.Group(`class="`+class+`"`, fmt.Sprintf(`font-size="%.1f"`, k.size))
		for _, t := range groups[k] {
			p.Text(t.X, t.Y, t.S)
		}
		p.Gend()
	}
}
