package mergereports

import (
	"encoding/json"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// Whatever can be read can be merged, with itself too, or is refused in words.
func FuzzMerge(f *testing.F) {
	for _, r := range []*report.View{rankedReport(f, 0, 1, 4, "boot", true), rankedReport(f, 1, 2, 9, "boot", false)} {
		text, err := json.Marshal(r.Document)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, text)
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		first, err := report.Read(a)
		if err != nil {
			return
		}
		second, err := report.Read(b)
		if err != nil {
			return
		}
		if merged, err := Merge([]*report.View{first, second}, names); err == nil && merged.DurationNS < first.DurationNS {
			t.Errorf("it lasts %d ns, a part of it %d", merged.DurationNS, first.DurationNS)
		}
	})
}
