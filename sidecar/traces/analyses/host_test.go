package analyses

import (
	"math"
	"strings"
	"testing"
)

// TestCausesTellTheCallApart: a gap is divided at the beginning and the end of
// the call that launched what ended it.
func TestCausesTellTheCallApart(t *testing.T) {
	var s script
	s.launchOn(0, 0, 2, 7, "a", 10, 10)
	s.launchOn(0, 30, 50, 7, "b", 85, 5)                                                                               // 20-85: not launched 10, inside 50, queued 5
	s.launchOn(0, 40, 2, 7, "c", 190, 10)                                                                              // 90-190: launched long before, waited 100
	s.launchOn(0, 150, 100, 7, "d", 240, 10)                                                                           // 200-240: inside 40, starts before the call returns
	s.add(`{"ph":"X","cat":"kernel","name":"orphan","pid":0,"tid":7,"ts":260,"dur":5,"args":{"device":0,"stream":7}}`) // 250-260: 10 below the limit
	s.add(`{"ph":"X","cat":"kernel","name":"orphan","pid":0,"tid":7,"ts":305,"dur":5,"args":{"device":0,"stream":7}}`) // 265-305: 40 above it
	a := analyze(Options{}, s.trace(t))
	check(t, "causes", cells(a.Table(TableIdleCauses), "device", "stream", "cause", "gaps", "idle_us", "device_idle_us"), `
		0 7 not_launched 1 10 10
		0 7 inside_launch_call 2 90 90
		0 7 queued 2 15 15
		0 7 waited 1 100 100
		0 7 unknown 1 40 40
	`)
	check(t, "categories", cells(a.Table(TableIdle), "idle_category", "idle_time_us"), `
		host_wait 65
		kernel_wait 10
		other 180
	`)
	check(t, "calls", cells(a.Table(TableCalls), "call", "count", "total_us", "max_us", "slow_calls", "inside_us"), "cudaLaunchKernel 4 154 100 1 90\n")
	var sum float64
	for _, v := range a.Table(TableIdleCauses).Column("idle_share").Floats {
		sum += v
	}
	if math.Abs(sum-1) > 1e-12 {
		t.Errorf("the causes add up to %g of the stream's idle time", sum)
	}
}

// TestWhatDevicesWaitedFor: a device's idle time is the stream's whose event ends
// it; while another stream works, a stream that waits costs nothing.
func TestWhatDevicesWaitedFor(t *testing.T) {
	var s script
	s.launchOn(0, 0, 2, 7, "a", 10, 10)
	s.launchOn(0, 3, 2, 20, "ncclKernel", 60, 40) // the first of its stream; 20-60 nothing runs, queued for long
	s.launchOn(0, 90, 2, 7, "b", 120, 10)         // 20-120 idle on 7, the device from 100 on
	s.launchOn(0, 140, 4, 20, "ncclKernel", 145, 5)
	s.launchOn(1, 300, 4, 7, "c", 310, 5) // another device
	a := analyze(Options{}, s.trace(t))
	check(t, "causes", cells(a.Table(TableIdleCauses), "device", "stream", "cause", "gaps", "idle_us", "device_idle_us"), `
		0 7 not_launched 1 70 0
		0 7 inside_launch_call 1 2 0
		0 7 queued 1 28 20
		0 20 not_launched 1 40 10
		0 20 inside_launch_call 1 4 4
		0 20 queued 1 1 1
		0 20 waited 0 0 40
	`)
}

// TestSynchronisingCalls: only idle time that began inside the call with nothing
// queued is what followed it.
func TestSynchronisingCalls(t *testing.T) {
	var s script
	s.python("train.py(10): main", 0, 1000)
	s.python("train.py(20): log", 25, 100)
	s.op("cpu_op", "aten::item", 30, 60, 1)
	s.op("cpu_op", "aten::_local_scalar_dense", 31, 58, 2)
	s.launchOn(0, 0, 2, 7, "a", 10, 30) // to 40
	s.call("cudaStreamSynchronize", 35, 50)
	s.launchOn(0, 95, 2, 7, "b", 100, 10) // 40-100 followed the wait
	s.launchOn(0, 96, 2, 7, "c", 130, 10) // queued: 110-130 did not
	s.call("cudaDeviceSynchronize", 105, 40)
	a := analyze(Options{}, s.trace(t))
	check(t, "calls", cells(a.Table(TableCalls), "call", "synchronising", "count", "total_us", "drained_gaps", "drained_us", "operator", "caller"), `
		cudaStreamSynchronize yes 1 50 1 60 aten::item train.py(20): log
		cudaDeviceSynchronize yes 1 40 0 0  train.py(20): log
		cudaLaunchKernel  3 6 0 0  
	`)
}

// TestCallsOfSeveralThreads: the call that the host was inside of may be a long
// one that began before shorter ones of another thread.
func TestCallsOfSeveralThreads(t *testing.T) {
	var s script
	s.launchOn(0, 0, 2, 7, "a", 10, 90) // to 100
	s.call("cudaDeviceSynchronize", 20, 100)
	s.add(`{"ph":"X","cat":"cuda_runtime","name":"cudaEventSynchronize","pid":1,"tid":2,"ts":30,"dur":5,"args":{"correlation":0}}`)
	s.add(`{"ph":"X","cat":"cuda_runtime","name":"cudaEventSynchronize","pid":1,"tid":2,"ts":50,"dur":5,"args":{"correlation":0}}`)
	s.launchOn(0, 150, 2, 7, "b", 160, 10)
	a := analyze(Options{}, s.trace(t))
	check(t, "calls", cells(a.Table(TableCalls), "call", "drained_us"), "cudaDeviceSynchronize 60\ncudaEventSynchronize 0\ncudaLaunchKernel 0\n")
}

// TestPythonFunctions: the user's functions with the library code they call, of
// the main thread alone; of a recursion the outermost call counts.
func TestPythonFunctions(t *testing.T) {
	var s script
	s.python("train.py(1): <module>", 0, 1000)
	s.python("train.py(10): walk", 100, 400)
	s.python("train.py(10): walk", 150, 200)
	s.python("torch/nn/functional.py(5): linear", 200, 100)
	s.python("<built-in method matmul of type object at 0x7f00>", 220, 50)
	s.python("mylib/data.py(3): load", 600, 100)
	s.add(`{"ph":"X","cat":"python_function","name":"threading.py(2): wait","pid":1,"tid":9,"ts":0,"dur":5000,"args":{}}`)
	a := analyze(Options{}, s.trace(t))
	check(t, "functions", cells(a.Table(TablePythonFunctions), "file", "line", "function", "calls", "own_us", "self_us", "total_us"), `
		train.py 1 <module> 1 500 500 1000
		train.py 10 walk 2 400 300 400
		mylib/data.py 3 load 1 100 100 100
		  <built-in method matmul of type object> 1 0 50 50
		torch/nn/functional.py 5 linear 1 0 50 100
	`)
}

// TestTheMainThread is the one whose number is the process's, however much another one calls; where there is none, the one that
// called operators; and omni_perf's own is the last.
func TestTheMainThread(t *testing.T) {
	for name, c := range map[string]struct {
		pid, main, side int
		sideName        string
		operators       int // the thread that calls them
		want            string
	}{
		"the process's number":      {pid: 5, main: 5, side: 9, sideName: "tick", operators: 5, want: "train"},
		"without operators":         {pid: 5, main: 5, side: 9, sideName: "tick", want: "train"},
		"operators of another one":  {pid: 5, main: 5, side: 9, sideName: "tick", operators: 9, want: "train"},
		"numbers of another kind":   {pid: 5, main: 7, side: 9, sideName: "tick", operators: 7, want: "train"},
		"no operators, no number":   {pid: 5, main: 7, side: 9, sideName: "tick", want: "tick"},
		"the extension's own, busy": {pid: 5, main: 7, side: 9, sideName: "site-packages/omni_perf/looper.py(170): _run", want: "train"},
	} {
		t.Run(name, func(t *testing.T) {
			var s script
			frame := func(tid int, name string, at, dur int) {
				s.add(`{"ph":"X","cat":"python_function","name":%q,"pid":%d,"tid":%d,"ts":%d,"dur":%d,"args":{}}`, name, c.pid, tid, at, dur)
			}
			frame(c.main, "train.py(1): train", 0, 1000)
			for i := range 20 {
				side := c.sideName
				if !strings.Contains(side, "(") {
					side = "side.py(3): " + side
				}
				frame(c.side, side, 10*i, 5)
			}
			if c.operators != 0 {
				s.add(`{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":%d,"tid":%d,"ts":1,"dur":2,"args":{}}`, c.pid, c.operators)
			}
			functions := analyze(Options{}, s.trace(t)).Table(TablePythonFunctions)
			if got := functions.TextAt("function", 0); functions.Len() != 1 || got != c.want {
				t.Errorf("the main thread's functions are %d, the first %q, want %q", functions.Len(), got, c.want)
			}
		})
	}
}

// TestAMainThreadThatWaits for the thread that trains is not what autograd's work is part of.
func TestAMainThreadThatWaits(t *testing.T) {
	var s script
	frame := func(tid int, name string) {
		s.add(`{"ph":"X","cat":"python_function","name":%q,"pid":5,"tid":%d,"ts":0,"dur":1000,"args":{}}`, name, tid)
	}
	frame(5, "app.py(1): wait")
	frame(9, "train.py(1): train")
	s.add(`{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":5,"tid":9,"ts":1,"dur":2,"args":{}}`)
	s.launchOn(0, 0, 2, 7, "a", 10, 10) // by a thread without Python
	s.launchOn(0, 100, 2, 7, "b", 102, 10)
	check(t, "idle", cells(analyze(Options{}, s.trace(t)).Table(TablePythonIdle), "file", "function", "idle_us"), "train.py train 82\n")
}

// TestTracesOfTheCPUAlone have no columns about a device.
func TestTracesOfTheCPUAlone(t *testing.T) {
	var s script
	s.op("user_annotation", "ProfilerStep#7", 0, 100, 1)
	s.op("user_annotation", "enumerate(DataLoader)#_Iter.__next__", 0, 30, 2)
	s.op("cpu_op", "aten::mm", 40, 20, 3)
	s.op("user_annotation", "ProfilerStep#8", 100, 100, 4)
	s.op("cpu_op", "aten::mm", 110, 30, 5)
	a := analyze(Options{}, s.trace(t))
	for _, name := range []string{TableSteps, TableDataLoader, TableOperators, TableRecordings} {
		table := a.Table(name)
		if table.Len() == 0 {
			t.Errorf("%s is empty", name)
		}
		for _, c := range table.Columns {
			if strings.Contains(c.Name, "device") || strings.Contains(c.Name, "flops") || strings.Contains(c.Name, "bytes") || c.Name == "launches" {
				t.Errorf("%s has the column %s", name, c.Name)
			}
		}
	}
	check(t, "steps", cells(a.Table(TableSteps), "step", "duration_us", "counted"), "7 100 yes\n8 100 dropped\n")
	if a.Table(TableTemporal).Len() != 0 || a.Table(TableTemporal).Note != "no device events" {
		t.Errorf("device time of %d rows, note %q", a.Table(TableTemporal).Len(), a.Table(TableTemporal).Note)
	}
}

// TestStepsAreOneOperator, as in torch's key_averages.
func TestStepsAreOneOperator(t *testing.T) {
	var s script
	for i := range 3 {
		at := float64(100 * i)
		s.op("user_annotation", "ProfilerStep#"+string(rune('4'+i)), at, 90, 1)
		s.op("cpu_op", "aten::add", at+10, 20, 2)
	}
	a := analyze(Options{IncludeLastStep: true}, s.trace(t))
	check(t, "operators", cells(a.Table(TableOperators), "name", "calls", "self_cpu_us", "total_cpu_us"), "ProfilerStep* 3 210 270\naten::add 3 60 60\n")
}

// TestNestedCallsOfOneName count once, as in torch's key_averages; a second call
// in them makes them two.
func TestNestedCallsOfOneName(t *testing.T) {
	var s script
	s.op("cpu_op", "aten::mul", 0, 100, 1)
	s.op("cpu_op", "aten::mul", 10, 50, 2)
	s.op("cpu_op", "aten::div", 200, 100, 3)
	s.op("cpu_op", "aten::div", 210, 50, 4)
	s.op("cpu_op", "aten::to", 270, 10, 5)
	a := analyze(Options{}, s.trace(t))
	check(t, "operators", cells(a.Table(TableOperators), "name", "calls", "self_cpu_us", "total_cpu_us"), `
		aten::mul 1 100 100
		aten::div 2 90 150
		aten::to 1 10 10
	`)
}

// opWith is an operator with inputs on thread 1.
func (s *script) opWith(name string, start, dur float64, more string) {
	s.add(`{"ph":"X","cat":"cpu_op","name":%q,"pid":1,"tid":1,"ts":%v,"dur":%v,"args":{%s}}`, name, start, dur, more)
}

// TestFlopsOfShapes: by torch.utils.flop_counter's formulas, figures worked out
// by hand.
func TestFlopsOfShapes(t *testing.T) {
	conv := `"Input Dims":[[8,3,32,32],[16,3,3,3],[16],[],[],[],[],[],[]],"Concrete Inputs":["","","","[2, 2]","[1, 1]","[1, 1]","False","[0, 0]","1"]`
	for _, c := range []struct {
		op, args string
		want     float64 // 0: no figure
	}{
		{"aten::mm", `"Input Dims":[[8,32],[32,10]]`, 2 * 8 * 32 * 10},
		{"aten::addmm", `"Input Dims":[[10],[8,32],[32,10],[],[]]`, 2 * 8 * 32 * 10},
		{"aten::bmm", `"Input Dims":[[4,8,32],[4,32,10]]`, 4 * 2 * 8 * 32 * 10},
		{"aten::baddbmm", `"Input Dims":[[4,8,10],[4,8,32],[4,32,10],[],[]]`, 4 * 2 * 8 * 32 * 10},
		{"aten::convolution", conv, 2 * 8 * 16 * 16 * 16 * 3 * 9},
		{"aten::_convolution", strings.Replace(conv, `"[2, 2]"`, `"[1, 1]"`, 1), 2 * 8 * 32 * 32 * 16 * 3 * 9},
		// Groups are in the weight's shape; a dilation of 2 shrinks the output by 2 more.
		{"aten::convolution", `"Input Dims":[[8,16,32],[32,8,3],[],[],[],[],[],[],[]],"Concrete Inputs":["","","","[1]","[0]","[2]","False","[0]","2"]`, 2 * 8 * 28 * 32 * 8 * 3},
		// Transposed: each input place is multiplied with the weight.
		{"aten::convolution", `"Input Dims":[[8,16,10,10],[16,4,3,3],[],[],[],[],[],[],[]],"Concrete Inputs":["","","","[2, 2]","[0, 0]","[1, 1]","True","[0, 0]","1"]`, 2 * 8 * 100 * 16 * 4 * 9},
		{"aten::convolution_backward", `"Input Dims":[[8,16,16,16],[8,3,32,32],[16,3,3,3],[],[],[],[],[],[],[],[]],"Concrete Inputs":["","","","[16]","[2, 2]","[1, 1]","[1, 1]","False","[0, 0]","1","[True, True, True]"]`, 2 * 2 * 8 * 16 * 16 * 16 * 3 * 9},
		{"aten::convolution_backward", `"Input Dims":[[8,16,16,16],[8,3,32,32],[16,3,3,3],[],[],[],[],[],[],[],[]],"Concrete Inputs":["","","","[16]","[2, 2]","[1, 1]","[1, 1]","False","[0, 0]","1","[False, True, True]"]`, 2 * 8 * 16 * 16 * 16 * 3 * 9},
		{"aten::_scaled_dot_product_flash_attention", `"Input Dims":[[2,4,64,16],[2,4,80,16],[2,4,80,24],[],[]]`, 2*2*4*64*80*16 + 2*2*4*64*80*24},
		{"aten::_scaled_dot_product_flash_attention_backward", `"Input Dims":[[2,4,64,24],[2,4,64,16],[2,4,80,16],[2,4,80,24],[]]`, 3*2*2*4*64*80*16 + 2*2*2*4*64*80*24},
		// What cannot be known has no figure.
		{"aten::mm", `"Input Dims":[[8,32],[31,10]]`, 0},
		{"aten::mm", `"Input Dims":[[8,32]]`, 0},
		{"aten::mm", `"Input Dims":"[8"`, 0},
		{"aten::mm", `"Input Dims":[[-8,32],[32,10]]`, 0},
		{"aten::convolution", strings.Replace(conv, `"Concrete Inputs"`, `"Other"`, 1), 0},
		{"aten::convolution", strings.Replace(conv, `"[2, 2]"`, `"[0, 0]"`, 1), 0},
		{"aten::scaled_dot_product_attention", `"Input Dims":[[4,64,16],[4,64,16],[4,64,16]]`, 0},
		{"aten::relu", `"Input Dims":[[8,32]]`, 0},
	} {
		var s script
		s.opWith(c.op, 0, 10, c.args)
		table := analyze(Options{}, s.trace(t)).Table(TableOperators)
		if c.want == 0 {
			if table.Column("flops") != nil {
				t.Errorf("%s with %s: got %g, want no column", c.op, c.args, table.FloatAt("flops", 0))
			}
			continue
		}
		if table.Column("flops") == nil {
			t.Errorf("%s with %s: no column", c.op, c.args)
			continue
		}
		if got, rate := table.FloatAt("flops", 0), table.FloatAt("flops_per_s", 0); got != c.want || math.Abs(rate-c.want/10e-6) > 1 {
			t.Errorf("%s with %s: got %g at %g/s, want %g in 10 µs", c.op, c.args, got, rate, c.want)
		}
	}
}

// TestNoRateOfWorkThatWasNotRecorded: an operator that only launches kernels is
// over long before they are.
func TestNoRateOfWorkThatWasNotRecorded(t *testing.T) {
	for name, more := range map[string]func(*script){
		"kernels were launched": func(s *script) { s.call("cudaLaunchKernel", 2, 1) },
		"a device is named":     func(s *script) { s.head = `"deviceProperties":[{"id":0,"name":"GPU A"}],` },
	} {
		var s script
		s.opWith("aten::mm", 0, 10, `"Input Dims":[[8,32],[32,10]]`)
		more(&s)
		operators := analyze(Options{}, s.trace(t)).Table(TableOperators)
		if got := operators.FloatAt("flops", 0); got != 5120 {
			t.Errorf("%s: got %g, want 5120", name, got)
		}
		if operators.Column("flops_per_s") == nil || !math.IsNaN(operators.FloatAt("flops_per_s", 0)) {
			t.Errorf("%s: got a rate of %g/s", name, operators.FloatAt("flops_per_s", 0))
		}
	}
}

// TestFlopsCountOnce: the operator that does the work counts, those around it
// have its figure; the rate is of the time on the device.
func TestFlopsCountOnce(t *testing.T) {
	var s script
	s.opWith("aten::linear", 0, 100, `"External id":1,"Input Dims":[[8,32],[10,32],[10]]`)
	s.opWith("aten::addmm", 10, 50, `"External id":2,"Input Dims":[[10],[8,32],[32,10],[],[]]`)
	s.opWith("aten::mul", 200, 10, `"External id":3,"Flops":80`)
	s.launch(20, 7, "gemm", 30, 4, `,"External id":2`)
	a := analyze(Options{}, s.trace(t))
	check(t, "operators", cells(a.Table(TableOperators), "name", "flops", "flops_per_s", "total_device_us"), `
		aten::addmm 5120 1280000000 4
		aten::linear 5120 1280000000 4
		aten::mul 80  0
	`)
}

func FuzzParseShapes(f *testing.F) {
	f.Add(`[[8, 3, 32, 32], [16, 3, 3, 3], []]`, `["", "", "[1, 1]", "True"]`)
	f.Add(`[[[2,3],[4]], 7, null]`, `null`)
	f.Add(``, `[`)
	f.Fuzz(func(t *testing.T, dims, concrete string) {
		in := parseShapes(dims, concrete)
		for name, formula := range formulas {
			if flops, ok := formula(in); ok && (flops < 0 || math.IsNaN(flops)) {
				t.Errorf("%s of %q and %q: %g", name, dims, concrete, flops)
			}
		}
	})
}
