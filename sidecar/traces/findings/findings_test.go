package findings

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/snapshot"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// made builds a table from a header of name:kind and rows of cells.
func made(name, header string, rows ...[]any) *table.Table {
	kinds := map[string]table.Kind{"int": table.Int, "text": table.Text, "us": table.Micros, "pct": table.Percent, "ratio": table.Ratio, "bytes": table.Bytes}
	t := table.New(name, "")
	for _, column := range strings.Fields(header) {
		key, kind, _ := strings.Cut(column, ":")
		t.Columns = append(t.Columns, &table.Column{Name: key, Kind: kinds[kind]})
	}
	for _, row := range rows {
		t.Add(row...)
	}
	return t
}

// devices has a row of idle and whole time per device.
func devices(rows ...[]any) Tables {
	const header = "rank:int device:int idle_time_us:us kernel_time_us:us"
	perRank := map[int]bool{}
	ranks := made(analyses.TableTemporal, "rank:int idle_time_us:us kernel_time_us:us")
	for _, row := range rows {
		if rank := row[0].(int); !perRank[rank] {
			perRank[rank] = true
			ranks.Add(rank, 0.0, 0.0)
		}
	}
	return Tables{ranks, made(analyses.TableTemporalByDevice, header, rows...)}
}

func find(list []Finding, id ID) *Finding {
	if at := slices.IndexFunc(list, func(f Finding) bool { return f.ID == id }); at >= 0 {
		return &list[at]
	}
	return nil
}

// figures prints a finding's value and evidence, by name.
func figures(f *Finding, names ...string) string {
	parts := []string{fmt.Sprintf("%.4g", f.Value)}
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("%s=%.4g", name, f.Evidence[name]))
	}
	return strings.Join(parts, " ")
}

func TestDeviceIdle(t *testing.T) {
	for name, c := range map[string]struct {
		tables       Tables
		want         string
		rank, device int64 // -1: none is named
	}{
		"one device":             {devices([]any{3, 0, 25.0, 100.0}), "0.25 ranks=1 devices=1 highest_share=0.25", -1, -1},
		"ranks":                  {devices([]any{0, 0, 10.0, 100.0}, []any{1, 1, 50.0, 100.0}), "0.3 ranks=2 devices=2 highest_share=0.5", 1, 1},
		"several devices":        {devices([]any{0, 0, 50.0, 100.0}, []any{0, 1, 60.0, 100.0}), "0.55 ranks=1 devices=2 highest_share=0.6", 0, 1},
		"alike: none is highest": {devices([]any{0, 0, 50.0, 100.0}, []any{0, 1, 50.0, 100.0}), "0.5 ranks=1 devices=2 highest_share=0.5", -1, -1},
		"events without length":  {devices([]any{0, 0, 0.0, 0.0}), "0 ranks=1 devices=1 highest_share=0", -1, -1},
	} {
		t.Run(name, func(t *testing.T) {
			f := find(Of(c.tables), DeviceIdle)
			if f == nil {
				t.Fatal("no finding")
			}
			if got := figures(f, "ranks", "devices", "highest_share"); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			named := func(p *int64) int64 {
				if p == nil {
					return -1
				}
				return *p
			}
			if named(f.Rank) != c.rank || named(f.Device) != c.device {
				t.Errorf("about rank %d, device %d, want %d and %d", named(f.Rank), named(f.Device), c.rank, c.device)
			}
		})
	}
}

func causes(rows ...[]any) *table.Table {
	return made(analyses.TableIdleCauses, "rank:int cause:text device_idle_us:us", rows...)
}

const callHeader = "rank:int call:text synchronising:text count:int total_us:us max_us:us slow_calls:int inside_us:us drained_gaps:int drained_us:us caller:text"

func TestCausesOfIdleTime(t *testing.T) {
	tables := append(devices([]any{0, 0, 100.0, 200.0}, []any{1, 0, 100.0, 200.0}),
		causes([]any{0, analyses.CauseNotLaunched, 30.0}, []any{0, analyses.CauseInsideCall, 20.0}, []any{1, analyses.CauseInsideCall, 50.0}),
		made(analyses.TableCalls, callHeader,
			[]any{0, "cudaDeviceGetStreamPriorityRange", "", 3, 900.0, 800.0, 1, 0.0, 0, 0.0, ""},
			[]any{0, "cudaLaunchKernel", "", 50, 80.0, 60.0, 1, 18.0, 0, 0.0, "train.py(4): step"},
			[]any{0, "cudaMemcpyAsync", "", 5, 20.0, 9.0, 0, 2.0, 0, 0.0, ""},
			[]any{0, "cudaStreamSynchronize", "yes", 4, 70.0, 30.0, 0, 0.0, 2, 60.0, "train.py(9): log"},
			[]any{1, "cudaStreamSynchronize", "yes", 4, 90.0, 30.0, 0, 0.0, 1, 20.0, "other.py(2): log"},
			[]any{1, "cudaDeviceSynchronize", "yes", 1, 500.0, 500.0, 0, 0.0, 1, 5.0, ""}))
	list := Of(tables)
	if f := find(list, IdleCause); f == nil || f.Name != analyses.CauseInsideCall || figures(f, "idle_us") != "0.7 idle_us=100" {
		t.Errorf("got %+v", f)
	}
	if f := find(list, LaunchCalls); f == nil || f.Name != "cudaLaunchKernel" || f.Place.Function != "step" || figures(f, "idle_us", "max_us") != "0.7 idle_us=70 max_us=60" {
		t.Errorf("got %+v", f)
	}
	if f := find(list, Synchronising); f == nil || f.Name != "cudaStreamSynchronize" || f.Place.File != "other.py" || figures(f, "calls", "gaps", "total_us") != "0.4 calls=8 gaps=3 total_us=160" {
		t.Errorf("got %+v", f)
	}
}

// TestLaunchCallsAreOfAllRanks: a call's figures are those of every rank that made
// it, its place that of the rank it kept idle longest.
func TestLaunchCallsAreOfAllRanks(t *testing.T) {
	tables := append(devices([]any{0, 0, 100.0, 200.0}, []any{1, 0, 100.0, 200.0}),
		causes([]any{0, analyses.CauseInsideCall, 30.0}, []any{1, analyses.CauseInsideCall, 40.0}),
		made(analyses.TableCalls, callHeader,
			[]any{0, "cudaLaunchKernel", "", 10, 100.0, 60.0, 1, 20.0, 0, 0.0, "train.py(4): step"},
			[]any{0, "cudaMemcpyAsync", "", 5, 50.0, 50.0, 1, 25.0, 0, 0.0, ""},
			[]any{1, "cudaLaunchKernel", "", 30, 100.0, 70.0, 2, 24.0, 0, 0.0, "other.py(4): step"}))
	f := find(Of(tables), LaunchCalls)
	if f == nil || f.Name != "cudaLaunchKernel" || f.Place.File != "other.py" ||
		figures(f, "idle_us", "calls", "mean_us", "max_us", "slow_calls") != "1 idle_us=70 calls=40 mean_us=5 max_us=70 slow_calls=3" {
		t.Errorf("got %+v", f)
	}
}

// training has two devices of 200 µs each, idle for half of it, and tables of what it lost.
func training(tables ...*table.Table) Tables {
	return append(devices([]any{0, 0, 100.0, 200.0}, []any{1, 0, 100.0, 200.0}), tables...)
}

func waitedForRank(us float64) *table.Table {
	return made(analyses.TableStragglers, "rank:int times_last:int collectives:int delay_us:us", []any{1, 2, 3, us})
}

// busyWith is a rank's devices that computed, only communicated and only copied so long of 100 µs each.
func busyWith(rows ...[3]float64) Tables {
	ranks := made(analyses.TableTemporal, "rank:int idle_time_us:us kernel_time_us:us")
	devices := made(analyses.TableTemporalByDevice,
		"rank:int device:int idle_time_us:us compute_time_us:us kernel_time_us:us exposed_communication_us:us copying_us:us")
	for rank, r := range rows {
		ranks.Add(rank, 100-r[0]-r[1]-r[2], 100.0)
		devices.Add(rank, 0, 100-r[0]-r[1]-r[2], r[0], 100.0, r[1], r[2])
	}
	return Tables{ranks, devices}
}

// TestHeadlineIsWhatCostMost: idle, communicating or copying, whichever took most of the devices' time.
func TestHeadlineIsWhatCostMost(t *testing.T) {
	for name, c := range map[string]struct {
		in   Tables
		want string
	}{
		"copying":                  {busyWith([3]float64{0, 0, 99.7}), "copying 0.997, device_idle 0.003"},
		"communicating":            {busyWith([3]float64{21, 60, 8}, [3]float64{21, 76, 0}), "communicating 0.68, device_idle 0.07"},
		"idle":                     {busyWith([3]float64{20, 30, 0}), "device_idle 0.5, communicating 0.3"},
		"computing":                {busyWith([3]float64{90, 5, 3}), "device_idle 0.02"},
		"of a rule that has none":  {devices([]any{0, 0, 30.0, 100.0}), "device_idle 0.3"},
		"a device without a break": {busyWith([3]float64{0, 100, 0}), "communicating 1, device_idle 0"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, f := range Of(c.in) {
				got = append(got, fmt.Sprintf("%s %.3g", f.ID, f.Value))
			}
			if text := strings.Join(got, ", "); text != c.want {
				t.Errorf("got %s, want %s", text, c.want)
			}
		})
	}
}

// TestCriticalPath: the cause that saves most of the longest path is named, if somebody can change it and it is worth it.
func TestCriticalPath(t *testing.T) {
	replays := made(analyses.TableCriticalPathReplay, "rank:int steps:int recorded_us:us", []any{0, 2, 100.0}, []any{1, 2, 200.0})
	for name, c := range map[string]struct {
		saved [3]float64 // shares, of a delay, of what is not recorded, of an operator
		want  float64
	}{
		"the operator":           {[3]float64{0.6, 0.5, 0.2}, 0.2},
		"it is worth nothing":    {[3]float64{0.6, 0.5, 0.04}, 0},
		"it is hidden behind it": {[3]float64{0.6, 0.5, 0}, 0},
	} {
		path := made(analyses.TableCriticalPath, "rank:int by where path_share:ratio saved_us:us saved_share:ratio name",
			[]any{0, analyses.PathCause, analyses.OnHost, 0.9, 90.0, 0.9, "another rank's"},
			[]any{1, analyses.PathCause, analyses.InDelay, 0.6, 120.0, c.saved[0], "waited"},
			[]any{1, analyses.PathCause, analyses.OnHost, 0.5, 100.0, c.saved[1], ""},
			[]any{1, analyses.PathCause, analyses.OnHost, 0.2, 40.0, c.saved[2], "aten::to"},
			[]any{1, analyses.PathPart, analyses.OnHost, 0.7, math.NaN(), math.NaN(), "host"},
			[]any{1, analyses.PathPart, analyses.InDelay, 0.3, math.NaN(), math.NaN(), "waited"})
		found := Of(Tables{path, replays})
		if c.want == 0 {
			if len(found) > 0 {
				t.Errorf("%s: %v", name, found)
			}
			continue
		}
		if len(found) != 1 || found[0].Value != c.want || found[0].Name != "aten::to" || *found[0].Rank != 1 ||
			found[0].Evidence["host_share"] != 0.7 || found[0].Evidence["waited_share"] != 0.3 || found[0].Evidence["step_saved_us"] != 20 {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

// TestStragglers: every rank that cost the others nearly as much as the worst has a finding.
func TestStragglers(t *testing.T) {
	delays := func(us ...float64) Tables {
		t := made(analyses.TableStragglers, "rank:int times_last:int collectives:int delay_us:us")
		for rank, delay := range us {
			t.Add(rank, 1, 10, delay)
		}
		return training(t)
	}
	for name, c := range map[string]struct {
		in   Tables
		want string
	}{
		"one":                            {delays(0, 60, 0), "1: 60"},
		"two":                            {delays(60, 0, 0, 50), "0: 60, 3: 50"},
		"a further one that cost little": {delays(60, 20), "0: 60"},
		"further ones below a twentieth": {delays(9, 8), "0: 9"},
		"nobody waited":                  {delays(0, 0), ""},
		"alike":                          {delays(40, 40), "0: 40, 1: 40"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, f := range Of(c.in) {
				if f.ID == Straggler {
					got = append(got, fmt.Sprintf("%d: %.4g", *f.Rank, f.Value))
				}
			}
			if text := strings.Join(got, ", "); text != c.want {
				t.Errorf("got %q, want %q", text, c.want)
			}
		})
	}
}

// loaded is a step of 100 µs that waited for data, and for how long the device had no work then.
func loaded(us, idle float64) *table.Table {
	return made(analyses.TableDataLoader, "rank:int step:int dataloader_us:us step_us:us device_idle_us:us", []any{0, 1, us, 100.0, idle})
}

// inLine is the idle time of a line, of 100 µs.
func inLine(us float64) *table.Table {
	return made(analyses.TablePythonIdle, "rank:int kind:text caller:text function:text file:text line:int idle_us:us",
		[]any{0, analyses.IdlePython, "train.py(9): step", "step", "train.py", 9, us}, []any{0, analyses.IdleLaunched, "", "(work was launched)", "", 0, 100 - us})
}

// inOperators is the idle time of operators, of 100 µs, half of the first one's in a runtime call.
func inOperators(us ...float64) *table.Table {
	t := made(analyses.TableHostIdle, "rank:int kind:text name:text call:text call_us:us idle_us:us")
	left := 100.0
	for i, n := range us {
		t.Add(0, analyses.HostOperator, []string{"aten::conv2d", "aten::batch_norm"}[i], []string{"cudaMalloc", ""}[i], []float64{0.75 * n, 0}[i], n)
		left -= n
	}
	t.Add(0, analyses.HostLaunched, "", "", 0.0, left)
	return t
}

func TestHostIdle(t *testing.T) {
	for name, c := range map[string]struct {
		in   Tables
		want string
	}{
		"the longest":         {training(inOperators(40, 30)), "aten::conv2d cudaMalloc 0.4"},
		"the other":           {training(inOperators(20, 30)), "aten::batch_norm  0.3"},
		"too little":          {training(inOperators(9, 8)), ""},
		"a line says more":    {training(inOperators(40, 30), inLine(20)), ""},
		"the devices worked":  {append(devices([]any{0, 0, 1.0, 100.0}), inOperators(40, 30)), ""},
		"nothing is recorded": {training(inOperators()), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if f := find(Of(c.in), HostIdle); f != nil {
				got = fmt.Sprintf("%s %s %.4g", f.Name, f.Call, f.Value)
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// inCalls is the idle time inside launching calls, of 100 µs, and after synchronising ones, of 200 µs.
func inCalls(inside, drained float64) []*table.Table {
	return []*table.Table{causes([]any{0, analyses.CauseInsideCall, inside}, []any{0, analyses.CauseNotLaunched, 100 - inside}),
		made(analyses.TableCalls, callHeader,
			[]any{0, "cudaLaunchKernel", "", 50, 80.0, 60.0, 1, inside, 0, 0.0, "train.py(4): step"},
			[]any{0, "cudaStreamSynchronize", "yes", 4, 70.0, 30.0, 0, 0.0, 2, drained, "train.py(9): log"})}
}

// TestOrder: how much comes first, then why and where, by what it cost; what only describes
// comes last.
func TestOrder(t *testing.T) {
	with := func(one []*table.Table, more ...*table.Table) Tables { return training(append(one, more...)...) }
	for i, c := range []struct {
		first, then ID
		in          Tables
	}{
		{DeviceIdle, IdleCause, with(inCalls(60, 0))},
		{IdleCause, LaunchCalls, with(inCalls(60, 0))},
		{IdleCause, DataLoading, with(inCalls(60, 0), loaded(90, 90))},
		{DataLoading, Straggler, training(loaded(80, 80), waitedForRank(52))}, // 80 % and 13 %
		{Straggler, DataLoading, training(loaded(10, 10), waitedForRank(160))},
		{PythonIdle, DataLoading, training(inLine(90), loaded(30, 30))},
		{DataLoading, PythonIdle, training(inLine(30), loaded(40, 40))},
		{PythonIdle, DataLoading, training(inLine(30), loaded(90, 1))}, // there was work for the devices meanwhile
		{PythonIdle, Synchronising, with(inCalls(10, 40), inLine(60))},
		{Synchronising, PythonIdle, with(inCalls(10, 160), inLine(30))},
		{Synchronising, Straggler, with(inCalls(10, 100), waitedForRank(20))},
		{Straggler, Synchronising, with(inCalls(10, 40), waitedForRank(100))},
		{PythonIdle, Straggler, training(inLine(60), waitedForRank(40))},
		{Straggler, PythonIdle, training(inLine(20), waitedForRank(100))},
		{HostIdle, DataLoading, training(inOperators(90), loaded(30, 30))},
		{DataLoading, HostIdle, training(inOperators(30), loaded(40, 40))},
		{HostIdle, Synchronising, with(inCalls(10, 40), inOperators(60))},
		{PythonIdle, LaunchCalls, with(inCalls(80, 0), inLine(60))},
		{LaunchCalls, PythonIdle, with(inCalls(80, 0), inLine(20))},
		{Straggler, HiddenComm, training(waitedForRank(1), made(analyses.TableOverlap, "rank:int comp_comm_overlap_pctg:pct", []any{0, 30.0}))},
	} {
		var ids []ID
		for _, f := range Of(c.in) {
			ids = append(ids, f.ID)
			if n := f.Evidence["devices"]; (f.ID == IdleCause || f.ID == LaunchCalls || f.ID == PythonIdle || f.ID == HostIdle || f.ID == Synchronising || f.ID == DataLoading) && n != 2 {
				t.Errorf("%s of %g devices, want 2", f.ID, n)
			}
		}
		if first, then := slices.Index(ids, c.first), slices.Index(ids, c.then); first < 0 || then < 0 || first > then {
			t.Errorf("%d: %s does not come before %s: %v", i, c.first, c.then, ids)
		}
	}
}

// TestBusyDevicesHaveNoCauses: what keeps a device idle for 1 % is no finding.
func TestBusyDevicesHaveNoCauses(t *testing.T) {
	tables := append(devices([]any{0, 0, 1.0, 100.0}), causes([]any{0, analyses.CauseQueued, 1.0}),
		made(analyses.TableCalls, callHeader, []any{0, "cudaStreamSynchronize", "yes", 4, 70.0, 30.0, 0, 0.0, 2, 1.0, ""}),
		made(analyses.TablePythonIdle, "rank:int kind:text caller:text function:text file:text line:int idle_us:us",
			[]any{0, analyses.IdlePython, "train.py(9): step", "f", "lib.py", 3, 1.0}))
	for _, f := range Of(tables) {
		if f.ID != DeviceIdle {
			t.Errorf("got %+v", f)
		}
	}
}

func TestDataLoading(t *testing.T) {
	const header = "rank:int step:int dataloader_us:us step_us:us device_idle_us:us"
	tables := append(devices([]any{0, 0, 50.0, 100.0}, []any{0, 1, 50.0, 100.0}, []any{1, 0, 50.0, 100.0}),
		made(analyses.TableDataLoader, header, []any{0, 1, 10.0, 100.0, 16.0}, []any{0, 2, 10.0, 100.0, 4.0}, []any{1, 1, 60.0, 100.0, 30.0}))
	f := find(Of(tables), DataLoading)
	// The devices of rank 0 idle for 10 µs each.
	if f == nil || *f.Rank != 1 || figures(f, "dataloader_us", "device_idle_us", "highest_share") != "0.2667 dataloader_us=80 device_idle_us=40 highest_share=0.6" {
		t.Errorf("got %+v", f)
	}
	if f := find(Of(Tables{made(analyses.TableDataLoader, header, []any{0, 1, 1.0, 100.0, 0.0})}), DataLoading); f != nil {
		t.Errorf("a hundredth of the steps is a finding: %+v", f)
	}
}

func TestPythonIdleIsTheUsersLine(t *testing.T) {
	tables := append(devices([]any{0, 0, 100.0, 200.0}),
		made(analyses.TablePythonIdle, "rank:int kind:text caller:text function:text file:text line:int idle_us:us",
			[]any{0, analyses.IdlePython, "train.py(9): step", "forward", "torch/nn/linear.py", 3, 30.0},
			[]any{0, analyses.IdlePython, "train.py(9): step", "step", "train.py", 9, 10.0},
			[]any{0, analyses.IdlePython, "", "_feed", "multiprocessing/queues.py", 231, 35.0},
			[]any{0, analyses.IdleLaunched, "", "(work was launched)", "", 0, 25.0}))
	f := find(Of(tables), PythonIdle)
	if f == nil || f.Place.String() != "train.py(9): step" || f.Name != "torch/nn/linear.py(3): forward" || figures(f, "idle_us", "inner_share") != "0.4 idle_us=40 inner_share=0.3" {
		t.Errorf("got %+v", f)
	}
}

func TestOfTheCPUAlone(t *testing.T) {
	tables := Tables{
		made(analyses.TableRecordings, "rank:int duration_us:us", []any{0, 500.0}, []any{0, 300.0}),
		made(analyses.TableSteps, "rank:int step:int duration_us:us counted:text", []any{0, 1, 100.0, "yes"}, []any{0, 2, 60.0, "yes"}, []any{0, 3, 900.0, "dropped"}),
		made(analyses.TablePythonFunctions, "rank:int function:text file:text line:int own_us:us self_us:us",
			[]any{0, "main", "train.py", 3, 60.0, 10.0}, []any{0, "linear", "torch/nn/functional.py", 9, 0.0, 70.0}),
		made(analyses.TableOperators, "rank:int name:text calls:int self_cpu_us:us",
			[]any{0, "enumerate(DataLoader)#_Iter.__next__", 3, 900.0}, []any{0, "ProfilerStep*", 3, 500.0}, []any{0, "my loss", 3, 400.0},
			[]any{0, "aten::mm", 6, 30.0}, []any{0, "gloo:all_reduce", 2, 50.0}),
	}
	list := Of(tables)
	if list[0].ID != CPUOnly || figures(&list[0], "steps", "mean_step_us", "recordings") != "800 steps=2 mean_step_us=80 recordings=2" {
		t.Errorf("got %+v", list[0])
	}
	if f := find(list, PythonTime); f == nil || f.Place.Function != "main" || figures(f) != "0.75" {
		t.Errorf("got %+v", f)
	}
	if f := find(list, TopOperator); f == nil || f.Name != "gloo:all_reduce" || figures(f, "calls") != "0.625 calls=2" {
		t.Errorf("got %+v", f)
	}
	if _, known := list[0].Evidence["launches"]; known {
		t.Errorf("got %v launches where there are none", list[0].Evidence["launches"])
	}
	withCalls := Of(append(tables[:len(tables):len(tables)], made(analyses.TableCalls, callHeader,
		[]any{0, "cudaLaunchKernel", "", 70, 900.0, 800.0, 1, 0.0, 0, 0.0, ""},
		[]any{1, "cudaGraphLaunch", "", 7, 900.0, 800.0, 1, 0.0, 0, 0.0, ""},
		[]any{0, "cudaLaunchHostFunc", "", 5, 900.0, 800.0, 1, 0.0, 0, 0.0, ""},
		[]any{0, "cudaDeviceGetAttribute", "", 100, 900.0, 800.0, 1, 0.0, 0, 0.0, ""})))
	if figures(&withCalls[0], "launches") != "800 launches=77" {
		t.Errorf("kernels that were launched, but not recorded: got %+v", withCalls[0])
	}
	withDevice := Of(append(tables, devices([]any{0, 0, 1.0, 2.0})...))
	for _, id := range []ID{CPUOnly, PythonTime, TopOperator} {
		if f := find(withDevice, id); f != nil {
			t.Errorf("%s of a trace with a device", id)
		}
	}
}

func TestMemory(t *testing.T) {
	tables := Tables{
		made(snapshot.TablePeaks, "device:text peak_bytes:bytes reserved_bytes:bytes time_us:us history_us:us category:text category_share:ratio place:text place_share:ratio",
			[]any{"device 0", int64(50), int64(64), 5.0, 9.0, "activations", 0.4, "train.py(3): f", 0.3},
			[]any{"device 1", int64(70), int64(80), 2.0, 9.0, "optimizer", 0.6, "(no stack recorded)", 0.6}),
		made(snapshot.TableOutOfMemory, "device:text requested_bytes:bytes device_free_bytes:bytes place:text",
			[]any{"device 0", int64(100), int64(3), "train.py(3): f"}, []any{"device 0", int64(900), int64(2), "train.py(4): g"}),
		made(snapshot.TableFragmentation, "device:text segments:text reserved_bytes:bytes free_bytes:bytes largest_free_bytes:bytes releasable_bytes:bytes",
			[]any{"device 0", "large", int64(100), int64(40), int64(20), int64(0)}, []any{"device 0", "all", int64(100), int64(40), int64(20), int64(0)}),
	}
	list := Of(tables)
	if f := find(list, MemoryPeak); f == nil || f.On != "device 1" || f.Name != "optimizer" || f.Place != nil || figures(f, "at_us", "category_share") != "70 at_us=2 category_share=0.6" {
		t.Errorf("got %+v", f)
	}
	if f := find(list, OutOfMemory); f == nil || f.Place.Function != "g" || figures(f, "free_bytes", "failures") != "900 free_bytes=2 failures=2" {
		t.Errorf("got %+v", f)
	}
	if f := find(list, UnusedReserved); f == nil || figures(f, "free_bytes", "largest_free_bytes") != "0.4 free_bytes=40 largest_free_bytes=20" {
		t.Errorf("got %+v", f)
	}
}

func TestNothingHasNoFindings(t *testing.T) {
	if list := Of(nil); list == nil || len(list) != 0 {
		t.Errorf("got %v, want an empty list", list)
	}
}

// TestHiddenCommunicationIsWeightedByTime: a rank that communicates for longer counts for more. Where the time is not known, as in
// HolisticTraceAnalysis's modes, it is the ranks' mean.
func TestHiddenCommunicationIsWeightedByTime(t *testing.T) {
	timed := made(analyses.TableOverlap, "rank:int comp_comm_overlap_pctg:pct communication_us:us",
		[]any{0, 10.0, 100.0}, []any{1, 2.0, 300.0}, []any{2, math.NaN(), math.NaN()})
	bare := made(analyses.TableOverlap, "rank:int comp_comm_overlap_pctg:pct", []any{0, 10.0}, []any{1, 2.0})
	for table, want := range map[*table.Table]float64{timed: 0.04, bare: 0.06} {
		f := find(Of(Tables{table}), HiddenComm)
		if f == nil || math.Abs(f.Value-want) > 1e-12 {
			t.Errorf("got %+v, want %g", f, want)
		}
	}
}
