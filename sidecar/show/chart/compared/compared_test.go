package compared

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/compare/comparison"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/show/viewer"
	"github.com/omni-perf/omni-perf/sidecar/testkit/golden"
	"github.com/omni-perf/omni-perf/sidecar/testkit/sketch"
	"github.com/omni-perf/omni-perf/sidecar/testkit/twosides"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/significance"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

func pairOf(t testing.TB, before, after []*report.View) Pair {
	t.Helper()
	c, err := comparison.Of(before, after)
	if err != nil {
		t.Fatal(err)
	}
	return Pair{c, before[0], after[0]}
}

func runs(t testing.TB, p twosides.Program, seeds ...uint64) (views []*report.View) {
	t.Helper()
	for _, seed := range seeds {
		v, err := p.Record(seed)
		if err != nil {
			t.Fatal(err)
		}
		views = append(views, v)
	}
	return views
}

// pairs are comparisons of every kind.
func pairs(t testing.TB) map[string]Pair {
	before, after := twosides.Training(), twosides.Faster()
	busy := twosides.Training()
	busy.GPU, busy.OnCPU = false, 0.6
	return map[string]Pair{
		"faster": pairOf(t, runs(t, before, 1), runs(t, after, 2)),
		"slower": pairOf(t, runs(t, after, 1, 2, 3), runs(t, before, 4, 5, 6)),
		"same":   pairOf(t, runs(t, before, 1), runs(t, before, 2)),
		"busy":   pairOf(t, runs(t, busy, 1), runs(t, after, 2, 3)),
		"ugly":   pairOf(t, []*report.View{sketch.UglyNames().View()}, []*report.View{sketch.CpuCell().View()}),
		"empty":  pairOf(t, []*report.View{sketch.EmptyCell().View()}, []*report.View{sketch.EmptyCell().View()}),
	}
}

func TestComparisonGolden(t *testing.T) {
	for name, p := range pairs(t) {
		svg, err := SVG(p, scene.Options{Width: 900})
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, "compare-"+name+".svg", svg)
		golden.Check(t, "compare-"+name+".txt", []byte(Text(p, 80)))
	}
}

func TestComparisonsTextKeepsToItsWidth(t *testing.T) {
	for name, p := range pairs(t) {
		for _, width := range []int{60, 80, 120} {
			for line := range strings.Lines(Text(p, width)) {
				if n := words.Columns(strings.TrimRight(line, "\n")); n > width {
					t.Errorf("%s: %d columns of %d: %s", name, n, width, line)
				}
			}
		}
	}
}

func TestComparisonsPictureIsSound(t *testing.T) {
	for name, p := range pairs(t) {
		for _, width := range []float64{560, 900, 1400} {
			svg, err := SVG(p, scene.Options{Width: width})
			if err != nil {
				t.Fatal(err)
			}
			for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
				if _, err := d.Token(); err == io.EOF {
					break
				} else if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			s := lay(digestOf(p), width, 3)
			for _, label := range s.AllTexts() {
				if b := label.Bounds(); b.X0 < -0.5 || b.X1 > width+0.5 {
					t.Errorf("%s, %v wide: %q goes from %.0f to %.0f", name, width, label.S, b.X0, b.X1)
				}
			}
		}
	}
}

// A page allows only its own scripts and styles, by hash; what it carries for its
// script has both reports, whole.
func TestComparisonsPage(t *testing.T) {
	p := pairs(t)["faster"]
	page, err := Page(p, scene.Options{})
	if err != nil {
		t.Fatal(err)
	}
	policy := regexp.MustCompile(`content="(default-src 'none'; [^"]*)"`).FindSubmatch(page)
	if policy == nil || strings.Contains(string(policy[1]), "unsafe") || !strings.Contains(string(policy[1]), viewer.Allow(viewer.Script)) {
		t.Fatalf("the policy is %s", policy)
	}
	d := comparedIn(t, page)
	if len(d.Before.Spans.Node) != len(p.Before.Spans.Node) || len(d.After.Spans.Node) != len(p.After.Spans.Node) {
		t.Error("the reports are not whole")
	}
	if len(d.Lines) == 0 || len(d.Functions) == 0 || len(d.Causes) == 0 || len(d.Steps) == 0 || len(d.Whole) != 3 {
		t.Errorf("tables of %d, %d, %d, %d, %d rows", len(d.Lines), len(d.Functions), len(d.Causes), len(d.Steps), len(d.Whole))
	}
	if !bytes.Contains(page, []byte("<summary>As text</summary>")) {
		t.Error("there is no text")
	}
}

// What a notebook keeps is bounded, and its functions are those of the smaller reports.
func TestComparisonsOutput(t *testing.T) {
	long := twosides.Training()
	long.Steps = 2000
	for name, p := range map[string]Pair{"6 s": pairs(t)["faster"], "2 min": pairOf(t, runs(t, long, 1), runs(t, long, 2))} {
		html, err := HTML(p, scene.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if limit := map[string]int{"6 s": 160_000, "2 min": 450_000}[name]; len(html) > limit {
			t.Errorf("%s: %d bytes, want at most %d", name, len(html), limit)
		}
		d := comparedIn(t, html)
		for _, f := range d.Functions {
			if f.Function == nil {
				continue
			}
			fn := d.After.Functions[*f.Function]
			if called := fn.Name; f.Name != called && (fn.Label == nil || *fn.Label != f.Name) {
				t.Errorf("%s: row %q is of function %q", name, f.Name, called)
			}
		}
		for side, doc := range []*report.Document{d.Before, d.After} {
			if len(d.Same[side]) != len(doc.Functions) {
				t.Errorf("%s: %d numbers of %d functions", name, len(d.Same[side]), len(doc.Functions))
			}
			if doc.Hosts[0].Name != nil {
				t.Errorf("%s: the machine is named", name)
			}
		}
	}
}

func comparedIn(t *testing.T, html []byte) document {
	t.Helper()
	payload := regexp.MustCompile(`<script type="application/octet-stream;base64">omni_perf 2 flame:Look_closer\n([A-Za-z0-9+/=]+)</script>`).FindSubmatch(html)
	if payload == nil {
		t.Fatal("no data")
	}
	packed, err := base64.StdEncoding.DecodeString(string(payload[1]))
	if err != nil {
		t.Fatal(err)
	}
	text, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	var d document
	if err := json.NewDecoder(text).Decode(&d); err != nil {
		t.Fatal(err)
	}
	return d
}

// Programs that have nothing to do with each other are said to be so, once; versions of one are not.
func TestDifferentProgramsAreSaidToBeSo(t *testing.T) {
	training, script := runs(t, twosides.Training(), 1), runs(t, twosides.Training(), 2)[0]
	script.Targets[0].Cell = nil // of the same text and functions
	other := sketch.CpuCell().View()
	other.Targets[0].Cell = nil
	for name, c := range map[string]struct {
		after *report.View
		want  int
	}{"another program": {other, 1}, "the same one": {script, 0}} {
		text := Text(pairOf(t, training, []*report.View{c.after}), 200)
		if n := strings.Count(text, "are different programs: "); n != c.want {
			t.Errorf("%s: it is said %d times:\n%s", name, n, text)
		}
	}
}

func TestAPeakThatDiffersIsInTheHeadline(t *testing.T) {
	p := pairs(t)["same"]
	p.Memory = &comparison.Memory{BeforeBytes: 127 << 20, AfterBytes: 242 << 20, Verdict: significance.More, AtLeast: [2]bool{true, false}}
	if got := Headline(p); !strings.Contains(got, "Peak memory: 242 MiB, before at least 127 MiB.") {
		t.Errorf("the headline is %q", got)
	}
	p.Memory.Verdict = significance.WithinNoise
	if got := Headline(p); strings.Contains(got, "memory") {
		t.Errorf("within noise it is %q", got)
	}
}
