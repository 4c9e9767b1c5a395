package chart

import (
	"fmt"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// batchesReady is how full the queue of the loaders' workers was; empty where that is not known, or of queues of different lengths.
func batchesReady(r *report.View) string {
	readings, mean, empty, most := 0.0, 0.0, 0.0, 0
	for _, l := range r.LeadingLoaders() {
		q := l.Queue
		switch {
		case q == nil:
			continue
		case readings > 0 && q.Most != most:
			return ""
		}
		n := float64(q.Readings)
		readings, mean, empty, most = readings+n, mean+n*q.Mean, empty+n*q.Empty, q.Most
	}
	if readings == 0 {
		return ""
	}
	text := fmt.Sprintf("%s of %s ready in the workers' queue on average", words.Fixed(mean/readings, 1), words.Plural(most, "batch", "batches"))
	if empty > 0 {
		text += ", none for " + words.Percent(empty/readings) + " of the time"
	}
	return text
}

// slowerWorker is by which factor the slowest worker of a loader takes longer than all on average, to be named.
const slowerWorker = 1.25

// workersTook is how long the workers of the loaders took for a batch; empty where that is not known, or differs by loader.
func workersTook(r *report.View) string {
	var of *report.Loader
	for _, l := range r.LeadingLoaders() {
		switch {
		case len(l.WorkerBatchNS) == 0:
		case of != nil && !slices.Equal(of.WorkerBatchNS, l.WorkerBatchNS):
			return ""
		default:
			of = l
		}
	}
	if of == nil {
		return ""
	}
	mean, slowest, most, _ := of.WorkerBatch()
	text := fmt.Sprintf("a worker took %s for a batch", words.Seconds(mean/1e9))
	if float64(most) > slowerWorker*mean {
		text += fmt.Sprintf(", worker %d %s", slowest, words.Seconds(report.Seconds(most)))
	}
	return text
}
