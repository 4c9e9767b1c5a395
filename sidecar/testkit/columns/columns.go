// Package columns judges whether the columns of a trace fit together, whatever was in its file.
package columns

import (
	"slices"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
)

// Check fails the test of a trace whose columns have different lengths, or that has a negative duration.
func Check(t *testing.T, trace *kineto.Trace) {
	t.Helper()
	if d := trace.Device; len(d.Dur) != d.Len() || len(d.Thread) != d.Len() || len(d.Bytes) != d.Len() || len(d.GBps) != d.Len() {
		t.Errorf("columns of different lengths: %+v", d)
	}
	for _, dur := range slices.Concat(trace.Device.Dur, trace.Calls.Dur, trace.Ops.Dur, trace.Python.Dur) {
		if dur < 0 {
			t.Errorf("a duration of %d", dur)
		}
	}
}
