package chart

import (
	"strings"
	"testing"
)

// TestACaptionedPictureHasTheLanesAlone: what a report says of itself is in the page
// around such a picture.
func TestACaptionedPictureHasTheLanesAlone(t *testing.T) {
	r := trainingCell().view()
	o := Options{Caption: &Caption{Title: "Step <3>", Facts: []Fact{{"0.35 s", Muted}, {"device busy 54 %", Good}}, Line: "The median of 4 steps."}}
	svg, err := SVG(r, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Step &lt;3&gt;", "device busy 54 %", "The median of 4 steps.", "operators, libraries"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("the picture does not say %q", want)
		}
	}
	d := o.digest(r)
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
	o := Options{Caption: &Caption{Title: "x"}}
	for name, s := range map[string]*sketch{"training": trainingCell(), "threads": manyThreads(), "streams": manyStreams(), "names": uglyNames()} {
		f, err := Embed(s.view(), o)
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
	if _, err := Embed(trainingCell().view(), Options{}); err == nil {
		t.Error("a picture without a caption was embedded")
	}
}
