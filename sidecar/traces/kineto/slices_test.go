package kineto

import (
	"fmt"
	"strings"
	"testing"
)

// vizTrace is what VizTracer 1.1 writes of a call of leaf in work, in a thread that has a name, and of a built-in.
const vizTrace = `{"traceEvents": [{"ph": "M", "pid": 5, "tid": 5, "name": "process_name", "args": {"name": "MainProcess"}},
 {"ph": "M", "pid": 5, "tid": 6, "name": "thread_name", "args": {"name": "Thread-1 (work)"}},
 {"pid": 5, "tid": 6, "ts": 12.5, "ph": "X", "cat": "fee", "dur": 2.25, "name": "leaf (/home/u/my (1) v.py:3)"},
 {"pid": 5, "tid": 6, "ts": 15.1, "ph": "X", "cat": "FEE", "dur": 1, "name": "time.sleep"},
 {"pid": 5, "tid": 6, "ts": 10, "ph": "X", "cat": "fee", "dur": 8, "name": "A.work (C:\\v.py:4)"}],
 "viztracer_metadata": {"overflow": false, "version": "1.1.1"}, "file_info": {"files": {}, "functions": {}}}`

func TestCallsOfVizTracerAreFramesOfPython(t *testing.T) {
	p := mustRead(t, vizTrace)
	var names []string
	for _, name := range p.t.Python.Name {
		names = append(names, p.t.Text(name))
	}
	got := fmt.Sprint(names, p.t.Python.Start, p.t.Python.Dur, p.t.Ops.Len(), " "+p.t.Threads[p.t.Python.Thread[0]].Name)
	want := `[/home/u/my (1) v.py(3): leaf time.sleep C:\v.py(4): A.work] [12500 15100 10000] [2250 1000 8000] 0 Thread-1 (work)`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if text := fmt.Sprint(p.warnings); !strings.Contains(text, "a recording of VizTracer") || !p.warnings[0].Note {
		t.Errorf("got warnings %s", text)
	}
}

// TestSlicesOfOtherToolsAreRanges, with a category or without; in a trace of torch.profiler those without are its notes.
func TestSlicesOfOtherToolsAreRanges(t *testing.T) {
	slices := `{"ph":"X","name":"load","cat":"app","pid":1,"tid":2,"ts":1,"dur":4},{"ph":"X","name":"decode","pid":1,"tid":2,"ts":2,"dur":1}`
	kernel := `{"ph":"X","name":"k","cat":"kernel","pid":0,"tid":7,"ts":1,"dur":4}`
	for text, want := range map[string]string{
		`[` + slices + `]`: "load annotation, decode annotation",
		`{"traceEvents":[` + slices + `,` + kernel + `]}`:                    "load other",
		`{"traceEvents":[` + kernel + `,` + slices + `]}`:                    "load other",
		`{"traceEvents":[` + slices + `],"metadata":{"a":[` + kernel + `]}}`: "load annotation, decode annotation",
	} {
		p := mustRead(t, text)
		var got []string
		for row, name := range p.t.Ops.Name {
			class := map[OpClass]string{OpAnnotation: "annotation", OpOther: "other"}[p.t.Ops.Class[row]]
			got = append(got, p.t.Text(name)+" "+class)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: got %v, want %s", text, got, want)
		}
		if noted := strings.Contains(fmt.Sprint(p.warnings), "read as ranges of the threads"); noted != (p.t.Device.Len() == 0) {
			t.Errorf("%s: got warnings %v", text, p.warnings)
		}
	}
}

// TestDevicesOfAViewersCopyAreNotTheHost: JAX's copy for a viewer has devices as processes.
func TestDevicesOfAViewersCopyAreNotTheHost(t *testing.T) {
	p := mustRead(t, `{"displayTimeUnit":"ns","metadata":{},"traceEvents":[
	{"ph":"M","pid":1,"name":"process_name","args":{"name":"/device:GPU:0"}},
	{"ph":"M","pid":701,"name":"process_name","args":{"name":"/host:CPU"}},
	{"ph":"X","pid":1,"tid":13,"ts":2,"dur":3,"name":"gemm","args":{"correlation_id":"7"}},
	{"ph":"X","pid":701,"tid":9,"ts":1,"dur":5,"name":"PjitFunction(f)"},{}]}`)
	if p.t.Ops.Len() != 1 || p.t.Text(p.t.Ops.Name[0]) != "PjitFunction(f)" || p.t.Device.Len() != 0 {
		t.Errorf("got %+v", p.t.Ops)
	}
	if text := fmt.Sprint(p.warnings); !strings.Contains(text, "lanes of devices were not read; analyse the .xplane.pb") || len(p.warnings) != 1 {
		t.Errorf("got warnings %s", text)
	}
}
