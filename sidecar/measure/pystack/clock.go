package pystack

import (
	"context"
	"math/rand/v2"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

const (
	// continuous is the interval below which the clock does not sleep at all.
	continuous = 2 * time.Microsecond
	// A raw sleep keeps the processor (P) of the Go scheduler while it lasts, which costs half as much as
	// giving it back each time. From longSleep on it would be asked for by the scheduler's watchdog, again and
	// again: an ordinary timer is cheaper then.
	longSleep = 20 * time.Millisecond
	// jitter is the largest deviation from the interval: a regular one would
	// beat with programs that have a period of their own.
	jitter = 0.25
)

// clock wakes the worker.
type clock struct {
	worker   *worker
	interval time.Duration
	rest     time.Duration // in place of it, if longer, until the next tick
	due      int64         // CLOCK_MONOTONIC of the next tick
	random   *rand.Rand
	base     time.Time // to read CLOCK_MONOTONIC without a system call
	baseAt   int64
}

func newClock(worker *worker, interval time.Duration) *clock {
	c := &clock{worker: worker, interval: interval, random: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))}
	// Take base and baseAt within the least time of each other.
	for i, best := 0, int64(1<<62); i < 3; i++ {
		before := timeline.Monotonic()
		base := time.Now()
		after := timeline.Monotonic()
		if after-before < best {
			best, c.base, c.baseAt = after-before, base, before+(after-before)/2
		}
	}
	c.due = c.now()
	return c
}

// now reads CLOCK_MONOTONIC.
func (c *clock) now() int64 { return c.at(time.Now()) }

// at converts a time this process has read.
func (c *clock) at(t time.Time) int64 { return c.baseAt + int64(t.Sub(c.base)) }

// next draws the time of the tick after the one due and returns how many ticks
// have been missed.
func (c *clock) next(now int64) (missed int64) {
	factor := 1 - jitter + 2*jitter*c.random.Float64()
	step := max(int64(float64(max(c.interval, c.rest))*factor), 1)
	c.due += step
	if late := now - c.due; late > 0 {
		if c.interval >= continuous {
			missed = (late + int64(c.interval) - 1) / int64(c.interval)
		}
		c.due = now
		if missed > 0 {
			c.due += int64(float64(c.interval) * c.random.Float64())
		}
	}
	return missed
}

// sleep waits for the tick that is due; false when ctx ends before.
func (c *clock) sleep(ctx context.Context) bool {
	switch {
	case c.worker.is == alone && c.interval < continuous:
	case c.worker.is != alone || c.interval >= longSleep:
		return c.worker.wait(ctx, time.Duration(c.due-c.now()))
	default:
		sleepUntil(c.due)
	}
	return ctx.Err() == nil
}

// sleepUntil sleeps until CLOCK_MONOTONIC has come to at.
func sleepUntil(at int64) {
	ts := unix.NsecToTimespec(at)
	for {
		_, _, errno := unix.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME,
			uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
		if errno != unix.EINTR {
			return
		}
		runtime.Gosched() // a signal of the Go scheduler, which wants to stop us for a moment
	}
}

// pace keeps the sampling within its share of a core.
type pace struct {
	asked  time.Duration
	budget float64
}

// adjust returns the interval for the next stretch, by what the last one cost.
func (p *pace) adjust(interval time.Duration, wall time.Duration, cpu time.Duration) time.Duration {
	if p.budget < 0 || p.budget >= 1 || wall <= 0 {
		return interval
	}
	share := float64(cpu) / float64(wall)
	need := time.Duration(float64(max(interval, continuous)) * min(max(share/p.budget, 0.5), 8))
	switch {
	case share > p.budget*1.1:
		return need
	case interval > p.asked && share < p.budget*0.8:
		return max(p.asked, need)
	}
	return interval
}
