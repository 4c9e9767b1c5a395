package chart

import (
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/testkit/sketch"
)

// TestACaptionedPictureHasTheLanesAlone: what a report says of itself is in the page
// around such a picture.
func TestACaptionedPictureHasTheLanesAlone(t *testing.T) {
	r := sketch.TrainingCell().View()
	caption := &Caption{Title: "Step <3>", Facts: []Fact{{"0.35 s", scene.Muted}, {"device busy 54 %", scene.Good}}, Line: "The median of 4 steps."}
	f, err := Embed(r, caption, scene.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Step &lt;3&gt;", "device busy 54 %", "The median of 4 steps.", "operators, libraries"} {
		if !strings.Contains(f.HTML, want) {
			t.Errorf("the picture does not say %q", want)
		}
	}
	d := captioned(r, caption)
	if len(d.tables) > 0 || len(d.findings) > 0 || len(d.notes) > 0 || d.lines != nil {
		t.Error("the picture has tables, findings, notes or lines")
	}
	if len(d.flames) == 0 || len(d.tracks) == 0 {
		t.Error("the picture has no lanes")
	}
	whole := digestOf(r)
	if len(whole.flames) != 1 || whole.kinds != nil {
		t.Error("a report's own picture has changed")
	}
}

func TestAnEmbeddedPictureIsBounded(t *testing.T) {
	for name, s := range map[string]*sketch.Sketch{"training": sketch.TrainingCell(), "threads": sketch.ManyThreads(), "streams": sketch.ManyStreams(), "names": sketch.UglyNames()} {
		f, err := Embed(s.View(), &Caption{Title: "x"}, scene.Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if most := FigurePicture + FigureData*4/3 + 200; len(f.HTML) > most {
			t.Errorf("%s: %d bytes, want at most %d", name, len(f.HTML), most)
		}
		if strings.Count(f.HTML, "<script") != 1 || !strings.HasPrefix(f.HTML, "<div><svg") || len(f.Styles) != 1 {
			t.Errorf("%s: %.60s…, %d style sheets", name, f.HTML, len(f.Styles))
		}
	}
}
