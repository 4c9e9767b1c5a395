package chart

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/inhtml"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/testkit/sketch"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// drawAll draws every form and checks what must hold of any report.
func drawAll(t *testing.T, r *report.View) {
	t.Helper()
	svg, err := SVG(r, scene.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(svg) > inhtml.PageBytes {
		t.Errorf("%d bytes of SVG", len(svg))
	}
	for _, e := range elements(t, svg) {
		for _, a := range e.Attr {
			if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
				t.Errorf("<%s %s=%q>", e.Name.Local, a.Name.Local, a.Value)
			}
		}
	}
	folded, err := Folded(r, scene.Options{})
	if err != nil || len(folded) > 60_000 {
		t.Errorf("folded: %d bytes, %v", len(folded), err)
	}
	text := Text(r, 80)
	if !utf8.ValidString(text) || strings.ContainsAny(text, "\x00\x1b\r\u202e") {
		t.Errorf("text holds control characters: %q", text)
	}
	for _, line := range strings.Split(text, "\n") {
		if words.Columns(line) > 80 {
			t.Errorf("line of %d columns: %q", words.Columns(line), line)
		}
	}
}

// A report may come from a file: what is read can be drawn.
func FuzzReport(f *testing.F) {
	for _, r := range []*sketch.Sketch{sketch.EmptyCell(), sketch.UglyNames(), sketch.All()["zero"]} {
		text, err := json.Marshal(r.Document())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if r, err := report.Read(text); err == nil {
			drawAll(t, r)
		}
	})
}

// damage overwrites fields of a report, about one in every so many, by values
// that no recorder would write.
func damage(v reflect.Value, rnd *rand.Rand, every int) {
	hit := rnd.IntN(every) == 0
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			damage(v.Elem(), rnd, every)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				damage(v.Field(i), rnd, every)
			}
		}
	case reflect.Array, reflect.Slice:
		if hit && v.Kind() == reflect.Slice && v.Len() > 1 {
			v.Set(v.Slice(0, rnd.IntN(v.Len())))
		}
		for i := range v.Len() {
			damage(v.Index(i), rnd, every)
		}
	case reflect.Float64:
		if hit {
			v.SetFloat([]float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, 1e300, -1e300, 5e-324, 7, 1e18}[rnd.IntN(10)])
		}
	case reflect.Int, reflect.Int64:
		if hit {
			v.SetInt([]int64{-1, math.MinInt64, math.MaxInt64, 1 << 31, 0, 3}[rnd.IntN(6)])
		}
	case reflect.String:
		if hit {
			v.SetString([]string{"", "\x00\x1b[2J", "\u202e<&>\"'", strings.Repeat("ẅ\u0301", 3000), "\xff\xfe", "gpu.util", "]]>"}[rnd.IntN(7)])
		}
	case reflect.Bool:
		if hit {
			v.SetBool(!v.Bool())
		}
	}
}

// damaged is a sample with damage; nil where that was seen.
func damaged(seed uint64) *report.View {
	rnd := rand.New(rand.NewPCG(seed, 7))
	makers := []func() *sketch.Sketch{sketch.TrainingCell, sketch.CpuCell, sketch.EmptyCell, sketch.UglyNames, sketch.EightGPUs, sketch.WeekLong, sketch.TracedCell}
	d := makers[rnd.IntN(len(makers))]().Document()
	damage(reflect.ValueOf(d), rnd, []int{20, 200, 2000, 20_000}[rnd.IntN(4)])
	d.Document, d.Version = report.Kind, report.Version
	r, err := report.Check(d)
	if err != nil {
		return nil
	}
	return r
}

func FuzzDamagedReport(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		d := damaged(seed)
		if d == nil {
			return
		}
		drawAll(t, d)
		for _, width := range []float64{scene.MinWidth, 1400} {
			s := lay(digestOf(d), width, fullDetail)
			for _, l := range s.AllTexts() {
				if !within(l.Bounds(), scene.Box{X0: 0, Y0: 0, X1: s.Width, Y1: s.Height}) {
					t.Errorf("seed %d: %q leaves the picture", seed, l.S)
				}
			}
		}
	})
}
