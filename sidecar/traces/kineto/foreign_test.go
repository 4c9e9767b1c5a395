package kineto

import (
	"slices"
	"testing"
)

// A file of just as many events as are read is read whole: only the one after these is too many.
func TestEventCountIsOverWithTheFirstThatIsNotRead(t *testing.T) {
	for _, c := range []struct {
		events, read int
		over         bool
	}{{2, 2, false}, {3, 3, false}, {4, 3, true}} {
		count, read := EventCount{most: 3}, 0
		for range c.events {
			if count.Next() {
				read++
			}
		}
		if read != c.read || count.Over != c.over {
			t.Errorf("of %d events %d are read, over: %v", c.events, read, count.Over)
		}
	}
	var steps []int64
	count := EventCount{Step: func(n int64) { steps = append(steps, n) }}
	for range 2*progressEvents + 1 {
		count.Next()
	}
	if want := []int64{progressEvents, 2 * progressEvents}; !slices.Equal(steps, want) {
		t.Errorf("progress at %v, want %v", steps, want)
	}
}
