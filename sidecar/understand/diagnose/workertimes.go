package diagnose

import (
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/batches"
	"github.com/omni-perf/omni-perf/sidecar/understand/interpret"
)

// leastBatches is from how many batches of a worker on it is known how long it took for one: when the program ends some are
// begun, or made and never taken.
const leastBatches = 20

// workerTimes fills in how long each worker of a process's loaders took for a batch. torch hands the batches out in turn, so that each worker
// made as many. Where a process has loaders with workers that it does not train with, or of another number, it is not known whose batches
// a worker made; one that is made anew for each epoch is the same one.
func workerTimes(rec *timeline.Recording, loaders []batches.Loader) {
	made, workers := make(map[int]int), make(map[int]int) // by process
	for _, l := range loaders {
		if l.Workers > 0 {
			made[l.Process] += l.Batches
			workers[l.Process] = l.Workers
		}
	}
	times := make(map[int][]timeline.Nanos)
	for process, count := range workers {
		if made[process] >= leastBatches*count && !othersWork(rec, process, count, loaders) {
			times[process] = workTimes(rec, process, count)
		}
	}
	for i := range loaders {
		l := &loaders[i]
		for _, took := range times[l.Process] {
			if l.Workers > 0 {
				l.WorkerTimes = append(l.WorkerTimes, timeline.Nanos(float64(took)*float64(l.Workers)/float64(made[l.Process])))
			}
		}
	}
}

// othersWork reports whether a process iterates over a loader with workers that is not among some, or has another number of them.
func othersWork(rec *timeline.Recording, process, workers int, loaders []batches.Loader) bool {
	return slices.ContainsFunc(rec.Loaders, func(l timeline.Loader) bool {
		return l.Process == process && l.Workers > 0 &&
			(l.Workers != workers || !slices.ContainsFunc(loaders, func(known batches.Loader) bool { return known.ID == l.ID && known.Process == process }))
	})
}

// workTimes is how long each of so many workers of a process worked, by its number; nil where one was not read.
func workTimes(rec *timeline.Recording, process, workers int) []timeline.Nanos {
	times := make([]timeline.Nanos, workers)
	for _, pool := range interpret.RecordedPools(rec) {
		if pool.Role != timeline.RoleLoaderWorker || pool.Owner != process {
			continue
		}
		for _, m := range interpret.During(rec, pool, []timeline.Interval{timeline.Between(0, rec.Duration)}).Members {
			if n := rec.Processes[m.Process].Number; n != nil && *n < workers {
				times[*n] += m.Working
			}
		}
	}
	if slices.Contains(times, 0) {
		return nil
	}
	return times
}
