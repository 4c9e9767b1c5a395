package host

import (
	"sync"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// spareWindow is over how long it is looked at least how much CPU time nobody uses.
const spareWindow = timeline.Nanos(time.Second)

// spare knows how much CPU time nobody uses, of that which the target may use: for those who would take from it what
// they use themselves. Until it has looked for a second everything counts as free.
type spare struct {
	mu          sync.Mutex
	free, cores float64 // CPUs

	at     timeline.Nanos
	known  bool
	family float64 // CPU seconds that the target and its descendants had used by then
	busy   float64 // and all programs of the machine
}

// Spare returns how many CPUs nobody uses, of the cores that the target may use. It may be called from any goroutine.
func (c *Collector) Spare() (free, cores float64) {
	c.spare.mu.Lock()
	defer c.spare.mu.Unlock()
	return c.spare.free, c.spare.cores
}

// look takes what has been used so far: by the target with its descendants, who may use limit CPUs, and by all programs
// of the machine, which has total.
func (s *spare) look(at timeline.Nanos, family, limit, busy, total float64) {
	passed := (at - s.at).Seconds()
	if s.known && at-s.at < spareWindow {
		return
	}
	free := min(limit, total)
	if s.known {
		free = min(free, limit-(family-s.family)/passed, total-(busy-s.busy)/passed)
	}
	s.at, s.known, s.family, s.busy = at, true, family, busy
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free, s.cores = max(free, 0), min(limit, total)
}
