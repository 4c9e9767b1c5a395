package diagnose

import "github.com/omni-perf/omni-perf/sidecar/timeline"

// evidence is what the rules look at.
type evidence struct {
	rec       *timeline.Recording
	stacks    *stacks
	diagnosis *Diagnosis
	devices   []*device
	main      *host // of the thread that runs the cell
}

func findings(*evidence) []Finding { return nil }
