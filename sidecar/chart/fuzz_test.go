package chart

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/omni-perf/omni-perf/sidecar/report"
	"github.com/omni-perf/omni-perf/sidecar/words"
)

// drawAll draws every form and checks what must hold of any report.
func drawAll(t *testing.T, r *report.Report) {
	t.Helper()
	svg, err := SVG(r, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(svg) > fullBytes {
		t.Errorf("%d bytes of SVG", len(svg))
	}
	for _, e := range elements(t, svg) {
		for _, a := range e.Attr {
			if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
				t.Errorf("<%s %s=%q>", e.Name.Local, a.Name.Local, a.Value)
			}
		}
	}
	folded, err := Folded(r, Options{})
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

// A report may come from a file.
func FuzzReport(f *testing.F) {
	small, err := json.Marshal(emptyCell())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(small)
	f.Add([]byte(`{"duration_s":-1,"threads":[{"is_main":true}],"stacks":{"frames":[{"function":"f","file":"x"}],
		"nodes":[{},{"parent":5,"frame":-2},{"parent":0,"frame":0}],
		"spans":{"thread":[0,0],"start_s":[9,1],"end_s":[-9,3],"node":[3,2],"state":["?","io"],"truncated":[true]}}}`))
	f.Add([]byte(`{"duration_s":3,"gpus":[{"index":0,"busy_s":1,"idle_s":2,"simulated":true}],"steps":[{"start_s":1,"end_s":2}],
		"idle":{"gpu_idle_s":2,"devices":[{"device":0,"idle_s":2,"intervals":[[1,9]]}],"causes":[{"cause":"c","seconds":2,"share":1,"line":3}]},
		"tracks":[{"id":"gpu0.util","kind":"rate","unit":"%","t_s":[1,2],"value":[3,null]}],"line_spans":[{"start_s":0,"end_s":2,"line":3}],
		"target":{"cell":{"execution_count":1,"source":["x"],"outcome":"ok"}},"findings":[{"text":"t"}],"notes":[{"what":"w"}]}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		var r report.Report
		if json.Unmarshal(doc, &r) == nil {
			drawAll(t, &r)
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
			v.SetString([]string{"", "\x00\x1b[2J", "\u202e<&>\"'", strings.Repeat("ẅ\u0301", 3000), "\xff\xfe", "gpu0.util", "]]>"}[rnd.IntN(7)])
		}
	case reflect.Bool:
		if hit {
			v.SetBool(!v.Bool())
		}
	}
}

func damaged(seed uint64) *report.Report {
	rnd := rand.New(rand.NewPCG(seed, 7))
	makers := []func() *report.Report{trainingCell, cpuCell, emptyCell, uglyNames, eightGPUs, weekLong, tracedCell}
	r := makers[rnd.IntN(len(makers))]()
	damage(reflect.ValueOf(r), rnd, []int{3, 20, 200, 2000}[rnd.IntN(4)])
	return r
}

func FuzzDamagedReport(f *testing.F) {
	for seed := range uint64(60) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		d := damaged(seed)
		drawAll(t, d)
		for _, width := range []float64{minWidth, 1400} {
			s := lay(digestOf(d), width, fullDetail)
			for _, l := range s.allTexts() {
				if !l.Bounds().within(Box{0, 0, s.Width, s.Height}) {
					t.Errorf("seed %d: %q leaves the picture", seed, l.S)
				}
			}
		}
	})
}
