package chart_test

import (
	"bytes"
	"fmt"
	"os"

	"github.com/omni-perf/omni-perf/sidecar/show/chart"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

func ExampleSVG() {
	text, err := os.ReadFile("../../understand/report/testdata/cell.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	view, err := report.Read(text)
	if err != nil {
		fmt.Println(err)
		return
	}
	picture, err := chart.SVG(view, scene.Options{Theme: "dark"})
	fmt.Println(bytes.HasPrefix(picture, []byte("<?xml")), err)
	// Output: true <nil>
}
