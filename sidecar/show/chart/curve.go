package chart

import (
	"math"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
)

// areas draws a track's points into a lane: one area per stretch without
// unknown values. Each value holds from the point before it on, and the last one to the
// end. Points closer than the detail allows are merged: a rate's to their mean, a gauge's
// to their largest.
func (l *layouter) areas(t *trackLane, lane scene.Box) []scene.Area {
	points := thin(t.points, l.d.duration*l.dt.curve/(l.Plot.X1-l.Plot.X0), !t.peaks)
	height := lane.Y1 - lane.Y0
	y := func(v float64) float64 { return lane.Y1 - min(max(v-t.base, 0)/(t.top-t.base), 1)*height }
	var areas []scene.Area
	var a *scene.Area
	for _, p := range points {
		if math.IsNaN(p.Value) {
			a = nil
			continue
		}
		if a == nil || l.x(p.From)-a.X[len(a.X)-1] > 0.5 {
			areas = append(areas, scene.Area{Paint: t.paint, X: []float64{l.x(p.From)}})
			a = &areas[len(areas)-1]
		}
		a.X = append(a.X, l.x(p.To))
		a.Y = append(a.Y, y(p.Value))
	}
	return areas
}

// thin merges points until each covers at least step seconds.
func thin(points []scene.Point, step float64, mean bool) []scene.Point {
	var out []scene.Point
	for _, p := range points {
		n := len(out)
		if n == 0 || p.To-out[n-1].From > step || math.IsNaN(p.Value) != math.IsNaN(out[n-1].Value) || p.From > out[n-1].To {
			out = append(out, p)
			continue
		}
		last := &out[n-1]
		if mean {
			if all := p.To - last.From; all > 0 {
				last.Value = (last.Value*(last.To-last.From) + p.Value*(p.To-p.From)) / all
			}
		} else {
			last.Value = max(last.Value, p.Value)
		}
		last.To = p.To
	}
	if n, last := len(out), len(points)-1; !mean && n > 0 && !math.IsNaN(points[last].Value) {
		out[n-1].Value = points[last].Value
	}
	return out
}
