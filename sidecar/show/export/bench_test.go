package export

import (
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// BenchmarkExport writes a minute of 140,000 spans, 12 deep.
func BenchmarkExport(b *testing.B) {
	d := small()
	sp := report.Spans{First: report.Column{0, 0, 140_000, 140_000}}
	for i := range 140_000 {
		if i%10 == 0 {
			for deep := range 12 {
				parent := 0
				if deep > 0 {
					parent = len(d.Nodes.Parent) - 1
				}
				d.Nodes.Parent, d.Nodes.Frame = append(d.Nodes.Parent, int64(parent)), append(d.Nodes.Frame, int64((i/10+deep)%4))
			}
		}
		sp.GapUS, sp.LengthUS = append(sp.GapUS, 0), append(sp.LengthUS, 428)
		sp.Node, sp.State = append(sp.Node, int64(len(d.Nodes.Parent)-1-i%3)), append(sp.State, 0)
	}
	d.Spans, d.DurationNS, d.Devices[0].UnknownNS = sp, 60e9, 58e9
	r := check(b, d)
	for _, f := range []struct {
		name  string
		write func(*report.View) ([]byte, error)
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
