package synthetic

import "github.com/omni-perf/omni-perf/sidecar/chart/viewer"

// Chart is the static picture's geometry and words, as the viewer takes it over:
// the document's "chart". Everything is in the picture's pixels, so that nothing
// is laid out twice: what the viewer paints unzoomed stands where the picture
// has it.
type Chart struct {
	Width   float64     `json:"width"`
	Plot    [4]float64  `json:"plot"`  // where time runs: x0, y0, x1, y1
	Axis    float64     `json:"axis"`  // baseline of the ticks' labels
	Strip   float64     `json:"strip"` // upper edge of the overview, below the finding
	Pitch   float64     `json:"pitch"` // of a flame chart's rows
	Folded  bool        `json:"folded"`
	Title   [][3]string `json:"title"`   // text, tone, face ("", "b" or "code")
	Finding [][3]string `json:"finding"` // the same
	Legend  [][2]string `json:"legend"`  // paint, name
	Notes   []string    `json:"notes"`
	Threads []string    `json:"threads"` // names, by the document's list
	States  []string    `json:"states"`  // words for what threads do, by State
	Help    string      `json:"help"`    // viewer.Help
	Lanes   []Lane      `json:"lanes"`
}

// Lane is one stripe over the time axis.
type Lane struct {
	Kind    string   `json:"kind"`            // "track", "lines", "flame", "thread" or "stream"
	Index   int      `json:"index"`           // of the track, thread or stream; of the file of lines, -1 for all own files
	Y0      float64  `json:"y0"`              //
	Y1      float64  `json:"y1"`              //
	Rows    int      `json:"rows,omitempty"`  // of a flame chart; 0 is a strip
	Limit   int      `json:"limit,omitempty"` // of its rows, where the last one tells what is left out
	By      string   `json:"by,omitempty"`    // "code": a strip shows whose code ran, not the state
	Paint   string   `json:"paint,omitempty"` // of a track
	Top     float64  `json:"top,omitempty"`   // of a track: value at the upper edge
	Name    string   `json:"name"`
	Sources []string `json:"sources,omitempty"`
	Value   string   `json:"value,omitempty"`
	Aside   string   `json:"aside,omitempty"`

	tall bool
}

// Geometry of chart/layout.go, in pixels.
const (
	gutterLeft, gutterRight = 122.0, 104.0
	gap                     = 8.0
	gpuHeight               = 46.0
	trackHeight             = 24.0
	linesHeight             = 18.0
	rowHeight               = 17.0
	threadHeight            = 10.0
	threadPitch             = 17.0
	streamHeight            = 12.0
)

// lay stands the lanes below each other.
func lay(width float64, c *Chart) *Chart {
	c.Width, c.Pitch = width, rowHeight
	c.States, c.Help = stateWords, viewer.Help
	c.Axis, c.Strip = 85, 61
	c.Plot[0], c.Plot[2] = gutterLeft, width-gutterRight
	y := c.Axis + 12
	c.Plot[1] = y
	for i := range c.Lanes {
		l := &c.Lanes[i]
		height, pitch := trackHeight, trackHeight+gap
		switch {
		case l.tall:
			height, pitch = gpuHeight, gpuHeight+gap
		case l.Kind == "lines":
			height, pitch = linesHeight, linesHeight+gap
		case l.Kind == "flame":
			height = float64(l.Rows) * rowHeight
			pitch = height + gap
		case l.Kind == "thread":
			height, pitch = threadHeight, threadPitch
		case l.Kind == "stream":
			height, pitch = streamHeight, threadPitch
		}
		l.Y0, l.Y1 = y, y+height
		y += pitch
	}
	c.Plot[3] = max(y, c.Plot[1]+1)
	return c
}
