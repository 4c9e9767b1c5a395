package pystack

import (
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/spare"
)

// What the sampling of the target, and that of its descendants, may use of a core, and what of each CPU where none is free.
const (
	targetBudget, descendantsBudget = 0.05, 0.02
	takenByOne, takenByMany         = 0.002, 0.0015
	// Of a recording that is longer than enoughFor each second says less of the whole: what is taken falls with its length, to leastTaken of it.
	enoughFor, leastTaken = 40 * time.Second, 0.25
)

// limit of what sampling may use of a core.
type limit struct {
	budget float64 // at most
	taken  float64 // of each CPU, where none is free
}

// now is the share of a core that sampling may use when it has gone on for so long.
func (l limit) now(so time.Duration, free spare.CPUs) float64 {
	share, cores := free.Share(so)
	if share == 1 {
		return l.budget
	}
	least := min(l.budget, l.taken*cores*spare.Falling(so, enoughFor, leastTaken))
	return least + (l.budget-least)*share
}
