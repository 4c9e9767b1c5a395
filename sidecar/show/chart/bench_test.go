package chart

import (
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/testkit/sketch"
)

// BenchmarkHTML is the time between a cell's end and its chart: laying out
// and drawing a minute with 140,000 spans.
func BenchmarkHTML(b *testing.B) {
	r := sketch.AMinute()
	b.ResetTimer()
	for range b.N {
		if _, err := HTML(r, scene.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFolded(b *testing.B) {
	r := sketch.AMinute()
	b.ResetTimer()
	for range b.N {
		if _, err := Folded(r, scene.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
