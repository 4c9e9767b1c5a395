package report_test

import (
	"fmt"
	"os"

	"github.com/omni-perf/omni-perf/sidecar/report"
)

// A saved report is checked once; its view answers without further checks.
func ExampleRead() {
	text, err := os.ReadFile("testdata/script.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	view, err := report.Read(text)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(view.Target().Kind, view.Target().Name)
	fmt.Println(view.Headline.Text)
	// Output:
	// script script.py
	// The GPU waited 0.24 of 0.40 s for data, loaded in the training's own thread in script.py:2.
}

func ExampleRead_older() {
	_, err := report.Read([]byte(`{"schema_version": 1}`))
	fmt.Println(err)
	// Output: it was recorded by an older version of omni_perf: record again
}
