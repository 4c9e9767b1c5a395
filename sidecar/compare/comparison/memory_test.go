package comparison_test

import (
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/testkit/twosides"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/significance"
)

const mib = 1 << 20

// peaks gives runs a largest resident memory in MiB, each exact or at least.
func peaks(t *testing.T, exact bool, mibs ...int64) []*report.View {
	t.Helper()
	views := make([]*report.View, 0, len(mibs))
	for i, n := range mibs {
		v := record(t, twosides.Training(), uint64(i+1))[0]
		bytes := n * mib
		if p := &v.Processes[v.Program()]; exact {
			p.PeakMemoryBytes, p.PeakAtLeastBytes = &bytes, nil
		} else {
			p.PeakMemoryBytes, p.PeakAtLeastBytes = nil, &bytes
		}
		views = append(views, v)
	}
	return views
}

func TestThePeakOfMemory(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, after []*report.View
		change        int64 // MiB
		is            significance.Verdict
	}{
		{"twice as much", peaks(t, true, 120), peaks(t, true, 240), 120, significance.More},
		{"half of it", peaks(t, true, 240), peaks(t, true, 120), -120, significance.Less},
		{"what runs vary by", peaks(t, true, 240), peaks(t, true, 245), 5, significance.WithinNoise},
		{"a little program, as exact as pages are counted", peaks(t, true, 10), peaks(t, true, 12), 2, significance.WithinNoise},
		{"the largest reading before may be too low", peaks(t, false, 200), peaks(t, true, 225), 25, significance.WithinNoise},
		{"many runs that hardly vary", peaks(t, true, 200, 200, 201), peaks(t, true, 206, 206, 205), 5, significance.More},
	} {
		m := compare(t, c.before, c.after).Memory
		if m == nil || m.Verdict != c.is || (m.ChangeBytes+mib/2)/mib != c.change && m.ChangeBytes/mib != c.change {
			t.Errorf("%s: %+v, want %q by %d MiB", c.name, m, c.is, c.change)
		}
	}
	if m := compare(t, record(t, twosides.Training(), 1), peaks(t, true, 100)).Memory; m != nil {
		t.Errorf("of a run whose memory nobody knows: %+v", m)
	}
}
