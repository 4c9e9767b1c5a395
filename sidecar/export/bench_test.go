package export

import (
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/report"
)

// BenchmarkExport writes a minute of 140,000 spans, 12 deep.
func BenchmarkExport(b *testing.B) {
	r := small()
	sp := report.Spans{}
	for i := range 140_000 {
		if i%10 == 0 {
			for d := range 12 {
				parent := 0
				if d > 0 {
					parent = len(r.Stacks.Nodes) - 1
				}
				r.Stacks.Nodes = append(r.Stacks.Nodes, report.Node{Parent: parent, Frame: (i/10 + d) % 4})
			}
		}
		sp.Thread, sp.Node, sp.State = append(sp.Thread, 1), append(sp.Node, len(r.Stacks.Nodes)-1-i%3), append(sp.State, "python")
		sp.StartS, sp.EndS = append(sp.StartS, float64(i)*60/140_000), append(sp.EndS, float64(i+1)*60/140_000)
	}
	r.DurationS, r.Stacks.Spans = 60, sp
	for _, f := range []struct {
		name  string
		write func(*report.Report) ([]byte, error)
	}{{"speedscope", Speedscope}, {"collapsed", Collapsed}, {"trace", ChromeTrace}, {"pprof", Pprof}} {
		b.Run(f.name, func(b *testing.B) {
			for range b.N {
				out, err := f.write(r)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(len(out)), "B")
			}
		})
	}
}
