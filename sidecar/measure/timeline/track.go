package timeline

import (
	"math"
	"time"
)

const defaultMaxPoints = 8192

// trackData is a track being written; the Builder's lock guards it.
type trackData struct {
	Track
	last Nanos // end of the last point, where the next rate begins
}

func newTrackData(spec TrackSpec) *trackData {
	if spec.MaxPoints <= 1 {
		spec.MaxPoints = defaultMaxPoints
	}
	return &trackData{Track: Track{TrackSpec: spec, Peak: math.NaN()}}
}

// add appends a point. Points out of order or empty are dropped: a source whose
// time went backwards has said nothing new.
func (t *trackData) add(p Point) {
	if p.At < t.last || (p.At == t.last && len(t.Points) > 0) {
		return
	}
	if t.Kind == KindRate {
		p.From = max(p.From, t.last)
		if p.From >= p.At {
			return
		}
	} else {
		p.From = p.At
	}
	if !math.IsNaN(p.Value) && !(p.Value <= t.Peak) {
		t.Peak = p.Value
	}
	t.last = p.At
	t.Points = append(t.Points, p)
	if len(t.Points) >= t.MaxPoints {
		t.thin()
	}
}

// thin halves the number of points. Known and unknown stretches stay apart as
// long as that helps; if it does not, a pair with an unknown half is unknown.
func (t *trackData) thin() {
	t.Points = halve(t.Points, t.Kind)
	if n := len(t.Points); n > 1 {
		t.Step = time.Duration((t.Points[n-1].At - t.Points[0].At) / Nanos(n-1))
	}
}

func halve(points []Point, kind string) []Point {
	before := len(points)
	points = mergePairs(points, kind, false)
	if len(points) > before*3/4 {
		points = mergePairs(points, kind, true)
	}
	return points
}

// ThinPoints joins neighbouring points, as a Builder does when it has too many, until
// at most so many are left; most is at least 2. The given points stay as they are.
func ThinPoints(points []Point, kind string, most int) []Point {
	if len(points) <= most {
		return points
	}
	points = append([]Point(nil), points...)
	for len(points) > max(most, 2) {
		points = halve(points, kind)
	}
	return points
}

func mergePairs(points []Point, kind string, force bool) []Point {
	out := points[:0]
	for i := 0; i < len(points); i++ {
		p := points[i]
		if i+1 < len(points) {
			q := points[i+1]
			adjacent := kind == KindGauge || p.At == q.From
			sameKnown := math.IsNaN(p.Value) == math.IsNaN(q.Value)
			if force || (adjacent && sameKnown) {
				out = append(out, merge(p, q, kind))
				i++
				continue
			}
		}
		out = append(out, p)
	}
	return out
}

// merge joins two neighbours: a rate to its mean over both windows, a gauge to
// the larger value, so that a peak of memory survives any thinning.
func merge(p, q Point, kind string) Point {
	if kind == KindGauge {
		if p.Value > q.Value || math.IsNaN(q.Value) {
			q.Value = p.Value
		}
		return q
	}
	a, b := float64(p.At-p.From), float64(q.At-q.From)
	return Point{From: p.From, At: q.At, Value: (p.Value*a + q.Value*b) / (a + b)}
}
