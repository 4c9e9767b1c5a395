package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/synth"
)

func madeTraces(t *testing.T) (dir string, answers synth.Answers) {
	t.Helper()
	dir = t.TempDir()
	known := filepath.Join(t.TempDir(), "answers")
	if out, errs, code := invoke(t, "make-traces "+dir+" --ranks 3 --steps 4 --straggler 1 --answers "+known); code != exitOK {
		t.Fatalf("make-traces: exit status %d, %s%s", code, out, errs)
	}
	text, err := os.ReadFile(known)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &answers); err != nil {
		t.Fatal(err)
	}
	return dir, answers
}

func TestAnalyzeWritesWhatIsAskedFor(t *testing.T) {
	dir, answers := madeTraces(t)
	out := t.TempDir()
	in := func(name string) string { return filepath.Join(out, name) }
	text, errs, code := invoke(t, strings.Join([]string{
		"analyze", dir, "--json", in("a.json"), "--csv", in("csv"), "--html", in("a.html"), "--svg", in("svg"),
		"--merged", in("merged_trace.json"), "--summary", in("profiler_list.dat"), "--display", in("display.json"),
		"--memory-snapshot", filepath.Join(dir, synth.SnapshotName),
	}, " "))
	if code != exitOK {
		t.Fatalf("exit status %d: %s", code, errs)
	}
	for _, want := range []string{"3 ranks, 3 profiler steps", "Rank 1 came last", "Where the device time went", "Memory at the peak"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report does not say %q:\n%s", want, text)
		}
	}
	if !strings.Contains(errs, "clocks of all 3 ranks are aligned") {
		t.Errorf("stderr %q does not say how clocks were aligned", errs)
	}
	for _, name := range []string{"a.html", "csv/temporal_breakdown.csv", "csv/memory_timeline.csv", "svg/temporal.svg", "merged_trace.json", "profiler_list.dat", "display.json"} {
		if info, err := os.Stat(in(name)); err != nil || info.Size() == 0 {
			t.Errorf("%s was not written: %v", name, err)
		}
	}
	document, err := os.ReadFile(in("a.json"))
	if err != nil {
		t.Fatal(err)
	}
	var parsed struct {
		Temporal []struct {
			Rank int
			Idle float64 `json:"idle_time_us"`
		} `json:"temporal_breakdown"`
		Peak     []any `json:"snapshot_peak"`
		Timeline []any `json:"memory_timeline"`
	}
	if err := json.Unmarshal(document, &parsed); err != nil {
		t.Fatal(err)
	}
	if len(parsed.Temporal) != 3 || len(parsed.Peak) == 0 || parsed.Timeline != nil {
		t.Errorf("%d ranks, %d rows of the peak, %d of a series nobody asked for", len(parsed.Temporal), len(parsed.Peak), len(parsed.Timeline))
	}
	for _, row := range parsed.Temporal {
		if want := float64(answers.Ranks[row.Rank].Kept.Idle) / 1000; math.Abs(row.Idle-want) > 1e-6 {
			t.Errorf("rank %d: idle %g µs, want %g", row.Rank, row.Idle, want)
		}
	}
}

func TestAnalyzeJSONAloneOnStandardOutput(t *testing.T) {
	dir, _ := madeTraces(t)
	out, errs, code := invoke(t, "analyze --json - --ranks 1-2 --mode hta-ns --tables temporal_breakdown "+dir)
	var parsed map[string]any
	if err := json.Unmarshal([]byte(out), &parsed); err != nil || code != exitOK {
		t.Fatalf("exit status %d, %v, %s", code, err, errs)
	}
	if got := parsed["ranks"]; !reflect.DeepEqual(got, []any{1.0, 2.0}) || parsed["mode"] != "hta-ns" {
		t.Errorf("ranks %v, mode %v", got, parsed["mode"])
	}
}

// TestAnalyzeDevicesAndCycles: one process, two devices, recorded three times; the
// JSON says so, and what matters most.
func TestAnalyzeDevicesAndCycles(t *testing.T) {
	dir := t.TempDir()
	if _, errs, code := invoke(t, "make-traces "+dir+" --devices 2 --cycles 3 --steps 4"); code != exitOK {
		t.Fatal(errs)
	}
	out, errs, code := invoke(t, "analyze --json - "+dir)
	if code != exitOK || errs != "" {
		t.Fatalf("exit status %d, %s", code, errs)
	}
	type row struct {
		Rank, Device, Cycle int
		Idle                float64 `json:"idle_time_us"`
		File                string
	}
	var parsed struct {
		Ranks      []int
		Devices    []row `json:"temporal_breakdown_by_device"`
		Temporal   []row `json:"temporal_breakdown"`
		Recordings []row
		Headline   struct {
			Finding *int
			Text    string
		}
		Findings []struct {
			ID, Unit, Text string
			Value          float64
			Evidence       map[string]float64
		}
	}
	if err := json.Unmarshal([]byte(out), &parsed); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(parsed.Ranks, []int{0}) || len(parsed.Devices) != 2 || len(parsed.Temporal) != 1 || len(parsed.Recordings) != 3 || parsed.Recordings[2].Cycle != 3 {
		t.Errorf("got ranks %v, devices %v, recordings %v", parsed.Ranks, parsed.Devices, parsed.Recordings)
	}
	if sum := parsed.Devices[0].Idle + parsed.Devices[1].Idle; math.Abs(sum-parsed.Temporal[0].Idle) > 1e-6 {
		t.Errorf("the devices were idle for %g µs together, the rank for %g", sum, parsed.Temporal[0].Idle)
	}
	if len(parsed.Findings) == 0 {
		t.Fatal("there are no findings")
	}
	idle := parsed.Findings[0]
	if idle.ID != "device_idle" || idle.Unit != "share" || idle.Evidence["devices"] != 2 || !strings.HasPrefix(idle.Text, "The 2 devices were idle ") || parsed.Headline.Finding == nil || *parsed.Headline.Finding != 0 || parsed.Headline.Text != idle.Text {
		t.Errorf("got headline %+v, finding %+v", parsed.Headline, idle)
	}
	if share := (parsed.Temporal[0].Idle) / idle.Evidence["device_us"]; math.Abs(share-idle.Value) > 1e-9 {
		t.Errorf("got an idle share of %g, the tables say %g", idle.Value, share)
	}
}

func TestAnalyzeComparesRuns(t *testing.T) {
	slow, _ := madeTraces(t)
	fast := t.TempDir()
	if _, errs, code := invoke(t, "make-traces "+fast+" --ranks 3 --steps 4 --delay 0s --data-wait 200us"); code != exitOK {
		t.Fatal(errs)
	}
	out, errs, code := invoke(t, "analyze --json - --tables temporal_breakdown "+slow+" --against "+fast)
	var parsed struct {
		Runs []struct {
			Run  string
			Wait float64 `json:"wait_us"`
		} `json:"collectives_by_run"`
	}
	if err := json.Unmarshal([]byte(out), &parsed); err != nil || code != exitOK {
		t.Fatalf("exit status %d, %v, %s", code, err, errs)
	}
	if len(parsed.Runs) != 2 || parsed.Runs[0].Run != slow || parsed.Runs[0].Wait <= parsed.Runs[1].Wait {
		t.Errorf("got %+v, want the run with the straggler to wait longer", parsed.Runs)
	}
}

// TestAnalyzeFailIf: as compare's, judged by the steps.
func TestAnalyzeFailIf(t *testing.T) {
	slow, _ := madeTraces(t)
	fast, bare := t.TempDir(), filepath.Join(t.TempDir(), "trace.json")
	if _, errs, code := invoke(t, "make-traces "+fast+" --ranks 3 --steps 4 --delay 0s --data-wait 200us"); code != exitOK {
		t.Fatal(errs)
	}
	if err := os.WriteFile(bare, []byte(`[{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":5,"args":{"stream":7}}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{slow + " --against " + fast + " --fail-if slower=5%", exitExceeded, "beyond the limit of 5% and beyond noise"},
		{slow + " --against " + fast + " --fail-if slower=1h", exitOK, ""},
		{fast + " --against " + slow + " --fail-if slower=0%", exitOK, ""},
		{slow + " --against " + slow + " --fail-if slower=0%", exitOK, ""},
		{slow + " --against " + slow + " --against " + fast + " --fail-if slower=1us", exitExceeded, "than in " + fast},
		{slow + " --against " + bare + " --fail-if slower=5%", exitFailed, "do not both have"},
		{slow + " --fail-if slower=5%", exitUsage, "--fail-if needs --against"},
		{slow + " --against " + fast + " --fail-if faster=5%", exitUsage, "it takes slower=LIMIT"},
		{slow + " --against " + fast + " --fail-if slower=5% --html /dev/full", exitExceeded, "/dev/full"},
	} {
		if _, errs, code := invoke(t, "analyze --quiet "+c.args); code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("%s: exit status %d, want %d and %q; %s", c.args, code, c.code, c.says, errs)
		}
	}
}

func TestAnalyzeMistakesAreSentences(t *testing.T) {
	dir, _ := madeTraces(t)
	for args, want := range map[string]string{
		"analyze":                                "name a trace",
		"analyze --mode fast " + dir:             "use exact, hta or hta-ns",
		"analyze --ranks x " + dir:               `"x" is neither a number nor a range`,
		"analyze --tables none " + dir:           `there is no table "none"`,
		"analyze --nonsense " + dir:              "see omni-perf analyze --help",
		"analyze --merged x --memory-snapshot y": "need traces",
		"analyze --memory-against x " + dir:      "--memory-against needs --memory-snapshot",
		"analyze --memory-window 3s-1s " + dir:   `"3s-1s" is neither a time nor a range`,
		"make-traces":                            "name one folder",
		"make-traces --size many " + dir:         "no size such as 500MB",
	} {
		if _, errs, code := invoke(t, args); code != exitUsage || !strings.Contains(errs, want) {
			t.Errorf("%s: exit status %d, %q, want %d and %q", args, code, errs, exitUsage, want)
		}
	}
	for args, want := range map[string]string{
		"analyze " + dir + "/none":                                     "no such file",
		"analyze --memory-snapshot " + dir + "/rank0.pt.trace.json.gz": "not a memory snapshot",
		"analyze " + dir + " --html " + dir + "/no/such/folder/a.html": "there is no folder " + dir + "/no/such/folder",
	} {
		if _, errs, code := invoke(t, args); code != exitFailed || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: exit status %d, %q, want one line with %q", args, code, errs, want)
		}
	}
}

func TestProgressStaysOnOneLineAndGoes(t *testing.T) {
	var out strings.Builder
	draw := progressBar(&out)
	draw(kineto.Progress{Files: 8, AllBytes: 0})
	draw(kineto.Progress{Files: 8, FilesDone: 4, Bytes: 50, AllBytes: 100, Events: 1_500_000})
	draw(kineto.Progress{Files: 8, FilesDone: 8, Bytes: 120, AllBytes: 100, Done: true})
	text := out.String()
	if strings.Contains(text, "\n") || !strings.HasSuffix(text, "\r\x1b[K") {
		t.Errorf("progress %q leaves something behind", text)
	}
	if !strings.Contains(text, " 50 %  4 of 8 files, 1.5 M events") {
		t.Errorf("progress %q does not show how far it is", text)
	}
}

// TestAnalyzeReadsAndRefusesOtherTools: what is read is in the same tables, what is not is refused by its name.
func TestAnalyzeReadsAndRefusesOtherTools(t *testing.T) {
	for name, c := range map[string]struct {
		content string
		code    int
		says    []string
	}{
		"viz.json": {`{"traceEvents":[{"pid":5,"tid":5,"ts":10,"ph":"X","cat":"fee","dur":800,"name":"work (/home/u/v.py:4)"}]}`, exitOK,
			[]string{"no device events", "Python functions of the main thread", "v.py(4): work", "a recording of VizTracer"}},
		"perfetto.json": {`{"traceEvents":[{"pid":5,"tid":5,"ts":10,"ph":"X","cat":"app","dur":800,"name":"decode"}]}`, exitOK,
			[]string{"no device events", "Annotations", "decode", "nothing is known of devices"}},
		"908_results.json": {`{"rocprofiler-sdk-tool":[{"metadata":{"pid":908},"agents":[{"id":{"handle":7},"type":2,"logical_node_type_id":0}],"buffer_records":{"kernel_dispatch":[
			{"start_timestamp":1000,"end_timestamp":2000,"dispatch_info":{"agent_id":{"handle":7},"kernel_id":1}},
			{"start_timestamp":3000,"end_timestamp":5000,"dispatch_info":{"agent_id":{"handle":7},"kernel_id":1}}]}}]}`, exitOK,
			[]string{"The device was idle 25 % of the time.", "kernel 1", "recorded by rocprofv3; it knows neither operators nor Python"}},
		"run.nsys-rep":  {"\x01\x02\x03", exitFailed, []string{"a report of Nsight Systems; export it with nsys export --type sqlite"}},
		"trace.pftrace": {"\x01\x02\x03", exitFailed, []string{"a Perfetto trace; convert it to JSON"}},
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		out, errs, code := invoke(t, "analyze "+path)
		for _, want := range c.says {
			if code != c.code || !strings.Contains(out+errs, want) {
				t.Errorf("%s: exit status %d, %s%s; want %d and %q", name, code, out, errs, c.code, want)
			}
		}
	}
}

// TestAnalyzeReadsAnExportOfNsightSystems: two processes are two ranks, on the page, too.
func TestAnalyzeReadsAnExportOfNsightSystems(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	out, errs, code := invoke(t, "analyze ../../sidecar/traces/nsys/testdata/two-processes.sqlite --html "+page)
	if code != exitOK {
		t.Fatalf("exit status %d, %s", code, errs)
	}
	for _, want := range []string{"2 ranks", "The devices of 2 ranks were idle 41 % of the time", "CUDA graph 5", "gemm", "cudaMemcpyAsync", "step 1", "record with --cuda-graph-trace=node"} {
		if !strings.Contains(out, want) {
			t.Errorf("the report does not say %q:\n%s", want, out)
		}
	}
	if html, err := os.ReadFile(page); err != nil || !strings.Contains(string(html), "CUDA graph 5") {
		t.Errorf("the page does not have the graph: %v", err)
	}
}

// TestAnalyzeReadsAProfileOfJAX, compressed, and by the log directory that was given to start_trace.
func TestAnalyzeReadsAProfileOfJAX(t *testing.T) {
	content, err := os.ReadFile("../../sidecar/traces/xplane/testdata/node7.xplane.pb")
	if err != nil {
		t.Fatal(err)
	}
	logs := t.TempDir()
	session := filepath.Join(logs, "plugins", "profile", "2026_11_25_10_00_00")
	if err := os.MkdirAll(session, 0o700); err != nil {
		t.Fatal(err)
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	z.Write(content)
	z.Close()
	for name, b := range map[string][]byte{"node7.xplane.pb.gz": zipped.Bytes(), "notes.txt": nil} {
		if err := os.WriteFile(filepath.Join(session, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{logs, filepath.Join(session, "node7.xplane.pb.gz")} {
		out, errs, code := invoke(t, "analyze "+path)
		for _, want := range []string{"The 2 devices were idle", "gemm_fusion", "Memcpy HtoD", "cuLaunchKernel", "train.py(42): step <lambda>", "recorded by JAX or TensorFlow; it knows no operators of torch"} {
			if code != exitOK || !strings.Contains(out, want) {
				t.Errorf("exit status %d, %s; the report does not say %q:\n%s", code, errs, want, out)
			}
		}
	}
}
