package activity

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Threads of a library are named that compute beside the program; what works for a native call of the program is that call.
func TestThreadsWithoutPythonThatAreBusyAreNamed(t *testing.T) {
	const s = timeline.Nanos(time.Second)
	b, line := aProgram()
	main := b.Thread(timeline.Thread{PID: 7, NativeID: 7, Main: true, OnCPU: -1})
	b.Set(main, 0, line(3), timeline.StateNative, false)
	b.Set(main, 4*s, line(4), timeline.StateWaiting, false)
	busy := func(tid int, name string, from, to timeline.Nanos, cores float64) {
		w := b.Track(timeline.TrackSpec{ID: fmt.Sprintf("thread.%d.cpu", tid), Name: name, Kind: timeline.KindRate, Unit: "cores", PID: 7, Device: -1})
		w.AddWindow(from, to, cores)
	}
	busy(7, "", 0, 10*s, 0.5)            // it runs Python
	busy(8, "", 0, 4*s, 1)               // of BLAS
	busy(9, "feeder", 0, 10*s, 1)        // 4 s of it beside the native call
	busy(10, "polars-0", 5*s, 6*s, 0.75) // two of a pool
	busy(11, "polars-1", 5*s, 6*s, 0.75)
	busy(12, "zmq-io", 0, 10*s, 0.05) // too little
	want := []NativeThreads{{"feeder", 1, 6 * s}, {"polars", 2, s + s/2}}
	if got := BusyNative(b.Snapshot(10 * s)); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
