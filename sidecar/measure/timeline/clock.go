package timeline

import (
	"cmp"
	"slices"
	"sort"
	"time"
	"unsafe"

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

// ThreadCPU is the CPU time of the calling thread. (getrusage counts in ticks of 4 ms on some kernels.)
func ThreadCPU() time.Duration { return time.Duration(read(unix.CLOCK_THREAD_CPUTIME_ID)) }

func read(id int32) int64 {
	at, _ := ReadClock(id) // it cannot fail: these clocks exist on every Linux this builds for
	return at
}

// ReadClock reads a clock of the kernel, in nanoseconds. It is a raw system call: of any other Go's scheduler takes note, which may
// wake up its watchdog.
func ReadClock(id int32) (int64, error) {
	var ts unix.Timespec
	if _, _, errno := unix.RawSyscall(unix.SYS_CLOCK_GETTIME, uintptr(id), uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		return 0, errno
	}
	return ts.Nano(), nil
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

// BridgeAt is a Bridge as it was measured at a time.
type BridgeAt struct {
	At int64
	Bridge
}

// until is the Bridge at a time between two measurements: the offset changes evenly. Where it changed by more than a
// clock is adjusted by, the clock was set, nobody knows when.
func (a BridgeAt) until(b BridgeAt, at int64) Bridge {
	length, drift := float64(b.At-a.At), b.Offset-a.Offset
	share := min(max(float64(at-a.At)/length, 0), 1)
	found := Bridge{Offset: a.Offset + int64(share*float64(drift)), Error: max(a.Error, b.Error)}
	if size := max(drift, -drift); float64(size) > maxSlew*length+float64(a.Error)+float64(b.Error) {
		found.Error += size
	}
	return found
}

// Bridges convert times of another clock on which it was measured several times, in the order of At. Outside the
// measurements the nearest counts.
type Bridges []BridgeAt

// Add takes in a measurement.
func (b *Bridges) Add(m BridgeAt) {
	at, _ := slices.BinarySearchFunc(*b, m.At, func(m BridgeAt, at int64) int { return cmp.Compare(m.At, at) })
	*b = slices.Insert(*b, at, m)
}

// ToBase converts a time of the bridged clock; there is a measurement.
func (b Bridges) ToBase(theirs int64) int64 {
	after := sort.Search(len(b), func(i int) bool { return b[i].At > theirs })
	switch after {
	case 0:
		return b[0].ToBase(theirs)
	case len(b):
		return b[after-1].ToBase(theirs)
	}
	return b[after-1].until(b[after], theirs).ToBase(theirs)
}

// Error is how far off converted times may be.
func (b Bridges) Error() (worst int64) {
	for i, m := range b {
		worst = max(worst, m.Error)
		if i > 0 {
			worst = max(worst, b[i-1].until(m, m.At).Error)
		}
	}
	return worst
}

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
	return BridgeAt{0, begin}.until(BridgeAt{int64(r.Duration), end}, int64(at))
}
