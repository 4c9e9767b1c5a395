package host

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/measure/proctree"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// minTickWindow is the shortest window over which figures that the kernel counts
// in ticks of 10 ms are reported.
const minTickWindow = 5 * tick

// sampler is one recording: it turns readings into tracks. One goroutine.
type sampler struct {
	c        *Collector
	sink     Sink
	interval time.Duration
	fs       *files
	family   *family
	threads  *threads
	members  *members
	own      *OwnMemory
	held     map[proctree.Identity]uint64 // own memory of descendants when it was read last; nil: not yet
	machine  *machine

	limits Limits
	counts map[string]*counter
	gauges map[string]*timeline.TrackWriter
	asked  *timeline.Nanos // when the family was read first, before all that were there already were known
	first  *kinship        // the first reading, if there were no descendants …
	alone  *kinship        // … and the last before there were
	lost   bool            // the target is gone
}

// counter turns a count that only grows into a rate's track.
type counter struct {
	writer *timeline.TrackWriter
	at     timeline.Nanos
	value  float64
}

func newSampler(c *Collector, sink Sink, interval time.Duration) *sampler {
	files := c.fs
	s := &sampler{
		c: c, sink: sink, interval: interval, fs: &files,
		counts: make(map[string]*counter), gauges: make(map[string]*timeline.TrackWriter),
	}
	s.limits = readLimits(&files, c.pid)
	s.family = newFamily(&files, c.pid, proctree.New(c.pid, sink, proctree.Options{Proc: c.opts.Proc, Role: c.opts.Role, Clock: c.opts.Clock}), c.opts.CPUClock)
	s.threads = newThreads(s)
	s.members = &members{s: s, known: make(map[proctree.Identity]*memberTracks)}
	s.own = NewOwnMemory(c.opts.Proc)
	s.machine = newMachine(s)
	return s
}

// read makes one reading. at is CLOCK_MONOTONIC.
func (s *sampler) read(at int64, d depth) {
	if s.lost {
		return
	}
	if d == cheap {
		s.readCheap(s.sink.Since(at))
		return
	}
	if d == kin {
		_ = s.family.look(false) // the next usual reading shows its error
		return
	}
	if err := s.family.look(d == everything); err != nil {
		s.lost = true
		if hasEnded(err) && s.family.looked {
			return // and so will the recording: nothing is missing
		}
		s.sink.Note(timeline.NoteFailed, "process figures", fmt.Sprintf("the process could no longer be read: %v", err))
		s.end("the process could no longer be read")
		return
	}
	now := s.sink.Since(s.c.opts.Clock())
	s.c.setPIDs(s.family.pids())
	s.reportFamily(now)
	s.threads.read(now, d == everything)
	s.reportTarget(now)
	s.members.read(now)
	s.machine.read(s.sink.Since(s.c.opts.Clock()), d == everything)
}

// hasEnded distinguishes an error of a process that is no more from one of a process that
// may not be read.
func hasEnded(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) }

// ending reports whether the target ends now, or has ended: what cannot be read of it is no figure that is missing. It
// may have begun to end since the last look at its family.
func (s *sampler) ending() bool {
	st, err := s.fs.Stat(s.c.pid)
	if err != nil {
		return hasEnded(err)
	}
	return st.Exiting || st.Zombie()
}

// readCheap reads only the target's CPU, memory and threads, and what a few descendants
// use. Of many, the CPU time of all is reported at the next usual reading, over the time since
// the last: their part would else seem to have been used in one moment.
func (s *sampler) readCheap(at timeline.Nanos) {
	alone := s.family.alone()
	if !alone && len(s.family.candidates()) <= fewMembers && s.family.look(false) == nil {
		at = s.sink.Since(s.c.opts.Clock())
		s.reportFamily(at)
	}
	m, err := s.family.readTarget()
	if err != nil {
		return // the next usual reading says so
	}
	if alone {
		s.reportCPU(at)
	}
	s.reportMemory(at, m)
	s.threads.read(at, false)
	s.gauge(at, "threads", "/proc/PID/stat", "", 0, float64(m.threads-s.threads.own))
}

// fewMembers is how many are read every 50 ms, in the first second: 1 % of a core.
const fewMembers = 8

func (s *sampler) cpuSource() string {
	if s.c.opts.CPUClock != nil {
		return "process CPU clock"
	}
	return "/proc/PID/stat"
}

// reportFamily reports what the target and its descendants have used by the last look.
func (s *sampler) reportFamily(at timeline.Nanos) {
	s.reportCPU(at)
	f := s.family
	if f.target().disk == nil {
		s.sink.Note(timeline.NoteUnavailable, "disk.read, disk.write", fmt.Sprintf("/proc/%d/io may not be read by this user", s.c.pid))
		return
	}
	if f.unreadable {
		s.sink.Note(timeline.NoteUnavailable, "disk.read, disk.write", "some child processes' io files may not be read by this user; they are not counted")
	}
	s.count(at, "disk.read", "/proc/PID/io, child processes too", "B/s", 0, f.read)
	s.count(at, "disk.write", "/proc/PID/io, child processes too", "B/s", 0, f.written)
}

func (s *sampler) reportCPU(at timeline.Nanos) {
	f := s.family
	s.countOver(at, s.kinWindow(), "cpu", s.cpuSource(), "cores", s.limits.Cores, f.used().Seconds())
	if !f.complete { // a first reading that lacks some would make them growth
		if s.asked == nil {
			s.asked = &at
		}
		return
	}
	isFirst := s.held == nil
	now := s.kinshipNow(at)
	if isFirst {
		s.reportBefore(now)
	}
	begun := s.counts["cpu.children"] != nil
	used := s.alone != nil && now.cpu > s.alone.cpu // they lived between two readings
	if !begun && now.processes == 0 && !used {
		if s.alone = &now; s.first == nil {
			s.first = &now
		}
		return
	}
	if !begun && s.alone != nil { // there were none until then, and what they did before they were seen counts, too
		s.reportChildren(*s.first)
		if s.alone != s.first {
			s.reportChildren(*s.alone)
		}
	}
	s.reportChildren(now)
}

// kinshipNow is what the last look says of the descendants.
func (s *sampler) kinshipNow(at timeline.Nanos) kinship {
	k := kinship{at: at, cpu: s.family.childrenCPU, own: s.ownOfChildren()}
	for range s.descendants() {
		k.processes++
	}
	return k
}

// descendants are those of the target, without the profiler's own.
func (s *sampler) descendants() iter.Seq[*member] {
	return func(yield func(*member) bool) {
		for pid, m := range s.family.members {
			if pid != s.c.pid && !m.profiler && !yield(m) {
				return
			}
		}
	}
}

// reportBefore completes the first reading by what there was when the recording began, where that is another figure.
func (s *sampler) reportBefore(now kinship) {
	before := s.elders()
	switch {
	case before.at >= now.at, s.asked == nil && before.processes == now.processes:
	case before.processes == 0:
		s.first, s.alone = &before, &before
	default:
		s.reportChildren(before)
	}
}

// elders is what the descendants that are older than the recording hold, as if they had been read when the family first was,
// or, where all were known then, at the beginning. One that has begun within a tick of the recording is none of them: it
// may be the recording's.
func (s *sampler) elders() (k kinship) {
	if s.asked != nil {
		k.at = *s.asked
	}
	for m := range s.descendants() {
		if s.family.tree.Precedes(m.start + 1) {
			k.processes++
			k.own += s.held[m.identity()]
		}
	}
	return k
}

// kinWindow is the least window of CPU time: that of descendants is counted in ticks.
func (s *sampler) kinWindow() timeline.Nanos {
	if len(s.family.members) == 1 && s.counts["cpu.children"] == nil {
		return 0
	}
	return 3 * tick
}

// kinship is what one reading says of the descendants.
type kinship struct {
	at        timeline.Nanos
	cpu       timeline.Nanos // the dead included
	own       uint64
	processes int
}

// maxOwnReads is of how many descendants the own memory is read at a time, for 20 µs each: of more, it is
// read in turns. At first all are read: those that are read later would seem to have grown.
const maxOwnReads = 32

// ownOfChildren sums up what descendants hold that no other process has. Resident memory must not be added up:
// a forked worker's counts its parent's pages again.
func (s *sampler) ownOfChildren() (sum uint64) {
	living, reads := make(map[proctree.Identity]uint64, len(s.held)), 0
	most := maxOwnReads
	if s.held == nil {
		most = math.MaxInt
	}
	var later []*member
	read := func(m *member) {
		reads++
		if own, err := s.own.Estimate(m.pid, m.parent); err == nil {
			living[m.identity()] = own.High
		}
	}
	for m := range s.descendants() {
		if m.exiting {
			continue
		}
		if held, known := s.held[m.identity()]; known {
			living[m.identity()] = held
			later = append(later, m)
		} else if reads < most {
			read(m)
		}
	}
	for _, m := range later { // a map's order is another one each time
		if reads < maxOwnReads {
			read(m)
		}
	}
	for _, own := range living {
		sum += own
	}
	s.held = living
	return sum
}

// reportChildren reports what the descendants have used by a look.
func (s *sampler) reportChildren(k kinship) {
	s.countOver(k.at, s.kinWindow(), "cpu.children", s.cpuSource(), "cores", s.limits.Cores, k.cpu.Seconds())
	s.gauge(k.at, "own.children", "/proc/PID/status RssAnon, of forks at most the pages that each has touched", "B", s.limits.Memory, float64(k.own))
	s.gauge(k.at, "processes", "/proc/PID/task/TID/children", "", 0, float64(k.processes))
}

func (s *sampler) reportTarget(at timeline.Nanos) {
	m := s.family.target()
	s.reportMemory(at, m)
	s.gauge(at, "threads", "/proc/PID/stat", "", 0, float64(m.threads-s.threads.own))
	s.count(at, "faults.minor", "/proc/PID/stat", "1/s", 0, float64(m.minor))
	s.count(at, "faults.major", "/proc/PID/stat", "1/s", 0, float64(m.major))
	st, err := s.fs.status(s.c.pid)
	if err != nil {
		if !s.ending() {
			s.sink.Note(timeline.NoteUnavailable, "rss.peak, ctx.voluntary, ctx.involuntary", err.Error())
		}
		return
	}
	if st.peak > 0 {
		s.gauge(at, "rss.peak", "/proc/PID/status VmHWM, since the process began", "B", s.limits.Memory, float64(st.peak))
	}
	if st.hasSwitches {
		s.count(at, "ctx.voluntary", "/proc/PID/status, the main thread", "1/s", 0, float64(st.voluntary))
		s.count(at, "ctx.involuntary", "/proc/PID/status, the main thread", "1/s", 0, float64(st.involuntary))
	}
}

// reportMemory reports what the target holds, while it lives: of one that is ending, its end
// would seem to be what it had come to.
func (s *sampler) reportMemory(at timeline.Nanos, m *member) {
	if !m.exiting {
		s.gauge(at, "rss", "/proc/PID/stat", "B", s.limits.Memory, float64(m.rss))
	}
}

// count reports how fast value, which only grows, has grown since the last time.
func (s *sampler) count(at timeline.Nanos, id, source, unit string, limit, value float64) {
	s.countOver(at, 0, id, source, unit, limit, value)
}

// countOver is count for a source too coarse for windows shorter than least.
func (s *sampler) countOver(at, least timeline.Nanos, id, source, unit string, limit, value float64) {
	c := s.counts[id]
	if c == nil {
		c = &counter{writer: s.track(id, timeline.KindRate, source, unit, limit), at: at, value: value}
		s.counts[id] = c
		return
	}
	length := at - c.at
	if length <= 0 || length < least {
		return
	}
	from := c.at
	c.at = at
	if value < c.value { // it began anew: nothing is known of this window
		c.value = value
		return
	}
	rate := (value - c.value) / length.Seconds()
	if most := s.machine.total; unit == "cores" && rate > most {
		// A sum of counts that are read one after the other, some in ticks. What the machine
		// cannot have done in this window counts in the next.
		rate, value = most, c.value+most*length.Seconds()
	}
	c.writer.AddWindow(from, at, rate)
	c.value = value
}

func (s *sampler) gauge(at timeline.Nanos, id, source, unit string, limit, value float64) {
	w := s.gauges[id]
	if w == nil {
		w = s.track(id, timeline.KindGauge, source, unit, limit)
		s.gauges[id] = w
	}
	w.Add(at, value)
}

func (s *sampler) track(id, kind, source, unit string, limit float64) *timeline.TrackWriter {
	pid := s.c.pid
	if machineWide[id] {
		pid = 0
	}
	return s.sink.Track(timeline.TrackSpec{
		ID: id, Kind: kind, Unit: unit, Source: source, Resolution: s.interval, PID: pid, Device: -1, Limit: limit,
	})
}

// coarsen says of all tracks that they are read less often from now on.
func (s *sampler) coarsen(interval time.Duration) {
	s.interval = interval
	for _, c := range s.counts {
		c.writer.Coarsen(interval)
	}
	for _, w := range s.gauges {
		w.Coarsen(interval)
	}
	for _, m := range s.members.known {
		if m.rate != nil {
			m.rate.Coarsen(interval)
			m.memory.Coarsen(interval)
		}
	}
}

// end closes the target's tracks.
func (s *sampler) end(reason string) {
	for id, c := range s.counts {
		if !machineWide[id] {
			c.writer.End(reason)
		}
	}
	for id, w := range s.gauges {
		if !machineWide[id] {
			w.End(reason)
		}
	}
}

// cores is how many CPUs the machine has for us where no limit is known.
func cores() float64 { return float64(runtime.NumCPU()) }
