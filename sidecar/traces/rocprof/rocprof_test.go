package rocprof

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/testkit/columns"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
)

// sample is what rocprofv3 writes of a launch, a copy, a fill of the host and a range, in the order of its members.
const sample = `{"rocprofiler-sdk-tool": [{
 "metadata": {"node": {"id": 0, "hostname": "node7"}, "pid": 908, "init_time": 1, "command": ["python"], "config": {"group_by_queue": false}},
 "agents": [{"size": 312, "id": {"handle": 5}, "type": 1, "name": "EPYC", "product_name": "EPYC", "logical_node_type_id": 0},
            {"size": 312, "id": {"handle": 7}, "type": 2, "name": "gfx942", "product_name": "AMD Instinct MI300X", "logical_node_type_id": 0},
            {"size": 312, "id": {"handle": 8}, "type": 2, "name": "gfx942", "product_name": "", "logical_node_type_id": 1}],
 "counters": [],
 "strings": {"callback_records": [{"kind": "NONE", "operations": []}],
  "buffer_records": [{"kind": "NONE", "operations": []}, {"kind": "HIP_RUNTIME_API", "operations": ["hipApiName", "hipLaunchKernel"]},
   {"kind": "MEMORY_COPY", "operations": ["MEMORY_COPY_NONE", "MEMORY_COPY_HOST_TO_HOST", "MEMORY_COPY_HOST_TO_DEVICE"]}],
  "marker_api": [{"key": 4, "value": "forward \"pass\""}]},
 "kernel_symbols": [{"size": 0, "kernel_id": 0, "kernel_name": "", "formatted_kernel_name": 0},
  {"size": 64, "kernel_id": 1, "kernel_name": "_Z4gemm.kd", "formatted_kernel_name": "gemm(float*)", "demangled_kernel_name": "gemm(float*) [clone .kd]"},
  {"size": 64, "kernel_id": 2, "kernel_name": "fill.kd", "formatted_kernel_name": 0, "demangled_kernel_name": 0}],
 "callback_records": {"counter_collection": []},
 "buffer_records": {
  "kernel_dispatch": [
   {"size": 184, "kind": 11, "operation": 2, "thread_id": 908, "correlation_id": {"internal": 1, "external": 18446744073709551615}, "start_timestamp": 1000, "end_timestamp": 1500,
    "dispatch_info": {"size": 72, "agent_id": {"handle": 7}, "queue_id": {"handle": 16}, "kernel_id": 1, "dispatch_id": 1}, "stream_id": {"handle": 3}},
   {"size": 184, "kind": 11, "operation": 2, "thread_id": 908, "correlation_id": {"internal": 0}, "start_timestamp": 2000, "end_timestamp": 1900,
    "dispatch_info": {"size": 72, "agent_id": {"handle": 8}, "queue_id": {"handle": 17}, "kernel_id": 2}},
   {"size": 184, "kind": 11, "start_timestamp": 2500, "end_timestamp": 2600, "dispatch_info": {"agent_id": {"handle": 7}, "queue_id": {"handle": 16}, "kernel_id": 99}}],
  "hip_api": [{"size": 48, "kind": 1, "operation": 1, "correlation_id": {"internal": 1, "external": 0}, "start_timestamp": 800, "end_timestamp": 950, "thread_id": 908},
   {"size": 48, "kind": 1, "operation": 77, "correlation_id": {"internal": 9, "external": 0}, "start_timestamp": 960, "end_timestamp": 970, "thread_id": 909}],
  "marker_api": [{"kind": 7, "operation": 1, "correlation_id": {"internal": 4}, "start_timestamp": 700, "end_timestamp": 1000, "thread_id": 908},
   {"kind": 7, "operation": 0, "correlation_id": {"internal": 5}, "start_timestamp": 990, "end_timestamp": 990, "thread_id": 908}],
  "memory_copy": [{"kind": 2, "operation": 2, "correlation_id": {"internal": 2}, "start_timestamp": 600, "end_timestamp": 700, "thread_id": 908, "dst_agent_id": {"handle": 8}, "src_agent_id": {"handle": 5}, "bytes": 4096},
   {"kind": 2, "operation": 1, "correlation_id": {"internal": 3}, "start_timestamp": 610, "end_timestamp": 620, "thread_id": 908, "dst_agent_id": {"handle": 5}, "src_agent_id": {"handle": 5}, "bytes": 1}],
  "scratch_memory": [{"kind": 12}]}}]}`

func read(t *testing.T, text string) ([]*kineto.Trace, string) {
	t.Helper()
	traces, warnings, err := Read(context.Background(), kineto.Input{File: "r.json", Reader: strings.NewReader(text), Step: func(int64) {}}, kineto.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return traces, fmt.Sprint(warnings)
}

func TestRead(t *testing.T) {
	traces, warnings := read(t, sample)
	if len(traces) != 1 || !strings.Contains(warnings, "recorded by rocprofv3; it knows neither operators nor Python") || strings.Contains(warnings, "byte") {
		t.Fatalf("got %d traces, %s", len(traces), warnings)
	}
	tr := traces[0]
	var names []string
	for _, name := range append(append(append([]kineto.Sym{}, tr.Device.Name...), tr.Calls.Name...), tr.Ops.Name...) {
		names = append(names, tr.Text(name))
	}
	got := fmt.Sprintf("%q", names) + fmt.Sprint(" ", tr.Device.Start, tr.Device.Dur, tr.Device.Device, tr.Device.Stream, tr.Device.Bytes, tr.Calls.Start, tr.Calls.Dur, tr.Calls.Correlation, tr.Ops.Dur)
	want := `["gemm(float*)" "fill" "kernel 99" "Memcpy HtoD" "hipLaunchKernel" "HIP_RUNTIME_API 77" "forward \"pass\""]` +
		` [1000 2000 2500 600] [500 0 100 100] [0 1 0 1] [3 17 16 0] [0 0 0 4096] [800 960] [150 10] [1 9] [300]`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if tr.Process != (kineto.Process{Host: "node7", PID: 908}) || fmt.Sprint(tr.Meta.Devices) != "[AMD Instinct MI300X gfx942]" || tr.Device.Correlation[1] != kineto.None {
		t.Errorf("got %+v, %+v, correlations %v", tr.Process, tr.Meta, tr.Device.Correlation)
	}
}

// TestStreamsAreQueuesWhereThatWasAsked for.
func TestStreamsAreQueuesWhereThatWasAsked(t *testing.T) {
	traces, _ := read(t, strings.Replace(sample, `"group_by_queue": false`, `"group_by_queue": true`, 1))
	if got := traces[0].Device.Stream[0]; got != 16 {
		t.Errorf("got stream %d, want the queue", got)
	}
}

// TestEachProcessIsATrace, of whatever order and number.
func TestEachProcessIsATrace(t *testing.T) {
	one := strings.TrimSuffix(strings.TrimPrefix(sample, `{"rocprofiler-sdk-tool": [`), `]}`)
	traces, _ := read(t, `{"other": [1, {"a": "]"}], "rocprofiler-sdk-tool": [`+one+`, {"metadata": {"pid": 1}}, `+strings.Replace(one, `"pid": 908`, `"pid": 1000`, 1)+`]}`)
	if len(traces) != 2 || traces[0].Process.PID != 908 || traces[1].Process.PID != 1000 {
		t.Errorf("got %d traces", len(traces))
	}
}

// TestDamage: what could be read is kept, and what was lost is reported.
func TestDamage(t *testing.T) {
	for old, c := range map[string]struct{ with, want string }{
		`"start_timestamp": 1000`:     {`"start_timestamp": "x"`, "1 record without the numbers that a record has; these were left out"},
		`"end_timestamp": 1500,`:      {``, "1 record without the numbers"},
		`"kernel_name": "_Z4gemm.kd"`: {`"kernel_name": "` + strings.Repeat("x", maxRecord) + `"`, "1 record of more than 8,388,608 bytes"},
		`"hip_api": [`:                {`"hip_api": [}`, "damaged JSON"},
		`"buffer_records": {` + "\n":  {`"buffer_records": 5, "x": {` + "\n", "no kernels, copies, calls or markers; record with --kernel-trace"},
		`"rocprofiler-sdk-tool": [`:   {`"rocprofiler-sdk-tool": 1, "x": [`, "no kernels, copies"},
	} {
		if strings.Count(sample, old) != 1 {
			t.Fatalf("%q is not once in the sample", old)
		}
		if _, warnings := read(t, strings.Replace(sample, old, c.with, 1)); !strings.Contains(warnings, c.want) {
			t.Errorf("%q: got %.300s, want %q", old, warnings, c.want)
		}
	}
	for n := 0; n < len(sample); n += 5 {
		traces, warnings := read(t, sample[:n])
		if !strings.Contains(warnings, "the file ends inside the JSON") {
			t.Fatalf("cut at %d: got %s", n, warnings)
		}
		if n > strings.Index(sample, `"hip_api"`) && (len(traces) != 1 || traces[0].Device.Len() < 3) {
			t.Fatalf("cut at %d: the kernels before are lost", n)
		}
	}
}

// FuzzRead: any bytes give traces whose tables are whole, or none.
func FuzzRead(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte(sample[:len(sample)/2]))
	f.Add([]byte(`{"rocprofiler-sdk-tool":[{"buffer_records":{"kernel_dispatch":[{"start_timestamp":-9223372036854775808,"end_timestamp":9223372036854775807,"dispatch_info":{}}]}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		traces, warnings := read(t, string(text))
		if warnings == "[]" {
			t.Error("no note says what the file is")
		}
		for _, tr := range traces {
			columns.Check(t, tr)
		}
	})
}
