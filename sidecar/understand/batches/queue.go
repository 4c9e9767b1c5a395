package batches

import (
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Queue is how many batches of a loader's workers lay ready, while they were asked for more.
type Queue struct {
	Readings int     // 0: it is not known
	Mean     float64 // batches
	Median   int
	Empty    float64 // share of the readings with none
	Most     int     // that can be: as many as the workers are asked for ahead
}

// IsEmpty reports whether the workers are too slow: most of the time there was no batch.
func (q Queue) IsEmpty() bool { return q.Readings > 0 && q.Empty > 0.5 }

// LieReady reports whether the workers are fast enough: half of the time the queue was half full, and hardly ever empty.
func (q Queue) LieReady() bool { return q.Readings > 0 && 2*q.Median >= q.Most && q.Empty < 0.1 }

// leastReadings is from how many readings on a queue is known: 20 are half a second of them, and one is a twentieth.
const leastReadings = 20

// queues fills in the queues of the loaders, by their number in index, from the first step on.
func queues(rec *timeline.Recording, index map[int]int, loaders []Loader, from timeline.Nanos) {
	ready := make([][]int, len(loaders))
	for _, r := range rec.Queues {
		if i, known := index[r.Loader]; known && r.At >= from {
			ready[i] = append(ready[i], r.Ready)
		}
	}
	for i, all := range ready {
		if len(all) < leastReadings {
			continue
		}
		slices.Sort(all)
		sum, none := 0, 0
		for _, n := range all {
			if sum += n; n == 0 {
				none++
			}
		}
		n := float64(len(all))
		loaders[i].Queue = Queue{
			Readings: len(all), Mean: float64(sum) / n, Median: all[(len(all)-1)/2], Empty: float64(none) / n,
			Most: loaders[i].Workers * loaders[i].Prefetch,
		}
	}
}
