package page

import (
	"fmt"
	"html/template"

	"github.com/omni-perf/omni-perf/sidecar/show/chart"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/closeup"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// pageStep is one step from near, and its own figures.
type pageStep struct {
	Tab     string        // what it is called among the others
	Figure  template.HTML // the picture and its data, made by package chart
	Figures []figure
	Charts  []pageChart
}

// figure is one number of a step.
type figure struct{ Name, Value string }

func (r *Result) pageStep(c *closeup.Closeup) (pageStep, *chart.Figure, error) {
	f, err := chart.Embed(c.Report, r.caption(c), scene.Options{})
	if err != nil {
		return pageStep{}, nil, err
	}
	return pageStep{
		Tab: r.stepName(c) + chosenBecause(c, r.severalRanks()), Figure: template.HTML(f.HTML), Figures: stepFigures(c), Charts: forTemplate(r.stepCharts(c)),
	}, f, nil
}

func (r *Result) fragmentStep(c *closeup.Closeup) (pageStep, error) {
	html, err := chart.CaptionedHTML(c.Report, r.caption(c), scene.Options{})
	if err != nil {
		return pageStep{}, err
	}
	return pageStep{Figure: template.HTML(html), Figures: stepFigures(c)}, nil
}

// caption is the text above a step's picture.
func (r *Result) caption(c *closeup.Closeup) *chart.Caption {
	cap := &chart.Caption{Title: r.stepName(c), Facts: []chart.Fact{{Text: words.Seconds(report.Seconds(c.Length)), Tone: scene.Muted}}}
	if busy, n := busyShare(c.Report); n > 0 {
		each := ""
		if n > 1 {
			each = " on average"
		}
		cap.Facts = append(cap.Facts,
			chart.Fact{Text: "device busy " + words.Percent(busy) + each, Tone: scene.Good},
			chart.Fact{Text: "idle " + words.Seconds((1-busy)*report.Seconds(c.Length)) + each, Tone: scene.Warn})
	}
	cap.Line = becauseOf(c)
	return cap
}

// busyShare is the mean of the devices' activity, and how many there are.
func busyShare(r *report.View) (share float64, devices int) {
	for i := range r.Devices {
		if t := r.DeviceTrack(i, "gpu.util"); t != nil && t.Mean != nil {
			share += *t.Mean / 100
			devices++
		}
	}
	return share / float64(max(devices, 1)), devices
}

// stepName names a step, with its rank where there are several.
func (r *Result) stepName(c *closeup.Closeup) string {
	name := "The whole recording"
	if c.Reason != closeup.Whole {
		name = fmt.Sprintf("Step %d", c.Step)
	}
	if r.severalRanks() {
		name += fmt.Sprintf(" of rank %d", c.Rank)
	}
	return name
}

// becauseOf says which stretch of time is shown, and why this one.
func becauseOf(c *closeup.Closeup) string {
	switch {
	case c.Reason == closeup.Whole && c.Analysis.Device:
		return "No step is marked: from the first device event to the last."
	case c.Reason == closeup.Whole:
		return "No step is marked: from the first operator to the last."
	case c.Reason == closeup.Other:
		return "The same step of the rank whose device was idle least."
	case c.Of < 2:
		return "The only step that counts."
	case c.Reason == closeup.Longest:
		return fmt.Sprintf("The longest of %d steps.", c.Of)
	}
	return fmt.Sprintf("The median of %d steps by their length.", c.Of)
}

// chosenBecause is becauseOf in a word or two, after a name.
func chosenBecause(c *closeup.Closeup, several bool) string {
	switch {
	case c.Reason == closeup.Other:
		return ", idle least"
	case c.Of < 2 && several:
		return ", idle most"
	case c.Of < 2:
		return ""
	}
	return ", " + string(c.Reason)
}

// stepFigures are the step's row of the table of steps, and what it launched; of
// several devices the devices' times are sums.
func stepFigures(c *closeup.Closeup) []figure {
	list := []figure{{"length", length(float64(c.Length) / 1e3)}}
	each := ""
	if n := len(c.Report.Devices); n > 1 {
		each = fmt.Sprintf(", %d devices", n)
	}
	if steps := c.Times; steps != nil {
		for row := range steps.Len() {
			if steps.IntAt("step", row) != int64(c.Step) {
				continue
			}
			for _, f := range []struct{ name, column string }{
				{"device busy", "device_busy_us"}, {"device idle", "device_idle_us"}, {"computing", "compute_us"}, {"communicating", "communication_us"},
			} {
				if steps.Column(f.column) != nil {
					list = append(list, figure{f.name + each, length(steps.FloatAt(f.column, row))})
				}
			}
			if n := steps.IntAt("launches", row); steps.Column("launches") != nil && n != table.None {
				list = append(list, figure{"launches", words.Count(n)})
			}
			break
		}
	}
	if k := c.Analysis.Table(analyses.TableKernels); k != nil && k.Len() > 0 {
		list = append(list, figure{"kernels by name", words.Count(int64(k.Len()))})
	}
	return list
}

// stepCharts are the charts of a step alone.
func (r *Result) stepCharts(c *closeup.Closeup) []Chart {
	if c.Reason == closeup.Whole { // those of the page say the same
		return nil
	}
	d := drawing{&Result{Analysis: c.Analysis}, Auto, stepRows}
	var list []Chart
	for _, draw := range []struct {
		table string
		draw  func(*table.Table) (Chart, bool)
	}{
		{analyses.TableKernels, d.kernels}, {analyses.TableCalls, d.calls}, {analyses.TableOperators, d.operators},
	} {
		if t := d.table(draw.table); t != nil {
			if chart, ok := draw.draw(t); ok {
				chart.Title = "This step: " + chart.Title
				list = append(list, chart)
			}
		}
	}
	return list
}

// stepRows is how many names a chart of one step lists.
const stepRows = 6
