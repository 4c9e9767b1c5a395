package timeline

import (
	"time"

	"golang.org/x/sys/unix"
)

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

// maxSlew is how fast a wall clock is adjusted without being set: adjtime(3) and NTP keep to 500 µs in a second.
const maxSlew = 500e-6

// BridgeAt relates the wall clock to the recording's clock at a time of the recording, between the readings at its begin
// and at its end. Where it was not measured, both were read one after the other as the recording began.
func (r *Recording) BridgeAt(at Nanos) Bridge {
	begin, end := r.Wall.Begin, r.Wall.End
	if begin == (Bridge{}) {
		return Bridge{Offset: r.Origin - r.StartedAt.UnixNano(), Error: int64(time.Millisecond)}
	}
	if end == (Bridge{}) || r.Duration <= 0 {
		return begin
	}
	drift := end.Offset - begin.Offset
	share := min(max(float64(at)/float64(r.Duration), 0), 1)
	b := Bridge{Offset: begin.Offset + int64(share*float64(drift)), Error: max(begin.Error, end.Error)}
	if size := max(drift, -drift); float64(size) > maxSlew*float64(r.Duration)+float64(begin.Error+end.Error) {
		b.Error += size // it was set, nobody knows when
	}
	return b
}
