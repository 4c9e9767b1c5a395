package chart

import (
	"math"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// axis sets the ticks and the steps.
func (l *layouter) axis() {
	l.Y += 8
	l.AxisY = l.Y
	step, label := tickStep(l.d.duration, (l.Plot.X1-l.Plot.X0)/60)
	for i := 0; float64(i)*step <= l.d.duration*(1+1e-9); i++ {
		x := l.x(float64(i) * step)
		text := label(float64(i) * step)
		if w := scene.WidthOf(text, scene.LabelSize, scene.Sans) / 2; x-w > 0 && x+w < l.Width-scene.Margin {
			l.Text(x, l.Y, text, scene.LabelSize, scene.Muted, scene.Sans, scene.Middle)
		}
		l.Gridlines = append(l.Gridlines, x)
	}
	l.Y += 5
	if s := l.d.steps; s.count > 1 {
		l.Text(l.Plot.X0-26, l.Y-5, scene.Fit(words.Plural(s.count, "step", "steps"), scene.GutterLeft-34, scene.SmallSize, scene.Sans), scene.SmallSize, scene.Muted, scene.Sans, scene.Right)
		last := math.Inf(-1)
		for _, t := range s.ends {
			if x := l.x(t); x-last >= 2.5 {
				l.Steps = append(l.Steps, x)
				last = x
			}
		}
	}
	l.StepsY = l.Y
	l.Y += 7
}
