package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/inhtml"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/testkit/golden"
	"github.com/omni-perf/omni-perf/sidecar/testkit/sketch"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

var (
	look = flag.String("look", "", "write every sample into this folder, to be looked at")
)

func TestGolden(t *testing.T) {
	for name, r := range map[string]*report.View{
		"training": sketch.TrainingCell().View(), "cpu": sketch.CpuCell().View(), "ugly": sketch.UglyNames().View(), "empty": sketch.EmptyCell().View(), "traced": sketch.TracedCell().View(),
	} {
		svg, err := SVG(r, scene.Options{Width: 900})
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, name+".svg", svg)
		golden.Check(t, name+".txt", []byte(Text(r, 100)))
	}
}

func TestEverySampleIsDrawn(t *testing.T) {
	for name, r := range sketch.Samples() {
		for form, draw := range map[string]func(*report.View, scene.Options) ([]byte, error){"svg": SVG, "notebook.html": HTML, "folded.html": Folded, "page.html": Page} {
			for _, theme := range []scene.Theme{scene.Auto, scene.Light, scene.Dark} {
				out, err := draw(r, scene.Options{Theme: theme})
				if err != nil || !bytes.Contains(out, []byte("svg")) {
					t.Errorf("%s as %s: %d bytes, %v", name, form, len(out), err)
				}
				if *look == "" {
					continue
				}
				if err := os.WriteFile(filepath.Join(*look, name+"-"+string(theme)+"."+form), out, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// elements reads a document to its end and returns its elements.
func elements(t *testing.T, doc []byte) []xml.StartElement {
	t.Helper()
	var all []xml.StartElement
	for d := xml.NewDecoder(bytes.NewReader(doc)); ; {
		token, err := d.Token()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatalf("not well-formed at byte %d: %v", d.InputOffset(), err)
		}
		if e, ok := token.(xml.StartElement); ok {
			all = append(all, e.Copy())
		}
	}
}

func TestSVGIsWellFormedAndBounded(t *testing.T) {
	for name, r := range sketch.Samples() {
		for _, o := range []scene.Options{{}, {Width: 600, Theme: scene.Dark}, {Inline: true, Theme: scene.Light}, {Width: 4000}} {
			svg, err := SVG(r, o)
			if err != nil {
				t.Fatal(err)
			}
			if len(svg) > inhtml.PageBytes {
				t.Errorf("%s %+v: %d bytes", name, o, len(svg))
			}
			if got := bytes.HasPrefix(svg, []byte("<svg")); got != o.Inline {
				t.Errorf("%s: begins with %q", name, svg[:20])
			}
			ids := make(map[string]bool)
			for _, e := range elements(t, svg) {
				if e.Name.Local == "script" || e.Name.Local == "image" || e.Name.Local == "a" {
					t.Errorf("%s: has an element %s", name, e.Name.Local)
				}
				for _, a := range e.Attr {
					if strings.HasPrefix(a.Name.Local, "on") {
						t.Errorf("%s: has a handler %s", name, a.Name.Local)
					}
					if a.Name.Local == "id" {
						if ids[a.Value] || !strings.HasPrefix(a.Value, "omni-perf-") {
							t.Errorf("%s: id %q", name, a.Value)
						}
						ids[a.Value] = true
					}
				}
			}
		}
	}
}

func TestReportsHaveIDsOfTheirOwn(t *testing.T) {
	seen := make(map[uint64]string)
	for name, r := range sketch.Samples() {
		if other, ok := seen[inhtml.Identity(r)]; ok {
			t.Errorf("%s and %s share ids", name, other)
		}
		seen[inhtml.Identity(r)] = name
	}
}

// mark sets every string of a report.
func mark(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			mark(v.Elem(), text)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				mark(v.Field(i), text)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			mark(v.Index(i), text)
		}
	case reflect.String:
		if v.CanSet() {
			v.SetString(text)
		}
	}
}

func TestTextFromOutsideIsNeverMarkup(t *testing.T) {
	const evil = `"'/><script>MARK</script>&lt;`
	for name, r := range sketch.Samples() {
		if len(r.Nodes.Parent) > 10_000 {
			continue
		}
		ids := make([]string, len(r.Tracks))
		for i := range r.Tracks {
			ids[i] = r.Tracks[i].ID
		}
		mark(reflect.ValueOf(r.Document), evil)
		for i := range r.Tracks { // else there would be no lanes
			r.Tracks[i].ID = ids[i]
		}
		svg, err := SVG(r, scene.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range elements(t, svg) {
			for _, a := range e.Attr {
				if strings.Contains(a.Value, "MARK") {
					t.Errorf("%s: <%s %s=%q>", name, e.Name.Local, a.Name.Local, a.Value)
				}
			}
		}
		for form, draw := range map[string]func(*report.View, scene.Options) ([]byte, error){"HTML": HTML, "Folded": Folded, "Page": Page} {
			out, err := draw(r, scene.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(out, []byte("<script>MARK")) {
				t.Errorf("%s of %s holds text from outside as markup", form, name)
			}
		}
	}
}

func TestNoReport(t *testing.T) {
	for name, draw := range map[string]func(*report.View, scene.Options) ([]byte, error){"SVG": SVG, "HTML": HTML, "Folded": Folded, "Page": Page} {
		if _, err := draw(nil, scene.Options{}); !errors.Is(err, errNoReport) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if got := Text(nil, 80); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestEveryPaintHasAColour(t *testing.T) {
	for name, r := range sketch.Samples() {
		svg, err := SVG(r, scene.Options{})
		if err != nil {
			t.Fatal(err)
		}
		sheet := scene.StyleSheet("x")
		for _, e := range elements(t, svg) {
			for _, a := range e.Attr {
				if a.Name.Local != "class" || strings.HasPrefix(a.Value, "op-") {
					continue
				}
				for _, class := range strings.Fields(a.Value) {
					if !strings.Contains(sheet, " ."+class+"{") && !strings.Contains(sheet, " ."+class+" ") {
						t.Errorf("%s: class %q has no rule", name, class)
					}
				}
			}
		}
	}
}
