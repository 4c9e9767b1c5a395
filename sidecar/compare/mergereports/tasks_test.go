package mergereports

import (
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/interpret"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// workerReport is the report of one of Dask's workers: it ran tasks of these names, a second each, from the
// first second of ten on.
func workerReport(t *testing.T, number int, tasks ...string) *report.View {
	t.Helper()
	pid := 50 + number
	b := timeline.NewBuilder(timeline.Options{Origin: 1, StartedAt: time.Unix(1000, 0)})
	b.Describe(func(r *timeline.Recording) {
		r.Target = timeline.Target{PID: pid, Argv: []string{"python", "-c", "x"}}
		r.Processes = []timeline.Process{{PID: pid, ParentIndex: -1, Role: timeline.RoleDaskWorker, Number: &number}}
		r.Host.BootID = "boot"
	})
	loop := b.Thread(timeline.Thread{PID: pid, NativeID: pid, Name: "MainThread", Main: true, OnCPU: -1})
	thread := b.Thread(timeline.Thread{PID: pid, NativeID: 9, Name: "Dask-Default-Threads-0", OnCPU: -1})
	waits := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "Queue.get", File: "/lib/python3.12/queue.py", Line: 171}))
	runs := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "_run_task_simple", File: "/v/site-packages/distributed/worker.py", Line: 2900}))
	own := b.Child(runs, b.Frame(timeline.Frame{Function: "crunch", File: "/u/work.py", Line: 7, FirstLine: 1}))
	b.Set(loop, 0, waits, timeline.StateWaiting, false)
	b.Set(thread, 0, waits, timeline.StateWaiting, false)
	b.Set(thread, second, own, timeline.StatePython, false)
	end := second
	for _, name := range tasks {
		b.Mark(timeline.Mark{Kind: "region", Name: name, Thread: 9, Start: end, End: end + second})
		end += second
	}
	b.Set(thread, end, waits, timeline.StateWaiting, false)
	return viewOf(t, interpret.Of(b.Snapshot(10*second)))
}

func TestAnEnginesWorkersAreExplainedByTheirTasks(t *testing.T) {
	r, err := Merge([]*report.View{workerReport(t, 1, "inc", "sum"), workerReport(t, 0, "inc", "inc", "load")}, names)
	if err != nil {
		t.Fatal(err)
	}
	if want := "Tasks took 5.0 s of the 20.0 s of 2 Dask workers: inc 3.0 s, load 1.0 s, sum 1.0 s."; r.Headline.Text != want {
		t.Errorf("headline %q\nwant     %q", r.Headline.Text, want)
	}
	if got := r.Processes[r.Targets[0].Process].Text; got != "Dask worker 0" || r.Name != "2 Dask workers" {
		t.Errorf("the first of %q is %q", r.Name, got)
	}
	var regions []string
	for _, g := range r.Regions {
		regions = append(regions, r.Processes[g.Process].Text+" "+g.Name)
	}
	if got, want := strings.Join(regions, ", "), "Dask worker 0 inc, Dask worker 0 load, Dask worker 1 inc, Dask worker 1 sum"; got != want {
		t.Errorf("regions %s, want %s", got, want)
	}
	if len(r.Pools) != 1 || len(r.Pools[0].Members) != 2 || r.Pools[0].Text != "2 Dask workers" { // the first target too
		t.Errorf("pools %+v", r.Pools)
	}
	if main := r.Threads[r.MainThread()]; main.Name != "Dask-Default-Threads-0" {
		t.Errorf("the flame chart is of %s", main.Name)
	}
}

func TestOneWorkerWithoutATaskHasItsOwnHeadline(t *testing.T) {
	r, err := Merge([]*report.View{workerReport(t, 0)}, names[:1])
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(r.Headline.Text, "Tasks") {
		t.Errorf("headline %q", r.Headline.Text)
	}
}
