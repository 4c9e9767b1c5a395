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
	"regexp"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

var (
	update = flag.Bool("update", false, "rewrite testdata")
	look   = flag.String("look", "", "write every sample into this folder, to be looked at")
)

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; if that is meant, run go test -update and look at the picture", path)
	}
}

func TestGolden(t *testing.T) {
	for name, r := range map[string]*report.View{
		"training": trainingCell().view(), "cpu": cpuCell().view(), "ugly": uglyNames().view(), "empty": emptyCell().view(), "traced": tracedCell().view(),
	} {
		svg, err := SVG(r, Options{Width: 900})
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name+".svg", svg)
		golden(t, name+".txt", []byte(Text(r, 100)))
	}
}

func TestEverySampleIsDrawn(t *testing.T) {
	for name, r := range samples() {
		for form, draw := range map[string]func(*report.View, Options) ([]byte, error){"svg": SVG, "notebook.html": HTML, "folded.html": Folded, "page.html": Page} {
			for _, theme := range []Theme{Auto, Light, Dark} {
				out, err := draw(r, Options{Theme: theme})
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
	for name, r := range samples() {
		for _, o := range []Options{{}, {Width: 600, Theme: Dark}, {Inline: true, Theme: Light}, {Width: 4000}} {
			svg, err := SVG(r, o)
			if err != nil {
				t.Fatal(err)
			}
			if len(svg) > fullBytes {
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
	for name, r := range samples() {
		if other, ok := seen[identityOf(r)]; ok {
			t.Errorf("%s and %s share ids", name, other)
		}
		seen[identityOf(r)] = name
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
	for name, r := range samples() {
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
		svg, err := SVG(r, Options{})
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
		for form, draw := range map[string]func(*report.View, Options) ([]byte, error){"HTML": HTML, "Folded": Folded, "Page": Page} {
			out, err := draw(r, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(out, []byte("<script>MARK")) {
				t.Errorf("%s of %s holds text from outside as markup", form, name)
			}
		}
	}
}

type failing struct{ room int }

var errFull = errors.New("no space left on device")

func (f *failing) Write(p []byte) (int, error) {
	if f.room -= len(p); f.room < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestWriteErrorsAreReported(t *testing.T) {
	s := lay(digestOf(trainingCell().view()), defaultWidth, fullDetail)
	if err := writeSVG(&failing{room: 1 << 20}, s, 1, Options{Theme: Auto}); err != nil {
		t.Fatal(err)
	}
	if err := writeSVG(&failing{room: 1 << 14}, s, 1, Options{Theme: Auto}); !errors.Is(err, errFull) {
		t.Errorf("got %v, want %v", err, errFull)
	}
}

func TestNoReport(t *testing.T) {
	for name, draw := range map[string]func(*report.View, Options) ([]byte, error){"SVG": SVG, "HTML": HTML, "Folded": Folded, "Page": Page} {
		if _, err := draw(nil, Options{}); !errors.Is(err, errNoReport) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if got := Text(nil, 80); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestPathData(t *testing.T) {
	var p pathData
	p.moveTo(10, 20.04)
	p.lineTo(10.55, 20)
	p.lineTo(10.55, 19.5)
	p.lineTo(9, 18)
	p.lineTo(9, 18)
	p.moveTo(100, 0)
	if got, want := p.String(), "M10 20h.6v-.5l-1.6 -1.5m91 -18"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if bad := regexp.MustCompile(`[^MmhvlHVL0-9. -]`).FindString(p.String()); bad != "" {
		t.Errorf("%q in path data", bad)
	}
}
