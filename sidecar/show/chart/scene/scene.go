// Package scene is a picture laid out, and how it is written as SVG.
//
// In flow boxes, curves and texts in pixels, with what they mean (a Paint, a Tone); out flows SVG. A Sheet
// fills a Scene with text from top to bottom. The package knows the widths of fonts and the colours of both
// themes, and nothing of reports.
package scene

// Scene is a chart laid out: everything in pixels, nothing left to decide. It
// says what a thing is (a Paint, a Tone), not how that looks.
type Scene struct {
	Width, Height float64
	Summary       string // one sentence for those who cannot see
	Plot          Box    // where time runs: X0 is the start, X1 the end
	Badge         *Badge
	Bullet        *Dot // the finding's mark
	Gridlines     []float64
	Shades        []Box
	More          string // about the threads that have no lane
	Gaps          []Box  // of lanes: nothing is known of what happened
	Steps         []float64
	StepsY        float64
	AxisY         float64   // baseline of the ticks' labels
	Rules         []float64 // full-width lines at these y
	Lanes         []Lane
	Merged        []Row // of a flame graph below the lanes: not over time
	Bars          []Bar
	Legend        []Entry
	Texts         []Label
}

// Dot is a point.
type Dot struct{ X, Y float64 }

// Box is an area.
type Box struct{ X0, Y0, X1, Y1 float64 }

// Anchor is which end of a text is at its X.
type Anchor uint8

// The anchors.
const (
	Left Anchor = iota
	Middle
	Right
)

// Label is a text on the baseline Y.
type Label struct {
	X, Y   float64
	S      string
	Size   float64
	Tone   Tone
	Anchor Anchor
	Face   Face
}

// Bounds returns an area the text does not leave, whatever the font.
func (t Label) Bounds() Box {
	w := WidthOf(t.S, t.Size, t.Face)
	x := t.X
	switch t.Anchor {
	case Middle:
		x -= w / 2
	case Right:
		x -= w
	}
	return Box{x, t.Y - 0.8*t.Size, x + w, t.Y + 0.25*t.Size}
}

// Badge is a framed text.
type Badge struct {
	Box
	Text Label
}

// Lane is one stripe over the time axis.
type Lane struct {
	ID          string // of the track, or "lines", "flame", "stream", "ranks", "thread"
	Kind        LaneKind
	Index       int // of the track, file, thread or stream in the report
	Box             // within the plot
	Names       LaneNames
	Bottom, Top float64 // of a track: the values at the lower and the upper edge
	Limit       int     // of Rows, where the last one shows what is left out; else 0
	About       string  // tooltip
	Areas       []Area  // tracks
	Pool        []Point // of a pool's lane, which no track of the report has: its members computing
	Base        bool    // a faint ground, where nothing ran
	Rows        []Row   // everything else
}

// LaneKind is what a lane shows. It is also the viewer's word.
type LaneKind string

// The kinds of lanes.
const (
	TrackLane  LaneKind = "track"
	LinesLane  LaneKind = "lines"
	FlameLane  LaneKind = "flame"
	ThreadLane LaneKind = "thread"
	StreamLane LaneKind = "stream"
	RanksLane  LaneKind = "ranks"
)

// LaneNames are the texts beside a lane: its name and sources to the left,
// figures to the right.
type LaneNames struct {
	Name         string
	Sources      []string
	Value, Aside string
}

// Area is steps filled down to the lane's lower edge, without gaps: Y[i] holds from
// X[i] to X[i+1]. len(X) is len(Y) plus one.
type Area struct {
	Paint Paint
	X, Y  []float64
}

// Row is boxes of one height, in order of X, none over another.
type Row struct {
	Y0, Y1 float64
	Boxes  []Block
	Hatch  []Hatch // over the boxes: waited there
}

// Block is one box of a row.
type Block struct {
	X0, X1  float64
	Paint   Paint
	Several bool // it stands for several calls, most of which are in its paint
	Label   *Label
	Title   string // tooltip
}

// Hatch marks the part of a row in which the thread waited.
type Hatch struct{ X0, X1 float64 }

// Bar is a bar of a table or a patch of the legend.
type Bar struct {
	Box
	Paint Paint
}

// Entry is a patch of the legend and what it means, which is one of Texts, too.
type Entry struct {
	Bar
	Means string
}

// Point holds over (from, to]; value NaN is unknown.
type Point struct{ From, To, Value float64 }
