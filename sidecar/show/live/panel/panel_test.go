package panel

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/show/live"
	"github.com/omni-perf/omni-perf/sidecar/testkit/golden"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

func ptr[T any](v T) *T { return &v }

// aTraining is a look at a training cell that waits for its data.
func aTraining() *live.Now {
	return &live.Now{
		ElapsedNS: 754_300_000_000, Cell: 5, Name: "starved",
		Line:  &live.Position{Place: "line 3", Text: "batch = load_batch(number)", SinceNS: 400_000_000},
		Inner: &live.Position{Place: "data.py:41", Function: "load_batch", Text: "time.sleep(latency)", SinceNS: 31_000_000_000},
		Doing: &live.Doing{Cause: activity.LoadHere, Share: 0.72},
		Lines: []live.HotLine{
			{Place: "data.py:41", Function: "load_batch", Text: "time.sleep(latency)", SelfNS: 512e9, Share: 0.68},
			{Place: "line 4", Text: "loss = train_step(network, batch)", SelfNS: 200e9, Share: 0.27},
			{Place: "line 9", Text: "pass", SelfNS: 1e9, Share: 0.001},
		},
		Steps:  &live.Steps{Count: ptr(int64(1820)), Total: ptr(int64(40000)), PerSecond: ptr(2.41), LeftNS: ptr(int64(15842e9))},
		CPU:    &live.Figure{Value: 1.24, Limit: 16},
		Memory: &live.Figure{Value: 3.4e9},
		Devices: []live.Device{
			{Index: 0, Used: true, Busy: ptr(0.31), Memory: &live.Figure{Value: 9e9, Limit: 80e9}},
			{Index: 1, Busy: ptr(0.0)},
		},
		Idle:    &live.Idle{Share: 0.69, Cause: activity.LoadHere, Place: "line 3", OfIdle: 0.9, Sure: true},
		History: live.History{CPU: []*float64{ptr(0.1), ptr(0.08), nil, ptr(0.5), ptr(1.0)}, Busy: []*float64{nil, ptr(0.2), ptr(0.31)}},
	}
}

// hostile has foreign text wherever there is some.
func hostile(text string) *live.Now {
	n := aTraining()
	n.Name = text
	*n.Line = live.Position{Place: text, Function: text, Text: text, SinceNS: 5e9}
	*n.Inner = *n.Line
	n.Idle.Place = text
	for i := range n.Lines {
		n.Lines[i].Place, n.Lines[i].Text = text, text
	}
	return n
}

func TestLivePictures(t *testing.T) {
	for name, n := range map[string]*live.Now{
		"training": aTraining(),
		"begins":   {Cell: 2, Lines: []live.HotLine{}},
		"process":  {ElapsedNS: 12e9, Doing: &live.Doing{Cause: activity.Native, Share: 1}, CPU: &live.Figure{Value: 1}, Steps: &live.Steps{PerSecond: ptr(0.12)}},
	} {
		golden.Check(t, "live-"+name+".txt", []byte(strings.Join(Text(n, 100, false), "\n")+"\n\n"+Line(n)+"\n"))
		golden.Check(t, "live-"+name+".html", HTML(n, scene.Auto))
	}
}

func TestLiveTextFitsItsTerminal(t *testing.T) {
	for _, n := range []*live.Now{aTraining(), hostile("日本語のとても長い名前" + strings.Repeat("x", 300))} {
		for width := 1; width < 140; width++ {
			for i, line := range Text(n, width, false) {
				if got := words.Columns(line); got > width {
					t.Fatalf("line %d has %d columns of %d: %q", i, got, width, line)
				}
			}
		}
	}
}

func TestLiveTextHasNoCommandsForATerminal(t *testing.T) {
	n := hostile("\x1b]0;owned\x07\x1b[2J\r\n\u202e\u0085evil")
	for _, line := range append(Text(n, 200, false), Line(n)) {
		if strings.ContainsAny(line, "\x1b\x07\r\n\u202e\u0085") {
			t.Errorf("%q", line)
		}
	}
	for _, line := range Text(n, 200, true) {
		for _, face := range []string{"\x1b[1m", "\x1b[2m", "\x1b[0m"} {
			line = strings.ReplaceAll(line, face, "")
		}
		if strings.ContainsRune(line, '\x1b') {
			t.Errorf("%q", line)
		}
	}
}

func TestLiveHTMLIsWellFormedWithoutAScript(t *testing.T) {
	for _, text := range []string{`</div><script>alert(1)</script>`, `" onmouseover="alert(1)`, "a & b <c> 'd'", "\x00\x1b\ufffe"} {
		page := string(HTML(hostile(text), scene.Auto))
		if strings.Contains(page, "<script") || strings.Contains(page, ` onmouseover="`) {
			t.Errorf("%q got through", text)
		}
		d := xml.NewDecoder(strings.NewReader(page))
		for {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
		}
	}
	if size := len(HTML(aTraining(), scene.Auto)); size > 12_000 {
		t.Errorf("a look takes %d bytes each second", size)
	}
}

func TestStepsAreToldInTheUnitOfTheirPace(t *testing.T) {
	for _, c := range []struct {
		steps live.Steps
		want  string
	}{
		{live.Steps{Count: ptr(int64(1))}, "1 step"},
		{live.Steps{Count: ptr(int64(12)), PerSecond: ptr(0.125)}, "12 steps · 8.0 s a step"},
		{live.Steps{PerSecond: ptr(123.4)}, "123 steps/s"},
		{live.Steps{PerSecond: ptr(12345.6)}, "12,346 steps/s"},
		{live.Steps{Count: ptr(int64(10)), Total: ptr(int64(10)), PerSecond: ptr(2.0), LeftNS: ptr(int64(0))}, "step 10 of 10 · 2 steps/s"},
		{live.Steps{Count: ptr(int64(5)), Total: ptr(int64(10)), PerSecond: ptr(2.0), LeftNS: ptr(int64(2.2e9))}, "step 5 of 10 · 2 steps/s · about 3 s left"},
	} {
		if got, _, _ := progressOf(&c.steps); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

func ExampleText() {
	fmt.Println(strings.Join(Text(aTraining(), 80, false)[:5], "\n"))
	// Output:
	// Cell [5] starved · 12 min 34 s  step 1,820 of 40,000 · 2.41 steps/s · about 4 h…
	// ━━──────────────────────────────────────────────────────────
	//
	// now         line 3  batch = load_batch(number)
	//             data.py:41 load_batch  time.sleep(latency)  for 31 s
}
