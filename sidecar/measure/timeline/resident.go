package timeline

import (
	"fmt"
	"math"
)

// InexactMark is how far off a reading of the kernel's highest mark may be: the kernel adds up pages in batches for each CPU.
const InexactMark = 1 << 20

// Resident is what was read of a process's resident memory, in bytes; 0: nothing was.
type Resident struct {
	Largest     int64 // of all readings
	First, Mark int64 // the highest mark of the process's whole life (VmHWM), at its first reading and at the last one
}

// Rose reports whether the mark rose while it was read: the last one is then of the recording.
func (m Resident) Rose() bool { return m.First > 0 && m.Mark > m.First+InexactMark }

// Resident sums up the readings of the process at a place in Processes.
func (r *Recording) Resident(place int) (m Resident) {
	bytes := func(v float64) int64 {
		if !(v > 0) || v > math.MaxInt64/2 {
			return 0
		}
		return int64(v)
	}
	p := &r.Processes[place]
	m.Largest = p.Memory.Growth.Largest
	for i := range r.Tracks {
		t := &r.Tracks[i]
		if t.PID != p.PID || t.Process != place || len(t.Points) == 0 {
			continue
		}
		switch t.ID {
		case "rss", fmt.Sprintf("process.%d.rss", place):
			m.Largest = max(m.Largest, bytes(t.Peak))
		case "rss.peak":
			m.First, m.Mark = bytes(t.Points[0].Value), bytes(t.Peak)
		}
	}
	return m
}
