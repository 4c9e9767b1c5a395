package chart

import (
	"math"
	"slices"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
)

// Memory is there, not done: steps of half a lane's height, whose last one is the last value that was read.
func TestAGaugeIsLowStepsThatEndAtItsLastValue(t *testing.T) {
	var points []scene.Point
	for i := range 1000 {
		points = append(points, scene.Point{From: float64(i) / 100, To: float64(i+1) / 100, Value: 10})
	}
	points[500].Value, points[999].Value = 40, 20
	l := &layouter{Sheet: scene.Sheet{Scene: &scene.Scene{Width: 200, Plot: scene.Box{X0: 0, Y0: 0, X1: 100, Y1: 100}}}, d: &digest{duration: 10}, dt: fullDetail}
	lane := &trackLane{id: "rss", name: "RSS", sources: [][]string{{"/proc"}}, value: "40 B", aside: "peak", low: true, peaks: true, top: 40, points: points}
	l.track(lane)
	got := l.Lanes[0]
	if height := got.Y1 - got.Y0; height > trackHeight/2+1 {
		t.Errorf("it is %g high, a lane %g", height, trackHeight)
	}
	if len(got.Names.Sources) != 0 || got.Names.Aside != "" || got.Names.Value != "40 B" {
		t.Errorf("beside it there is more than one line: %+v", got.Names)
	}
	y := got.Areas[0].Y
	if last := y[len(y)-1]; math.Abs(last-(got.Y0+got.Y1)/2) > 1e-9 {
		t.Errorf("it ends at %g of %g to %g, want half of its height", last, got.Y0, got.Y1)
	}
	if slices.Min(y) != got.Y0 {
		t.Errorf("its peak is lost")
	}
}

func TestAGaugesScaleShowsItsChange(t *testing.T) {
	for _, test := range []struct {
		name      string
		values    []float64
		base, top float64
	}{
		{"from little", []float64{10, 100}, 0, 110},
		{"a rise that would vanish", []float64{900, 1000}, 890, 1010},
		{"unknown is not the least", []float64{math.NaN(), 900, 1000}, 890, 1010},
		{"it hardly changes", []float64{999, 1000}, 0, 1100},
	} {
		var points []scene.Point
		for i, v := range test.values {
			points = append(points, scene.Point{From: float64(i), To: float64(i + 1), Value: v})
		}
		peak := test.values[len(test.values)-1]
		if base, top := scaleOf(leastOf(points, peak), peak, peak*1.1); math.Abs(base-test.base) > 1e-9 || math.Abs(top-test.top) > 1e-9 {
			t.Errorf("%s: from %g to %g, want %g to %g", test.name, base, top, test.base, test.top)
		}
	}
	lane := trackLane{value: "14.6 MiB", base: 1, extent: "14.2 – 14.7 MiB"}
	if got, want := lane.brief(), "14.2 – 14.7 MiB"; got != want {
		t.Errorf("beside it: %q, want %q", got, want)
	}
}

// A figure for which there is no room is written shorter; its unit is not cut off.
func TestFiguresBesideALaneKeepTheirUnit(t *testing.T) {
	l := layouter{Sheet: scene.NewSheet(1120, "")}
	l.Plot.X1 = l.Width - scene.GutterRight
	gauge := trackLane{low: true, value: "73.4 MiB", base: 1, extent: "71.2 – 73.4 MiB"}
	pace := trackLane{value: "4.6 ksamples/s", short: "4,585/s"}
	for _, c := range []struct {
		lane trackLane
		want string
	}{{gauge, "73.4 MiB"}, {pace, "4,585/s"}, {trackLane{low: true, value: "202 MiB", base: 1, extent: "196 – 202 MiB"}, "196 – 202 MiB"}} {
		if got := firstThatFits(c.lane.values(), l.valueRoom(), scene.TextSize); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
