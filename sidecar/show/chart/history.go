package chart

import (
	"math"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// span is a stretch of one lane, in seconds: end > start. Of a thread, node is the
// report's, and state is known.
type span struct {
	start, end float64
	node       int32
	state      report.State
}

// historiesOf returns each thread's spans.
func historiesOf(r *report.View) [][]span {
	all := make([][]span, len(r.Threads))
	for t := range all {
		history := r.History(t)
		all[t] = make([]span, len(history))
		for i, s := range history {
			all[t][i] = span{report.Seconds(s.Start), report.Seconds(s.End), s.Node, s.State}
		}
	}
	return all
}

// durationOf is the report's duration in seconds; always positive.
func durationOf(r *report.View) float64 { return max(report.Seconds(r.DurationNS), 1e-6) }

// intervalsOf are intervals of the report; a damaged one has none that end before they start.
func intervalsOf(list []report.Interval) (out []timeline.Interval) {
	for _, iv := range list {
		if i := timeline.Between(timeline.Nanos(iv[0]), timeline.Nanos(iv[1])); i.Nanos() > 0 {
			out = append(out, i)
		}
	}
	return out
}

// figure is a number of the report, NaN where it is not known.
func figure(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}
