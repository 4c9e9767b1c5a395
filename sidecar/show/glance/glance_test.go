package glance

import (
	"bytes"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/omni-perf/omni-perf/sidecar/testkit/sketch"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func of[T any](v T) *T { return &v }

func notebook() Notebook {
	return Notebook{Name: "train.ipynb", Cells: []Cell{
		{Number: 1, Code: "import numpy as np", Outcome: "ok", Duration: 400 * time.Millisecond, Headline: "Spent 0.3 of 0.4 s on imports.",
			Figures: Figures{CPU: of(350 * time.Millisecond), Peak: of(int64(367 << 20)), Kept: of(int64(316 << 20))}, Output: "omni-perf-0123456789abcdef"},
		{Number: 2, Code: "fit(model)", Outcome: "ok", Duration: 92 * time.Second, Headline: "GPU 0 was idle for 61 of 92 s: the loader is slow.",
			Figures: Figures{CPU: of(180 * time.Second), Peak: of(int64(3 << 30)), PeakAtLeast: true, Kept: of(int64(-(40 << 20))), Idle: of(61 * time.Second), Known: 92 * time.Second, Energy: of(21400.0)}},
		{Number: 3, Code: "x = 1", Outcome: "ok", Duration: 200 * time.Microsecond, Missing: "the cell was below the threshold of %omni_perf on"},
		{Code: "evaluate()", Name: "test <set>", Outcome: "error: KeyError", Duration: 2 * time.Second, Figures: Figures{CPU: of(time.Second), Kept: of(int64(4096))}},
	}}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile("testdata/"+name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/" + name)
	if err != nil || got != string(want) {
		t.Errorf("it differs from testdata/%s (%v); go test -update writes it anew:\n%s", name, err, got)
	}
}

func TestTheTable(t *testing.T) {
	n := notebook()
	golden(t, "table.txt", n.Text())
	golden(t, "table.html", string(n.HTML()))
	golden(t, "page.html", string(n.Page()))
}

func TestWithoutAGPUThereIsNoColumnForIt(t *testing.T) {
	n := notebook()
	n.Cells = n.Cells[:1]
	if got := n.Text(); strings.Contains(got, "GPU") {
		t.Error(got)
	}
}

func TestWhatAReportHas(t *testing.T) {
	r := sketch.TrainingCell().View()
	doc := *r.Document
	r.Document = &doc
	doc.Processes = append([]report.Process{}, doc.Processes...)
	program := &doc.Processes[r.Program()]
	program.CPUNS, program.PeakMemoryBytes, program.PeakAtLeastBytes = of(int64(3e9)), nil, of(int64(5<<30))
	program.KeptBytes = of(int64(7 << 20))
	f := FiguresOf(r)
	var others time.Duration
	for i, p := range doc.Processes {
		if i != r.Program() && p.CPUNS != nil {
			others += time.Duration(*p.CPUNS)
		}
	}
	if f.CPU == nil || *f.CPU != 3*time.Second+others {
		t.Errorf("CPU time is %v, want 3 s and its children's %v", f.CPU, others)
	}
	if f.Peak == nil || *f.Peak != 5<<30 || !f.PeakAtLeast {
		t.Errorf("the peak is %v, at least %v", f.Peak, f.PeakAtLeast)
	}
	if f.Kept == nil || *f.Kept != 7<<20 {
		t.Errorf("kept %v, want 7 MiB", f.Kept)
	}
	program.KeptBytes = nil
	doc.MemoryReading = []report.MemoryReading{{Process: r.Program(), GrownBytes: 9 << 20, ReleasedBytes: 2 << 20}}
	if f := FiguresOf(r); f.Kept != nil {
		t.Errorf("a cell whose begin was not seen has kept %d", *f.Kept)
	}
	var idle, known int64
	for _, d := range doc.Devices {
		if d.Used {
			idle, known = idle+d.IdleNS, known+d.IdleNS+d.BusyNS
		}
	}
	if f.Idle == nil || int64(*f.Idle) != idle || int64(f.Known) != known {
		t.Errorf("idle %v of %v, want %d of %d", f.Idle, f.Known, idle, known)
	}
}

// The CPU time of a process that has ended is its parent's, too, if that has waited for it.
func TestAProcessThatHasEndedIsCountedOnce(t *testing.T) {
	program := report.Process{CPUNS: of(int64(1600e6)), Role: "script"}
	for name, test := range map[string]struct {
		other report.Process
		want  time.Duration
	}{
		"waited for": {report.Process{Parent: of(0), CPUNS: of(int64(1500e6)), EndNS: of(int64(2e9))}, 1600 * time.Millisecond},
		"not yet":    {report.Process{Parent: of(0), CPUNS: of(int64(1900e6)), EndNS: of(int64(2e9))}, 3500 * time.Millisecond},
		"alive":      {report.Process{Parent: of(0), CPUNS: of(int64(1500e6))}, 3100 * time.Millisecond},
		"adopted":    {report.Process{CPUNS: of(int64(1500e6)), EndNS: of(int64(2e9))}, 3100 * time.Millisecond},
	} {
		r := sketch.CpuCell().View()
		doc := *r.Document
		r.Document = &doc
		doc.Processes = []report.Process{program, test.other}
		if got := cpuOf(r); got == nil || *got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// Of a cell that was hardly recorded it is not known what it used.
func TestWhatWasNotRecordedIsNotKnown(t *testing.T) {
	r := sketch.CpuCell().View()
	doc := *r.Document
	r.Document = &doc
	doc.Processes = append([]report.Process{}, doc.Processes...)
	doc.Processes[r.Program()].CPUNS = of(int64(1e9))
	doc.Findings = []report.Finding{{ID: "begun-late", Value: of(0.9)}}
	if f := FiguresOf(r); f.CPU != nil {
		t.Errorf("%v of CPU time of a cell of which a tenth was recorded", *f.CPU)
	}
	doc.Findings[0].Value = of(0.1)
	if f := FiguresOf(r); f.CPU == nil {
		t.Error("no CPU time of a cell of which nine tenths were recorded")
	}
}

// The report of a cell that raised ends where the exception came out; formatting its traceback is not the cell's.
func TestATracebacksTimeIsNotTheCells(t *testing.T) {
	r := sketch.CpuCell().View()
	doc := *r.Document
	r.Document = &doc
	doc.Processes = append([]report.Process{}, doc.Processes...)
	doc.Processes[r.Program()].CPUNS = of(doc.DurationNS + 1e9)
	doc.Targets = append([]report.Target{}, doc.Targets...)
	cell := *doc.Targets[0].Cell
	cell.Exception = of("ValueError")
	doc.Targets[0].Cell = &cell
	if f := FiguresOf(r); f.CPU != nil {
		t.Errorf("%v of CPU time in a cell of %v", *f.CPU, time.Duration(doc.DurationNS))
	}
}

// Every output stays in the notebook's file.
func TestTheOutputIsBounded(t *testing.T) {
	n := Notebook{}
	long := strings.Repeat("<&é漢", 500)
	for range 10 * Shown {
		c := notebook().Cells[1]
		c.Code, c.Headline, c.Outcome, c.Output = long, long, "error: "+long, "omni-perf-0123456789abcdef"
		n.Cells = append(n.Cells, c)
	}
	page := n.HTML()
	if len(page) > 300_000 {
		t.Errorf("%d bytes, want at most 300 kB", len(page))
	}
	if !bytes.Contains(page, []byte("the first 900 are not shown")) {
		t.Error("nothing says that rows were left out")
	}
}

func TestACellHas40kBOnAPage(t *testing.T) {
	for name, r := range sketch.Samples() {
		one, two := Notebook{Cells: []Cell{{}}}, Notebook{}
		var c Cell
		c.SetReport(r)
		if err := c.Draw(r); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		two.Cells = append(two.Cells, Cell{}, c)
		if size := len(two.Page()) - len(one.Page()); size > 40_000 {
			t.Errorf("%s: the cell takes %d bytes of the page", name, size)
		}
		if c.Chart == nil && c.Missing == "" {
			t.Errorf("%s: there is no picture, and no word of why", name)
		}
	}
}

// scripted finds what could run or load something.
var scripted = regexp.MustCompile(`^(?i)(script|iframe|object|embed|link|img|base|form|math|input)$`)

// Names of notebooks, texts of cells and exceptions are whatever somebody chose.
func FuzzPage(f *testing.F) {
	f.Add(`<script>alert(1)</script>`)
	f.Add(`"><img src=x onerror=alert(1)>`)
	f.Add("\x1b]0;owned\a\u202Etxt.exe\x00")
	f.Fuzz(func(t *testing.T, s string) {
		n := notebook()
		n.Name, n.Note = s, s
		for i := range n.Cells {
			c := &n.Cells[i]
			c.Name, c.Code, c.Headline, c.Outcome, c.Missing, c.Output = s, s, s, s, s, s
		}
		for _, shown := range [][]byte{n.Page(), n.HTML()} {
			page, err := html.Parse(bytes.NewReader(shown))
			if err != nil {
				t.Fatal(err)
			}
			for e := range page.Descendants() {
				if e.Type == html.ElementNode && scripted.MatchString(e.Data) {
					t.Errorf("%q made a <%s>", s, e.Data)
				}
				for _, a := range e.Attr {
					if strings.HasPrefix(a.Key, "on") || a.Key == "href" && !strings.HasPrefix(a.Val, "#") {
						t.Errorf("%q made %s=%q", s, a.Key, a.Val)
					}
				}
			}
		}
		if strings.ContainsRune(n.Text(), '\x1b') {
			t.Errorf("%q reaches a terminal", s)
		}
	})
}

func TestTheFirstLineThatSaysSomething(t *testing.T) {
	for text, want := range map[string]string{
		"%%omni_perf\n\n# train\n  fit(x)\n": "fit(x)",
		"%matplotlib inline":                 "%matplotlib inline",
		"# a word\n":                         "# a word",
		"\n%pip install numpy":               "%pip install numpy",
		"":                                   "",
		"%%writefile a.py\ndef f(): pass":    "%%writefile a.py",
		"%%bash\necho hi":                    "%%bash",
		"%%time\nfit(x)":                     "fit(x)",
		"x = 1\ny = 2":                       "x = 1",
	} {
		if got := FirstLine(text); got != want {
			t.Errorf("FirstLine(%q) = %q, want %q", text, got, want)
		}
	}
}

// Cells with the same first line are distinguished by what follows: code before comments, and of long lines the part that
// differs. The same text that ran twice stays the same.
func TestCellsWithTheSameFirstLine(t *testing.T) {
	const long = "model = Sequential(Linear(512, 512), ReLU(), Linear(512, 512), ReLU(), Linear(512, 10), "
	texts := []struct{ text, want string }{
		{"%%time\nx = 1\n", "x = 1"},
		{"fit(x)\nprint(1)", "fit(x) … print(1)"},
		{"fit(x)\nprint(2)\n", "fit(x) … print(2)"},
		{"# slow\nfit(x)\nprint(2)\nshow(3)", "fit(x) … show(3)"},
		{"# again\nfit(y)\n", "fit(y) … # again"},
		{"fit(y)", "fit(y)"},
		{long + "bias=1)", "model = Sequential(Linear(512, 512), R … ear(512, 10), bias=1)"},
		{long + "bias=2)", "model = Sequential(Linear(512, 512), R … ear(512, 10), bias=2)"},
		{"plot(z)", "plot(z)"},
		{"plot(z)", "plot(z)"},
	}
	var cells []Cell
	for _, c := range texts {
		cells = append(cells, Cell{Code: FirstLine(c.text), Lines: Lines(c.text)})
	}
	for i, got := range Titles(cells) {
		if got != texts[i].want {
			t.Errorf("%q is called %q, want %q", texts[i].text, got, texts[i].want)
		}
		if n := (Notebook{Cells: cells}); !strings.Contains(n.Text(), got) || !strings.Contains(string(n.HTML()), got) || !strings.Contains(string(n.Page()), got) {
			t.Errorf("not all tables have %q", got)
		}
	}
	lines := Lines(strings.Repeat("é = 1\n", 5000))
	if n := len(strings.Join(lines, "")); n > maxLines || n < maxLines-8 {
		t.Errorf("%d bytes of a long text are kept", n)
	}
}

// What all cells have kept is from the first one's begin to the last one's end, where that is known.
func TestWhatAllCellsHaveKept(t *testing.T) {
	n := Notebook{Cells: []Cell{{Figures: Figures{Kept: of(int64(50 << 20))}}, {}}}
	if got := n.totalKept(n.Cells); got != "+50 MiB" {
		t.Errorf("the sum of what is known is %s", got)
	}
	n.Kept = of(int64(3 << 20))
	if got := n.totalKept(n.Cells); got != "+3 MiB" {
		t.Errorf("got %s", got)
	}
}

// A headline is shown to its end, which may be where a CPU was missing.
func TestHeadlinesAreShownToTheirEnd(t *testing.T) {
	headline := "Waited 0.89 of 2.6 s for the data loader's workers in line 6; they spent 23 % of their time in Cell [2]:10. For 1.2 of 2.6 s no CPU was free; the program itself used 0.9 of 2 cores."
	n := Notebook{Cells: []Cell{{Number: 1, Code: "train()", Outcome: "ok", Headline: headline}}}
	for _, form := range []string{string(n.HTML()), string(n.Page())} {
		if !strings.Contains(form, "used 0.9 of 2 cores.") {
			t.Error(form)
		}
	}
}
