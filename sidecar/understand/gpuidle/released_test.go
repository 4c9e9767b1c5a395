package gpuidle

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

// A loop waits for its device, sleeps and computes, in a few milliseconds each, and is read each 1.4 ms: what is
// charged to the two lines that keep the device idle is what they took, though a call that waits for the device may be
// found to end late.
func TestAHostGoesOnWhenItsDeviceHasFinished(t *testing.T) {
	const (
		ms     = timeline.Nanos(time.Millisecond)
		tick   = 1400 * timeline.Nanos(time.Microsecond)
		rounds = 2000
	)
	states := []activity.Activity{{Cause: activity.Unknown}, {Cause: activity.Sync}, {Cause: activity.Sleep}, {Cause: activity.Python}}
	r := rand.New(rand.NewPCG(3, 4))
	truth := &activity.History{States: states}
	var work []timeline.DeviceActivity
	at := timeline.Nanos(0)
	do := func(state int, length timeline.Nanos) {
		truth.Add(at, at+length, state)
		at += length
	}
	for range rounds {
		busy := 2*ms + timeline.Nanos(r.Int64N(int64(ms)))
		work = append(work, timeline.DeviceActivity{Interval: timeline.Between(at, at+busy), Name: "k"})
		do(1, busy+20_000) // the host needs some time to see it
		do(2, 4*ms+timeline.Nanos(r.Int64N(int64(ms))))
		do(3, 3*ms+timeline.Nanos(r.Int64N(int64(ms))))
	}
	rec := &timeline.Recording{
		Duration: at, Sampling: timeline.Sampling{Interval: time.Duration(tick)},
		Work: []timeline.DeviceWork{{PID: 7, Source: "CUPTI", Complete: whole(at), Activities: work}},
	}
	devices := Devices(rec, 0)
	devices[0].Divide(sampledBy(truth, tick, r), false)
	charged := map[activity.Cause]timeline.Nanos{}
	for _, c := range devices[0].Idle.Causes {
		charged[c.Cause] += c.Nanos
	}
	times := truth.Times()
	for state, cause := range map[int]activity.Cause{2: activity.Sleep, 3: activity.Python} {
		off := float64(charged[cause])/float64(times[state]) - 1
		t.Logf("%s: %+.2f %%", cause, 100*off)
		if math.Abs(off) > 0.02 {
			t.Errorf("%s has %v, it took %v", cause, charged[cause], times[state])
		}
	}
}

// sampledBy is what a sampler finds that reads a history at ticks, which are up to a tenth late: a change is put half-way.
func sampledBy(h *activity.History, tick timeline.Nanos, r *rand.Rand) *activity.History {
	out, st := &activity.History{States: h.States}, 0
	end := h.Stretches[len(h.Stretches)-1].End
	last, state, from := timeline.Nanos(0), h.Stretches[0].State, timeline.Nanos(0)
	for due := tick; due < end; due += tick {
		at := due + timeline.Nanos(r.Int64N(int64(tick/10)))
		for h.Stretches[st].End <= at && st+1 < len(h.Stretches) {
			st++
		}
		if found := h.Stretches[st].State; found != state {
			middle := last + (at-last)/2
			out.Add(from, middle, state)
			state, from = found, middle
		}
		last = at
	}
	out.Add(from, end, state)
	return out
}
