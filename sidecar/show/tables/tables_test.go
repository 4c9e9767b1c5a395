package tables

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/batches"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// trained is the report of two seconds of a cell: one thread that waits in line 2 while
// GPU 1 is idle every other 100 ms, a step and a region.
func trained(t *testing.T) *report.View {
	t.Helper()
	cell := timeline.Cell{ExecutionCount: 3, File: "/tmp/ipykernel_1/3.py", Text: "import x\n=net.item()", Outcome: "ok"}
	b := timeline.NewBuilder(timeline.Options{Origin: 1, Interval: time.Millisecond})
	b.Describe(func(r *timeline.Recording) {
		r.Target = timeline.Target{PID: 7, Cell: &cell}
		r.Sources = []timeline.Source{{File: cell.File, ExecutionCount: 3, Text: cell.Text}}
		number := 2
		r.Processes = []timeline.Process{{PID: 7, Role: "kernel", CPU: -1, Memory: timeline.ProcessMemory{Peak: 9 << 20}}, {PID: 8, Parent: 7, Role: timeline.RoleRank, Rank: &number, Number: &number}}
		r.GPUs = []timeline.GPU{{Index: 1, Name: "H", UUID: "GPU-1", PIDs: []int{7}}}
		r.Marks = []timeline.Mark{{Kind: "step", Name: "s", Start: 0, End: 1e9}, {Kind: "region", Name: "=r", Start: 0, End: 1e9}}
	})
	main := b.Thread(timeline.Thread{PID: 7, NativeID: 7, Name: "MainThread", Main: true, RunsCell: true, OnCPU: -1})
	util := b.Track(timeline.TrackSpec{ID: "gpu1.util", Kind: timeline.KindRate, Unit: "%", Device: 1})
	node := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "<module>", File: cell.File, Line: 2, FirstLine: 1}))
	b.Set(main, 0, node, timeline.StateWaiting, false)
	const step = timeline.Nanos(100 * time.Millisecond)
	b.Set(main, 15*step, node, timeline.StateWaiting, true)
	for at := timeline.Nanos(0); at < 20*step; at += 2 * step {
		util.AddWindow(at, at+step, 100)
		util.AddWindow(at+step, at+2*step, 0)
	}
	b.AddAwaits(0, 0, timeline.Nanos(time.Second), timeline.AwaitsOther, map[timeline.NodeID]int{b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "fetch", File: cell.File, Line: 1})): 3}, nil)
	line1 := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "fetch", File: cell.File, Line: 1}))
	b.AddGrowth(timeline.Growth{Start: 0, End: 1e6, Before: line1, After: node, Bytes: 4096})
	rank := b.Thread(timeline.Thread{PID: 8, Process: 1, NativeID: 8, Main: true, OnCPU: -1})
	b.Set(rank, 0, b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "barrier", File: "/v/site-packages/torch/distributed/distributed_c10d.py", Line: 3})), timeline.StateWaiting, false)
	b.Mark(timeline.Mark{Kind: "step", Start: 0, End: timeline.Nanos(time.Second), Process: 1})
	rec := b.Snapshot(20 * step)
	d := diagnose.Run(rec)
	d.Loaders = []batches.Loader{{Loader: timeline.Loader{Batch: 64, Workers: 2, DropLast: true}, PerStep: 1, Steps: 2, Counted: 1,
		Queue: batches.Queue{Readings: 40, Mean: 0.25, Median: 0, Empty: 0.8, Most: 4}, WorkerTimes: []timeline.Nanos{2e6, 4e6}}}
	v, err := report.Build(rec, &d, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// find is a table, and the value of a column in its first row.
func find(t *testing.T, v *report.View, name string) (table Table, first func(column string) any) {
	t.Helper()
	all := Of(v)
	i := slices.IndexFunc(all, func(t Table) bool { return t.Name == name })
	if i < 0 || len(all[i].Rows) == 0 {
		t.Fatalf("no rows in %s", name)
	}
	return all[i], func(column string) any {
		at := slices.IndexFunc(all[i].Columns, func(c Column) bool { return c.Name == column })
		if at < 0 {
			t.Fatalf("%s has no column %s", name, column)
		}
		return all[i].Rows[0][at]
	}
}

func TestRowsHaveNamesInPlaceOfIndices(t *testing.T) {
	v := trained(t)
	for table, want := range map[string]map[string]any{
		"idle":      {"device": 1, "file": "Cell [3]", "line": 2, "text": "=net.item()", "low_s": nil},
		"lines":     {"file": "Cell [3]", "line": 2, "text": "=net.item()", "self_s": 2.0, "total_s": 2.0, "incomplete_s": 0.5, "process": "kernel 7"},
		"functions": {"file": "Cell [3]", "line": 1, "kind": "cell", "self_s": 2.0, "incomplete_s": 0.5, "process": "kernel 7"},
		"awaits":    {"file": "Cell [3]", "line": 1, "function": "fetch", "waiting_s": 3.0, "some_s": 1.0, "mean_tasks": 3.0, "max_tasks": 3, "process": "kernel 7"},
		"memory":    {"file": "Cell [3]", "line": 1, "function": "fetch", "grown_bytes": int64(2730), "uncertain_bytes": int64(2730), "process": "kernel 7"},
		"threads":   {"name": "MainThread", "role": "kernel", "main": true, "process": "kernel 7", "on_cpu_s": nil, "rank": nil},
		"processes": {"pid": 7, "role": "kernel", "parent": nil, "end_s": nil, "stacks": "read", "peak_memory_bytes": int64(9 << 20), "own_bytes": nil},
		"devices":   {"device": 1, "name": "H", "busy_s": 1.0, "idle_s": 1.0, "unknown_s": 0.0, "used": true},
		"steps":     {"name": "s", "start_s": 0.0, "end_s": 1.0},
		"loaders":   {"batch_size": 64, "workers": 2, "drop_last": true, "batches_per_step": 1, "epochs": 0, "steps": 2, "counted_steps": 1, "ready_mean": 0.25, "ready_median": 0, "ready_most": 4, "queue_empty": 0.8, "worker_batch_s": 0.003, "slowest_worker_batch_s": 0.004},
		"regions":   {"name": "=r", "count": 1, "total_s": 1.0, "p95_s": 1.0},
		"ranks":     {"rank": 2, "process": "rank 2 (8)", "known_s": 2.0, "computing_s": 0.0, "steps": 1, "step_s": 1.0},
		"tracks":    {"id": "gpu.util", "device": 1, "t_s": 0.1, "value": 100.0, "unit": "%", "process": nil},
		"findings":  {"file": "Cell [3]", "line": 2},
	} {
		_, first := find(t, v, table)
		for column, value := range want {
			if got := first(column); got != value {
				t.Errorf("%s.%s is %v (%T), want %v", table, column, got, got, value)
			}
		}
	}
	if _, first := find(t, v, "threads"); first("state_s").(States)["waiting"] != 2 {
		t.Errorf("states %v", first("state_s"))
	}
}

func TestEveryTableSaysWhatItHas(t *testing.T) {
	for _, table := range Of(trained(t)) {
		if table.About == "" {
			t.Errorf("%s does not say what it is", table.Name)
		}
		seen := map[string]bool{}
		for _, c := range table.Columns {
			if c.About == "" || seen[c.Name] {
				t.Errorf("%s.%s: about %q, twice %v", table.Name, c.Name, c.About, seen[c.Name])
			}
			seen[c.Name] = true
		}
		for _, row := range table.Rows {
			if len(row) != len(table.Columns) {
				t.Fatalf("%s: %d values in %d columns", table.Name, len(row), len(table.Columns))
			}
		}
	}
}

func TestIdleAddsUpToTheDevices(t *testing.T) {
	table, _ := find(t, trained(t), "idle")
	sum := 0.0
	for _, row := range table.Rows {
		sum += row[4].(float64)
	}
	if sum != 1 {
		t.Errorf("%v seconds idle, want 1", sum)
	}
}

func TestFolderOfCSV(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "out")
	if err := WriteFolder(trained(t), folder); err != nil {
		t.Fatal(err)
	}
	for _, table := range Of(trained(t)) {
		text, err := os.ReadFile(filepath.Join(folder, table.Name+".csv"))
		if err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
		if err != nil || len(rows) != len(table.Rows)+1 {
			t.Errorf("%s: %d rows, %v, want %d", table.Name, len(rows), err, len(table.Rows)+1)
		}
		if strings.Contains(string(text), ",=") || strings.Contains(string(text), "\n=") {
			t.Errorf("%s: a spreadsheet would compute a cell of\n%s", table.Name, text)
		}
	}
	if text, _ := os.ReadFile(filepath.Join(folder, "ranks.csv")); !strings.HasSuffix(string(text), "\n2,rank 2 (8),2,0,1,1,barrier=2\n") {
		t.Errorf("the ranks are\n%s", text)
	}
	text, _ := os.ReadFile(filepath.Join(folder, "threads.csv"))
	if want := "name,role,process,rank,native_id,main,internal,state_s.python,state_s.native,state_s.waiting,state_s.io,state_s.gil,state_s.off,state_s.unknown,on_cpu_s,on_cpu_at_least\nMainThread,kernel,kernel 7,,7,true,false,0,0,2,0,0,0,0,,false\n"; !strings.HasPrefix(string(text), want) {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

func TestAnEmptyReportHasEveryTable(t *testing.T) {
	v, err := report.Build(timeline.NewBuilder(timeline.Options{Origin: 1}).Snapshot(0), nil, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if all := Of(v); len(all) != 27 {
		t.Errorf("%d tables", len(all))
	}
}
