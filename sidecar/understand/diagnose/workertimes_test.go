package diagnose

import (
	"slices"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/batches"
)

// Two workers made 60 batches in turn: one worked for 0.9 s and had no task otherwise, the other, which was started anew in
// between, for 1.5 s in all.
func TestHowLongWorkersTookForABatch(t *testing.T) {
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	numbers := []int{0, 1, 1}
	lives := []timeline.Interval{{Start: 0, End: 3 * sec}, {Start: 0, End: sec}, {Start: sec, End: 3 * sec}}
	works := []timeline.Nanos{9 * sec / 10, 8 * sec / 10, 7 * sec / 10}
	b.Describe(func(r *timeline.Recording) {
		r.Processes = []timeline.Process{{PID: 1}}
		for i := range numbers {
			r.Processes = append(r.Processes, timeline.Process{PID: 50 + i, Parent: 1, Role: timeline.RoleLoaderWorker, Number: &numbers[i], Start: lives[i].Start, End: lives[i].End % (3 * sec)})
		}
	})
	loop := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "_worker_loop", File: site + "torch/utils/data/_utils/worker.py", Line: 1}))
	for i, life := range lives {
		id := b.Thread(timeline.Thread{PID: 50 + i, Process: 1 + i, NativeID: 50 + i, Main: true})
		b.Set(id, life.Start, b.Child(loop, b.Frame(timeline.Frame{Function: "Pictures.__getitem__", File: cellFile, Line: 2})), timeline.StatePython, false)
		b.Set(id, life.Start+works[i], b.Child(loop, b.Frame(timeline.Frame{Function: "Queue.get", File: "/usr/lib/python3.11/multiprocessing/queues.py", Line: 100})), timeline.StateWaiting, false)
		b.End(id, life.End)
	}
	one, anew := timeline.Loader{ID: 7, Workers: 2}, timeline.Loader{ID: 8, Workers: 2}
	for name, c := range map[string]struct {
		loaders []timeline.Loader
		made    []int // by those of them that it trains with
		want    []timeline.Nanos
	}{
		"one loader":                      {[]timeline.Loader{one}, []int{60}, []timeline.Nanos{30e6, 50e6}},
		"one for each epoch":              {[]timeline.Loader{one, anew}, []int{30, 30}, []timeline.Nanos{30e6, 50e6}},
		"and one without workers":         {[]timeline.Loader{one, {ID: 8}}, []int{60}, []timeline.Nanos{30e6, 50e6}},
		"and one to validate with":        {[]timeline.Loader{one, anew}, []int{60}, nil},
		"few batches":                     {[]timeline.Loader{one}, []int{2*leastBatches - 1}, nil},
		"more workers than could be read": {[]timeline.Loader{{ID: 7, Workers: 3}}, []int{60}, nil},
	} {
		rec := b.Snapshot(3 * sec)
		rec.Loaders = c.loaders
		var loaders []batches.Loader
		for i, made := range c.made {
			loaders = append(loaders, batches.Loader{Loader: c.loaders[i], Batches: made})
		}
		workerTimes(rec, loaders)
		for _, l := range loaders {
			if !slices.Equal(l.WorkerTimes, c.want) {
				t.Errorf("%s: a batch took %v, want %v", name, l.WorkerTimes, c.want)
			}
		}
	}
}
