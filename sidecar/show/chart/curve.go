package chart

import "math"

// areas draws a track's points into a lane: one area per stretch without
// unknown values. Each value holds from the point before it on, and the last one to the
// end. Points closer than the detail allows are merged: a rate's to their mean, a gauge's
// to their largest.
func (l *layouter) areas(t *trackLane, lane Box) []Area {
	points := thin(t.points, l.d.duration*l.dt.curve/(l.Plot.X1-l.Plot.X0), !t.peaks)
	height := lane.Y1 - lane.Y0
	y := func(v float64) float64 { return lane.Y1 - min(max(v-t.base, 0)/(t.top-t.base), 1)*height }
	var areas []Area
	var a *Area
	for _, p := range points {
		if math.IsNaN(p.value) {
			a = nil
			continue
		}
		if a == nil || l.x(p.from)-a.X[len(a.X)-1] > 0.5 {
			areas = append(areas, Area{Paint: t.paint, X: []float64{l.x(p.from)}})
			a = &areas[len(areas)-1]
		}
		a.X = append(a.X, l.x(p.to))
		a.Y = append(a.Y, y(p.value))
	}
	return areas
}

// thin merges points until each covers at least step seconds.
func thin(points []point, step float64, mean bool) []point {
	var out []point
	for _, p := range points {
		n := len(out)
		if n == 0 || p.to-out[n-1].from > step || math.IsNaN(p.value) != math.IsNaN(out[n-1].value) || p.from > out[n-1].to {
			out = append(out, p)
			continue
		}
		last := &out[n-1]
		if mean {
			if all := p.to - last.from; all > 0 {
				last.value = (last.value*(last.to-last.from) + p.value*(p.to-p.from)) / all
			}
		} else {
			last.value = max(last.value, p.value)
		}
		last.to = p.to
	}
	if n, last := len(out), len(points)-1; !mean && n > 0 && !math.IsNaN(points[last].value) {
		out[n-1].value = points[last].value
	}
	return out
}
