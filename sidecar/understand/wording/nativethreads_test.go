package wording

import (
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

func TestBusyNativeThreads(t *testing.T) {
	for want, list := range map[string][]activity.NativeThreads{
		"native threads: 'feeder' used 6.0 s of CPU time while no Python thread computed in native code; it runs no Python, and its stacks are not read": {{Name: "feeder", Count: 1, CPU: 6e9}},
		"native threads: 2 threads 'polars' used 1.5 s of CPU time and 1 thread used 1.0 s of CPU time while no Python thread computed in native code; they run no Python, and their stacks are not read": {
			{Name: "polars", Count: 2, CPU: 15e8}, {Count: 1, CPU: 1e9},
		},
	} {
		if got := NativeThreads(list); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
