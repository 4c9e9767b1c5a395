package gpuidle

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

// A driver whose figures cost too much is asked less and less often, so that windows grow from 0.1 to 0.8 s; and one
// line computes both beside the device's work and while the device is idle. What was the case is within the bounds.
// grown are the ends of the windows of such a recording on an H100, in microseconds.
var grown = []timeline.Nanos{
	805, 110938, 213471, 315800, 418365, 520784, 622985, 725762, 828835, 931374, 1034465, 1136875, 1239241, 1341359, 1444459, 1547216, 1649651, 1752615, 1855537, 1957525, 2060204, 2264782, 2469356, 2674441, 2879370, 3083491, 3288469, 3493109, 3697813, 3902533, 4106849, 4515394, 4924030, 5332701, 5741511, 6150602, 6967102, 7784007, 8600599, 9417515, 10234506, 11000498,
}

func TestWindowsThatGrowLeaveTheTruthWithinTheBounds(t *testing.T) {
	const ms = timeline.Nanos(time.Millisecond)
	outside := 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		h := &activity.History{States: []activity.Activity{{Cause: activity.Unknown}, {Cause: activity.Sync}, {Cause: activity.Sleep}, {Cause: activity.Python}}}
		at := 108 * ms
		h.Add(0, at, 0)
		do := func(state int, length timeline.Nanos) {
			length += timeline.Nanos(r.Int64N(int64(length / 1000)))
			h.Add(at, at+length, state)
			at += length
		}
		var busy []timeline.Interval
		truth := map[activity.Cause]timeline.Nanos{}
		for range 10 {
			began := at
			do(3, 200*ms)
			do(1, 200*ms)
			busy = append(busy, timeline.Between(began, at))
			began = at
			do(2, 400*ms)
			truth[activity.Sleep] += at - began
			began = at
			do(3, 300*ms)
			truth[activity.Python] += at - began
		}
		d := &Device{sampling: &timeline.Sampling{Interval: time.Millisecond}}
		for i, to := range grown[1:] {
			from, to := grown[i]*timeline.Nanos(time.Microsecond), to*timeline.Nanos(time.Microsecond)
			worked := timeline.Nanos(0)
			for _, b := range timeline.Clip(busy, timeline.Between(from, to)) {
				worked += b.End - b.Start
			}
			d.windows = append(d.windows, window{from: from, at: to, busy: float64(worked) / float64(to-from)})
		}
		d.Time.Used = true
		d.Divide(h, false)
		for _, c := range d.Idle.Causes {
			if want, ok := truth[c.Cause]; ok && (want < c.Low-10*ms || want > c.High+10*ms) {
				outside++
				t.Logf("seed %d: %s is %v to %v (R² %.2f, held out %.2f), it was %v", seed, c.Cause, c.Low.Duration(), c.High.Duration(), d.Idle.Certainty.R2, d.Idle.Certainty.HeldOut, want.Duration())
			}
		}
	}
	if outside > 0 {
		t.Errorf("%d of 120 truths lie outside", outside)
	}
}
