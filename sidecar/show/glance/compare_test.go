package glance

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/understand/significance"
)

// ran is a notebook whose cells took so many milliseconds.
func ran(cells map[string]int, order ...string) *Document {
	n := Notebook{Name: "train.ipynb"}
	for i, code := range order {
		n.Cells = append(n.Cells, Cell{Number: i + 1, Code: code, Outcome: "ok", Duration: time.Duration(cells[code]) * time.Millisecond,
			Figures: Figures{Peak: of(int64(cells[code]) << 20)}})
	}
	return n.Document()
}

func TestTwoVersionsOfANotebook(t *testing.T) {
	before := ran(map[string]int{"import numpy": 480, "fit(model)": 12000, "old()": 900, "plot()": 40}, "import numpy", "fit(model)", "old()", "plot()")
	after := ran(map[string]int{"import numpy": 490, "fit(model, epochs=2)": 14600, "plot()": 47, "new()": 700}, "import numpy", "fit(model, epochs=2)", "plot()", "new()")
	d, err := Compare([]*Document{before}, []*Document{after})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "compared.txt", d.Text())
	want := []significance.Verdict{significance.WithinNoise, significance.More, significance.WithinNoise, significance.New, significance.Gone}
	for i, c := range d.Cells {
		if c.Verdict != want[i] || c.Edited != (i == 1) {
			t.Errorf("%+v, want %q", c, want[i])
		}
	}
	limit, err := significance.ParseLimit("slower=5%")
	if err != nil {
		t.Fatal(err)
	}
	var exceeded significance.Exceeded
	if err := d.Judge(limit); !errors.As(err, &exceeded) || !strings.Contains(err.Error(), "cell [2] fit(model, epochs=2) is slower by 2.6 s (+22 %)") {
		t.Error(err)
	}
	if back, _ := Compare([]*Document{after}, []*Document{before}); back.Judge(limit) != nil {
		t.Error("a notebook that became faster is beyond the limit")
	}
}

// Runs of an unchanged notebook that vary by 2 % and a few milliseconds do not differ in 95 of 100 comparisons.
func TestAnUnchangedNotebookDoesNotDiffer(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	order := []string{"a()", "b()", "c()", "d()", "e()", "f()", "g()", "h()"}
	run := func() *Document {
		cells := make(map[string]int)
		for i, code := range order {
			length := float64(int(20) << i)
			cells[code] = int(length*(1+0.02*random.NormFloat64()) + 3*random.NormFloat64())
		}
		return ran(cells, order...)
	}
	for _, runs := range []int{1, 4} {
		const tries = 400
		differ := 0
		for range tries {
			var sides [2][]*Document
			for side := range sides {
				for range runs {
					sides[side] = append(sides[side], run())
				}
			}
			d, err := Compare(sides[0], sides[1])
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range d.Cells {
				if c.Verdict != significance.WithinNoise {
					differ++
					break
				}
			}
		}
		if differ > tries*5/100 {
			t.Errorf("of %d comparisons of %d runs with %d, %d show a difference", tries, runs, runs, differ)
		}
	}
}

func TestADocumentIsReadAsItWasWritten(t *testing.T) {
	d := notebook().Document()
	text, err := d.JSON()
	if err != nil {
		t.Fatal(err)
	}
	read, err := Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	again, err := read.JSON()
	if err != nil || !bytes.Equal(again, text) {
		t.Errorf("%v\n%s", err, again)
	}
	for _, damaged := range []string{"", "{}", `{"document":"omni_perf.report"}`, `{"document":"omni_perf.notebook","version":1,"cells":[{"duration_ns":-5}]}`} {
		if _, err := Read(strings.NewReader(damaged)); err == nil {
			t.Errorf("%s is read", damaged)
		}
	}
}

func FuzzRead(f *testing.F) {
	text, err := notebook().Document().JSON()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text, text)
	f.Add(text[:len(text)/2], []byte(`{"document":"omni_perf.notebook","version":1,"cells":[{"code":"a\u0000","duration_ns":1}]}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		before, err := Read(bytes.NewReader(a))
		if err != nil {
			return
		}
		after, err := Read(bytes.NewReader(b))
		if err != nil {
			return
		}
		d, err := Compare([]*Document{before}, []*Document{after})
		if err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(d.Text(), "\x00\x1b") {
			t.Errorf("%q", d.Text())
		}
		if _, err := d.JSON(); err != nil {
			t.Fatal(err)
		}
	})
}
