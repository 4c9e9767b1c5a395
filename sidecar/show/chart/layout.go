package chart

import (
	"cmp"
	"fmt"
	"math"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/labels"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Geometry, in pixels.
const (
	gpuHeight    = 46.0
	trackHeight  = 24.0
	lowHeight    = 13.0 // of what is there, not done: memory
	linesHeight  = 18.0
	threadHeight = 10.0
	threadPitch  = 17.0
	streamHeight = 12.0
	streamPitch  = 17.0

	hittable = 4.0 // a box this wide can be pointed at
)

// detail is how much of a digest is drawn; less of it means fewer bytes.
type detail struct {
	level     int
	column    float64 // pixels per column of the flame chart
	curve     float64 // pixels per point of a track
	boxes     int     // of the flame chart
	titles    int     // tooltips on boxes
	depth     int     // rows of the flame chart
	threads   int
	streams   int
	tableRows int
}

var details = []detail{
	{0, 1, 2, 4000, 600, labels.MaxDepth, maxPoolLanes + maxThreads, maxStreams, 100},
	{1, 2, 3, 2000, 250, labels.MaxDepth, maxPoolLanes + maxThreads, maxStreams, 100},
	{2, 2, 4, 1100, 40, labels.MaxDepth, maxPoolLanes + maxThreads, maxStreams, 100},
	{3, 2, 4, 900, 0, 14, 6, 6, 100},
	{4, 4, 8, 400, 0, 10, 4, 4, 4},
	{5, 8, 16, 120, 0, 6, 2, 2, 2},
	{6, 16, 32, 60, 0, 4, 0, 0, 1},
}

var (
	fullDetail   = details[0]
	foldedDetail = details[3]
)

// coarser is the next lower detail; the lowest is its own.
func (dt detail) coarser() detail { return details[min(dt.level+1, len(details)-1)] }

// layouter fills a scene from top to bottom.
type layouter struct {
	scene.Sheet
	d      *digest
	dt     detail
	paints map[scene.Paint]bool
	hatch  bool // something is hatched
	off    bool // some of it had no CPU
}

// lay places everything.
func lay(d *digest, width float64, dt detail) *scene.Scene {
	l := &layouter{
		Sheet: scene.NewSheet(width, d.summary), d: d, dt: dt, paints: make(map[scene.Paint]bool),
	}
	l.Plot.X0, l.Plot.X1 = scene.GutterLeft, width-scene.GutterRight
	l.Head(d.title, d.finding, d.badge)
	l.axis()
	l.Plot.Y0 = l.Y
	for i := range d.tracks {
		l.track(&d.tracks[i])
	}
	l.cellLines()
	for _, f := range l.d.flames {
		l.flame(f)
	}
	l.streams()
	l.ranks()
	l.threads()
	l.Plot.Y1 = l.Y
	l.shades()
	l.merged()
	l.legend()
	l.tables()
	l.findings()
	l.Notes(d.notes)
	l.Height = math.Ceil(l.Y + 6)
	return l.Scene
}

// x is the position of a time.
func (l *layouter) x(t float64) float64 {
	return l.Plot.X0 + min(max(t/l.d.duration, 0), 1)*(l.Plot.X1-l.Plot.X0)
}

// lane adds a lane, with its names around the middle of its first height pixels. Of each
// source there are ways to say it.
func (l *layouter) lane(lane scene.Lane, sources [][]string, height float64) {
	lane.Names.Sources = l.names(lane.Names, sources, lane.Y0, height)
	l.Lanes = append(l.Lanes, lane)
}

// names puts a lane's name and sources to its left, its figures to its right, and returns
// how the sources are said.
func (l *layouter) names(names scene.LaneNames, sources [][]string, y, height float64) []string {
	room := l.Plot.X0 - 10 - 6
	x := l.Plot.X0 - 10
	subs := make([]string, 0, 2)
	for _, s := range sources {
		if line := firstThatFits(s, room, scene.SmallSize); line != "" {
			subs = append(subs, line)
		}
	}
	const pitch = 11.0
	top := y + height/2 + 4 - float64(len(subs))*pitch/2
	l.Text(x, top, scene.FitMiddle(names.Name, room, scene.TextSize, scene.Sans), scene.TextSize, scene.Plain, scene.Sans, scene.Right)
	for i, s := range subs {
		l.Text(x, top+float64(i+1)*pitch, s, scene.SmallSize, scene.Muted, scene.Sans, scene.Right)
	}
	x, room = l.Plot.X1+10, l.valueRoom()
	value, aside := scene.Fit(names.Value, room, scene.TextSize, scene.Sans), scene.Fit(names.Aside, room, scene.SmallSize, scene.Sans)
	top = y + height/2 + 4
	if aside != "" {
		top -= pitch / 2
	}
	l.Text(x, top, value, scene.TextSize, scene.Plain, scene.Sans, scene.Left)
	l.Text(x, top+pitch, aside, scene.SmallSize, scene.Muted, scene.Sans, scene.Left)
	return subs
}

// valueRoom is the width that a lane's figures have.
func (l *layouter) valueRoom() float64 { return l.Width - l.Plot.X1 - 10 - 6 }

// firstThatFits chooses among ways to say the same; the last one is cut if need
// be.
func firstThatFits(ways []string, room, size float64) string {
	for _, s := range ways {
		if s != "" && scene.WidthOf(s, size, scene.Sans) <= room {
			return s
		}
	}
	if len(ways) == 0 {
		return ""
	}
	return scene.Fit(ways[len(ways)-1], room, size, scene.Sans)
}

// track is a curve.
func (l *layouter) track(t *trackLane) {
	height := trackHeight
	if t.tall {
		height = gpuHeight
	}
	value := firstThatFits(t.values(), l.valueRoom(), scene.TextSize)
	names, sources := scene.LaneNames{Name: t.name, Value: value, Aside: t.aside}, t.sources
	if t.low {
		height, names, sources = lowHeight, scene.LaneNames{Name: t.name, Value: value}, nil
	}
	lane := scene.Lane{
		ID: t.id, Kind: scene.TrackLane, Index: t.index, Box: scene.Box{X0: l.Plot.X0, Y0: l.Y, X1: l.Plot.X1, Y1: l.Y + height}, About: t.about,
		Names: names, Bottom: t.base, Top: t.top,
	}
	lane.Areas = l.areas(t, lane.Box)
	if t.index < 0 {
		lane.Pool = t.points
	}
	for _, s := range t.idle {
		l.shade(s, l.Y, l.Y+height)
	}
	for _, p := range t.points {
		if math.IsNaN(p.Value) {
			l.gap(l.x(p.From), l.x(p.To), lane.Box)
		}
	}
	if len(t.marks) > 0 {
		lane.Rows = []scene.Row{l.marks(t.marks)}
	}
	l.lane(lane, sources, height)
	l.Y += height + scene.Gap
}

// Marks of a curve are so high, and at least so wide.
const markHeight, leastMark = 3.0, 3.0

// marks are boxes at a lane's upper edge, none over another.
func (l *layouter) marks(all []growthMark) scene.Row {
	row := scene.Row{Y0: l.Y, Y1: l.Y + markHeight}
	end := l.Plot.X0
	for _, m := range all {
		x0 := max(l.x(m.from), end)
		x1 := min(max(l.x(m.to), x0+leastMark), l.Plot.X1)
		if x0 >= x1 {
			continue
		}
		row.Boxes = append(row.Boxes, scene.Block{X0: x0, X1: x1, Paint: scene.PaintLineMuch, Title: m.about})
		end = x1
	}
	return row
}

// cellLines is the lane of the cell's own lines.
func (l *layouter) cellLines() {
	if l.d.lines == nil {
		return
	}
	lines := l.d.lines.lines
	n, step := l.columns(1)
	columns := raster(l.d.lines.spans, n, l.d.duration)
	lineAt := func(c int) int32 {
		if columns[c] < 0 {
			return 0
		}
		return l.d.lines.spans[columns[c]].node
	}
	row := scene.Row{Y0: l.Y, Y1: l.Y + linesHeight}
	for _, run := range runsOf(n, lineAt) {
		line := lines[run.key]
		b := scene.Block{X0: l.Plot.X0 + float64(run.from)*step, X1: l.Plot.X0 + float64(run.to)*step, Paint: line.paint}
		if l.dt.titles > 0 && b.X1-b.X0 >= 6 {
			b.Title = fmt.Sprintf("line %d  %s\n%s in all", line.line, line.text, words.Seconds(line.total))
		}
		b.Label = lineLabel(line, b, row)
		row.Boxes = append(row.Boxes, b)
	}
	l.lane(scene.Lane{
		ID: "lines", Kind: scene.LinesLane, Index: l.d.lines.index, Box: scene.Box{X0: l.Plot.X0, Y0: row.Y0, X1: l.Plot.X1, Y1: row.Y1}, Rows: []scene.Row{row},
		Names: scene.LaneNames{Name: cmp.Or(l.d.lines.file, "cell line")},
	}, nil, linesHeight)
	l.Y += linesHeight + scene.Gap
}

// lineLabel is a line's number, with its text where there is room.
func lineLabel(line cellLine, b scene.Block, row scene.Row) *scene.Label {
	number := fmt.Sprint(line.line)
	room := b.X1 - b.X0 - 8
	t := scene.Label{Y: row.Y1 - 5, Size: scene.LabelSize, Tone: scene.OnBox}
	if full := number + "  " + line.text; line.text != "" && scene.WidthOf(number, scene.LabelSize, scene.Mono)+14*scene.MonoAdvance*scene.LabelSize <= room {
		t.X, t.S, t.Face = b.X0+5, scene.Fit(full, room, scene.LabelSize, scene.Mono), scene.Mono
		return &t
	}
	if scene.WidthOf(number, scene.LabelSize, scene.Sans) > room+6 {
		return nil
	}
	t.X, t.S, t.Anchor = (b.X0+b.X1)/2, number, scene.Middle
	return &t
}

// columns returns how many columns of at least px pixels the plot has, and their
// width.
func (l *layouter) columns(px float64) (int, float64) {
	width := l.Plot.X1 - l.Plot.X0
	n := max(int(width/max(px, l.dt.column)), 1)
	return n, width / float64(n)
}

// threads are the folded ones.
func (l *layouter) threads() {
	shown := l.d.threads[:min(len(l.d.threads), l.dt.threads)]
	for i := range shown {
		t := &shown[i]
		if t.strip != nil {
			l.track(t.strip)
			continue
		}
		n, step := l.columns(1.5)
		row := scene.Row{Y0: l.Y, Y1: l.Y + threadHeight}
		columns := raster(t.spans, n, l.d.duration)
		stateAt := func(c int) int32 {
			if columns[c] < 0 {
				return 0
			}
			return int32(t.spans[columns[c]].state) + 1
		}
		for _, run := range runsOf(n, stateAt) {
			if p := statePaint(report.State(run.key - 1)); p != "" {
				row.Boxes = append(row.Boxes, scene.Block{X0: l.Plot.X0 + float64(run.from)*step, X1: l.Plot.X0 + float64(run.to)*step, Paint: p})
				l.paints[p] = true
			}
		}
		l.lane(scene.Lane{
			ID: "thread", Kind: scene.ThreadLane, Index: t.index, Box: scene.Box{X0: l.Plot.X0, Y0: row.Y0, X1: l.Plot.X1, Y1: row.Y1}, About: t.about, Base: true, Rows: []scene.Row{row},
			Names: scene.LaneNames{Name: t.name, Value: t.value},
		}, nil, threadHeight)
		l.Y += threadPitch
	}
	more := l.d.more
	if cut := len(l.d.threads) - len(shown); cut > 0 {
		more = "+ " + words.Plural(cut, "more active thread", "more active threads")
	}
	if more != "" {
		l.More = more
		l.Text(l.Plot.X0, l.Y+8, scene.Fit(more, l.Plot.X1-l.Plot.X0, scene.SmallSize, scene.Sans), scene.SmallSize, scene.Muted, scene.Sans, scene.Left)
		l.Y += 15
	}
}

// statePaint is the colour of a state in a folded thread; waiting is the ground.
func statePaint(s report.State) scene.Paint {
	switch s {
	case report.StatePython:
		return scene.PaintPython
	case report.StateNative:
		return scene.PaintNative
	case report.StateIO:
		return scene.PaintIO
	case report.StateGIL:
		return scene.PaintGIL
	}
	return ""
}

// shade colours a stretch of time.
func (l *layouter) shade(i timeline.Interval, y0, y1 float64) {
	x0, x1 := l.x(i.Start.Seconds()), l.x(i.End.Seconds())
	if n := len(l.Shades); n > 0 && l.Shades[n-1].Y0 == y0 && l.Shades[n-1].Y1 == y1 && x0-l.Shades[n-1].X1 < 0.5 {
		l.Shades[n-1].X1 = max(x1, l.Shades[n-1].X1)
		return
	}
	if x1-x0 >= 0.4 {
		l.Shades = append(l.Shades, scene.Box{X0: x0, Y0: y0, X1: x1, Y1: y1})
	}
}

// gap marks a stretch of a lane in which nothing is known; a white one would read as
// "did nothing".
func (l *layouter) gap(x0, x1 float64, of scene.Box) {
	if n := len(l.Gaps); n > 0 && l.Gaps[n-1].Y0 == of.Y0 && x0-l.Gaps[n-1].X1 < 0.5 {
		l.Gaps[n-1].X1 = max(x1, l.Gaps[n-1].X1)
		return
	}
	if x1-x0 >= 1 {
		l.Gaps = append(l.Gaps, scene.Box{X0: x0, Y0: of.Y0, X1: x1, Y1: of.Y1})
	}
}

func (l *layouter) shades() {
	for _, s := range l.d.idle {
		l.shade(s, l.Plot.Y0, l.Plot.Y1)
	}
}

// legend explains the colours that occur.
func (l *layouter) legend() {
	for _, t := range l.d.tables {
		for _, r := range t.rows {
			l.noteStates(r.states)
		}
	}
	l.Y += 12
	x := l.Plot.X0
	entry := func(p scene.Paint, name string) {
		w := 13 + scene.WidthOf(name, scene.SmallSize, scene.Sans) + 12
		if x+w > l.Width-scene.Margin {
			x, l.Y = l.Plot.X0, l.Y+14
		}
		l.Legend = append(l.Legend, scene.Entry{Bar: scene.Bar{Box: scene.Box{X0: x, Y0: l.Y - 8, X1: x + 9, Y1: l.Y + 1}, Paint: p}, Means: name})
		l.Text(x+13, l.Y, name, scene.SmallSize, scene.Muted, scene.Sans, scene.Left)
		x += w
	}
	for _, k := range kindNames {
		if l.paints[k.paint] {
			entry(k.paint, cmp.Or(l.d.kinds[k.paint], k.name, l.d.own))
		}
	}
	for _, k := range kernelKinds {
		if l.paints[k.paint] {
			entry(k.paint, k.name)
		}
	}
	if l.hatch {
		name := "waiting"
		if l.off {
			name = "waiting, or no free CPU"
		}
		entry(scene.PaintWait, name)
	}
	for _, level := range rankLevels {
		if l.paints[level.paint] {
			entry(level.paint, cmp.Or(l.d.kinds[level.paint], level.means))
		}
	}
	if l.paints[scene.PaintPython] {
		entry(scene.PaintPython, "running Python")
	}
	if l.paints[scene.PaintNative] {
		entry(scene.PaintNative, "running native code")
	}
	if l.paints[scene.PaintGIL] {
		entry(scene.PaintGIL, "waits for the GIL")
	}
	if len(l.Shades) > 0 {
		entry(scene.PaintIdle, "GPU idle")
	}
	if len(l.Gaps) > 0 || l.paints[scene.PaintGap] {
		entry(scene.PaintGap, "not known")
	}
	if x == l.Plot.X0 {
		l.Y -= 12
	}
}

// noteStates notes the colours of a bar that is divided by states.
func (l *layouter) noteStates(t report.StateTimes) {
	all := t.Sum()
	for s, ns := range t {
		if ns > 0 && float64(ns) >= labels.WorthState*float64(all) {
			l.paints[labels.StatePaints[s]] = true
			l.hatch = l.hatch || labels.StatePaints[s] == scene.PaintWait
			l.off = l.off || report.State(s) == report.StateOff
		}
	}
}
