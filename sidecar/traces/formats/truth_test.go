package formats_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/omni-perf/omni-perf/sidecar/testkit/database"
	"github.com/omni-perf/omni-perf/sidecar/traces"
	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/page"
)

// A truth is what happened in a made-up process. Each tool's file of it must give the tables that torch.profiler's
// file gives, and the busy and idle time that the truth has.
type truth struct {
	pid     int64
	device  []onDevice
	calls   []onHost
	ranges  []onHost
	devices int
}

// onDevice is a kernel, copy or fill; kind is "kernel", "HtoD" or "fill".
type onDevice struct {
	start, end, correlation int64 // ns
	device, stream          int
	name, kind              string
	bytes                   int64
}

type onHost struct {
	start, end, correlation int64
	thread                  int64
	name                    string
}

// makeTruth makes one by a seed: two devices of two streams each, launched by two threads, some kernels beside each
// other, some late, some queued.
func makeTruth(seed uint64) truth {
	random := rand.New(rand.NewPCG(seed, 7))
	t := truth{pid: 4242, devices: 2}
	begin := int64(1_700_000_000_000_000) + random.Int64N(1e6)
	host := []int64{begin, begin + 777}
	free := map[[2]int]int64{}
	for i := range 160 {
		thread := random.IntN(2)
		at := host[thread] + random.Int64N(30_000)
		took := 1_000 + random.Int64N(9_000)
		id := int64(i + 1)
		t.calls = append(t.calls, onHost{at, at + took, id, 100 + int64(thread), "hipLaunchKernel"})
		host[thread] = at + took
		device, stream := random.IntN(2), 1+random.IntN(2)
		key := [2]int{device, stream}
		start := max(free[key], at+took/2) + random.Int64N(40_000)*int64(random.IntN(2))
		e := onDevice{start: start, end: start + 1 + random.Int64N(50_000), correlation: id, device: device, stream: stream, kind: "kernel"}
		switch random.IntN(8) {
		case 0:
			e.kind, e.name, e.bytes = "HtoD", "Memcpy HtoD", 1+random.Int64N(1<<20)
		default:
			e.name = []string{"gemm<float, 4>(float*)", "ncclDevKernel_AllReduce", "relu"}[random.IntN(3)]
		}
		free[key] = e.end
		t.device = append(t.device, e)
		if i%16 == 15 {
			t.ranges = append(t.ranges, onHost{start: at - 20_000, end: at + took, thread: 100 + int64(thread), name: []string{"forward", "loss é"}[i/16%2]})
		}
	}
	return t
}

// deviceName is that of both devices.
const deviceName = "AMD Instinct MI300X"

// busy is how long anything ran on a device, and window how long it was from the first event of any device to the last.
func (t truth) busy(device int) (busy, window int64) {
	events := slices.Clone(t.device)
	slices.SortFunc(events, func(a, b onDevice) int { return int(a.start - b.start) })
	first, last, reached := events[0].start, int64(0), int64(0)
	for _, e := range events {
		last = max(last, e.end)
		if e.device == device {
			busy += max(0, e.end-max(e.start, reached))
			reached = max(reached, e.end)
		}
	}
	return busy, last - first
}

// micros writes ns as torch.profiler does.
func micros(ns int64) string { return string(kineto.AppendMicros(nil, ns)) }

// torch is torch.profiler's file.
func (t truth) torch() []byte {
	b := []byte(`{"schemaVersion": 1, "traceEvents": [`)
	add := func(format string, args ...any) { b = fmt.Appendf(b, format+",\n", args...) }
	for _, e := range t.device {
		cat, args := "kernel", ""
		if e.kind != "kernel" {
			cat = "gpu_memcpy"
			args = fmt.Sprintf(`, "bytes": %d, "memory bandwidth (GB/s)": %s`, e.bytes, strconv.FormatFloat(float64(e.bytes)/float64(e.end-e.start), 'g', -1, 64))
		}
		add(`{"ph": "X", "cat": %q, "name": %q, "pid": %d, "tid": %d, "ts": %s, "dur": %s, "args": {"device": %d, "stream": %d, "correlation": %d%s}}`,
			cat, e.name, e.device, e.stream, micros(e.start), micros(e.end-e.start), e.device, e.stream, e.correlation, args)
	}
	for _, c := range t.calls {
		add(`{"ph": "X", "cat": "cuda_runtime", "name": %q, "pid": %d, "tid": %d, "ts": %s, "dur": %s, "args": {"correlation": %d}}`,
			c.name, t.pid, c.thread, micros(c.start), micros(c.end-c.start), c.correlation)
	}
	for _, r := range t.ranges {
		add(`{"ph": "X", "cat": "user_annotation", "name": "%s", "pid": %d, "tid": %d, "ts": %s, "dur": %s}`, r.name, t.pid, r.thread, micros(r.start), micros(r.end-r.start))
	}
	return append(b, `{"ph": "M", "name": "process_name", "pid": 4242, "args": {"name": "python"}}]}`...)
}

// rocprof is rocprofv3's file, with the members that it writes and that nobody reads, too.
func (t truth) rocprof(*testing.T) []byte {
	type object = map[string]any
	names, kernels := []object{{"kernel_id": 0, "formatted_kernel_name": 0, "kernel_name": ""}}, map[string]int{}
	for _, e := range t.device {
		if _, known := kernels[e.name]; !known && e.kind == "kernel" {
			kernels[e.name] = len(names)
			names = append(names, object{"kernel_id": len(names), "kernel_name": e.name + ".kd", "formatted_kernel_name": e.name})
		}
	}
	base := func(kind, operation int, start, end, correlation, thread int64) object {
		return object{"size": 184, "kind": kind, "operation": operation, "thread_id": thread, "start_timestamp": start, "end_timestamp": end,
			"correlation_id": object{"internal": correlation, "external": uint64(1) << 63}}
	}
	var dispatches, copies, calls, markers, messages []object
	agents := []object{{"id": object{"handle": 900}, "type": 1, "name": "EPYC", "logical_node_type_id": 0, "uuid": object{"bytes": object{"value0": 0}}}}
	for d := range t.devices {
		agents = append(agents, object{"id": object{"handle": 901 + d}, "type": 2, "name": "gfx942", "product_name": deviceName, "logical_node_type_id": d})
	}
	for _, e := range t.device {
		if e.kind == "kernel" {
			r := base(1, 2, e.start, e.end, e.correlation, 100)
			r["stream_id"] = object{"handle": e.stream}
			r["dispatch_info"] = object{"agent_id": object{"handle": 901 + e.device}, "queue_id": object{"handle": 16}, "kernel_id": kernels[e.name], "grid_size": object{"x": 1}}
			dispatches = append(dispatches, r)
			continue
		}
		r := base(2, 2, e.start, e.end, e.correlation, 100)
		r["stream_id"], r["bytes"] = object{"handle": e.stream}, e.bytes
		r["src_agent_id"], r["dst_agent_id"] = object{"handle": 900}, object{"handle": 901 + e.device}
		copies = append(copies, r)
	}
	for _, c := range t.calls {
		calls = append(calls, base(0, 1, c.start, c.end, c.correlation, c.thread))
	}
	for i, r := range t.ranges {
		id := int64(10_000 + i)
		markers = append(markers, base(3, 1, r.start, r.end, id, r.thread), base(3, 2, r.end, r.end, id+5000, r.thread))
		messages = append(messages, object{"key": id, "value": r.name})
	}
	// A struct keeps the writer's order.
	text, err := json.Marshal(object{"rocprofiler-sdk-tool": []any{struct {
		Metadata object   `json:"metadata"`
		Agents   []object `json:"agents"`
		Counters []object `json:"counters"`
		Strings  any      `json:"strings"`
		Symbols  []object `json:"kernel_symbols"`
		Callback any      `json:"callback_records"`
		Records  any      `json:"buffer_records"`
	}{
		object{"pid": t.pid, "node": object{"hostname": "node7"}, "command": []string{"python", "train.py"}},
		agents, nil,
		object{"buffer_records": []object{
			{"kind": "HIP_RUNTIME_API", "operations": []string{"hipApiName", "hipLaunchKernel"}}, {"kind": "KERNEL_DISPATCH", "operations": []string{}},
			{"kind": "MEMORY_COPY", "operations": []string{"MEMORY_COPY_NONE", "MEMORY_COPY_HOST_TO_HOST", "MEMORY_COPY_HOST_TO_DEVICE"}},
			{"kind": "MARKER_CORE_API", "operations": []string{"roctxMarkA", "roctxRangePushA", "roctxRangePop"}}}, "marker_api": messages},
		names, object{"counter_collection": []any{}},
		object{"kernel_dispatch": dispatches, "hip_api": calls, "hsa_api": []any{}, "marker_api": markers, "memory_copy": copies, "scratch_memory": []any{}},
	}}})
	if err != nil {
		panic(err)
	}
	return text
}

// nsys is Nsight Systems' export, as version 2024.5 has it.
func (t truth) nsys(tb *testing.T) []byte {
	var b strings.Builder
	b.WriteString(`CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, -- Consecutive ID of the string.
		value TEXT NOT NULL);
	CREATE TABLE TARGET_INFO_GPU (vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT NOT NULL);
	CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER, pid INTEGER);
	CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, -- Event start timestamp (ns).
		end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER,
		globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, graphNodeId INTEGER);
	CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER);
	CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER, returnValue INTEGER);
	CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER, color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER);
	`)
	names := map[string]int{}
	id := func(name string) int {
		if _, known := names[name]; !known {
			names[name] = len(names) + 1
			fmt.Fprintf(&b, "INSERT INTO StringIds VALUES (%d, '%s');\n", names[name], name)
		}
		return names[name]
	}
	add := func(table string, values ...any) {
		fmt.Fprintf(&b, "INSERT INTO %s VALUES (%s);\n", table, strings.ReplaceAll(strings.Trim(fmt.Sprint(values...), "[]"), " ", ", "))
	}
	global := func(tid int64) int64 { return 0x12<<56 | t.pid<<24 | tid }
	for d := range t.devices {
		fmt.Fprintf(&b, "INSERT INTO TARGET_INFO_GPU VALUES (0, %d, '%s'); INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (%d, %d, %d);\n", 4+d, deviceName, 4+d, d, t.pid)
	}
	for _, e := range t.device {
		if e.kind == "kernel" {
			add("CUPTI_ACTIVITY_KIND_KERNEL", e.start, e.end, e.device, 1, 0, e.stream, e.correlation, global(0), id(e.name), id("short"), 0)
			continue
		}
		add("CUPTI_ACTIVITY_KIND_MEMCPY", e.start, e.end, e.device, 1, e.stream, e.correlation, global(0), e.bytes, 1)
	}
	for _, c := range t.calls {
		add("CUPTI_ACTIVITY_KIND_RUNTIME", c.start, c.end, 0, global(c.thread), c.correlation, id(c.name+"_v7000"), 0)
	}
	for i, r := range t.ranges {
		if i%2 == 0 {
			fmt.Fprintf(&b, "INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid) VALUES (%d, %d, 59, '%s', %d);\n", r.start, r.end, r.name, global(r.thread))
		} else {
			fmt.Fprintf(&b, "INSERT INTO NVTX_EVENTS (start, end, eventType, textId, globalTid) VALUES (%d, %d, 59, %d, %d);\n", r.start, r.end, id(r.name), global(r.thread))
		}
		fmt.Fprintf(&b, "INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid) VALUES (%d, NULL, 34, 'a mark', %d);\n", r.start, global(r.thread))
	}
	return database.Make(tb, "BEGIN;"+b.String()+"COMMIT;")
}

// xplane is JAX's file: an XSpace with a plane a device and one of the host, whose names come last.
func (t truth) xplane(*testing.T) []byte {
	const begin = 5_000_000 // ns, of each line; the profiler started when the truth's times count from
	message := func(field protowire.Number, parts ...[]byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), slices.Concat(parts...))
	}
	number := func(field protowire.Number, value int64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(nil, field, protowire.VarintType), uint64(value))
	}
	var file []byte
	plane := func(name string, lines func(id func(string) int64, add func(line int64, name string, events ...[]byte))) {
		ids, names := map[string]int64{}, []byte{}
		id := func(of string) int64 {
			if _, known := ids[of]; !known {
				ids[of] = int64(len(ids) + 1)
				names = append(names, message(4, number(1, ids[of]), message(2, number(1, ids[of]), message(2, []byte(of))))...)
			}
			return ids[of]
		}
		content := message(2, []byte(name))
		lines(id, func(line int64, name string, events ...[]byte) {
			content = append(content, message(3, number(1, line), message(2, []byte(name)), number(3, begin), slices.Concat(events...))...)
		})
		content = append(content, names...)
		for stat, name := range []string{"", "correlation_id", "memcpy_details"} {
			content = append(content, message(5, number(1, int64(stat)), message(2, number(1, int64(stat)), message(2, []byte(name))))...)
		}
		file = append(file, message(1, content)...)
	}
	event := func(name, start, end int64, stats ...[]byte) []byte {
		return message(4, number(1, name), number(2, (start-begin)*1000), number(3, (end-start)*1000), slices.Concat(stats...))
	}
	for device := range t.devices {
		plane(fmt.Sprintf("/device:GPU:%d", device), func(id func(string) int64, add func(int64, string, ...[]byte)) {
			streams := map[int][][]byte{}
			for _, e := range t.device {
				if e.device != device {
					continue
				}
				stats := [][]byte{message(4, number(1, 1), number(3, e.correlation))}
				name := id(e.name)
				if e.kind == "HtoD" {
					name = id("MemcpyH2D")
					stats = append(stats, message(4, number(1, 2), message(5, fmt.Appendf(nil, "kind_src:pinned kind_dst:device size:%d dest:0 async:1", e.bytes))))
				}
				streams[e.stream] = append(streams[e.stream], event(name, e.start, e.end, stats...))
			}
			for _, stream := range []int{1, 2} {
				add(int64(stream), fmt.Sprintf("Stream #%d(Compute,MemcpyH2D)", stream), streams[stream]...)
			}
			add(99, "XLA Ops", event(id("fusion.1"), t.device[0].start, t.device[0].end))
		})
	}
	plane("/host:CPU", func(id func(string) int64, add func(int64, string, ...[]byte)) {
		threads := map[int64][][]byte{}
		for _, c := range t.calls {
			threads[c.thread] = append(threads[c.thread], event(id(c.name), c.start, c.end, message(4, number(1, 1), number(4, c.correlation))))
		}
		for _, r := range t.ranges {
			threads[r.thread] = append(threads[r.thread], event(id(r.name), r.start, r.end), event(id("a mark"), r.start, r.start))
		}
		for _, thread := range []int64{100, 101} {
			add(thread, "python", threads[thread]...)
		}
	})
	return append(file, message(4, []byte("node7"))...)
}

// tools are the writers, by the name of a file.
var tools = map[string]func(truth, *testing.T) []byte{
	"4242_results.json": truth.rocprof,
	"report.sqlite":     truth.nsys,
	"node7.xplane.pb":   truth.xplane,
}

// same are the tables that must not depend on the tool: all but that of the files, and those of operators, among which torch
// has ranges.
var same = slices.DeleteFunc(append(analyses.DefaultTables(), analyses.Series()...), func(name string) bool {
	return slices.Contains([]string{analyses.TableRecordings, analyses.TableOperators, analyses.TableEfficiency, analyses.TableEfficiencyKinds}, name)
})

// TestNoOperatorsAreInvented: ranges are none, and what ran is listed by the names of kernels.
func TestNoOperatorsAreInvented(t *testing.T) {
	for name, write := range tools {
		a := analysed(t, name, write(makeTruth(5), t), analyses.Options{})
		if n := a.Table(analyses.TableOperators).Len(); n > 0 {
			t.Errorf("%s: %d operators", name, n)
		}
		got := slices.Sorted(slices.Values(a.Table(analyses.TableEfficiency).Column("operator").Text))
		if want := "[Memcpy HtoD gemm<float, 4>(float*) ncclDevKernel_AllReduce relu]"; fmt.Sprint(slices.Compact(got)) != want {
			t.Errorf("%s: got %v, want %s", name, got, want)
		}
	}
}

// sameAsHTA are those of HolisticTraceAnalysis's modes that do not depend on the order of events in the file.
var sameAsHTA = []string{analyses.TableTemporal, analyses.TableIdle, analyses.TableOverlap, analyses.TableKernels, analyses.TableKernelTypes}

func analysed(t *testing.T, name string, content []byte, opts analyses.Options) *traces.Analysis {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := traces.Run(context.Background(), []string{path}, kineto.Options{}, opts)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestEveryToolGivesTheSameTables, in each mode.
func TestEveryToolGivesTheSameTables(t *testing.T) {
	for name, write := range tools {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(2) {
				made := makeTruth(seed)
				content := write(made, t)
				for mode, tables := range map[analyses.Mode][]string{analyses.Exact: same, analyses.HTANs: sameAsHTA} {
					opts := analyses.Options{Mode: mode, Tables: tables}
					want := analysed(t, "torch.json", made.torch(), opts)
					got := analysed(t, name, content, opts)
					if len(got.Warnings) != 1 || !got.Warnings[0].Note {
						t.Errorf("got warnings %v, want a note alone", got.Warnings)
					}
					for _, of := range tables {
						if a, b := show(got, of), show(want, of); a != b {
							t.Errorf("seed %d, %s: %s is\n%.2000s\nand torch.profiler's\n%.2000s", seed, mode, of, a, b)
						}
					}
				}
			}
		})
	}
}

// TestEveryToolIsExact: busy and idle time of each device to the nanosecond.
func TestEveryToolIsExact(t *testing.T) {
	for name, write := range tools {
		t.Run(name, func(t *testing.T) {
			made := makeTruth(11)
			table := analysed(t, name, write(made, t), analyses.Options{}).Table(analyses.TableTemporalByDevice)
			if table.Len() != made.devices {
				t.Fatalf("got %d devices, want %d", table.Len(), made.devices)
			}
			for row := range table.Len() {
				busy, window := made.busy(int(table.IntAt("device", row)))
				if got, want := table.FloatAt("idle_time_us", row), float64(window-busy)/1000; got != want {
					t.Errorf("device %d: idle for %v µs, want %v", row, got, want)
				}
				if got, want := table.FloatAt("kernel_time_us", row), float64(window)/1000; got != want {
					t.Errorf("device %d: from first to last %v µs, want %v", row, got, want)
				}
			}
		})
	}
}

// TestEveryToolCanBeMerged: the merged trace, analysed, has the figures of the file that it was made of.
func TestEveryToolCanBeMerged(t *testing.T) {
	for name, write := range tools {
		t.Run(name, func(t *testing.T) {
			a := analysed(t, name, write(makeTruth(5), t), analyses.Options{Tables: same})
			merged := filepath.Join(t.TempDir(), "merged_trace.json.gz")
			if _, err := page.WriteMergedFile(context.Background(), merged, a); err != nil {
				t.Fatal(err)
			}
			again, err := traces.Run(context.Background(), []string{merged}, kineto.Options{}, analyses.Options{Tables: same})
			if err != nil {
				t.Fatal(err)
			}
			for _, of := range []string{analyses.TableTemporalByDevice, analyses.TableKernels, analyses.TableIdleCauses, analyses.TableCalls, analyses.TableAnnotations, analyses.TableHostIdle} {
				if got, want := show(again, of), show(a, of); got != want {
					t.Errorf("%s of the merged trace is\n%.1500s\nand of the file\n%.1500s", of, got, want)
				}
			}
		})
	}
}

// show is a table as text, its rows in no order: some tables keep that of the file.
func show(a *traces.Analysis, name string) string {
	of := a.Table(name)
	if of == nil {
		return "none"
	}
	rows := make([]string, of.Len())
	for _, c := range of.Columns {
		for row := range rows {
			rows[row] += fmt.Sprint(" ", c.Name, " ", slices.Concat(anyOf(c.Ints, row), anyOf(c.Floats, row), anyOf(c.Text, row)))
		}
	}
	slices.Sort(rows)
	return strings.Join(rows, "\n")
}

// anyOf is a column's value in a row, nothing if the column is of another kind.
func anyOf[T any](column []T, row int) []any {
	if row < len(column) {
		return []any{column[row]}
	}
	return nil
}
