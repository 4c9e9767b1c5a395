package pystack

import (
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// gilTracks counts what becomes the GIL's tracks.
type gilTracks struct {
	switches int64 // hand-overs since the last point
	waited   int64 // sum over ticks of threads waiting
	ticks    int64
	waiting  int // threads waiting now
	at       int64
	rate     *timeline.TrackWriter
	wait     *timeline.TrackWriter
}

// add writes one point of each track. They begin with the first hand-over: a
// program of one thread has none.
func (c *gilTracks) add(s *session, at int64) {
	elapsed := time.Duration(at - c.at)
	if elapsed <= 0 || c.ticks == 0 || s.descendant {
		return
	}
	if c.rate == nil && (c.switches > 0 || c.waited > 0) {
		c.rate = s.sink.Track(timeline.TrackSpec{ID: "gil.switches", Kind: timeline.KindRate, Unit: "1/s",
			Source: "the GIL's switch counter", Resolution: time.Duration(upkeepEvery), PID: s.p.pid, Device: -1})
		c.wait = s.sink.Track(timeline.TrackSpec{ID: "gil.wait", Kind: timeline.KindRate, Unit: "threads",
			Source: "futexes of waiting threads", Resolution: time.Duration(upkeepEvery), PID: s.p.pid, Device: -1})
	}
	if c.rate != nil {
		from, to := s.sink.Since(c.at), s.sink.Since(at)
		c.rate.AddWindow(from, to, float64(c.switches)/elapsed.Seconds())
		c.wait.AddWindow(from, to, float64(c.waited)/float64(c.ticks))
	}
	c.switches, c.waited, c.ticks, c.at = 0, 0, 0, at
}
