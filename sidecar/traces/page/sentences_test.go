package page

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/traces"
	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/findings"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/place"
	"github.com/omni-perf/omni-perf/sidecar/traces/synth"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// TestSentences is the page of all sentences about findings, in their forms.
func TestSentences(t *testing.T) {
	number := func(n int64) *int64 { return &n }
	own := &place.Place{File: "/home/me/train.py", Line: 42, Function: "train_step"}
	type evidence = map[string]float64
	for want, f := range map[string]findings.Finding{
		"The device was idle 35 % of the time.":                                                {ID: findings.DeviceIdle, Value: 0.353, Evidence: evidence{"ranks": 1, "devices": 1}},
		"The devices of 8 ranks were idle 23 % of the time, rank 5 most (44 %).":               {ID: findings.DeviceIdle, Value: 0.228, Rank: number(5), Device: number(5), Evidence: evidence{"ranks": 8, "devices": 8, "highest_share": 0.444}},
		"The 2 devices were idle 55 % of the time, device 1 most (60 %).":                      {ID: findings.DeviceIdle, Value: 0.55, Rank: number(0), Device: number(1), Evidence: evidence{"ranks": 1, "devices": 2, "highest_share": 0.6}},
		"The 2 devices were idle 50 % of the time.":                                            {ID: findings.DeviceIdle, Value: 0.5, Evidence: evidence{"ranks": 1, "devices": 2, "highest_share": 0.5}},
		"The 4 devices of 2 ranks were idle 50 % of the time, device 1 of rank 1 most (70 %).": {ID: findings.DeviceIdle, Value: 0.5, Rank: number(1), Device: number(1), Evidence: evidence{"ranks": 2, "devices": 4, "highest_share": 0.7}},
		"Nothing was recorded.": {ID: findings.CPUOnly, Evidence: evidence{"recordings": 1}},
		"Nothing was recorded: the profiler was waiting or warming up when this was written. Export in on_trace_ready, which is called at the end of each active cycle.": {
			ID: findings.CPUOnly, Evidence: evidence{"recordings": 1, "events": 1}},
		"The trace has no device events; 6 steps took 9.1 ms each.":                                               {ID: findings.CPUOnly, Value: 84e3, Evidence: evidence{"recordings": 1, "steps": 6, "mean_step_us": 9120}},
		"The trace has no device events; 1 step took 9.1 ms.":                                                     {ID: findings.CPUOnly, Value: 84e3, Evidence: evidence{"recordings": 1, "steps": 1, "mean_step_us": 9120}},
		"The traces have no device events; 6 steps took 9.1 ms each.":                                             {ID: findings.CPUOnly, Value: 84e3, Evidence: evidence{"recordings": 2, "steps": 6, "mean_step_us": 9120}},
		"The traces of 84 ms together have no device events.":                                                     {ID: findings.CPUOnly, Value: 84e3, Evidence: evidence{"recordings": 2}},
		"The trace of 84 ms has no device events.":                                                                {ID: findings.CPUOnly, Value: 84e3, Evidence: evidence{"recordings": 1}},
		"Kernels were launched (77 calls), but not recorded: the trace has no device events; 1 step took 9.1 ms.": {ID: findings.CPUOnly, Value: 84e3, Evidence: evidence{"recordings": 1, "launches": 77, "steps": 1, "mean_step_us": 9120}},
		"Kernels were launched (1 call), but not recorded: the trace of 12.0 s has no device events.":             {ID: findings.CPUOnly, Value: 12e6, Evidence: evidence{"recordings": 1, "launches": 1}},
		"91 % of the devices' idle time: the host had not launched the next work.":                                {ID: findings.IdleCause, Value: 0.913, Name: analyses.CauseNotLaunched},
		"The devices were idle 3.1 s while launching calls ran, most of it in cudaLaunchKernel (79 calls of 39 ms, the longest 3.1 s, in train.py(42): train_step).": {
			ID: findings.LaunchCalls, Value: 0.2, Name: "cudaLaunchKernel", Place: own, Evidence: evidence{"idle_us": 3.06e6, "calls": 79, "mean_us": 38.8e3, "max_us": 3.06e6}},
		"Cycle 1 was warm-up: the device was idle 97 % of the time, later 14 %; 0.63 s were in one cudaLaunchKernel.": {
			ID: findings.WarmUp, Value: 0.4, Name: "cudaLaunchKernel", Evidence: evidence{"devices": 1, "cycles": 1, "idle_share": 0.973, "usual_share": 0.141, "call_us": 632e3}},
		"The first 2 cycles were warm-up, of rank 3 most: the devices were idle 94 % of the time, later 14 %.": {
			ID: findings.WarmUp, Value: 0.4, Rank: number(3), Evidence: evidence{"devices": 4, "cycles": 2, "idle_share": 0.94, "usual_share": 0.141}},
		"The device was never idle.": {ID: findings.DeviceIdle, Evidence: evidence{"ranks": 1, "devices": 1, "device_us": 5}},
		"The device was never idle from its first event to its last (4 µs of 13.3 s); 60 % of what was analysed is before and 40 % after that.": {
			ID: findings.DeviceIdle, Evidence: evidence{"ranks": 1, "devices": 1, "device_us": 4, "before_us": 8e6, "after_us": 5.3e6}},
		"The devices of 2 ranks were idle 20 % of the time from their first event to their last; 50 % of what was analysed is after that.": {
			ID: findings.DeviceIdle, Value: 0.2, Evidence: evidence{"ranks": 2, "devices": 2, "device_us": 50, "after_us": 50}},
		"The device was idle 20 % of the time.": {
			ID: findings.DeviceIdle, Value: 0.2, Evidence: evidence{"ranks": 1, "devices": 1, "device_us": 100, "before_us": 5, "after_us": 6}},
		"The devices of 2 ranks were never idle.":                                  {ID: findings.DeviceIdle, Evidence: evidence{"ranks": 2, "devices": 2, "device_us": 5}},
		"91 % of the device's idle time: the host had not launched the next work.": {ID: findings.IdleCause, Value: 0.913, Name: analyses.CauseNotLaunched, Evidence: evidence{"devices": 1}},
		"The device was idle 22 µs while launching calls ran, most of it in cudaLaunchKernel (1 call of 39 µs).": {
			ID: findings.LaunchCalls, Value: 0.2, Name: "cudaLaunchKernel", Evidence: evidence{"devices": 1, "idle_us": 22, "calls": 1, "mean_us": 39, "max_us": 39}},
		"The steps waited for data 25 % of their time; the device was idle for 0.13 s of it.": {
			ID: findings.DataLoading, Value: 0.246, Evidence: evidence{"devices": 1, "highest_share": 0.25, "device_idle_us": 127e3}},
		"Python was in train.py(42): train_step for 91 % of the device's idle time.": {ID: findings.PythonIdle, Value: 0.91, Place: own, Evidence: evidence{"devices": 1}},
		"The device ran out of work while the host waited in cudaStreamSynchronize (1 call, 22 µs): 7 % of its idle time followed.": {
			ID: findings.Synchronising, Value: 0.07, Name: "cudaStreamSynchronize", Evidence: evidence{"devices": 1, "calls": 1, "total_us": 22}},
		"None of the communication is hidden behind computation.": {ID: findings.HiddenComm},
		"All of the communication is hidden behind computation.":  {ID: findings.HiddenComm, Value: 1},
		"The critical path of a step of rank 2 is 60 % the host, 38 % communication (36 % waiting for other ranks); without aten::to (host) a step would be 6 % shorter (1.2 ms).": {
			ID: findings.CriticalPath, Value: 0.062, Rank: number(2), Name: "aten::to", On: analyses.OnHost, Evidence: evidence{
				"host_share": 0.6, "communicating_share": 0.38, "waiting_share": 0.36, "copying_share": 0.01, "step_us": 19901, "step_saved_us": 1240}},
		"The critical path of a step is 47 % communication, 32 % waiting of the device for what is not recorded, 11 % the device's work for earlier steps; without nccl (device) a step would be 33 % shorter (11 ms).": {
			ID: findings.CriticalPath, Value: 0.33, Name: "nccl", On: analyses.OnDevice, Evidence: evidence{
				"communicating_share": 0.467, "waited_share": 0.319, "earlier_share": 0.111, "computing_share": 0.071, "step_us": 34000, "step_saved_us": 11200}},
		"The critical path is 90 % computing; without gemm<float> (device) it would be 70 % shorter.": {
			ID: findings.CriticalPath, Value: 0.7, Name: "void gemm<float>(float*)", On: analyses.OnDevice, Evidence: evidence{"computing_share": 0.9}},
		"Rank 1 came last to the only collective; the other rank waited 18 ms for it.": {
			ID: findings.Straggler, Value: 18e3, Rank: number(1), Evidence: evidence{"ranks": 2, "times_last": 1, "collectives": 1}},
		"All of the device's idle time: the call that launched the next work was not recorded.": {ID: findings.IdleCause, Value: 1, Name: analyses.CauseUnknown, Evidence: evidence{"devices": 1}},
		"The device ran out of work while the host waited in cudaDeviceSynchronize (1 call, 22 µs): all of its idle time followed.": {
			ID: findings.Synchronising, Value: 1, Name: "cudaDeviceSynchronize", Evidence: evidence{"devices": 1, "calls": 1, "total_us": 22}},
		"The steps waited for data 25 % of their time, rank 5's most (50 %); the devices were idle for 0.13 s of it.": {
			ID: findings.DataLoading, Value: 0.246, Rank: number(5), Evidence: evidence{"highest_share": 0.499, "device_idle_us": 127e3}},
		"The steps waited for data 25 % of their time.": {ID: findings.DataLoading, Value: 0.246, Rank: number(5), Evidence: evidence{"highest_share": 0.25}},
		"Python was in train.py(42): train_step for 91 % of the devices' idle time, longest in torch/utils/data/dataloader.py(701): __next__ (90 %).": {
			ID: findings.PythonIdle, Value: 0.91, Place: own, Name: "/opt/venv/lib/python3.12/site-packages/torch/utils/data/dataloader.py(701): __next__", Evidence: evidence{"inner_share": 0.903}},
		"The host was in aten::conv2d for 32 % of the device's idle time.": {ID: findings.HostIdle, Value: 0.32, Name: "aten::conv2d", Evidence: evidence{"devices": 1}},
		"The host was in torch.tensor for 91 % of the devices' idle time, most of it in hipMemcpyWithStream.": {
			ID: findings.HostIdle, Value: 0.91, Name: "torch.tensor", Call: "hipMemcpyWithStream"},
		"Python was in train.py(42): train_step for 91 % of the devices' idle time.": {ID: findings.PythonIdle, Value: 0.91, Place: own},
		"The devices ran out of work while the host waited in cudaStreamSynchronize (40 calls, 0.33 s, most in train.py(42): train_step): 91 % of their idle time followed.": {
			ID: findings.Synchronising, Value: 0.913, Name: "cudaStreamSynchronize", Place: own, Evidence: evidence{"calls": 40, "total_us": 334e3}},
		"The main thread was in train.py(42): train_step for 80 % of its time, library code called from there included.": {ID: findings.PythonTime, Value: 0.8, Place: own},
		"Of the operators aten::mm took most: 29 % of their CPU time in 1 call.":                                         {ID: findings.TopOperator, Value: 0.288, Name: "aten::mm", Evidence: evidence{"calls": 1}},
		"A step took 12 ms, 8 % more than in base (11 ms).":                                                              {ID: findings.StepChanged, Value: 900, Name: "base", Evidence: evidence{"before_us": 11400, "after_us": 12300}},
		"A step took 11 ms, 7 % less than in base (12 ms).":                                                              {ID: findings.StepChanged, Value: 900, Name: "base", Evidence: evidence{"before_us": 12300, "after_us": 11400}},
		"A step took 11 ms, in base 11 ms: no more than noise.":                                                          {ID: findings.StepChanged, Value: 100, Name: "base", Evidence: evidence{"before_us": 11300, "after_us": 11400, "noise": 1}},
		"34 % of the communication (63 ms) is hidden behind computation.":                                                {ID: findings.HiddenComm, Value: 0.344, Evidence: evidence{"communication_us": 63e3}},
		"The devices only communicated for 68 % of the time and computed for 21 %; rank 4 most (79 %).": {
			ID: findings.Communicating, Value: 0.68, Rank: number(4), Device: number(4),
			Evidence: evidence{"compute_share": 0.21, "highest_share": 0.79, "devices": 8, "ranks": 8}},
		"The device only copied for 99 % of the time and computed for 0 %.": {
			ID: findings.Copying, Value: 0.997, Evidence: evidence{"devices": 1, "ranks": 1}},
		"Rank 6 came last to 25 of 84 collectives; the other ranks waited 0.17 s for it on average (28 % of the time).": {
			ID: findings.Straggler, Value: 170e3, Rank: number(6), Evidence: evidence{"times_last": 25, "collectives": 84, "ranks": 8, "device_us": 607e3}},
		"Of the work on the device 25 % was for the forward pass, 73 % for the backward pass, 1 % for the optimizer and 0.8 % for none of these.": {
			ID: findings.Phases, Value: 0.73, Name: "backward", Evidence: evidence{"devices": 1, "forward_share": 0.25, "backward_share": 0.73, "optimizer_share": 0.012, "other_share": 0.008}},
		"Of the work on the devices 40 % was for the forward pass and 60 % for the backward pass.": {
			ID: findings.Phases, Value: 0.6, Name: "backward", Evidence: evidence{"forward_share": 0.4, "backward_share": 0.6, "other_share": 0.001}},
		"Matrix products were 20 % of the work on the device and ran at 62 % of what its peaks allow.": {
			ID: findings.Efficiency, Value: 0.62, Name: analyses.KindGEMM, Evidence: evidence{"devices": 1, "work_share": 0.197}},
		"Attention was 12 % of the work on the devices and ran at 2 % of what their peaks allow.": {
			ID: findings.Efficiency, Value: 0.02, Name: analyses.KindAttention, Evidence: evidence{"work_share": 0.121}},
		"83 % of the device's idle time was in decode steps (120 of 8.2 ms, 63.5 requests each).": {
			ID: findings.ServingIdle, Value: 0.83, Name: analyses.Decode, Evidence: evidence{"devices": 1, "steps": 120, "mean_step_us": 8200, "mean_requests": 63.5}},
		"All of the device's idle time was in the only prefill step (87 ms).": {
			ID: findings.ServingIdle, Value: 1, Name: analyses.Prefill, Evidence: evidence{"devices": 1, "steps": 1, "mean_step_us": 87.4e3, "mean_requests": 1}},
		"60 % of the devices' idle time was between the inference engine's steps.": {ID: findings.ServingIdle, Value: 0.6, Name: analyses.Between},
		"34 % of the communication is hidden behind computation.":                  {ID: findings.HiddenComm, Value: 0.344},
		"Rank 5 came last to 10 of 10 collectives; the other ranks waited 0.18 s for it.": {
			ID: findings.Straggler, Value: 180e3, Rank: number(5), Evidence: evidence{"times_last": 10, "collectives": 10}},
		"Memory was highest with 652 MiB on device 0, 48 ms after the history began: 44 % optimizer, 30 % allocated in train.py(42): train_step.": {
			ID: findings.MemoryPeak, Value: 652 << 20, On: "device 0", Name: "optimizer", Place: own, Evidence: evidence{"at_us": 47.6e3, "category_share": 0.436, "place_share": 0.3}},
		"Memory was highest with 652 MiB requested on device 0 (max_memory_allocated: 653 MiB or more).": {
			ID: findings.MemoryPeak, Value: 652 << 20, On: "device 0", Evidence: evidence{"max_memory_allocated_bytes": 653 << 20}},
		"Memory was highest with 1 KiB on pinned host memory.": {ID: findings.MemoryPeak, Value: 1024, On: "pinned host memory"},
		"An allocation of 100 MiB on device 0 failed with 3 MiB free, in train.py(42): train_step.": {
			ID: findings.OutOfMemory, Value: 100 << 20, On: "device 0", Place: own, Evidence: evidence{"free_bytes": 3 << 20}},
		"44 % of the memory reserved on device 0 was unused at the end: 334 MiB, the largest free piece 20 MiB.": {
			ID: findings.UnusedReserved, Value: 0.44, On: "device 0", Evidence: evidence{"free_bytes": 334 << 20, "largest_free_bytes": 20 << 20}},
	} {
		if got := sentence(f); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestSentencesHaveNoForeignMarks(t *testing.T) {
	evil := &place.Place{File: "a\x1b[31m.py", Line: 1, Function: "f\u202e\n"}
	for _, f := range []findings.Finding{
		{ID: findings.PythonIdle, Place: evil, Name: "a\x1b.py(1): f"}, {ID: findings.HostIdle, Name: "a\x1b", Call: "c\x07"}, {ID: findings.Synchronising, Name: "cuda\x07", Place: evil},
		{ID: findings.TopOperator, Name: "aten::\x00"}, {ID: findings.MemoryPeak, On: "\x1b", Name: "\x1b", Evidence: map[string]float64{"category_share": 1}},
	} {
		if got := sentence(f); strings.ContainsAny(got, "\x00\x07\x1b\n\u202e") {
			t.Errorf("%s: %q", f.ID, got)
		}
	}
}

// analysed runs the analysis of a folder with the series.
func analysed(t *testing.T, paths ...string) *Result {
	t.Helper()
	a, err := traces.Run(context.Background(), paths, kineto.Options{}, analyses.Options{Tables: analyses.AllTables()})
	if err != nil {
		t.Fatal(err)
	}
	return &Result{Name: "run", Analysis: a}
}

const cpuOnlyTrace = `{"traceEvents": [
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":1,"tid":1,"ts":0,"dur":100,"args":{}},
{"ph":"X","cat":"user_annotation","name":"enumerate(DataLoader)#_Iter.__next__","pid":1,"tid":1,"ts":0,"dur":30,"args":{}},
{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":40,"dur":20,"args":{"Input Dims":[[8,32],[32,10]]}},
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#2","pid":1,"tid":1,"ts":100,"dur":80,"args":{}}]}`

// TestPageOfTheCPUAlone shows nothing of a device.
func TestPageOfTheCPUAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.json")
	if err := os.WriteFile(path, []byte(cpuOnlyTrace), 0o600); err != nil {
		t.Fatal(err)
	}
	r := analysed(t, path)
	var drawn []string
	for _, c := range r.Charts(Auto) {
		drawn = append(drawn, c.Name)
	}
	if got, want := strings.Join(drawn, " "), "dataloader annotations operators"; got != want {
		t.Errorf("charts %q, want %q", got, want)
	}
	var text bytes.Buffer
	if err := r.Text(&text, 120); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitN(text.String(), "\n", 3)
	if lines[1] != "The trace has no device events; 1 step took 100 µs." {
		t.Errorf("headline %q", lines[1])
	}
	for _, none := range []string{"idle", "hidden", "kernel", "Communication", "launches", "flops per s"} {
		if strings.Contains(lines[2], none) {
			t.Errorf("the report speaks of %q:\n%s", none, lines[2])
		}
	}
	if want := "Not recorded: Python stacks (with_stack=True); memory (profile_memory=True)."; !strings.Contains(lines[2], want) {
		t.Errorf("the report does not say %q:\n%s", want, lines[2])
	}
	if want := "calls        FLOP/s  operator"; !strings.Contains(lines[2], want) {
		t.Errorf("the report does not say %q:\n%s", want, lines[2])
	}
	if !strings.Contains(lines[2], "256 MFLOP/s") { // 2·8·32·10 in 20 µs
		t.Errorf("no FLOP/s:\n%s", lines[2])
	}
}

// TestColumnsWithoutValues are not shown in a terminal.
func TestColumnsWithoutValues(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.json")
	const text = `{"deviceProperties":[{"id":0,"name":"GPU A"}],"traceEvents": [
{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":40,"dur":20,"args":{"Input Dims":[[8,32],[32,10]]}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":45,"dur":2,"args":{}}]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := analysed(t, path).Text(&out, 120); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "cudaLaunchKernel") {
		t.Errorf("the calls are not there:\n%s", out.String())
	}
	for _, none := range []string{"idle after", "FLOP/s", "caller"} {
		if strings.Contains(out.String(), none) {
			t.Errorf("the report has %q:\n%s", none, out.String())
		}
	}
}

// TestIdleTimeWithoutItsLaunch: what the next work waited for is not known, and is
// not said to be anything else.
func TestIdleTimeWithoutItsLaunch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.json")
	const text = `{"traceEvents": [
{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":0,"dur":20,"args":{"device":0,"stream":7,"correlation":1}},
{"ph":"X","cat":"kernel","name":"b","pid":0,"tid":7,"ts":90,"dur":10,"args":{"device":0,"stream":7,"correlation":2}}]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := analysed(t, path).Text(&out, 120); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"All of the device's idle time: the call that launched the next work was not recorded.", "rank  device  launch not recorded\n     0       0                70 µs\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report does not say %q:\n%s", want, out.String())
		}
	}
}

// TestFilesOfTheCPUAlone have no table without figures.
func TestFilesOfTheCPUAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.json")
	if err := os.WriteFile(path, []byte(cpuOnlyTrace), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "csv")
	if err := analysed(t, path).WriteCSV(dir); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.csv"))
	for i, file := range files {
		files[i] = strings.TrimSuffix(filepath.Base(file), ".csv")
	}
	if got, want := strings.Join(files, " "), "annotations dataloader operators profiler_step_times recordings"; got != want {
		t.Errorf("got the files of %s, want %s", got, want)
	}
}

// TestPageOfSeveralDevices names them; that of one does not.
func TestPageOfSeveralDevices(t *testing.T) {
	dir := t.TempDir()
	if _, err := synth.WriteDir(synth.Config{Devices: 2, Steps: 3}, dir, false); err != nil {
		t.Fatal(err)
	}
	for _, c := range analysed(t, dir).Charts(Auto) {
		want := map[string]string{"temporal": ">device 1<", "idle": ">device 1<", "queue": ">device 1, stream 7<"}[c.Name]
		if want != "" && !bytes.Contains(c.SVG, []byte(want)) {
			t.Errorf("the chart %s does not say %q", c.Name, want)
		}
		wellFormed(t, c.Name, c.SVG)
	}
	r, _ := training(t)
	for _, c := range r.Charts(Auto) {
		if c.Name == "steps" && (!bytes.Contains(c.SVG, []byte(">step 5<")) || bytes.Contains(c.SVG, []byte(">step 6<"))) {
			t.Error("the chart of the steps has not just those that count")
		}
		if c.Name == "idle" && (bytes.Contains(c.SVG, []byte("device 0")) || !bytes.Contains(c.SVG, []byte(">rank 3<"))) {
			t.Error("ranks with one device each are not named by rank")
		}
	}
}

func TestDocumentHasFindings(t *testing.T) {
	r, _ := training(t)
	var out bytes.Buffer
	if err := r.WriteJSON(&out, func(*table.Table) bool { return true }); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Document string
		Version  int
		Headline struct {
			Finding int
			Text    string
		}
		Findings []struct {
			ID, Unit, Text string
			Value          float64
			Rank           *int64
			Place          *struct {
				File     string
				Line     int
				Function string
			}
			Evidence map[string]*float64
		}
		Temporal []map[string]any `json:"temporal_breakdown"`
	}
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatalf("%v in\n%.2000s", err, out.String())
	}
	if doc.Document != Kind || doc.Version != Version || len(doc.Temporal) != 4 {
		t.Errorf("document %q of version %d, %d ranks", doc.Document, doc.Version, len(doc.Temporal))
	}
	if first := doc.Findings[doc.Headline.Finding]; first.ID != "communicating" || first.Text != doc.Headline.Text {
		t.Errorf("headline %+v, finding %+v", doc.Headline, first)
	}
	for i, f := range doc.Findings {
		if f.Text != r.headline()[i] {
			t.Errorf("%s: text %q, want the sentence", f.ID, f.Text)
		}
		if f.ID == "synchronising" && (f.Place == nil || f.Place.Function != "log_loss" || f.Place.Line != 55) {
			t.Errorf("place %+v of the synchronising call", f.Place)
		}
	}
}

func TestEmptyDocument(t *testing.T) {
	var out bytes.Buffer
	if err := (&Result{}).WriteJSON(&out, func(*table.Table) bool { return true }); err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if top := doc["headline"].(map[string]any); top["finding"] != nil || top["text"] != "" || len(doc["findings"].([]any)) != 0 || len(doc["warnings"].([]any)) != 0 || len(doc["ranks"].([]any)) != 0 {
		t.Errorf("got %v", doc)
	}
}
