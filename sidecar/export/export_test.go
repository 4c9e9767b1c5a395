package export

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/pprof/profile"
	"github.com/klauspost/compress/gzip"

	"github.com/omni-perf/omni-perf/sidecar/report"
)

// small is a cell of 2 s: it loads (waiting a while), then computes twice as
// deep; a second thread of a worker process; a track with a gap.
func small() *report.Report {
	return &report.Report{
		Generator: "omni_perf test", StartedAt: time.Unix(1_790_000_000, 5).UTC(), DurationS: 2, Headline: "half of it was loading",
		Target:    report.Target{PID: 100, PythonVersion: "3.12.1", Cell: &report.Cell{ExecutionCount: 7}},
		Sampling:  report.Sampling{Method: "process_vm_readv, read twice", IntervalS: 0.001},
		Processes: []report.Process{{PID: 100, Role: "kernel"}, {PID: 200, Parent: 100, Role: "worker"}},
		Threads: []report.Thread{
			{NativeID: 101, PID: 100, Name: "helper"}, {NativeID: 100, PID: 100, Name: "MainThread", IsMain: true, RunsCell: true},
			{NativeID: 200, PID: 200, Name: "MainThread"},
		},
		Stacks: report.Stacks{
			Frames: []report.Frame{
				{Function: "Cell [7]", File: "Cell [7]", Line: 1, FirstLine: 1}, {Function: "Cell [7]", File: "Cell [7]", Line: 2, FirstLine: 1},
				{Function: "load", File: "~/data.py", Line: 12, FirstLine: 10}, {Function: "fit", File: "~/model.py", Line: 40, FirstLine: 30},
			},
			Nodes: []report.Node{{}, {Parent: 0, Frame: 0}, {Parent: 1, Frame: 2}, {Parent: 0, Frame: 1}, {Parent: 3, Frame: 3}},
			Spans: report.Spans{
				Thread: []int{1, 1, 1, 1, 2}, StartS: []float64{0, 0.25, 1, 1.25, 0.5}, EndS: []float64{0.25, 1, 1.125, 2, 1.5},
				Node: []int{2, 2, 3, 4, 2}, State: []string{"python", "io", "python", "native", "waiting"}, Truncated: make([]bool, 5),
			},
		},
		Tracks: []report.Track{
			{ID: "cpu", Kind: "rate", Unit: "cores", T: []float64{0.5, 1, 2}, Value: []report.Figure{0.5, report.Figure(math.NaN()), 1}},
			{ID: "rss", Kind: "gauge", Unit: "B", T: []float64{1}, Value: []report.Figure{1 << 30}},
		},
		Steps: []report.Step{{StartS: 0, EndS: 1, DataWaitS: 0.5}, {StartS: 1, EndS: 2}},
		Idle:  &report.Idle{Devices: []report.DeviceIdle{{Device: 0, IdleS: 1, Intervals: [][2]float64{{0, 1}}}}},
	}
}

func unzip(t *testing.T, b []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestCollapsed(t *testing.T) {
	got, err := Collapsed(small())
	if err != nil {
		t.Fatal(err)
	}
	want := `MainThread (100);Cell [7] 125000
MainThread (100);Cell [7];fit (~/model.py:30) 750000
MainThread (100);Cell [7];load (~/data.py:10) 1000000
MainThread (pid 200, thread 200);Cell [7];load (~/data.py:10) 1000000
`
	if string(got) != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func readSpeedscope(t *testing.T, b []byte) speedscopeFile {
	t.Helper()
	var f speedscopeFile
	if err := json.Unmarshal(b, &f); err != nil {
		t.Fatal(err)
	}
	for _, p := range f.Profiles {
		sum := int64(0)
		for i, s := range p.Samples {
			sum += p.Weights[i]
			for _, fr := range s {
				if fr < 0 || fr >= len(f.Shared.Frames) {
					t.Fatalf("frame %d of %d", fr, len(f.Shared.Frames))
				}
			}
		}
		if len(p.Samples) != len(p.Weights) || sum != p.EndValue-p.StartValue {
			t.Errorf("%s: weights add up to %d, want %d", p.Name, sum, p.EndValue-p.StartValue)
		}
	}
	if len(f.Profiles) > 0 && (f.ActiveProfileIndex < 0 || f.ActiveProfileIndex >= len(f.Profiles)) {
		t.Errorf("active profile %d of %d", f.ActiveProfileIndex, len(f.Profiles))
	}
	return f
}

func TestSpeedscope(t *testing.T) {
	b, err := Speedscope(small())
	if err != nil {
		t.Fatal(err)
	}
	f := readSpeedscope(t, b)
	if f.Schema != "https://www.speedscope.app/file-format-schema.json" || f.Name != "Cell [7]" || len(f.Profiles) != 2 || len(f.Shared.Frames) != 4 {
		t.Fatalf("got %+v", f)
	}
	p := f.Profiles[f.ActiveProfileIndex]
	var stacks []string
	for i, s := range p.Samples {
		line := ""
		for _, fr := range s {
			line += f.Shared.Frames[fr].Name + ";"
		}
		stacks = append(stacks, line+strconv.FormatInt(p.Weights[i]/1e6, 10))
	}
	want := []string{"Cell [7];load;250", "Cell [7];load;750", "Cell [7];125", "125", "Cell [7];fit;750"}
	if p.Name != "MainThread (100)" || !slices.Equal(stacks, want) {
		t.Errorf("%s: got %q, want %q", p.Name, stacks, want)
	}
}

type traceEvent struct {
	Ph, Name, Cat string
	Pid, Tid      int
	Ts, Dur       float64
	Args          map[string]any
}

// readTrace parses a trace and checks that the slices of each row nest.
func readTrace(t *testing.T, b []byte) []traceEvent {
	t.Helper()
	var f struct{ TraceEvents []traceEvent }
	if err := json.Unmarshal(unzip(t, b), &f); err != nil {
		t.Fatal(err)
	}
	rows := make(map[[2]int][]traceEvent)
	for _, e := range f.TraceEvents {
		if e.Ph == "X" {
			rows[[2]int{e.Pid, e.Tid}] = append(rows[[2]int{e.Pid, e.Tid}], e)
		}
	}
	for row, events := range rows {
		slices.SortStableFunc(events, func(a, b traceEvent) int {
			if a.Ts != b.Ts {
				return int(math.Copysign(1, a.Ts-b.Ts))
			}
			return int(b.Dur - a.Dur)
		})
		var ends []float64
		for _, e := range events {
			for len(ends) > 0 && ends[len(ends)-1] <= e.Ts+0.0005 {
				ends = ends[:len(ends)-1]
			}
			if len(ends) > 0 && e.Ts+e.Dur > ends[len(ends)-1]+0.0005 {
				t.Errorf("row %v: %q %v + %v crosses the end of its caller at %v", row, e.Name, e.Ts, e.Dur, ends[len(ends)-1])
			}
			ends = append(ends, e.Ts+e.Dur)
		}
	}
	return f.TraceEvents
}

func TestChromeTrace(t *testing.T) {
	b, err := ChromeTrace(small())
	if err != nil {
		t.Fatal(err)
	}
	type slice struct {
		name     string
		tid      int
		from, to float64 // ms
	}
	var slices_ []slice
	counters := make(map[string][]float64)
	names := make(map[int]string)
	for _, e := range readTrace(t, b) {
		switch e.Ph {
		case "X":
			slices_ = append(slices_, slice{e.Name, e.Tid, e.Ts / 1e3, (e.Ts + e.Dur) / 1e3})
		case "C":
			for unit, v := range e.Args {
				counters[e.Name+" "+unit] = append(counters[e.Name+" "+unit], e.Ts/1e6, v.(float64))
			}
		case "M":
			if e.Name == "thread_name" {
				names[e.Tid] = e.Args["name"].(string)
			}
		}
	}
	for _, want := range []slice{
		{"Cell [7]", 100, 0, 1125}, {"load", 100, 0, 1000}, {"io", 100, 250, 1000}, {"Cell [7]", 100, 1250, 2000}, {"fit", 100, 1250, 2000},
		{"load", 200, 500, 1500}, {"waiting", 200, 500, 1500}, {"step 0", stepsRow, 0, 1000}, {"idle", gpuIdleRow, 0, 1000},
	} {
		if !slices.Contains(slices_, want) {
			t.Errorf("no slice %v in %v", want, slices_)
		}
	}
	if got, want := counters["cpu cores"], []float64{0, 0.5, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("cpu: %v, want %v", got, want)
	}
	if got, want := counters["rss B"], []float64{1, 1 << 30}; !slices.Equal(got, want) {
		t.Errorf("rss: %v, want %v", got, want)
	}
	if names[100] != "MainThread" || names[gpuIdleRow] != "GPU 0 idle" {
		t.Errorf("thread names: %v", names)
	}
}

// readPprof returns "leaf:line,caller:line|thread|state" → wall and CPU time.
func readPprof(t *testing.T, b []byte) map[string][2]int64 {
	t.Helper()
	p, err := profile.ParseData(b)
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string][2]int64)
	for _, s := range p.Sample {
		var stack []string
		for _, l := range s.Location {
			f := l.Line[0].Function
			if !utf8.ValidString(f.Name) || !utf8.ValidString(f.Filename) {
				t.Errorf("%q in %q is not UTF-8", f.Name, f.Filename)
			}
			stack = append(stack, f.Name+":"+strconv.FormatInt(l.Line[0].Line, 10))
		}
		key := strings.Join([]string{strings.Join(stack, ","), s.Label["thread"][0], s.Label["state"][0]}, "|")
		got[key] = [2]int64{s.Value[0], s.Value[1]}
	}
	return got
}

func TestPprof(t *testing.T) {
	b, err := Pprof(small())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][2]int64{
		"load:12,Cell [7]:1|MainThread (100)|python":                  {250e6, 250e6},
		"load:12,Cell [7]:1|MainThread (100)|io":                      {750e6, 0},
		"Cell [7]:2|MainThread (100)|python":                          {125e6, 125e6},
		"fit:40,Cell [7]:2|MainThread (100)|native":                   {750e6, 750e6},
		"load:12,Cell [7]:1|MainThread (pid 200, thread 200)|waiting": {1000e6, 0},
	}
	got := readPprof(t, b)
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%q: got %v, want %v", k, got[k], v)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %v", got)
	}
}

// The tool itself reads the file.
func TestGoToolPprof(t *testing.T) {
	tool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go on PATH")
	}
	b, err := Pprof(small())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "small.pb.gz")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(tool, "tool", "pprof", "-top", "-sample_index=wall", path).CombinedOutput()
	if err != nil {
		if strings.Contains(string(out), "no such tool") {
			t.Skip("this Go has no pprof")
		}
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"Type: wall", "Duration: 2s", "2000ms 69.57%", "load"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the tool does not say %q:\n%s", want, out)
		}
	}
}

// exportAll writes every format and reads it back.
func exportAll(t *testing.T, r *report.Report) {
	t.Helper()
	collapsed, err := Collapsed(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSuffix(string(collapsed), "\n"), "\n") {
		if i := strings.LastIndexByte(line, ' '); line != "" {
			if n, err := strconv.ParseInt(line[i+1:], 10, 64); i < 0 || err != nil || n <= 0 {
				t.Errorf("line %q", line)
			}
		}
	}
	b, err := Speedscope(r)
	if err != nil {
		t.Fatal(err)
	}
	readSpeedscope(t, b)
	if b, err = ChromeTrace(r); err != nil {
		t.Fatal(err)
	}
	readTrace(t, b)
	if b, err = Pprof(r); err != nil {
		t.Fatal(err)
	}
	readPprof(t, b)
}

func TestUglyReports(t *testing.T) {
	ugly := small()
	for i, s := range []string{"a;b 3\n\x00", "\xff\xed\xa0\x80", `"<&>\`, strings.Repeat("é", 9000)} {
		ugly.Stacks.Frames[i].Function, ugly.Stacks.Frames[i].File = s, s
	}
	ugly.Threads[1].Name, ugly.Tracks[0].ID, ugly.Tracks[0].Unit, ugly.Name = "x;y\n 7", "\x00", "\xff", "\n"
	unsound := small()
	unsound.Stacks.Nodes[1].Parent, unsound.Stacks.Nodes[3].Frame, unsound.Stacks.Nodes[2].Frame = 4, 99, -1
	unsound.Stacks.Spans.StartS[1], unsound.Stacks.Spans.EndS[2] = math.NaN(), math.Inf(1)
	unsound.Stacks.Spans.Thread[0], unsound.Stacks.Spans.Node[3] = -1, 77
	unsound.DurationS, unsound.Stacks.Spans.StartS[3] = math.Inf(-1), 0.1
	for name, r := range map[string]*report.Report{"nothing": {}, "ugly": ugly, "unsound": unsound} {
		t.Run(name, func(t *testing.T) { exportAll(t, r) })
	}
}

func TestDeepRecursionIsCut(t *testing.T) {
	r := small()
	for range 5000 {
		r.Stacks.Nodes = append(r.Stacks.Nodes, report.Node{Parent: len(r.Stacks.Nodes) - 1, Frame: 2})
	}
	r.Stacks.Spans.Node[0] = len(r.Stacks.Nodes) - 1
	if got := len(historyOf(r).stack(r.Stacks.Spans.Node[0])); got != maxDepth {
		t.Errorf("%d frames, want %d", got, maxDepth)
	}
	exportAll(t, r)
}

func FuzzExport(f *testing.F) {
	r := small()
	b, err := json.Marshal(r)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		var r report.Report
		if json.Unmarshal(doc, &r) == nil {
			exportAll(t, &r)
		}
	})
}
