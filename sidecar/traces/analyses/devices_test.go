package analyses

import (
	"strings"
	"testing"
)

// twoDevices alternate: device 0 works 10-20 and 30-40, device 1 20-30 and 40-50,
// all on the stream of the same number.
func twoDevices(rank int) *script {
	s := &script{rank: rank}
	s.launchOn(0, 0, 2, 7, "a", 10, 10)
	s.launchOn(1, 3, 2, 7, "b", 20, 10)
	s.launchOn(0, 25, 2, 7, "a", 30, 10)
	s.launchOn(1, 6, 2, 7, "ncclKernel", 40, 10)
	return s
}

func TestDevicesThatAlternate(t *testing.T) {
	a := analyze(Options{}, twoDevices(0).trace(t))
	// The window is 10-50 for both; the rank's times are the sums.
	check(t, "temporal", cells(a.Table(TableTemporal), "rank", "idle_time_us", "compute_time_us", "non_compute_time_us", "kernel_time_us", "idle_time_pctg", "compute_time_pctg"),
		"0 40 30 10 80 50 37.5\n")
	check(t, "by device", cells(a.Table(TableTemporalByDevice), "rank", "device", "idle_time_us", "compute_time_us", "kernel_time_us", "idle_share"), `
		0 0 20 20 40 0.5
		0 1 20 10 40 0.5
	`)
	check(t, "idle", cells(a.Table(TableIdle), "device", "stream", "idle_category", "idle_time_us", "idle_time_ratio"), `
		0 7 host_wait 10 1
		0 7 other 0 0
		1 7 kernel_wait 10 1
		1 7 other 0 0
	`)
	check(t, "intervals", cells(a.Table(TableIdleIntervals), "device", "stream", "idle_category", "count", "mean_us"), `
		0 7 host_wait 1 10
		0 7 other 0 
		1 7 kernel_wait 1 10
		1 7 other 0 
	`)
	check(t, "overlap", cells(a.Table(TableOverlap), "comp_comm_overlap_pctg"), "0\n")
	check(t, "types", cells(a.Table(TableKernelTypes), "kernel_type", "sum_us"), "COMPUTATION 30\nCOMMUNICATION 10\n")
	check(t, "queue", cells(a.Table(TableQueueLength), "device", "stream", "count", "max"), "0 7 4 1\n1 7 4 2\n")
	check(t, "across", cells(a.Table(TableAcrossRanks), "metric", "mean")[:len("kernel_time_us 80\nidle_share 0.5\n")], "kernel_time_us 80\nidle_share 0.5\n")
	if note := a.Table(TableCollectives).Note; !strings.Contains(note, "several devices are not compared") {
		t.Errorf("got note %q", note)
	}
}

// TestOverlapIsPerDevice: computing on one device hides no communication of
// another.
func TestOverlapIsPerDevice(t *testing.T) {
	var s script
	s.launchOn(0, 0, 1, 7, "gemm", 10, 20)
	s.launchOn(1, 1, 1, 7, "ncclKernel", 10, 20)
	s.launchOn(1, 2, 1, 8, "gemm", 25, 5)
	a := analyze(Options{}, s.trace(t))
	check(t, "overlap", cells(a.Table(TableOverlap), "comp_comm_overlap_pctg"), "25\n")
	check(t, "types", cells(a.Table(TableKernelTypes), "kernel_type", "sum_us"), `
		COMPUTATION 20
		COMMUNICATION 15
		COMPUTATION overlapping COMMUNICATION 5
	`)
}

// TestHTAKnowsNoDevices: its modes take a stream's number for the stream.
func TestHTAKnowsNoDevices(t *testing.T) {
	a := analyze(Options{Mode: HTANs}, twoDevices(0).trace(t))
	check(t, "temporal", cells(a.Table(TableTemporal), "idle_time_us", "kernel_time_us"), "0 40\n")
	check(t, "idle", cells(a.Table(TableIdle), "stream", "idle_category", "idle_time_us"), "7 kernel_wait 0\n7 other 0\n")
	if a.Table(TableTemporalByDevice) != nil || a.Table(TableIdle).Column("device") != nil {
		t.Error("there are devices in HTA's mode")
	}
}

// TestDevicesOfKeptEvents: a device that only has events of the dropped step is
// none of the rank's.
func TestDevicesOfKeptEvents(t *testing.T) {
	var s script
	s.op("user_annotation", "ProfilerStep#1", 0, 100, 1)
	s.launchOn(0, 10, 1, 7, "a", 20, 10)
	s.launchOn(0, 11, 1, 7, "a", 40, 10)
	s.op("user_annotation", "ProfilerStep#2", 100, 100, 1)
	s.launchOn(1, 110, 1, 7, "a", 120, 10)
	check(t, "kept", cells(analyze(Options{}, s.trace(t)).Table(TableTemporal), "idle_time_us", "kernel_time_us"), "10 30\n")
	check(t, "all", cells(analyze(Options{IncludeLastStep: true}, s.trace(t)).Table(TableTemporal), "idle_time_us", "kernel_time_us"), "190 220\n")
}

// TestDeviceByProcess: what names no device runs on that of its process number,
// or on the file's only one.
func TestDeviceByProcess(t *testing.T) {
	var s script
	kernel := `{"ph":"X","cat":"kernel","name":"k","pid":%d,"tid":7,"ts":%d,"dur":10,"args":{"stream":7%s}}`
	s.add(kernel, 0, 0, "")
	s.add(kernel, 1, 20, "")
	check(t, "unnamed", cells(analyze(Options{}, s.trace(t)).Table(TableTemporalByDevice), "device", "kernel_time_us"), "0 30\n1 30\n")
	s.add(kernel, 4242, 40, `,"device":3`)
	check(t, "one named", cells(analyze(Options{}, s.trace(t)).Table(TableTemporalByDevice), "device", "kernel_time_us"), "3 50\n")
}

// TestCyclesOfARank: two files of one rank, an hour apart.
func TestCyclesOfARank(t *testing.T) {
	cycle := func(at float64, step int) *script {
		s := &script{}
		s.op("user_annotation", "ProfilerStep#"+string(rune('0'+step)), at, 100, 1)
		s.op("user_annotation", "enumerate(DataLoader)#_Iter.__next__", at, 20, 2)
		s.python("train.py(1): main", at, 200)
		s.launch(at+30, 7, "k", at+40, 10, "")
		s.launch(at+45, 7, "k", at+60, 20, "")
		s.memory(at+50, 512, 512, 1024)
		s.op("user_annotation", "ProfilerStep#"+string(rune('1'+step)), at+100, 100, 3)
		s.launch(at+110, 7, "k", at+120, 10, "")
		return s
	}
	const hour = 3600e6
	a := analyze(Options{Tables: append(DefaultTables(), TableMemoryTimeline)}, cycle(0, 1).trace(t), cycle(hour, 5).trace(t))
	check(t, "temporal", cells(a.Table(TableTemporal), "rank", "idle_time_us", "kernel_time_us"), "0 20 80\n")
	check(t, "idle", cells(a.Table(TableIdle), "stream", "idle_category", "idle_time_us"), "7 kernel_wait 20\n7 other 0\n")
	check(t, "intervals", cells(a.Table(TableIdleIntervals), "idle_category", "count"), "kernel_wait 2\nother 0\n")
	check(t, "steps", cells(a.Table(TableSteps), "step", "start_us", "counted"), `
		1 0 yes
		2 100 dropped
		5 3600000000 yes
		6 3600000100 dropped
	`)
	check(t, "data", cells(a.Table(TableDataLoader), "step", "dataloader_us", "step_us"), "1 20 100\n5 20 100\n")
	check(t, "kernels", cells(a.Table(TableKernels), "name", "sum_us", "count", "stddev_us"), "k 60 4 5.773502691896257\n")
	check(t, "launches", cells(a.Table(TableLaunchDelay), "call", "count"), "cudaLaunchKernel 4\n")
	check(t, "python", cells(a.Table(TablePythonIdle), "kind", "gaps", "idle_us"), "launched 2 20\n")
	check(t, "operators", cells(a.Table(TableOperators), "name", "calls"), "ProfilerStep* 2\nenumerate(DataLoader)#_Iter.__next__ 2\n")
	check(t, "memory", cells(a.Table(TableMemoryPeaks), "device", "allocations"), "device 0 2\n")
	check(t, "timeline", cells(a.Table(TableMemoryTimeline), "cycle", "ts_us"), "1 0\n2 3600000000\n")
	check(t, "files", cells(a.Table(TableRecordings), "rank", "cycle", "start_us", "first_step", "last_step"), "0 1 0 1 2\n0 2 3600000000 5 6\n")
}
