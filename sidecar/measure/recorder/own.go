package recorder

import (
	"maps"
	"sync/atomic"
)

// OwnThreads are the profiler's own threads in the target, by native id, as far as
// it has reported: they are in nobody's profile. The zero value has none; any goroutine
// may use it.
type OwnThreads struct {
	ids atomic.Pointer[map[int]bool]
}

// Has reports whether a thread is one of them.
func (o *OwnThreads) Has(id int) bool {
	ids := o.ids.Load()
	return ids != nil && (*ids)[id]
}

// add takes in threads that are new. One goroutine at a time.
func (o *OwnThreads) add(ids []int) {
	known := make(map[int]bool)
	if old := o.ids.Load(); old != nil {
		known = maps.Clone(*old)
	}
	for _, id := range ids {
		known[id] = true
	}
	o.ids.Store(&known)
}
