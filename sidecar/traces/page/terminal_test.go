package page

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// TestAPlaceThatIsCutKeepsItsLine: a terminal that is too narrow shows the end of a place, the beginning of a name.
func TestAPlaceThatIsCutKeepsItsLine(t *testing.T) {
	const path = "/home/somebody/projects/models/training/train.py:123"
	places := table.New("t", "Places", &table.Column{Name: "place", Kind: table.Text}, &table.Column{Name: "name", Kind: table.Text})
	places.Add(path, path)
	var text strings.Builder
	out := bufio.NewWriter(&text)
	writeTable(out, places, "Places", nil, 5, 60)
	out.Flush()
	for _, want := range []string{"…", "/train.py:123  /home/somebody/"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q does not contain %q", text.String(), want)
		}
	}
}

// TestTheLastStepIsSaidToBeLeftOut where it is about as long as the others.
func TestTheLastStepIsSaidToBeLeftOut(t *testing.T) {
	file := filepath.Join(t.TempDir(), "steps.json")
	for last, want := range map[int]string{
		90: "1 rank, 2 profiler steps (the last one left out; --last-step counts it)",
		10: "1 rank, 2 profiler steps",
	} {
		const step = `{"ph":"X","cat":"user_annotation","name":"ProfilerStep#%d","pid":1,"tid":1,"ts":%d,"dur":%d}`
		text := fmt.Sprintf(`{"traceEvents": [`+step+","+step+","+step+"]}", 1, 0, 100, 2, 100, 100, 3, 200, last)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := analysed(t, file).about(); got != want {
			t.Errorf("a last step of %d µs: got %q, want %q", last, got, want)
		}
	}
}

// TestOneOfEach: of one call and one kernel nothing is said in the plural; what has no figure has no heading; and the time of an
// annotation without those inside it is not called as an operator's without those it calls.
func TestOneOfEach(t *testing.T) {
	file := filepath.Join(t.TempDir(), "one.json")
	const events = `{"ph":"X","cat":"user_annotation","name":"outer","pid":1,"tid":1,"ts":0,"dur":%[1]d},
		{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":1,"dur":8,"args":{"External id":1}},
		{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":%[2]d,"dur":2,"args":{"correlation":7}},
		{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":50,"dur":5,"args":{"device":0,"stream":7,"correlation":7}}`
	report := func(annotation, launch int) (text, charts string) {
		if err := os.WriteFile(file, fmt.Appendf(nil, `{"traceEvents": [`+events+`]}`, annotation, launch), 0o600); err != nil {
			t.Fatal(err)
		}
		r := analysed(t, file)
		var b strings.Builder
		if err := r.Text(&b, 160); err != nil {
			t.Fatal(err)
		}
		for _, c := range r.Charts(Light) {
			charts += string(c.SVG)
		}
		return b.String(), charts
	}
	text, charts := report(40, 2)
	if !strings.Contains(text, "device without inner  calls  annotation") {
		t.Errorf("the annotations' heading is not in\n%s", text)
	}
	for _, want := range []string{"1 launch with a delay of", "cudaLaunchKernel: 2 µs in 1 call"} {
		if !strings.Contains(charts, want) {
			t.Errorf("%q is not in the charts", want)
		}
	}
	for _, not := range []string{"in 1 calls", "1 launches"} {
		if strings.Contains(charts, not) {
			t.Errorf("%q is in the charts", not)
		}
	}
	if text, _ := report(10, 20); strings.Contains(text, "\nAnnotations\n") {
		t.Errorf("annotations without device time have a heading in\n%s", text)
	}
}
