package pystack

import (
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// A change is put half-way between two ticks, which is right on average for ticks that are
// a little late. Of a tick that is more than lateIntervals intervals after the one before,
// and more than lateLeast, nobody knows what the threads did meanwhile, but for those that
// have not used the CPU since they were found waiting: for the others that time is a Gap.
const (
	lateIntervals = 3
	lateLeast     = int64(10 * time.Millisecond)
	lateBegin     = int64(50 * time.Millisecond) // for the first tick, for which all is made ready
)

// isLate reports whether too much time has passed since the tick before. A rest may last
// as long as it was meant to.
func (s *session) isLate(before int64) bool {
	expected := max(int64(s.clock.interval), s.rest.until-before)
	return !s.first && s.at-before > max(lateLeast, lateIntervals*expected)
}

// beginLate takes the time since the recording began for unknown, if the first tick is late.
func (s *session) beginLate() {
	begin := s.begun
	if s.opts.Ready {
		begin = -int64(s.sink.Since(0))
	}
	if !s.first || s.at-begin <= max(lateBegin, lateIntervals*int64(s.clock.interval)) {
		return
	}
	s.changed = s.at
	if s.late = s.opts.Ready; s.late {
		s.sink.BeginGap(s.p.pid, 0, timeline.GapLate) // which the first tick ends
	}
}

// leaveOut takes the threads for unknown from the tick before until the one in progress.
func (s *session) leaveOut(before int64) {
	if !s.unknownSince(before, func(t *thread) bool { return !s.hasWaited(t) }) {
		return
	}
	s.sink.BeginGap(s.p.pid, s.sink.Since(before), timeline.GapLate)
	s.sink.EndGap(s.p.pid, s.sink.Since(s.at))
	s.changed = s.at
}

// unknownSince takes some threads for unknown from a time on, until they are reported
// again, and reports whether there were any.
func (s *session) unknownSince(since int64, isUnknown func(*thread) bool) (some bool) {
	at := s.sink.Since(since)
	for _, t := range s.p.threads {
		if ts := &t.session; ts.known && !t.isElsewhere() && isUnknown(t) {
			s.sink.Set(ts.id, max(at, ts.reportedAt), timeline.RootNode, timeline.StateUnknown, false)
			ts.reported, some = false, true
		}
	}
	return some
}

// reportAll reports the threads that have not been reported since they were unknown.
func (s *session) reportAll() {
	for _, t := range s.p.threads {
		if !t.session.reported {
			s.report(t)
		}
	}
}

// waitsSince notes the CPU time of a thread that has just been found waiting.
func (s *session) waitsSince(t *thread) {
	ts := &t.session
	if ts.state.Runnable() || ts.state == timeline.StateUnknown {
		ts.waitsAt = -1
		return
	}
	ts.waitsAt, _ = s.p.kernel.scheduled(t.tid)
}

// hasWaited reports whether a thread has used no CPU since it was found waiting.
func (s *session) hasWaited(t *thread) bool {
	ts := &t.session
	if ts.waitsAt < 0 || !ts.reported || ts.now.state != ts.state {
		return false
	}
	ran, _ := s.p.kernel.scheduled(t.tid)
	return ran == ts.waitsAt
}
