package export_test

import (
	"fmt"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/show/export"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// A recording becomes a report, a report a file for another viewer.
func ExampleCollapsed() {
	b := timeline.NewBuilder(timeline.Options{Interval: time.Millisecond})
	b.Describe(func(r *timeline.Recording) { r.Target.PID = 1 })
	main := b.Thread(timeline.Thread{PID: 1, NativeID: 1, Name: "MainThread", Main: true})
	fit := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "fit", File: "train.py", Line: 9, FirstLine: 8}))
	step := b.Child(fit, b.Frame(timeline.Frame{Function: "step", File: "train.py", Line: 3, FirstLine: 2}))
	b.Set(main, 0, step, timeline.StatePython, false)
	view, err := report.Build(b.Snapshot(timeline.Nanos(2*time.Second)), nil, report.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := export.Collapsed(view)
	fmt.Printf("%s%v\n", text, err)
	// Output:
	// MainThread (1);fit (train.py:8);step (train.py:2) 2000000
	// <nil>
}
