package diagnose

import (
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

// loader is a worker of a data loader that loads all the time, on a machine without a free CPU.
func loader(state timeline.State) func(*timeline.Builder) {
	return func(b *timeline.Builder) {
		number := 0
		b.Describe(func(r *timeline.Recording) {
			r.Processes = append(r.Processes, timeline.Process{PID: 50, Parent: 1, Role: timeline.RoleLoaderWorker, Number: &number})
		})
		id := b.Thread(timeline.Thread{PID: 50, Process: 1, NativeID: 50, Main: true})
		loop := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "_worker_loop", File: site + "torch/utils/data/_utils/worker.py", Line: 1}))
		b.Set(id, 0, b.Child(loop, b.Frame(timeline.Frame{Function: "<module>", File: cellFile, Line: 2})), state, false)
		b.Track(timeline.TrackSpec{ID: "cpu.system", Kind: timeline.KindRate, Device: -1, Limit: 2}).AddWindow(0, 3*sec, 2)
	}
}

// Where no CPU is free more workers help those that wait, and not those that compute.
func TestMoreWorkersAreForThoseThatWait(t *testing.T) {
	for state, want := range map[timeline.State]Advice{timeline.StateIO: FasterOnCPU, timeline.StateWaiting: FasterOnCPU, timeline.StatePython: MoreCPUs, timeline.StateOff: MoreCPUs} {
		s := scene{acts: []act{{2 * sec, 1, dataloaderFile, workers, timeline.StateWaiting, 0}, {sec, 8, "", "", timeline.StatePython, 0}}, change: loader(state)}
		d := Run(s.record())
		for _, f := range d.Findings {
			if f.ID == LoadsData && f.Advice != want {
				t.Errorf("workers in the state %v: %v is advised, want %v", state, f.Advice, want)
			} else if f.ID == LoadsData {
				want = ""
			}
		}
		if want != "" {
			t.Errorf("workers in the state %v: %v is not advised: %v", state, want, d.Findings)
		}
	}
}

// Loading in the training's own process that computes needs a free CPU for each worker; what waits needs none, however busy the CPUs are.
func TestWorkersThatWaitNeedNoFreeCPU(t *testing.T) {
	const here = "_SingleProcessDataLoaderIter._next_data"
	for state, want := range map[timeline.State]Advice{timeline.StateWaiting: WorkersThatWait, timeline.StateIO: WorkersThatWait, timeline.StatePython: WorkersOnCPU, timeline.StateNative: WorkersOnCPU} {
		for _, busy := range []bool{false, true} {
			change := func(b *timeline.Builder) {
				if busy {
					b.Track(timeline.TrackSpec{ID: "cpu.system", Kind: timeline.KindRate, Device: -1, Limit: 2}).AddWindow(0, 3*sec, 2)
				}
			}
			if busy && want == WorkersOnCPU {
				want = MoreCPUs
			}
			got := NoAdvice
			for _, f := range Run(scene{acts: []act{{2 * sec, 1, dataloaderFile, here, state, 0}, {sec, 8, "", "", timeline.StatePython, 0}}, change: change}.record()).Findings {
				if f.ID == LoadsData {
					got = f.Advice
				}
			}
			if got != want {
				t.Errorf("loading in the state %v, all CPUs busy %v: %q is advised, want %q", state, busy, got, want)
			}
		}
	}
}

// Workers that are started anew for each step are not too slow.
func TestWorkersThatAreStartedAgainAndAgainAreToStay(t *testing.T) {
	for _, test := range []struct {
		count int
		life  timeline.Nanos
		want  Advice
	}{{8, sec / 10, KeepWorkers}, {7, sec / 10, FasterOnCPU}, {8, 2 * sec, FasterOnCPU}} {
		s := scene{acts: []act{{2 * sec, 1, dataloaderFile, workers, timeline.StateWaiting, 0}, {sec, 8, "", "", timeline.StatePython, 0}}, change: func(b *timeline.Builder) {
			b.Describe(func(r *timeline.Recording) {
				for i := range test.count {
					r.Processes = append(r.Processes, timeline.Process{PID: 50 + i, Parent: 1, Role: timeline.RoleLoaderWorker, Start: sec / 20, End: sec/20 + test.life})
				}
			})
		}}
		got := NoAdvice
		for _, f := range Run(s.record()).Findings {
			if f.ID == LoadsData {
				got = f.Advice
			}
		}
		if got != test.want {
			t.Errorf("%d workers of %v: %q is advised, want %q", test.count, test.life, got, test.want)
		}
	}
}

// A sampler runs in the training's own process: neither more workers nor faster ones help, and its time is no wait for them.
func TestASamplerIsNoWorker(t *testing.T) {
	const next = "_BaseDataLoaderIter._next_index"
	sampling := func(loader string, length timeline.Nanos) func(*timeline.Builder) {
		return func(b *timeline.Builder) {
			node := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "<module>", File: cellFile, Line: 1}))
			node = b.Child(node, b.Frame(timeline.Frame{Function: loader, File: dataloaderFile, Line: 1}))
			node = b.Child(node, b.Frame(timeline.Frame{Function: next, File: dataloaderFile, Line: 1}))
			node = b.Child(node, b.Frame(timeline.Frame{Function: "Bucket.__iter__", File: cellFile, Line: 2}))
			b.Set(0, 0, node, timeline.StatePython, false)
			b.Set(0, length, b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "<module>", File: cellFile, Line: 8})), timeline.StatePython, false)
		}
	}
	for _, loader := range []string{inline, workers} {
		b := timeline.NewBuilder(timeline.Options{Origin: 1})
		b.Describe(func(r *timeline.Recording) {
			r.Target.Cell, r.Target.PID = &timeline.Cell{File: cellFile, Text: cellText}, 1
			r.Sources = []timeline.Source{{File: cellFile, Text: cellText}}
			r.Processes = []timeline.Process{{PID: 1, Role: "kernel"}}
		})
		b.Thread(timeline.Thread{PID: 1, Main: true, RunsCell: true})
		sampling(loader, 6*sec)(b)
		d := Run(b.Snapshot(10 * sec))
		main, ok := d.Main()
		if f := d.Findings[main]; !ok || f.ID != LoadsData || f.Cause != activity.LoadSampler || f.Time != 6*sec || f.Advice != CheapSampler || f.Place.Line != 2 || len(f.Actors) > 0 || f.Against != 0 {
			t.Errorf("%s: got %+v", loader, d.Findings)
		}
	}
}

// Workers that had no task for most of the wait are not too slow.
func TestWorkersWithoutATaskAreNotTooSlow(t *testing.T) {
	waiting := func(b *timeline.Builder) {
		number := 0
		b.Describe(func(r *timeline.Recording) {
			r.Processes = append(r.Processes, timeline.Process{PID: 50, Parent: 1, Role: timeline.RoleLoaderWorker, Number: &number, Command: "train.py"})
		})
		id := b.Thread(timeline.Thread{PID: 50, Process: 1, NativeID: 50, Main: true})
		loop := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "_worker_loop", File: site + "torch/utils/data/_utils/worker.py", Line: 1}))
		b.Set(id, 0, b.Child(loop, b.Frame(timeline.Frame{Function: "Queue.get", File: "/usr/lib/python3.12/multiprocessing/queues.py", Line: 1})), timeline.StateWaiting, false)
	}
	rec := scene{acts: []act{{2 * sec, 1, dataloaderFile, workers, timeline.StateWaiting, 0}, {sec, 8, "", "", timeline.StatePython, 0}}, change: waiting}.record()
	for _, f := range Run(rec).Findings {
		if f.ID == LoadsData {
			if f.Advice != NoAdvice || len(f.Actors) != 1 || f.Actors[0].Work == nil {
				t.Errorf("got advice %q of %+v", f.Advice, f.Actors)
			}
			return
		}
	}
	t.Error("the wait is no finding")
}

// What a loader without workers took, as that of a validation, was no wait for those of another one.
func TestALoaderWithoutWorkersIsNotWaitedFor(t *testing.T) {
	const here = "_SingleProcessDataLoaderIter._next_data"
	for _, test := range []struct {
		name                  string
		workers, here, others timeline.Nanos
		took                  timeline.Nanos
		cause                 activity.Cause
	}{
		{"both, most of it the workers", 5 * sec, 2 * sec, 3 * sec, 5 * sec, activity.LoadWorker},
		{"enough together alone", 25 * sec / 10, 2 * sec, 55 * sec / 10, 45 * sec / 10, activity.Load},
		{"most of it without workers", 2 * sec, 5 * sec, 3 * sec, 7 * sec, activity.LoadHere},
	} {
		s := scene{acts: []act{
			{test.workers, 1, dataloaderFile, workers, timeline.StateWaiting, 0}, {test.here, 2, dataloaderFile, here, timeline.StatePython, 0},
			{test.others, 8, "", "", timeline.StatePython, 0},
		}}
		found := false
		for _, f := range Run(s.record()).Findings {
			if f.ID == LoadsData {
				found = true
				if f.Time != test.took || f.Cause != test.cause {
					t.Errorf("%s: %v took %v, want %v of %v", test.name, f.Cause, f.Time, test.cause, test.took)
				}
			}
		}
		if !found {
			t.Errorf("%s: not found", test.name)
		}
	}
}

// Workers whose batches lie ready are not too slow; an empty queue shows that they are.
func TestTheQueueOfAWaitForWorkers(t *testing.T) {
	const ms = sec / 1000
	for _, test := range []struct {
		ready, gpus int
		want        Advice
	}{{0, 0, FasterOnCPU}, {1, 0, FasterOnCPU}, {3, 0, NoAdvice}, {0, 1, SpeedUpWorkers}, {3, 1, NoAdvice}} {
		const steps = 40
		s := scene{acts: []act{{70 * ms, 1, dataloaderFile, workers, timeline.StateWaiting, 0}, {30 * ms, 8, "", "", timeline.StatePython, 90}}, times: steps, gpus: test.gpus,
			change: func(b *timeline.Builder) {
				loader := timeline.Loader{ID: 1, Batch: 8, Workers: 2, Prefetch: 2}
				for i := range steps {
					at := timeline.Nanos(i) * 100 * ms
					b.Mark(timeline.Mark{Kind: "step", Start: at, End: at + 100*ms})
					b.ReadLoader(loader, timeline.LoaderReading{At: at + ms, Pass: 1, Yielded: int64(i)})
					b.ReadQueue(loader, timeline.QueueReading{At: at + 2*ms, Ready: test.ready})
				}
			}}
		found := false
		for _, f := range Run(s.record()).Findings {
			if f.ID != LoadsData && f.ID != GPUWaitsForData {
				continue
			}
			found = true
			if f.Queue.Readings != steps || f.Queue.Median != test.ready || f.Queue.Most != 4 || f.Advice != test.want {
				t.Errorf("%d of 4 ready, %d GPUs: %+v, %q is advised, want %q", test.ready, test.gpus, f.Queue, f.Advice, test.want)
			}
		}
		if !found {
			t.Errorf("%d ready, %d GPUs: no finding", test.ready, test.gpus)
		}
	}
}
