package timeline_test

import (
	"fmt"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// A collector reports changes; the Builder keeps spans.
func ExampleBuilder() {
	const ms = timeline.Nanos(time.Millisecond)
	b := timeline.NewBuilder(timeline.Options{Interval: time.Millisecond})
	main := b.Thread(timeline.Thread{PID: 1, NativeID: 1, Main: true})
	load := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "load", File: "train.py", Line: 3}))
	b.Set(main, 0, load, timeline.StateIO, false)
	b.Set(main, 30*ms, load, timeline.StatePython, false)
	rec := b.Snapshot(50 * ms)
	for _, s := range rec.Threads[main].Spans {
		fmt.Println(s.Start.Duration(), s.End.Duration(), s.State, rec.Frames[rec.Nodes[s.Node].Frame].Function)
	}
	// Output:
	// 0s 30ms io load
	// 30ms 50ms python load
}
