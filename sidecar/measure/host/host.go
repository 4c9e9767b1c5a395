// Package host watches what the target and its machine do beside Python: CPU,
// memory, page faults, disk, network, threads and child processes.
//
// In flow the files of /proc (by gopsutil where it has the figure) and the
// process CPU clock, out flow tracks into a timeline. What cannot be read is left
// out with a note; nothing is ever zero because it could not be read. The package
// reads figures only and does not know who asked.
package host

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/alarm"
	"github.com/omni-perf/omni-perf/sidecar/measure/procfs"
	"github.com/omni-perf/omni-perf/sidecar/measure/proctree"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Sink is what the collector writes to; *timeline.Builder is one.
type Sink interface {
	Track(timeline.TrackSpec) *timeline.TrackWriter
	Since(monotonic int64) timeline.Nanos
	Note(id timeline.NoteID, what, reason string)
	Describe(change func(*timeline.Recording))
}

const (
	// In a recording's first second the cheap figures are read at 20 Hz: most
	// cells are short, and one point is no track.
	earlyInterval = 50 * time.Millisecond
	earlySpan     = time.Second
	// kinInterval is how long a child process may live without being seen, where
	// figures are read less often.
	kinInterval = 100 * time.Millisecond
	// slowInterval is for what changes seldom or costs much: threads' children,
	// swap, limits.
	slowInterval = time.Second
	// maxShare bounds the collector's own CPU: with thousands of processes the
	// interval grows until one reading is this share of it.
	maxShare = 0.02
)

// Options of a Collector; the zero value is usable.
type Options struct {
	Proc, Sys string        // where procfs and sysfs are mounted; empty = /proc, /sys
	Role      timeline.Role // of the target; empty = RoleScript
	Clock     timeline.Clock
	// CPUClock reads the CPU time of a process; nil = the kernel's clock for it,
	// or its stat file where Proc is not the live one.
	CPUClock func(pid int) (timeline.Nanos, error)
	// Own reports whether a thread of the target is the profiler's own, which count for nothing;
	// nil = there are none. From the collecting goroutine.
	Own func(tid int) bool
}

// Collector watches one process and its descendants. Collect runs once at a time;
// PIDs may be called from any goroutine.
type Collector struct {
	pid  int
	opts Options
	fs   files

	mu   sync.Mutex
	pids []int // of the latest reading, the target first

	spare spare
}

// New makes the collector of a process; nothing is read before Collect.
func New(pid int, opts Options) *Collector {
	live := opts.Proc == ""
	if live {
		opts.Proc = "/proc"
	}
	if opts.Sys == "" {
		opts.Sys = "/sys"
	}
	if opts.Clock == nil {
		opts.Clock = timeline.Monotonic
	}
	if opts.Own == nil {
		opts.Own = func(int) bool { return false }
	}
	if opts.CPUClock == nil && live {
		opts.CPUClock = func(pid int) (timeline.Nanos, error) {
			used, err := procfs.CPUTime(pid)
			return timeline.Nanos(used), err
		}
	}
	return &Collector{pid: pid, opts: opts, fs: newFiles(opts.Proc, opts.Sys), pids: []int{pid}}
}

// PIDs are the target and its descendants as of the latest reading.
func (c *Collector) PIDs() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]int(nil), c.pids...)
}

func (c *Collector) setPIDs(pids []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pids = pids
}

// Collect reads at a pace until ctx ends, then once more. tree knows who descends
// from the target, and is kept up to date by somebody else; nil: by the collector.
func (c *Collector) Collect(ctx context.Context, sink Sink, figures timeline.FigurePace, tree *proctree.Tree) error {
	if figures.Interval <= 0 {
		figures.Interval = timeline.DefaultFigureInterval
	}
	c.spare.known = false
	s := newSampler(c, sink, figures.Interval)
	p := newPace(c.opts.Clock(), figures)
	if tree != nil {
		s.family.tree, s.family.private = tree, false
		p.nextKin = math.MaxInt64 // the tree reports who is new
	}
	s.read(c.opts.Clock(), everything)
	wake := alarm.New(0)
	defer wake.Stop()
	for {
		wake.Reset(p.wait(c.opts.Clock()))
		select {
		case <-ctx.Done():
			s.read(c.opts.Clock(), usual)
			s.readShares()
			return nil
		case <-wake.C:
		}
		start := c.opts.Clock()
		if p.slows(start) {
			s.coarsen(p.interval)
		}
		depth := p.due(start)
		s.read(start, depth)
		p.took(depth, time.Duration(c.opts.Clock()-start))
	}
}

// depth says how much one reading reads.
type depth int

const (
	cheap      depth = iota // the target's CPU, RSS and threads
	kin                     // which descendants there are
	usual                   // the target and its descendants, the machine
	everything              // with what changes seldom
)

// pace decides when to read what. Times are CLOCK_MONOTONIC.
type pace struct {
	interval  time.Duration // between usual readings, as asked for
	stretched time.Duration // the interval in force
	later     time.Duration // the interval from slower on
	slower    int64
	early     int64         // until here cheap readings lie between
	kin       time.Duration // between looks at the descendants
	next      int64         // usual reading
	nextEarly int64
	nextKin   int64
	nextSlow  int64
}

func newPace(now int64, figures timeline.FigurePace) *pace {
	interval := figures.Interval
	slower := int64(math.MaxInt64)
	if figures.Later > interval {
		slower = now + int64(timeline.FirstFigures)
	}
	return &pace{
		interval: interval, stretched: interval, kin: kinInterval, later: figures.Later, slower: slower,
		early: now + int64(earlySpan), next: now + int64(interval),
		nextEarly: now + int64(earlyInterval), nextKin: now + int64(kinInterval), nextSlow: now + int64(slowInterval),
	}
}

// slows reports whether readings are less frequent from now on.
func (p *pace) slows(now int64) bool {
	if now < p.slower {
		return false
	}
	p.slower = math.MaxInt64
	p.interval, p.stretched = p.later, max(p.later, p.stretched)
	return true
}

func (p *pace) wait(now int64) time.Duration {
	next := min(p.next, p.nextKin)
	if p.nextEarly < p.early {
		next = min(next, p.nextEarly)
	}
	return time.Duration(max(next-now, 0))
}

// due returns what the reading at now reads, and when the next ones are.
func (p *pace) due(now int64) depth {
	p.nextEarly = now + int64(earlyInterval)
	if now < p.next && now < p.nextKin {
		return cheap
	}
	p.nextKin = now + int64(p.kin)
	if now < p.next {
		return kin
	}
	p.next += int64(p.stretched)
	if p.next <= now { // late: skip, never hurry
		p.next = now + int64(p.stretched)
	}
	if now < p.nextSlow {
		return usual
	}
	p.nextSlow = now + int64(slowInterval)
	return everything
}

// took reports what a reading cost.
func (p *pace) took(d depth, cost time.Duration) {
	within := time.Duration(float64(cost) / maxShare)
	switch d {
	case kin:
		p.kin = max(kinInterval, within)
	case usual:
		p.stretched = max(p.interval, within)
	}
}
