package usercode

import (
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// A minute of deep code at 1 kHz: it is on the way from a cell's end to its chart.
func BenchmarkStrip(b *testing.B) {
	var stacks [][]timeline.Frame
	for i := range 60_000 {
		deep := inCell(cell(1 + i%200))
		for d := range 20 {
			deep = append(deep, frame("f", site+"torch/nn/modules/module.py", 1+(i/7+d*i)%400))
		}
		stacks = append(stacks, deep)
	}
	rec := record("x = 1\n", stacks...)
	b.Logf("%d nodes, %d frames, %d spans", len(rec.Nodes), len(rec.Frames), len(rec.Threads[0].Spans))
	for b.Loop() {
		Strip(rec)
	}
}
