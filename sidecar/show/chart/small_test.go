package chart

import (
	"bytes"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/show/viewer"
	"github.com/omni-perf/omni-perf/sidecar/testkit/sketch"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// shortCell ran so long, sampled so often.
func shortCell(durationNS int64, samples int64) *report.View {
	r := sketch.CpuCell().View()
	doc := *r.Document
	r.Document = &doc
	doc.Targets = append([]report.Target(nil), doc.Targets...)
	doc.Targets[0].Sampling.Ticks = samples
	doc.DurationNS = durationNS
	return r
}

func TestACellIsShownByWhatItIsLong(t *testing.T) {
	tooFew := shortCell(300e6, 5)
	tooFew.Headline.Kind = report.HeadlineTooFew
	for _, c := range []struct {
		what          string
		r             *report.View
		line, picture bool
	}{
		{"7 ms, each ms a sample", shortCell(7e6, 7), true, true},
		{"19 ms", shortCell(19e6, 19), true, true},
		{"15 ms with -p 0.0001, as a line advised", shortCell(15e6, 150), false, true},
		{"0.3 s with 5 samples", tooFew, true, false},
		{"20 ms", shortCell(20e6, 20), false, true},
		{"0.19 s", shortCell(190e6, 190), false, true},
		{"0.2 s", shortCell(200e6, 200), false, false},
	} {
		if line, picture := IsLine(c.r), IsPicture(c.r); line != c.line || picture != c.picture {
			t.Errorf("%s: a line %v, a picture without script %v, want %v, %v", c.what, line, picture, c.line, c.picture)
		}
	}
}

func TestTheLineOfASmallCell(t *testing.T) {
	r := shortCell(7e6, 7)
	r.Headline = report.Headline{Kind: report.HeadlineTooFew, Text: "Too short to profile: only 7 samples. Run again with -p 0.0001."}
	want := "Cell [3]  7.0 ms  Too short to profile: only 7 samples. Run again with -p 0.0001.\n"
	if got := Line(r); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	r.Notes = []report.Note{{ID: string(timeline.NoteBegunLate), Text: "The cell: recorded from 2.0 s on."}}
	if got := Line(r); !strings.Contains(got, "recorded from 2.0 s on") {
		t.Errorf("%q does not say that the beginning is missing", got)
	}
	for name, r := range sketch.Samples() {
		if got := Line(r); len(got) > lineBytes || strings.Count(got, "\n") != 1 {
			t.Errorf("%s: %d bytes: %q", name, len(got), got)
		}
	}
}

// A short cell's output has the picture and, for the JupyterLab extension, its data;
// the script would be more than both.
func TestAShortCellsOutputHasNoViewer(t *testing.T) {
	all := sketch.Samples()
	all["huge names"] = hugeNames()
	for name, r := range all {
		html, err := Picture(r, scene.Options{})
		if err != nil {
			t.Fatal(err)
		}
		pictureIn(t, html)
		if len(html) > 40_000 {
			t.Errorf("%s: %d bytes", name, len(html))
		}
		if bytes.Contains(html, []byte(viewer.Style)) || bytes.Contains(html, []byte(viewer.Script)) {
			t.Errorf("%s: it has the viewer", name)
		}
		if name != "huge names" && !payloads.Match(html) {
			t.Errorf("%s: the extension cannot open it", name)
		}
	}
	html, err := Picture(sketch.CpuCell().View(), scene.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := "%omni_perf last 3<"; !strings.Contains(string(pictureIn(t, html)), want) {
		t.Errorf("the picture does not say how to look closer: %q", want)
	}
}
