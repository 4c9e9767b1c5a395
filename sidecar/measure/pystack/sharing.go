package pystack

import (
	"sync/atomic"
	"time"
)

const (
	// The part of the time for which something runs in a target below which it leaves the larger share of the sampling to its
	// descendants, and above which it takes it back: what runs for a moment counts for a whole interval, which is longer meanwhile.
	leavesBelow, takesFrom = 0.1, 0.25
	// busyOver is the time over which that part is taken.
	busyOver = int64(400 * time.Millisecond)
	// seldom is the interval of a target that leaves it, as that of one in which nothing runs.
	seldom = longestRest
)

// Sharing divides what the sampling may use between a target and its descendants. A launcher looks each tenth of a second whether
// its processes have ended: it never rests, and would be read a thousand times a second, and those that compute a tenth as often.
// While it does nothing else it is read seldom, and they have its budget. Of nil, each has its own.
type Sharing struct {
	left    atomic.Bool // by the target to its descendants
	working atomic.Bool // descendants, that are read
}

// busyness is the part of the time for which something has run, of late.
type busyness float64

// add takes note of what was found for so many ns.
func (b *busyness) add(ran bool, ns int64) {
	part := busyness(min(float64(ns)/float64(busyOver), 1))
	if *b *= 1 - part; ran {
		*b += part
	}
}

// leave decides, by how busy the target is, whether it leaves its share.
func (s *Sharing) leave(busy busyness) bool {
	if s == nil {
		return false
	}
	limit := busyness(leavesBelow)
	if s.left.Load() {
		limit = takesFrom
	}
	left := s.working.Load() && busy < limit
	s.left.Store(left)
	return left
}

// work notes whether descendants work that are read.
func (s *Sharing) work(some bool) {
	if s != nil {
		s.working.Store(some)
	}
}

// given is the limit of the sampling of descendants.
func (s *Sharing) given(own limit) limit {
	if s != nil && s.left.Load() {
		return limit{max(own.budget, targetBudget), takenByOne}
	}
	return own
}
