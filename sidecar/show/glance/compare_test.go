package glance

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
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

// Of two cells that changed places one stays and the other is gone from one place and new in another: each once, and the
// columns add up to the whole.
func TestCellsThatChangedPlacesAreCountedOnce(t *testing.T) {
	cells := map[string]int{"import time": 7, "def work(n):": 2, "work(6_000_000)": 190, "time.sleep(0.4)": 400}
	before := ran(cells, "import time", "def work(n):", "work(6_000_000)", "time.sleep(0.4)")
	after := ran(cells, "import time", "def work(n):", "time.sleep(0.4)", "work(6_000_000)")
	for _, sides := range [][2]*Document{{before, after}, {after, before}} {
		d, err := Compare([]*Document{sides[0]}, []*Document{sides[1]})
		if err != nil {
			t.Fatal(err)
		}
		var was, is int64
		codes := make(map[significance.Verdict]string)
		for _, c := range d.Cells {
			was, is = was+c.BeforeNS, is+c.AfterNS
			codes[c.Verdict] = c.Code
		}
		if was != d.Whole.BeforeNS || is != d.Whole.AfterNS {
			t.Errorf("the cells took %d and %d ns, the whole %d and %d:\n%s", was, is, d.Whole.BeforeNS, d.Whole.AfterNS, d.Text())
		}
		if codes[significance.New] == "" || codes[significance.New] != codes[significance.Gone] {
			t.Errorf("%q is new and %q is gone", codes[significance.New], codes[significance.Gone])
		}
	}
}

// Of a cell that changed for certain the whole is not said to have stayed as it was, where the noise of the other cells hides it.
func TestAWholeThatNoiseHidesIsNoneThatStayed(t *testing.T) {
	busy := 0.5
	run := func(work, sleep int) *Document {
		n := Notebook{Name: "a.ipynb"}
		for i, ms := range []int{work, sleep} {
			used := ms * (1 - i)
			n.Cells = append(n.Cells, Cell{Number: i + 1, Code: []string{"work()", "sleep()"}[i], Outcome: "ok", Duration: time.Duration(ms) * time.Millisecond,
				Figures: Figures{CPU: of(time.Duration(used) * time.Millisecond), Elsewhere: &busy}})
		}
		return n.Document()
	}
	for _, c := range []struct {
		name          string
		before, after *Document
		said, row     string
	}{
		{"slower", run(180, 800), run(440, 800), "Took 0.26 s more than before (+27 %), which for all cells together may be noise", "+0.26 s, may be noise"},
		{"faster", run(440, 800), run(180, 800), "Took 0.26 s less than before (−21 %), which for all cells together may be noise", "−0.26 s, may be noise"},
		{"as it was", run(180, 800), run(185, 805), "All cells together took as long as before", "no difference"},
	} {
		d, err := Compare([]*Document{c.before}, []*Document{c.after})
		if err != nil || d.Whole.Verdict != significance.WithinNoise {
			t.Fatalf("%s: %v, %+v", c.name, err, d)
		}
		if text := d.Text(); !strings.Contains(text, c.said) || !strings.Contains(text, c.row) {
			t.Errorf("%s:\n%s", c.name, text)
		}
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

// What the machine's other work may have made of a cell's time is no difference; what is longer than that is one.
func TestABusyMachineIsNoDifference(t *testing.T) {
	cell := func(ms, cpu, waited int, elsewhere float64) Cell {
		return Cell{Number: 1, Code: "fit()", Outcome: "ok", Duration: time.Duration(ms) * time.Millisecond, Figures: Figures{
			CPU: of(time.Duration(cpu) * time.Millisecond), NoCPU: of(time.Duration(waited) * time.Millisecond), Elsewhere: &elsewhere,
		}}
	}
	quiet := cell(1000, 990, 5, 0.02)
	for _, c := range []struct {
		name          string
		before, after Cell
		want          significance.Verdict
	}{
		{"no CPU was free for a part", quiet, cell(1700, 1000, 690, 0.1), significance.WithinNoise},
		{"the other way round", cell(1700, 1000, 690, 0.1), quiet, significance.WithinNoise},
		{"its CPUs were shared", quiet, cell(1200, 1190, 10, 0.7), significance.WithinNoise},
		{"busy on both sides", cell(1600, 1200, 390, 0.6), cell(2000, 1250, 740, 0.7), significance.WithinNoise},
		{"half as long again on a quiet machine", quiet, cell(1500, 1490, 5, 0.02), significance.More},
		{"half as long again where it waited a little", cell(1100, 1000, 90, 0.1), cell(1650, 1500, 140, 0.1), significance.More},
		{"twice as long on a busy machine", cell(1300, 1000, 290, 0.5), cell(2500, 2000, 490, 0.4), significance.More},
		{"half as long on a busy machine", cell(2500, 2000, 490, 0.4), cell(1000, 800, 190, 0.5), significance.Less},
		{"it slept for longer", quiet, cell(1500, 990, 5, 0.9), significance.More},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := Compare([]*Document{{Cells: Notebook{Cells: []Cell{c.before}}.Document().Cells}}, []*Document{{Cells: Notebook{Cells: []Cell{c.after}}.Document().Cells}})
			if err != nil {
				t.Fatal(err)
			}
			if d.Cells[0].Verdict != c.want || d.Whole.Verdict != c.want {
				t.Errorf("the cell: %q, the notebook: %q, want %q; %+v", d.Cells[0].Verdict, d.Whole.Verdict, c.want, d.Cells[0])
			}
			waited := *c.before.Figures.NoCPU > 50*time.Millisecond || *c.after.Figures.NoCPU > 85*time.Millisecond
			if said := strings.Contains(d.Text(), "Other programs used the CPUs"); said != waited {
				t.Errorf("that no CPU was free is said: %v\n%s", said, d.Text())
			}
		})
	}
}

// A traceback's formatting is in a cell's time where it was not seen.
func TestTheFormattingOfATracebackIsNoDifference(t *testing.T) {
	failed := func(ms, traceback int) *Document {
		c := Cell{Number: 1, Code: "raise", Outcome: "error: OSError", Duration: time.Duration(ms) * time.Millisecond}
		if traceback > 0 {
			c.Figures.Traceback = of(time.Duration(traceback) * time.Millisecond)
		}
		return Notebook{Cells: []Cell{c}}.Document()
	}
	d, err := Compare([]*Document{failed(1900, 0)}, []*Document{failed(1100, 780)})
	if err != nil || d.Cells[0].Verdict != significance.WithinNoise {
		t.Errorf("%v, %+v", err, d.Cells)
	}
}

// What a cell has kept is in the peaks of all that follow: the change is that cell's. The code of a loop ends in a colon, too.
func TestWhatACellKeptIsNoChangeOfTheNext(t *testing.T) {
	with := func(ms int, peaks ...int64) *Document {
		n := Notebook{Cells: []Cell{{Number: 1, Code: "load()"}, {Number: 2, Code: "for i in more:"}, {Number: 3, Code: "fit()"}, {Number: 4, Code: "plot()"}}}
		for i := range n.Cells {
			c := &n.Cells[i]
			c.Outcome, c.Duration, c.Figures = "ok", 100*time.Millisecond, Figures{Peak: of(peaks[i] << 20)}
		}
		n.Cells[1].Duration = time.Duration(ms) * time.Millisecond
		return n.Document()
	}
	d, err := Compare([]*Document{with(400, 100, 250, 260, 600)}, []*Document{with(1400, 100, 430, 450, 1600)})
	if err != nil {
		t.Fatal(err)
	}
	text := d.Text()
	for _, want := range []string{"cell [2] for i in more: +1.0 s", "250 MiB → 430 MiB", "600 MiB → 1.6 GiB"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Count(text, "peak memory") != 2 {
		t.Errorf("fit() has as much more as what the loop kept:\n%s", text)
	}
}

// Imports take a fifth longer or less from run to run.
func TestImportsVary(t *testing.T) {
	imports := func(ms, importing int) *Document {
		c := Cell{Number: 1, Code: "import torch", Outcome: "ok", Duration: time.Duration(ms) * time.Millisecond}
		c.Figures.Imports = of(time.Duration(importing) * time.Millisecond)
		return Notebook{Cells: []Cell{c}}.Document()
	}
	for _, test := range []struct {
		before, after *Document
		want          significance.Verdict
	}{
		{imports(1000, 980), imports(1400, 1380), significance.WithinNoise},
		{imports(1000, 980), imports(2000, 1980), significance.More},
		{imports(1000, 0), imports(1400, 0), significance.More},
	} {
		d, err := Compare([]*Document{test.before}, []*Document{test.after})
		if err != nil || d.Cells[0].Verdict != test.want {
			t.Errorf("%v, %+v; want %v", err, d.Cells, test.want)
		}
	}
}

// A machine may make all cells vary for a reason that nothing counts: what most cells show is taken of each.
func TestCellsShowHowMuchRunsVary(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	order := []string{"a()", "b()", "c()", "d()", "e()", "f()", "g()", "h()", "i()", "j()"}
	run := func(vary float64, slower string) *Document {
		cells := make(map[string]int)
		for i, code := range order {
			length := 200 * float64(i+1)
			if code == slower {
				length *= 1.5
			}
			cells[code] = int(length * math.Exp(vary*random.NormFloat64()))
		}
		return ran(cells, order...)
	}
	for _, c := range []struct {
		name, slower string
		vary         float64
		least, most  float64 // share of the comparisons in which the cell, or any where none is slower, differs
	}{
		{"nothing changed", "", 0.08, 0, 0.1},
		{"a cell of a quiet machine", "g()", 0.01, 0.99, 1},
		{"a cell of a machine that varies", "g()", 0.08, 0.05, 0.9},
	} {
		const tries = 300
		differ, spread := 0, 0.0
		for range tries {
			d, err := Compare([]*Document{run(c.vary, "")}, []*Document{run(c.vary, c.slower)})
			if err != nil {
				t.Fatal(err)
			}
			spread += *d.AssumedSpread / tries
			if slices.ContainsFunc(d.Cells, func(cell Change) bool {
				return cell.Verdict != significance.WithinNoise && (c.slower == "" || cell.Code == c.slower)
			}) {
				differ++
			}
		}
		if share := float64(differ) / tries; share < c.least || share > c.most {
			t.Errorf("%s: a difference in %.2f of the comparisons, want %.2f to %.2f; the spread is %.3f", c.name, share, c.least, c.most, spread)
		}
	}
	// Where most cells were changed, each in another way, that is no noise without bound.
	if d, _ := Compare([]*Document{ran(map[string]int{"a()": 200, "b()": 300, "c()": 400, "d()": 500}, "a()", "b()", "c()", "d()")},
		[]*Document{ran(map[string]int{"a()": 900, "b()": 100, "c()": 800, "d()": 510}, "a()", "b()", "c()", "d()")}); *d.AssumedSpread != maxSpread || d.Cells[0].Verdict != significance.More {
		t.Errorf("%v, %+v", *d.AssumedSpread, d.Cells[0])
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
	if _, err := Read(bytes.NewReader(text[:len(text)-9])); !errors.Is(err, errDamaged) {
		t.Errorf("a document that was cut off: %v", err)
	}
	for _, damaged := range []string{"", "{}", `{"document":"omni_perf.report"}`, `{"document":"omni_perf.notebook","version":1,"cells":[{"duration_ns":-5}]}`,
		`{"document":"omni_perf.notebook","version":1,"cells":[{"no_cpu_ns":-5}]}`, `{"document":"omni_perf.notebook","version":1,"cells":[{"cpus_elsewhere":2}]}`} {
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
