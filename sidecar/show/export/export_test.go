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

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// small is a cell of 2 s: it loads (waiting a while), then computes twice as
// deep; a second thread of a worker process; a track with a gap.
func small() *report.Document {
	count, zero, parent := 7, 0, 0
	states := make(report.StateTimes, report.NumStates)
	return &report.Document{
		Document: report.Kind, Version: report.Version, Generator: report.Generator{Name: "omni_perf", Version: "test"},
		StartedAt: time.Unix(1_790_000_000, 5).UTC(), DurationNS: 2e9, Headline: report.Headline{Text: "half of it was loading"},
		Hosts: make([]report.Host, 1),
		Targets: []report.Target{{
			Kind: report.TargetCell, Name: "Cell [7]", PythonVersion: "3.12.1", EndNS: 2e9, Cell: &report.Cell{ExecutionCount: &count},
			Sampling: report.Sampling{Text: "process_vm_readv, read twice", AskedNS: 1e6},
		}},
		Processes: []report.Process{{PID: 100, Role: "kernel"}, {PID: 200, Parent: &parent, Role: "worker"}},
		Threads: []report.Thread{
			{NativeID: 101, Name: "helper", StateNS: states}, {NativeID: 100, Name: "MainThread", Main: true, RunsCell: true, StateNS: states},
			{Process: 1, NativeID: 200, Name: "MainThread", StateNS: states},
		},
		Devices: []report.Device{{BusyNS: 1e9, IdleNS: 1e9}},
		Files:   []report.File{{Name: "Cell [7]"}, {Name: "~/data.py"}, {Name: "~/model.py"}},
		Functions: []report.Function{
			{Name: "<module>", FirstLine: 1}, {File: 1, Name: "load", FirstLine: 10}, {File: 2, Name: "fit", FirstLine: 30},
		},
		Frames: report.Frames{Function: report.Column{0, 0, 1, 2}, Line: report.Column{1, 2, 12, 40}},
		Nodes:  report.Nodes{Parent: report.Column{0, 0, 1, 0, 3}, Frame: report.Column{0, 0, 2, 1, 3}},
		Spans: report.Spans{
			First: report.Column{0, 0, 4, 5}, GapUS: report.Column{0, 0, 0, 125_000, 500_000},
			LengthUS: report.Column{250_000, 750_000, 125_000, 750_000, 1_000_000}, Node: report.Column{2, 2, 3, 4, 2}, State: report.Column{0, 3, 0, 1, 2},
		},
		Tracks: []report.Track{
			{ID: "cpu", Kind: report.Rate, Unit: "cores", AtUS: report.Column{500_000, 1_000_000, 2_000_000}, Value: report.Figures{0.5, math.NaN(), 1}},
			{ID: "rss", Kind: report.Gauge, Unit: "B", AtUS: report.Column{1_000_000}, Value: report.Figures{1 << 30}},
			{ID: "gpu.util", Device: &zero, Kind: report.Rate, Unit: "%", AtUS: report.Column{1_000_000}, Value: report.Figures{50}},
		},
		Steps: []report.Step{{StartNS: 0, EndNS: 1e9, DataWaitNS: 5e8}, {StartNS: 1e9, EndNS: 2e9}},
		Idle: &report.Idle{IdleNS: 1e9, Causes: []report.Cause{{NS: 1e9, Share: 1}},
			Devices: []report.DeviceIdle{{Device: 0, IdleNS: 1e9, Causes: []report.Cause{{NS: 1e9, Share: 1}}, Intervals: []report.Interval{{0, 1e9}}}}},
		Enumerations: report.Enumerations{State: []string{"python", "native", "waiting", "io", "gil", "off", "unknown"}, Code: []string{"cell"}},
	}
}

// check makes the view of a document that is sound.
func check(t testing.TB, d *report.Document) *report.View {
	t.Helper()
	v, err := report.Check(d)
	if err != nil {
		t.Fatal(err)
	}
	return v
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
	got, err := Collapsed(check(t, small()))
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
	b, err := Speedscope(check(t, small()))
	if err != nil {
		t.Fatal(err)
	}
	f := readSpeedscope(t, b)
	if f.Schema != "https://www.speedscope.app/file-format-schema.json" || f.Name != "Cell [7]" || len(f.Profiles) != 2 || len(f.Shared.Frames) != 3 {
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
	b, err := ChromeTrace(check(t, small()))
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
	if got, want := counters["gpu0.util %"], []float64{0, 50}; !slices.Equal(got, want) {
		t.Errorf("util: %v, want %v", got, want)
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

// readPprofByStep returns "leaf|step" → wall time.
func readPprofByStep(t *testing.T, b []byte) map[string]int64 {
	t.Helper()
	p, err := profile.ParseData(b)
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]int64)
	for _, s := range p.Sample {
		got[s.Location[0].Line[0].Function.Name+"|"+strings.Join(s.Label["step"], ",")] += s.Value[0]
	}
	return got
}

func TestPprof(t *testing.T) {
	b, err := Pprof(check(t, small()))
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
	b, err := Pprof(check(t, small()))
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
func exportAll(t *testing.T, r *report.View) {
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
	if b, err = OTLP(r); err != nil {
		t.Fatal(err)
	}
	readOTLP(t, b)
	for p := range r.Processes {
		if b, err = PprofOfProcess(r, p); err != nil {
			t.Fatal(err)
		}
		if b != nil {
			readPprof(t, b)
		}
	}
}

func TestUglyReports(t *testing.T) {
	ugly := small()
	for i, s := range []string{"a;b 3\n\x00", "\xff\xed\xa0\x80", `"<&>\`, strings.Repeat("é", 9000)} {
		ugly.Functions[i%3].Name, ugly.Files[i%3].Name = s, s
	}
	ugly.Threads[1].Name, ugly.Tracks[0].ID, ugly.Tracks[0].Unit, ugly.Name = "x;y\n 7", "\x00", "\xff", "\n"
	exportAll(t, check(t, ugly))
}

func TestDeepRecursionIsCut(t *testing.T) {
	d := small()
	for range 5000 {
		d.Nodes.Parent, d.Nodes.Frame = append(d.Nodes.Parent, int64(len(d.Nodes.Parent)-1)), append(d.Nodes.Frame, 2)
	}
	d.Spans.Node[0] = int64(len(d.Nodes.Parent) - 1)
	r := check(t, d)
	if got := len(r.Stack(r.History(1)[0].Node, maxDepth)); got != maxDepth {
		t.Errorf("%d frames, want %d", got, maxDepth)
	}
	exportAll(t, r)
}

// What is read can be written in every format.
func FuzzExport(f *testing.F) {
	text, err := json.Marshal(small())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		if r, err := report.Read(text); err == nil {
			exportAll(t, r)
		}
	})
}
