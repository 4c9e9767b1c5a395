package diagnose

import (
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/batches"
)

// loaded fills in the epochs and samples of steps, as torch's loaders show them, where the program reports none, and returns the
// loaders that processes train with. Of each process what it reports itself of any step takes precedence.
func loaded(rec *timeline.Recording, steps []Step) (loaders []batches.Loader) {
	if len(rec.Batches) == 0 {
		return nil
	}
	for rest := steps; len(rest) > 0; {
		n := slices.IndexFunc(rest, func(s Step) bool { return s.Process != rest[0].Process })
		if n < 0 {
			n = len(rest)
		}
		loaders = append(loaders, loadedBy(rec, rest[:n])...)
		rest = rest[n:]
	}
	return loaders
}

// loadedBy does so for the steps of one process.
func loadedBy(rec *timeline.Recording, steps []Step) []batches.Loader {
	ends := make([]batches.Step, len(steps))
	for i, s := range steps {
		ends[i] = batches.Step{Start: s.Start, End: s.End, Uncounted: s.Anew}
	}
	loaders, worked := batches.Of(rec, steps[0].Process, ends)
	epochs := slices.ContainsFunc(steps, func(s Step) bool { return s.Batch.Epoch != nil })
	samples := slices.ContainsFunc(steps, func(s Step) bool { return s.Batch.Samples > 0 })
	for i, w := range worked {
		if !epochs {
			steps[i].Batch.Epoch = w.Epoch
		}
		if !samples {
			steps[i].Batch.Samples = w.Samples
		}
	}
	for i := range loaders {
		if samples {
			loaders[i].Counted = 0
		}
		if epochs {
			loaders[i].Epochs = 0
		}
	}
	return loaders
}
