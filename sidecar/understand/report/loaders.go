package report

import (
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
)

// Loader is a DataLoader of torch that a process trains with, as its iterators show in memory.
type Loader struct {
	Process        int  `json:"process"`
	BatchSize      *int `json:"batch_size"` // samples of a whole batch; null: not known, or batches differ
	Workers        int  `json:"workers"`
	DropLast       bool `json:"drop_last"`
	BatchesPerStep *int `json:"batches_per_step"` // null: not known
	Epochs         int  `json:"epochs"`           // passes, which steps are numbered by; 0: the numbers are the program's, or there are none
	Steps          int  `json:"steps"`            // made in these passes
	CountedSteps   int  `json:"counted_steps"`    // of these, those whose samples are by the loader
	// Queue is absent where it was not read: with no workers, and in reports of older programs.
	Queue *LoaderQueue `json:"queue,omitempty"`
	// WorkerBatchNS is how long each worker took for a batch, by its number; absent where it is not known.
	WorkerBatchNS []int64 `json:"worker_batch_ns,omitempty"`
}

// LoaderQueue is how many batches that a loader's workers had made lay ready, not yet taken, by readings that are spread over the time in which
// the workers were asked for more.
type LoaderQueue struct {
	Readings int     `json:"readings"`
	Mean     float64 `json:"mean"`
	Median   int     `json:"median"`
	Most     int     `json:"most"`  // that there can be: prefetch_factor times workers
	Empty    float64 `json:"empty"` // share of the readings with none, 0..1
}

// loaders fills Loaders.
func (b *builder) loaders(d *diagnose.Diagnosis) {
	for _, l := range d.Loaders {
		row := Loader{Process: b.placed(l.Process), Workers: l.Workers, DropLast: l.DropLast, Epochs: l.Epochs, Steps: l.Steps, CountedSteps: l.Counted}
		if l.Batch > 0 {
			row.BatchSize = pointer(l.Batch)
		}
		if l.PerStep > 0 {
			row.BatchesPerStep = pointer(l.PerStep)
		}
		if q := l.Queue; q.Readings > 0 {
			row.Queue = &LoaderQueue{Readings: q.Readings, Mean: q.Mean, Median: q.Median, Most: q.Most, Empty: q.Empty}
		}
		for _, took := range l.WorkerTimes {
			row.WorkerBatchNS = append(row.WorkerBatchNS, int64(took))
		}
		b.doc.Loaders = append(b.doc.Loaders, row)
	}
}

// countedBy reports whether the samples of a process's steps are by its loaders.
func (b *builder) countedBy(process int) bool {
	return slices.ContainsFunc(b.doc.Loaders, func(l Loader) bool { return l.Process == process && l.CountedSteps > 0 })
}

// loaders checks the loaders of trainings.
func (c *checker) loaders() {
	for i := range c.d.Loaders {
		l := &c.d.Loaders[i]
		c.index("loaders.process", l.Process, len(c.d.Processes))
		for _, n := range []int{l.Workers, l.Epochs, l.Steps, l.CountedSteps} {
			c.count("loaders", n)
		}
		c.must(l.BatchSize == nil || *l.BatchSize > 0, "loaders.batch_size is not positive")
		c.must(l.BatchesPerStep == nil || *l.BatchesPerStep > 0, "loaders.batches_per_step is not positive")
		if q := l.Queue; q != nil {
			c.must(q.Readings > 0, "loaders.queue has no readings")
			c.count("loaders.queue.median", q.Median)
			c.must(q.Mean >= 0 && q.Mean <= float64(q.Most) && q.Median <= q.Most, "loaders.queue has more batches than there can be")
			c.must(q.Empty >= 0 && q.Empty <= 1, "loaders.queue.empty is no share")
		}
		c.must(len(l.WorkerBatchNS) == 0 || len(l.WorkerBatchNS) == l.Workers, "loaders.worker_batch_ns is not of its workers")
		for _, took := range l.WorkerBatchNS {
			c.must(took > 0, "loaders.worker_batch_ns is not positive")
		}
		c.must(l.CountedSteps <= l.Steps, "loaders counts the samples of more steps than there are")
	}
}

// WorkerBatch is how long a worker took for a batch, on average, and the number of the slowest one with how long that took, in ns; false: it is not known.
func (l *Loader) WorkerBatch() (mean float64, slowest int, most int64, known bool) {
	if len(l.WorkerBatchNS) == 0 {
		return 0, 0, 0, false
	}
	sum := 0.0
	for n, took := range l.WorkerBatchNS {
		if sum += float64(took); took > most {
			slowest, most = n, took
		}
	}
	return sum / float64(len(l.WorkerBatchNS)), slowest, most, true
}

// LeadingLoaders are those that the leading process trains with.
func (v *View) LeadingLoaders() (list []*Loader) {
	leading, _ := v.LeadingSteps()
	for i := range v.Loaders {
		if l := &v.Loaders[i]; len(leading) > 0 && l.Process == leading[0].Process {
			list = append(list, l)
		}
	}
	return list
}
