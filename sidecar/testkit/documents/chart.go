package documents

import "github.com/omni-perf/omni-perf/sidecar/show/viewer"

// Chart and Lane are the static picture's geometry, as the viewer reads it.
type (
	Chart = viewer.Chart
	Lane  = viewer.Lane
)

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

// lay places the lanes below each other.
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
		case l.Paint == "gpu":
			height, pitch = gpuHeight, gpuHeight+gap
		case l.Kind == "lines":
			height, pitch = linesHeight, linesHeight+gap
		case l.Kind == "flame":
			height = float64(l.Rows) * rowHeight
			pitch = height + gap
		case l.Kind == "thread":
			height, pitch = threadHeight, threadPitch
		case l.Kind == "ranks":
			height = float64(len(l.Cells.First)-1) * 5
			pitch = height + gap
		case l.Kind == "stream":
			height, pitch = streamHeight, threadPitch
		}
		l.Y0, l.Y1 = y, y+height
		y += pitch
	}
	c.Plot[3] = max(y, c.Plot[1]+1)
	return c
}
