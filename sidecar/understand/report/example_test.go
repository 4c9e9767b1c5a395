package report_test

import (
	"fmt"
	"os"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

func ExampleRead() {
	text, err := os.ReadFile("testdata/cell.json")
	if err != nil {
		panic(err)
	}
	v, err := report.Read(text)
	if err != nil {
		panic(err)
	}
	fmt.Println(v.Headline.Text)
	for _, l := range v.Lines[:2] {
		fmt.Printf("%s:%d  %.2f s  %s\n", v.FileName(&l.File), l.Line, report.Seconds(l.SelfNS), v.Text(l.File, l.Line))
	}
	first := v.History(v.MainThread())[0]
	for _, frame := range v.Stack(first.Node, 10) {
		fmt.Println(v.FunctionName(v.FunctionOf(frame)))
	}
	// Output:
	// The GPU waited 0.24 of 0.40 s for data, loaded in the training's own thread in line 2.
	// Cell [7]:2  0.24 s  for x in loader:
	// Cell [7]:4  0.08 s  losses.append(loss.item())
	// Cell [7]
	// _SingleProcessDataLoaderIter._next_data
}
