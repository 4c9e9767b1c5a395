package page

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/traces"
	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/closeup"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/synth"
)

// closeUp is a result of traces with their steps.
func closeUp(t *testing.T, path string) *Result {
	t.Helper()
	names := append(analyses.DefaultTables(), analyses.Series()...)
	a, err := traces.Run(context.Background(), []string{path}, kineto.Options{}, analyses.Options{Tables: names})
	if err != nil {
		t.Fatal(err)
	}
	steps, err := closeup.Of(context.Background(), a)
	if err != nil {
		t.Fatal(err)
	}
	return &Result{Name: "run", Analysis: a, Steps: steps}
}

func pageOf(t *testing.T, r *Result) string {
	t.Helper()
	var out bytes.Buffer
	if err := r.Page(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func stepsOf(t *testing.T, ranks int) *Result {
	t.Helper()
	dir := t.TempDir()
	cfg := synth.Config{Seed: 3, Ranks: ranks, Steps: 6, Straggler: 1, StragglerDelay: 5 * time.Millisecond, Stacks: true, Memory: true}
	if _, err := synth.WriteDir(cfg, dir, true); err != nil {
		t.Fatal(err)
	}
	return closeUp(t, dir)
}

// TestThePageReadsFromTheAnswerOn: the answer, five findings, the steps, the small
// charts, and at the end what is folded.
func TestThePageReadsFromTheAnswerOn(t *testing.T) {
	r := stepsOf(t, 3)
	text, findings := pageOf(t, r), r.headline()
	if len(findings) < 2+atOnce || len(r.Steps) != 3 {
		t.Fatalf("%d findings and %d steps: this needs more", len(findings), len(r.Steps))
	}
	marks := []string{`class="answer">` + html.EscapeString(findings[0])}
	for _, f := range findings[1 : 1+atOnce] {
		marks = append(marks, "<li>"+html.EscapeString(f))
	}
	marks = append(marks, "<summary>"+plural(len(findings)-1-atOnce, "more finding"), `for="step0">Step `, ">The median of 5 steps by their length.<", "<dt>device idle</dt>",
		"Kernels by device time", ">All of it<", "Where the device time went", " tables</summary>")
	at := 0
	for _, mark := range marks {
		i := strings.Index(text[at:], mark)
		if i < 0 {
			t.Fatalf("%q does not stand after what comes before it", mark)
		}
		at += i
	}
	if n := strings.Count(text, `<input type="radio" name="step"`); n != 3 {
		t.Errorf("%d steps can be chosen, want 3", n)
	}
	if most := 1500 << 10; len(text) > most {
		t.Errorf("the page has %d bytes, at most %d are promised", len(text), most)
	}
}

// TestAStepIsToldOnce: what a picture says above a step is what the figures
// beside it say.
func TestAStepIsToldOnce(t *testing.T) {
	r := stepsOf(t, 1)
	text := pageOf(t, r)
	for i := range r.Steps {
		c := &r.Steps[i]
		busy, devices := busyShare(c.Report)
		var shown string
		for _, f := range stepFigures(c) {
			if f.Name == "device busy" {
				shown = f.Value
			}
		}
		if want := length(busy * float64(c.Length) / 1e3); devices != 1 || shown != want {
			t.Errorf("step %d: the picture says busy for %s, the figures %s", c.Step, want, shown)
		}
		if !strings.Contains(text, fmt.Sprintf(">Step %d, %s<", c.Step, c.Reason)) {
			t.Errorf("step %d cannot be chosen", c.Step)
		}
	}
}

var (
	policyText  = regexp.MustCompile(`Content-Security-Policy" content="([^"]*)"`)
	scriptTexts = regexp.MustCompile(`(?s)<script>(.*?)</script>`)
	styleTexts  = regexp.MustCompile(`(?s)<style[^>]*>(.*?)</style>`)
)

// TestThePolicyAllowsWhatStandsThere and nothing else, by hash.
func TestThePolicyAllowsWhatStandsThere(t *testing.T) {
	text := pageOf(t, stepsOf(t, 1))
	policy := html.UnescapeString(policyText.FindStringSubmatch(text)[1])
	if strings.Contains(policy, "unsafe") || !strings.HasPrefix(policy, "default-src 'none'; ") {
		t.Errorf("the policy is %s", policy)
	}
	scripts, styles := scriptTexts.FindAllStringSubmatch(text, -1), styleTexts.FindAllStringSubmatch(text, -1)
	if len(scripts) != 1 || len(styles) < 3 {
		t.Fatalf("%d scripts and %d style sheets", len(scripts), len(styles))
	}
	inside := []string{scripts[0][1]}
	for _, m := range styles {
		inside = append(inside, strings.NewReplacer("<![CDATA[", "", "]]>", "").Replace(m[1]))
	}
	for _, text := range inside {
		sum := sha256.Sum256([]byte(text))
		if !strings.Contains(policy, base64.StdEncoding.EncodeToString(sum[:])) {
			t.Errorf("the policy forbids %.80s…", text)
		}
	}
	if n := strings.Count(text, ` style="`); n > 0 {
		t.Errorf("%d attributes style, which the policy forbids", n)
	}
}

// TestHostileNamesInAStep: names of operators, functions, kernels and threads are text
// in the picture, in its data and in the tables.
func TestHostileNamesInAStep(t *testing.T) {
	const evil = `</script><script>alert(1)</script><img src=x onerror=alert(1)>\u0007\u202E&quot;`
	path := filepath.Join(t.TempDir(), "trace.json")
	text := `{"deviceProperties":[{"id":0,"name":"` + evil + `"}],"traceEvents":[
{"ph":"M","name":"thread_name","pid":9,"tid":9,"args":{"name":"` + evil + `"}},
{"ph":"X","pid":9,"tid":9,"cat":"user_annotation","name":"ProfilerStep#1","ts":0,"dur":1000},
{"ph":"X","pid":9,"tid":9,"cat":"python_function","name":"` + evil + `.py(3): ` + evil + `","ts":1,"dur":900},
{"ph":"X","pid":9,"tid":9,"cat":"user_annotation","name":"` + evil + `","ts":2,"dur":800},
{"ph":"X","pid":9,"tid":9,"cat":"cpu_op","name":"aten` + evil + `","ts":3,"dur":700},
{"ph":"X","pid":9,"tid":9,"cat":"cuda_runtime","name":"cuda` + evil + `","ts":4,"dur":600,"args":{"correlation":1}},
{"ph":"X","pid":0,"tid":7,"cat":"kernel","name":"void ` + evil + `","ts":50,"dur":400,"args":{"device":0,"stream":7,"correlation":1}}]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := closeUp(t, path)
	if len(r.Steps) != 1 {
		t.Fatalf("%d steps", len(r.Steps))
	}
	var fragment bytes.Buffer
	if err := r.Fragment(&fragment); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"page": pageOf(t, r), "fragment": fragment.String()} {
		for _, wrong := range []string{"<script>alert", "<img src=x", "\a", "\u202E"} {
			if strings.Contains(text, wrong) {
				t.Errorf("the %s holds %q", name, wrong)
			}
		}
	}
}

// TestAFragmentKeepsTheRulesOfACell: picture, data and script of a step take what those
// of a cell may, the rest is beside them.
func TestAFragmentKeepsTheRulesOfACell(t *testing.T) {
	r := stepsOf(t, 3)
	step, err := r.fragmentStep(&r.Steps[0])
	if err != nil {
		t.Fatal(err)
	}
	if most := 160_000; len(step.Figure) > most {
		t.Errorf("a step takes %d bytes of a notebook, a cell of its length at most %d", len(step.Figure), most)
	}
	var out bytes.Buffer
	if err := r.Fragment(&out); err != nil {
		t.Fatal(err)
	}
	if most := 500_000; out.Len() > most {
		t.Errorf("the whole output has %d bytes, want at most %d", out.Len(), most)
	}
}

// TestManyRanksAreAStrip: up to eight have a bar each, from nine on a cell each, and the
// one to look at is named.
func TestManyRanksAreAStrip(t *testing.T) {
	rows := func(n int) (list []bar) {
		for i := range n {
			v := float64(1 + i%7)
			list = append(list, bar{fmt.Sprintf("rank %d", i), fmt.Sprintf("%d %% idle", i), []part{
				{10, paintCompute, fmt.Sprintf("cell %d computing", i)}, {v, paintIdle, fmt.Sprintf("cell %d idle", i)}, {0, paintMemory, "nothing"},
			}, v})
		}
		return list
	}
	legends := []legend{{paintCompute, "computing"}, {paintIdle, "idle"}, {paintMemory, "memory"}}
	draw := func(n int) string {
		c := bars(Auto, shortNames, "x", "X", "", legends, rows(n), 0)
		wellFormed(t, "strip", c.SVG)
		if len(c.SVG) > 60<<10 {
			t.Errorf("%d ranks: %d bytes", n, len(c.SVG))
		}
		return string(c.SVG)
	}
	if svg := draw(8); !strings.Contains(svg, ">rank 3<") || strings.Contains(svg, "most: ") {
		t.Error("eight ranks have no bar each")
	}
	nine := draw(9)
	if strings.Contains(nine, ">rank 3<") || !strings.Contains(nine, ">most: rank 6, 6 % idle<") {
		t.Error("nine ranks are no strip that names the heaviest")
	}
	if strings.Contains(nine, ">memory<") {
		t.Error("a kind that nobody has is drawn")
	}
	for i := range 9 {
		if !strings.Contains(nine, fmt.Sprintf(">cell %d idle<", i)) {
			t.Errorf("rank %d has no cell", i)
		}
	}
	if n := strings.Count(draw(1000), "<title>cell "); n != 2*maxCells {
		t.Errorf("1,000 ranks have %d cells, want %d", n, 2*maxCells)
	}
}

// TestFindingsAtOnce: the line of Python, the loader, the synchronising call and
// the straggler can be read without opening anything; what is folded is counted.
func TestFindingsAtOnce(t *testing.T) {
	r, _ := training(t)
	d := r.page(Auto, pageRows)
	for _, want := range []string{"The steps waited for data", "Python was in", "ran out of work while the host waited in", "Rank 2 came last to"} {
		if !slices.ContainsFunc(d.Findings, func(line string) bool { return strings.Contains(line, want) }) {
			t.Errorf("%q is not among\n%s", want, strings.Join(d.Findings, "\n"))
		}
	}
	if !slices.ContainsFunc(d.More, func(line string) bool { return strings.Contains(line, "is hidden behind computation") }) {
		t.Errorf("folded is %q, want the communication's", d.More)
	}
	var out bytes.Buffer
	if err := r.Fragment(&out); err != nil {
		t.Fatal(err)
	}
	if want := "<summary>" + plural(len(d.More), "more finding") + "</summary>"; !strings.Contains(out.String(), want) {
		t.Errorf("the display has no %q", want)
	}
}
