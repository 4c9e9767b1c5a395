package timeline

import "golang.org/x/sys/unix"

// Clock reads a clock in nanoseconds.
type Clock func() int64

// Monotonic reads CLOCK_MONOTONIC, the clock of every Recording.
func Monotonic() int64 { return read(unix.CLOCK_MONOTONIC) }

// Boottime reads CLOCK_BOOTTIME, which counts suspended time too.
func Boottime() int64 { return read(unix.CLOCK_BOOTTIME) }

// Realtime reads CLOCK_REALTIME, the wall clock, which may be set at any time.
func Realtime() int64 { return read(unix.CLOCK_REALTIME) }

func read(id int32) int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		return 0 // cannot happen: these clocks exist on every Linux this builds for
	}
	return ts.Nano()
}

// Bridge converts times of another clock to CLOCK_MONOTONIC.
type Bridge struct {
	Offset int64 // to add to a time of the other clock
	Error  int64 // half-width of what Offset is known to, in nanoseconds
}

// Measure relates other to base: of five readings the one with the least time
// around it counts.
func Measure(base, other Clock) Bridge {
	best := Bridge{Error: 1<<63 - 1}
	for range 5 {
		before := base()
		theirs := other()
		after := base()
		if width := (after - before + 1) / 2; width >= 0 && width < best.Error {
			best = Bridge{Offset: before + (after-before)/2 - theirs, Error: width}
		}
	}
	return best
}

// ToBase converts a time of the bridged clock.
func (b Bridge) ToBase(theirs int64) int64 { return theirs + b.Offset }
