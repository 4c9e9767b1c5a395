package cupti

import (
	"cmp"
	"slices"
	"sort"
	"time"
)

// reading is one instant on two clocks, in nanoseconds.
type reading struct {
	theirs, ours int64
	width        int64 // how far ours may be off
}

// steady is how fast two clocks may drift apart: NTP corrects the wall clock by at most 500 ppm.
const steady = 500e-6

// clock converts times of CUPTI's clock to CLOCK_MONOTONIC: between two readings the difference changes evenly,
// outside them it is that of the nearest.
type clock struct{ readings []reading }

func (c *clock) add(r reading) {
	at, _ := slices.BinarySearchFunc(c.readings, r, func(a, b reading) int { return cmp.Compare(a.theirs, b.theirs) })
	c.readings = slices.Insert(c.readings, at, r)
}

// known reports whether times can be converted.
func (c *clock) known() bool { return len(c.readings) > 0 }

func (c *clock) monotonic(theirs int64) int64 {
	after := sort.Search(len(c.readings), func(i int) bool { return c.readings[i].theirs > theirs })
	switch after {
	case 0:
		return theirs + c.readings[0].ours - c.readings[0].theirs
	case len(c.readings):
		last := c.readings[after-1]
		return theirs + last.ours - last.theirs
	}
	a, b := c.readings[after-1], c.readings[after]
	offset, change := a.ours-a.theirs, (b.ours-b.theirs)-(a.ours-a.theirs)
	share := float64(theirs-a.theirs) / float64(b.theirs-a.theirs)
	return theirs + offset + int64(share*float64(change))
}

// off is how far off converted times may be: more where somebody has set the clock between two readings.
func (c *clock) off() time.Duration {
	var worst int64
	for i, r := range c.readings {
		worst = max(worst, r.width)
		if i == 0 {
			continue
		}
		before := c.readings[i-1]
		change := (r.ours - r.theirs) - (before.ours - before.theirs)
		if change = max(change, -change); float64(change) > steady*float64(r.theirs-before.theirs)+float64(r.width+before.width) {
			worst = max(worst, change)
		}
	}
	return time.Duration(worst)
}
