package analyses

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// script builds a small trace by hand; times are microseconds.
type script struct {
	rank   int
	head   string // what precedes the events
	events []string
	next   int // next correlation
}

func (s *script) add(format string, args ...any) {
	s.events = append(s.events, fmt.Sprintf(format, args...))
}

// op on thread 1.
func (s *script) op(cat, name string, start, dur float64, external int) {
	s.add(`{"ph":"X","cat":%q,"name":%q,"pid":1,"tid":1,"ts":%v,"dur":%v,"args":{"External id":%d}}`, cat, name, start, dur, external)
}

// launch is a call of 2 µs and the kernel it starts.
func (s *script) launch(call float64, stream int, kernel string, start, dur float64, more string) {
	s.next++
	s.add(`{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":%v,"dur":2,"args":{"correlation":%d}}`, call, s.next)
	s.add(`{"ph":"X","cat":"kernel","name":%q,"pid":0,"tid":%d,"ts":%v,"dur":%v,"args":{"stream":%d,"correlation":%d%s}}`, kernel, stream, start, dur, stream, s.next, more)
}

// launchOn is launch with the call's length and the device chosen.
func (s *script) launchOn(device int, call, callDur float64, stream int, kernel string, start, dur float64) {
	s.next++
	s.add(`{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":%v,"dur":%v,"args":{"correlation":%d}}`, call, callDur, s.next)
	s.add(`{"ph":"X","cat":"kernel","name":%q,"pid":%d,"tid":%d,"ts":%v,"dur":%v,"args":{"device":%d,"stream":%d,"correlation":%d}}`, kernel, device, stream, start, dur, device, stream, s.next)
}

func (s *script) call(name string, start, dur float64) {
	s.add(`{"ph":"X","cat":"cuda_runtime","name":%q,"pid":1,"tid":1,"ts":%v,"dur":%v,"args":{"correlation":0}}`, name, start, dur)
}

func (s *script) python(name string, start, dur float64) {
	s.add(`{"ph":"X","cat":"python_function","name":%q,"pid":1,"tid":1,"ts":%v,"dur":%v,"args":{}}`, name, start, dur)
}

func (s *script) memory(at float64, bytes, allocated, reserved int) {
	s.add(`{"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":1,"tid":1,"ts":%v,"args":{"Bytes":%d,"Total Allocated":%d,"Total Reserved":%d,"Addr":1,"Device Id":0,"Device Type":1}}`, at, bytes, allocated, reserved)
}

func (s *script) text() string {
	return fmt.Sprintf(`{"distributedInfo":{"rank":%d},%s"traceEvents":[%s]}`, s.rank, s.head, strings.Join(s.events, ",\n"))
}

func (s *script) trace(t *testing.T) *kineto.Trace {
	t.Helper()
	every := func(string) bool { return true }
	trace, warnings, err := kineto.Read(context.Background(), strings.NewReader(s.text()), "test", kineto.Options{Frame: true, Inputs: every})
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	trace.Rank = s.rank
	return trace
}

// result is what a test reads of an analysis.
type result struct {
	tables []*table.Table
	ranks  []Rank
}

func (r result) Table(name string) *table.Table {
	for _, t := range r.tables {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// analyze observes traces one by one and answers for all; neighbours of one rank
// are its cycles.
func analyze(opts Options, traces ...*kineto.Trace) result {
	opts = opts.WithDefaults()
	stepNames := CountStepNames(traces)
	var r result
	for _, t := range traces {
		p := Observe(t, &opts, stepNames)
		if n := len(r.ranks); n == 0 || r.ranks[n-1].Number != t.Rank {
			r.ranks = append(r.ranks, Rank{Number: t.Rank})
		}
		last := &r.ranks[len(r.ranks)-1]
		last.Parts = append(last.Parts, p)
	}
	r.tables = Answer(r.ranks, &opts)
	return r
}

// cells prints some columns of a table, a row per line.
func cells(t *table.Table, columns ...string) string {
	var out strings.Builder
	for r := range t.Len() {
		for i, name := range columns {
			if i > 0 {
				out.WriteByte(' ')
			}
			out.WriteString(t.Column(name).Format(r))
		}
		out.WriteByte('\n')
	}
	return out.String()
}

func check(t *testing.T, what, got, want string) {
	t.Helper()
	if want = strings.ReplaceAll(strings.TrimLeft(want, "\n"), "\t", ""); got != want {
		t.Errorf("%s:\ngot\n%swant\n%s", what, got, want)
	}
}

func TestIdleCauses(t *testing.T) {
	var s script
	s.launch(0, 7, "a", 10, 10, "")   // the stream's first
	s.launch(1, 7, "b", 25, 5, "")    // queued, 5 µs gap: kernel_wait
	s.launch(40, 7, "c", 50, 10, "")  // launched after b ended at 30: host_wait 20
	s.launch(41, 7, "d", 160, 10, "") // queued, 100 µs gap: other
	s.launch(42, 8, "e", 65, 15, "")  // another stream
	a := analyze(Options{}, s.trace(t))
	check(t, "idle", cells(a.Table(TableIdle), "stream", "idle_category", "idle_time_us", "idle_time_ratio"), `
		7 host_wait 20 0.16
		7 kernel_wait 5 0.04
		7 other 100 0.8
		8 other 0 
	`)
	check(t, "intervals", cells(a.Table(TableIdleIntervals), "stream", "idle_category", "count", "mean_us", "max_us"), `
		7 host_wait 1 20 20
		7 kernel_wait 1 5 5
		7 other 1 100 100
		8 other 0  
	`)
	// busy 10-20, 25-30, 50-60, 65-80, 160-170 of 160
	check(t, "temporal", cells(a.Table(TableTemporal), "idle_time_us", "compute_time_us", "kernel_time_us", "idle_time_pctg"), "110 50 160 68.75\n")
	check(t, "launch", cells(a.Table(TableLaunch), "cpu_duration_us", "gpu_duration_us", "launch_delay_us"), `
		2 10 8
		2 5 22
		2 10 8
		2 10 117
		2 15 21
	`)
	check(t, "delays", cells(a.Table(TableLaunchDelay), "call", "count", "p50_us", "max_us", "long_delays", "slow_calls", "short_kernels"),
		"cudaLaunchKernel 5 21 117 1 0 0\n")
}

func TestOverlapAndKinds(t *testing.T) {
	var s script
	s.launch(0, 7, "gemm", 10, 20, "")                             // 10-30
	s.launch(1, 20, "ncclDevKernel_AllReduce_Sum_f32", 20, 20, "") // 20-40
	s.add(`{"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD (Pinned -> Device)","pid":0,"tid":7,"ts":50,"dur":4,"args":{"stream":7,"bytes":8000}}`)
	a := analyze(Options{}, s.trace(t))
	check(t, "overlap", cells(a.Table(TableOverlap), "comp_comm_overlap_pctg"), "50\n")
	check(t, "types", cells(a.Table(TableKernelTypes), "kernel_type", "sum_us"), `
		COMMUNICATION 10
		COMPUTATION 10
		COMPUTATION overlapping COMMUNICATION 10
		MEMORY 4
	`)
	check(t, "kernels", cells(a.Table(TableKernels), "kernel_type", "name", "sum_us", "count"), `
		COMPUTATION gemm 20 1
		COMMUNICATION ncclDevKernel_AllReduce_Sum_f32 20 1
		MEMORY Memcpy HtoD (Pinned -> Device) 4 1
	`)
	check(t, "bandwidth", cells(a.Table(TableMemoryBandwidth), "name", "count", "mean_gbps"), "Memcpy HtoD 1 2\n")
	check(t, "queue", cells(a.Table(TableQueueLength), "stream", "count", "mean", "max"), "7 2 0.5 1\n20 2 0.5 1\n")
}

func TestTopKernelsFold(t *testing.T) {
	var s script
	for i, dur := range []float64{50, 40, 3, 2, 1} {
		s.launch(float64(i), 7, fmt.Sprintf("k%d", i), 100*float64(i), dur, "")
	}
	a := analyze(Options{TopKernels: 2}, s.trace(t))
	check(t, "top", cells(a.Table(TableKernelsTop), "name", "sum_us", "max_us", "min_us", "mean_us", "stddev_us", "count"), `
		k0 50 50 50 50 0 1
		k1 40 40 40 40 0 1
		others 6 3 1 2 1 3
	`)
}

func TestStepsAndDataLoader(t *testing.T) {
	var s script
	s.op("user_annotation", "ProfilerStep#4", 0, 100, 1)
	s.op("user_annotation", "enumerate(DataLoader)#_Iter.__next__", 10, 30, 2)
	s.launch(50, 7, "k", 30, 20, "") // the device works 30-50
	s.op("user_annotation", "ProfilerStep#5", 100, 50, 3)
	s.launch(110, 7, "k", 120, 10, "")
	set := []*kineto.Trace{s.trace(t)}
	a := analyze(Options{}, set...)
	check(t, "steps", cells(a.Table(TableSteps), "step", "start_us", "duration_us", "device_busy_us", "device_idle_us", "launches", "counted"), `
		4 0 100 20 80 1 yes
		5 100 50 10 40 1 dropped
	`)
	check(t, "data", cells(a.Table(TableDataLoader), "step", "fetches", "dataloader_us", "step_us", "dataloader_share", "device_idle_us"), "4 1 30 100 0.3 20\n")
	for _, c := range []struct {
		opts    Options
		kernels string
		steps   []int
	}{
		{Options{}, "20", []int{4}},
		{Options{IncludeLastStep: true}, "30", []int{4, 5}},
		{Options{Steps: []int{5}}, "10", []int{5}},
		{Options{Mode: HTA}, "20", []int{4}},
	} {
		a := analyze(c.opts, set...)
		check(t, fmt.Sprint(c.opts), cells(a.Table(TableKernels), "sum_us"), c.kernels+"\n")
		if got := a.ranks[0].Parts[0].Steps; !reflect.DeepEqual(got, c.steps) {
			t.Errorf("%v: got steps %v, want %v", c.opts, got, c.steps)
		}
	}
}

// TestStraggler: rank 2 arrives last at both all-reduces, and its clock is
// 1000 µs ahead.
func TestStraggler(t *testing.T) {
	var set []*kineto.Trace
	const group = `,"Collective name":"allreduce","Process Group Name":"0","Process Group Ranks":"[0, 1, 2]","In msg nelems":64`
	for rank, r := range []struct{ first, second, clock float64 }{{100, 300, 0}, {110, 320, 0}, {180, 350, 1000}} {
		s := script{rank: rank}
		s.launch(r.clock, 20, "ncclKernel", r.clock+r.first, 200-r.first, group) // all end at 200
		s.launch(r.clock+1, 20, "ncclKernel", r.clock+r.second, 400-r.second, group)
		set = append(set, s.trace(t))
	}
	a := analyze(Options{}, set...)
	check(t, "collectives", cells(a.Table(TableCollectives), "collective", "occurrence", "ranks", "in_nelems", "straggler", "transfer_us", "longest_us", "wait_us"), `
		allreduce 0 3 64 2 20 100 150
		allreduce 1 3 64 2 50 100 80
	`)
	check(t, "stragglers", cells(a.Table(TableStragglers), "rank", "collectives", "times_last", "waited_us", "made_wait_us", "transfer_us", "clock_offset_us"), `
		0 2 0 130 0 70 0
		1 2 0 100 0 70 0
		2 2 2 0 230 70 1000
	`)
	if got, want := ClockOffsets(a.ranks), map[int]int64{0: 0, 1: 0, 2: 1_000_000}; !reflect.DeepEqual(got, want) {
		t.Errorf("got offsets %v, want %v", got, want)
	}
}

// TestRanksTogether: rank 1 computes longer and idles less.
func TestRanksTogether(t *testing.T) {
	var set []*kineto.Trace
	for rank, dur := range []float64{20, 40} {
		s := script{rank: rank}
		s.launch(0, 7, "gemm", 10, dur, "")
		s.launch(1, 7, "norm", 100, 10, "")
		set = append(set, s.trace(t))
	}
	a := analyze(Options{}, set...)
	check(t, "across", cells(a.Table(TableAcrossRanks), "metric", "ranks", "mean", "min", "min_rank", "max", "max_rank"), `
		kernel_time_us 2 100 100 0 100 0
		idle_share 2 0.6 0.5 1 0.7 0
		compute_share 2 0.4 0.3 0 0.5 1
		non_compute_share 2 0 0 0 0 0
	`)
	check(t, "kernels", cells(a.Table(TableKernelsTogether), "name", "ranks", "count", "sum_us", "mean_us", "min_us", "max_us", "slowest_rank", "slowest_mean_us"), `
		gemm 2 2 60 30 20 40 1 40
		norm 2 2 20 10 10 10 0 10
	`)
}

func TestCompareRuns(t *testing.T) {
	run := func(arrivals ...float64) []Rank {
		var set []*kineto.Trace
		for rank, at := range arrivals {
			s := script{rank: rank}
			s.launch(at-5, 20, "ncclKernel", at, 200-at, "") // all end at 200
			set = append(set, s.trace(t))
		}
		return analyze(Options{}, set...).ranks
	}
	table := CompareRuns([][]Rank{run(100, 160), run(150, 150)}, []string{"before", "after"})
	check(t, "runs", cells(table, "collective", "run", "collectives", "mean_us", "transfer_us", "wait_us", "straggler"), `
		ncclKernel before 1 70 40 30 1
		ncclKernel after 1 50 50 0 0
	`)
}

// TestCollectivesBySequence: rank 1 missed the first one, and sends are no
// collectives.
func TestCollectivesBySequence(t *testing.T) {
	var set []*kineto.Trace
	for rank := range 2 {
		s := script{rank: rank}
		more := func(name string, seq int) string {
			return fmt.Sprintf(`,"Collective name":%q,"Process Group Name":"0","dtype":"Float","Seq":%d`, name, seq)
		}
		for seq := rank; seq < 3; seq++ {
			at := float64(100 * (seq + 1))
			s.launch(at-10, 20, "ncclKernel", at, float64(20+10*rank+seq), more("allreduce", seq))
		}
		s.launch(900, 20, "ncclKernel", 910, 5, more("send", 9))
		set = append(set, s.trace(t))
	}
	table := analyze(Options{}, set...).Table(TableCollectives)
	check(t, "collectives", cells(table, "collective", "occurrence", "dtype", "straggler", "transfer_us", "wait_us"), `
		allreduce 0 Float 0 21 10
		allreduce 1 Float 0 22 10
	`)
	if want := "1 communication kernels left out"; !strings.Contains(table.Note, want) {
		t.Errorf("got note %q, want %q", table.Note, want)
	}
}

func TestCollectivesOfUnequalNumber(t *testing.T) {
	var set []*kineto.Trace
	for rank := range 2 {
		s := script{rank: rank}
		for i := range 1 + rank {
			s.launch(float64(i), 20, "ncclKernel", float64(100*i+10), 5, "")
		}
		set = append(set, s.trace(t))
	}
	table := analyze(Options{}, set...).Table(TableCollectives)
	if table.Len() != 0 || !strings.Contains(table.Note, "3 communication kernels left out") {
		t.Errorf("got %d rows, note %q", table.Len(), table.Note)
	}
}

func TestOperators(t *testing.T) {
	var s script
	s.op("cpu_op", "aten::linear", 0, 100, 1)
	s.op("cpu_op", "aten::addmm", 10, 60, 2)
	s.launch(20, 7, "gemm", 30, 40, `,"External id":2`)
	s.launch(80, 7, "bias", 90, 5, "") // no External id: by the call's place in aten::linear
	s.memory(15, 512, 512, 1024)       // in addmm
	s.memory(85, -512, 0, 1024)        // in linear
	a := analyze(Options{}, s.trace(t))
	check(t, "operators", cells(a.Table(TableOperators), "name", "calls", "self_cpu_us", "total_cpu_us", "self_device_us", "total_device_us", "self_device_bytes", "total_device_bytes"), `
		aten::addmm 1 60 60 40 40 512 512
		aten::linear 1 40 100 5 45 -512 0
	`)
	check(t, "memory", cells(a.Table(TableMemoryPeaks), "device", "peak_allocated_bytes", "peak_at_us", "peak_reserved_bytes", "end_allocated_bytes", "allocations", "frees"), "device 0 512 0 1024 0 1 1\n")
	series := analyze(Options{Tables: []string{TableMemoryTimeline, TableQueueSeries}}, s.trace(t))
	check(t, "timeline", cells(series.Table(TableMemoryTimeline), "ts_us", "bytes", "allocated_bytes"), "0 512 512\n70 -512 0\n")
	check(t, "queue", cells(series.Table(TableQueueSeries), "ts_us", "queue_length"), "0 1\n10 0\n60 1\n70 0\n")
}

func TestPythonIdle(t *testing.T) {
	var s script
	s.python("train.py(10): main", 0, 1000)
	s.python("torch/nn/modules/module.py(1500): _call_impl", 100, 300)
	s.python("<built-in method item of Tensor>", 200, 100)
	s.python("data.py(5): collate", 500, 100)
	s.launch(10, 7, "a", 20, 10, "")   // ends 30
	s.launch(450, 7, "b", 460, 40, "") // idle 30-460, launched at 452
	s.launch(650, 7, "c", 700, 10, "") // idle 500-700, launched at 652
	a := analyze(Options{}, s.trace(t))
	check(t, "python idle", cells(a.Table(TablePythonIdle), "caller", "file", "line", "function", "idle_us"), `
		train.py(10): main torch/nn/modules/module.py 1500 _call_impl 300
		train.py(10): main train.py 10 main 174
		data.py(5): collate data.py 5 collate 100
		   (work was launched) 56
	`)
}

// TestRecordedStacks: older profilers wrote stacks into operators.
func TestRecordedStacks(t *testing.T) {
	var s script
	s.add(`{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":5,"dur":100,"args":{"Call stack":"torch/nn/linear.py(9): forward;train.py(10): main"}}`)
	s.launch(10, 7, "a", 20, 10, "")
	s.launch(40, 7, "b", 60, 10, "")   // idle 30-60, launched in aten::mm
	s.launch(200, 7, "c", 230, 10, "") // idle 70-230, outside
	a := analyze(Options{}, s.trace(t))
	check(t, "stacks", cells(a.Table(TablePythonIdle), "caller", "file", "line", "function", "idle_us"), `
		train.py(10): main torch/nn/linear.py 9 forward 12
		   (no Python running) 132
		   (work was launched) 46
	`)
}

// TestHostIdle: without Python stacks idle time belongs to the outermost operator, else the annotation, else
// the runtime call that the launching thread was in; to the main thread's while that one was in none.
func TestHostIdle(t *testing.T) {
	var s script
	s.op("user_annotation", "ProfilerStep#1", 0, 2000, 1)
	s.op("cpu_op", "aten::conv2d", 100, 200, 2)
	s.op("cpu_op", "aten::convolution", 110, 180, 3)
	s.call("cudaMalloc", 120, 100)
	s.op("user_annotation", "Optimizer.zero_grad#SGD.zero_grad", 300, 100, 4)
	s.call("cudaDeviceSynchronize", 420, 20)
	s.launch(10, 7, "a", 20, 30, "")   // ends 50
	s.launch(450, 7, "b", 480, 20, "") // idle 50-480, launched at 452
	s.launch(500, 7, "c", 505, 10, "") // idle 500-505, launched at 502
	a := analyze(Options{Tables: []string{TableHostIdle, TableTemporal}, IncludeLastStep: true}, s.trace(t))
	check(t, "host idle", cells(a.Table(TableHostIdle), "kind", "name", "call", "call_us", "gaps", "idle_us"), `
		operator aten::conv2d cudaMalloc 100 1 200
		annotation Optimizer.zero_grad#SGD.zero_grad  0 1 100
		call cudaDeviceSynchronize cudaDeviceSynchronize 20 1 20
		call cudaLaunchKernel cudaLaunchKernel 4 2 4
		unrecorded   0 1 80
		launched   0 2 31
	`)
}

// TestHostIdleOfAnotherThread: autograd's thread launches; before its operators the main thread decides.
func TestHostIdleOfAnotherThread(t *testing.T) {
	var s script
	for at := 0.0; at < 5; at++ {
		s.op("cpu_op", "aten::relu", at, 1, 0)
	}
	s.op("cpu_op", "aten::ones_like", 100, 50, 9)
	s.add(`{"ph":"X","cat":"cpu_op","name":"MulBackward0","pid":1,"tid":2,"ts":150,"dur":50,"args":{}}`)
	s.launch(10, 7, "a", 20, 80, "") // ends 100
	s.add(`{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":2,"ts":190,"dur":2,"args":{"correlation":99}}`)
	s.add(`{"ph":"X","cat":"kernel","name":"b","pid":0,"tid":7,"ts":192,"dur":10,"args":{"stream":7,"correlation":99}}`)
	a := analyze(Options{}, s.trace(t))
	check(t, "host idle", cells(a.Table(TableHostIdle), "kind", "name", "idle_us"), `
		operator aten::ones_like 50
		annotation MulBackward0 42
	`)
}

// TestHTAFaults: the modes differ exactly where HTA is known to be wrong.
func TestHTAFaults(t *testing.T) {
	var s script
	s.launch(0, 7, "a", 10.4, 2.2, "") // 10.4-12.6: HTA rounds to 11-12
	s.launch(1, 7, "b", 13.1, 0.5, "") // 13.1-13.6: rounds to 14-13, -1 µs
	s.launch(2, 7, "c", 20.5, 4, "")
	set := []*kineto.Trace{s.trace(t)}
	sums := func(mode Mode) string {
		return cells(analyze(Options{Mode: mode}, set...).Table(TableKernels), "name", "sum_us")
	}
	check(t, "exact", sums(Exact), "c 4\na 2.2\nb 0.5\n")
	check(t, "hta", sums(HTA), "c 3\na 1\nb -1\n")
	check(t, "hta-ns", sums(HTANs), "c 4\na 2.2\nb 0.5\n")
}

// TestWhatIsOutsideOfTheDevicesTime is of the steps that were chosen, without steps of the recording.
func TestWhatIsOutsideOfTheDevicesTime(t *testing.T) {
	var s script
	s.op("cpu_op", "aten::empty", 0, 50, 1)
	s.launch(100, 7, "a", 110, 10, "")
	s.op("cpu_op", "aten::empty", 200, 50, 2)
	check(t, "recording", cells(analyze(Options{}, s.trace(t)).Table(TableTemporal), "kernel_time_us", "before_us", "after_us"), "10 110 130\n")
	s.op("user_annotation", "ProfilerStep#3", 90, 60, 3)
	s.op("user_annotation", "ProfilerStep#4", 150, 100, 4)
	check(t, "steps", cells(analyze(Options{}, s.trace(t)).Table(TableTemporal), "kernel_time_us", "before_us", "after_us"), "10 20 30\n")
	if c := analyze(Options{Mode: HTA}, s.trace(t)).Table(TableTemporal).Column("before_us"); c != nil {
		t.Error("HolisticTraceAnalysis's table has before_us")
	}
}
