package timeline

import "time"

// The intervals that a recording may be asked for. All who offer, check or recommend one
// read them here; magics/omni_perf/contract.py repeats what the magics need of them, and a
// test compares the two.
const (
	DefaultInterval       = time.Millisecond       // between two reads of the stacks
	DefaultFigureInterval = 100 * time.Millisecond // between two reads of figures
	// LaterFigureInterval is that of `omni-perf run` after FirstFigures, unless one is asked for: scripts run for
	// longer than cells, and what they do at their beginning they do once.
	LaterFigureInterval = time.Second
	FirstFigures        = time.Minute

	MinInterval       = 50 * time.Microsecond // a read of the stacks takes 20 to 50 µs of CPU time
	MinFigureInterval = 10 * time.Millisecond // the kernel counts CPU time in ticks of that length
	MaxInterval       = time.Hour             // of either
)

// FigurePace is how often figures are read.
type FigurePace struct {
	Interval time.Duration
	Later    time.Duration // instead, from FirstFigures on; 0: the same
}

// FinerInterval is the interval to recommend where one was too coarse: a tenth of it, if that
// is possible, else the shortest. It is 0 where there is no shorter one.
func FinerInterval(interval time.Duration) time.Duration {
	if interval <= MinInterval {
		return 0
	}
	return max(interval/10, MinInterval)
}
