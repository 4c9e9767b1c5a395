package gpuidle

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

// The host's states of the scripted loop, and the line of each.
const (
	loads = iota + 1
	launches
	waits
)

// scripted is a loop whose device's every microsecond is known: what it did, and what the host did meanwhile.
type scripted struct {
	rec     *timeline.Recording
	history *activity.History
	idle    map[activity.Activity]timeline.Nanos // the truth
}

// script plays steps of which each loads data, launches kernels with gaps, and waits for the device.
func script(steps int, complete func(duration timeline.Nanos) []timeline.Interval) scripted {
	const us = timeline.Nanos(time.Microsecond)
	r := rand.New(rand.NewPCG(1, 2))
	s := scripted{idle: make(map[activity.Activity]timeline.Nanos)}
	s.history = &activity.History{States: []activity.Activity{
		{Cause: activity.Unknown}, {Cause: activity.Load, Place: activity.Place{File: "cell", Line: loads}},
		{Cause: activity.Launch, Place: activity.Place{File: "cell", Line: launches}}, {Cause: activity.Sync, Place: activity.Place{File: "cell", Line: waits}},
	}}
	var work []timeline.DeviceActivity
	host, device := 0*us, 0*us // how far both are
	idle := func(from, to timeline.Nanos) {
		for t := from; t < to; t += us {
			state := s.history.States[s.history.Stretches[len(s.history.Stretches)-1].State]
			for _, st := range s.history.Stretches {
				if st.Start <= t && t < st.End {
					state = s.history.States[st.State]
				}
			}
			s.idle[state] += us
		}
	}
	do := func(state int, length timeline.Nanos) {
		s.history.Add(host, host+length, state)
		host += length
	}
	for range steps {
		do(loads, timeline.Nanos(200+r.IntN(800))*us)
		do(launches, 300*us)
		start := host - 250*us // the first kernel begins while the host still launches
		for k := range 5 {
			gap := max(start-device, 0)
			if k > 0 {
				gap = timeline.Nanos(r.IntN(60)) * us // some of them queued, some not
			}
			do(waits, max(device+gap+400*us-host, 0))
			if gap < timeline.Nanos(KernelWait) && len(work) > 0 {
				s.idle[activity.Activity{Cause: activity.Queued}] += gap
			} else {
				idle(device, device+gap)
			}
			length := timeline.Nanos(50+r.IntN(300)) * us
			work = append(work, timeline.DeviceActivity{Interval: timeline.Between(device+gap, device+gap+length), Stream: int64(k % 2), Name: "k"})
			device += gap + length
		}
		do(waits, max(device-host, 0))
	}
	end := max(host, device)
	idle(device, end)
	r.Shuffle(len(work), func(i, j int) { work[i], work[j] = work[j], work[i] }) // a source need not keep their order
	s.rec = &timeline.Recording{Duration: end, Work: []timeline.DeviceWork{{PID: 7, Source: "CUPTI", Complete: complete(end), Activities: work}}}
	return s
}

func whole(duration timeline.Nanos) []timeline.Interval {
	return []timeline.Interval{timeline.Between(0, duration)}
}

func (s scripted) divided(t *testing.T) *Device {
	t.Helper()
	devices := Devices(s.rec, 0)
	if len(devices) != 1 || !devices[0].Time.Used {
		t.Fatalf("%d devices, want one that was used", len(devices))
	}
	devices[0].Divide(s.history, false)
	return devices[0]
}

// Exact idle time is the truth, as a whole and for each cause and line, to a microsecond.
func TestExactIdleIsTheTruth(t *testing.T) {
	s := script(20, whole)
	d := s.divided(t)
	var want timeline.Nanos
	for _, n := range s.idle {
		want += n
	}
	near := func(a, b timeline.Nanos) bool { return max(a-b, b-a) < timeline.Nanos(time.Microsecond) }
	if !near(d.Idle.Idle, want) || !near(d.Time.Idle, want) || d.Time.Busy+d.Time.Idle != s.rec.Duration {
		t.Errorf("idle for %v and %v, busy for %v of %v; it was idle for %v", d.Idle.Idle, d.Time.Idle, d.Time.Busy, s.rec.Duration, want)
	}
	got := make(map[activity.Activity]timeline.Nanos)
	for _, c := range d.Idle.Causes {
		got[activity.Activity{Cause: c.Cause, Place: c.Place}] += c.Nanos
		if c.Low != c.Nanos || c.High != c.Nanos {
			t.Errorf("%s: %v within %v and %v, though it is exact", c.Cause, c.Nanos, c.Low, c.High)
		}
	}
	for what, n := range s.idle {
		if n > want/100 && !near(got[what], n) {
			t.Errorf("%s at line %d: %v, want %v", what.Cause, what.Place.Line, got[what], n)
		}
	}
	if s.idle[activity.Activity{Cause: activity.Queued}] < want/100 {
		t.Error("the script has too few gaps between queued kernels to try them")
	}
	c := d.Idle.Certainty
	if c.Method != ByExact || c.Exact != s.rec.Duration || c.Recorded != s.rec.Duration || c.KernelWait != KernelWait {
		t.Errorf("certainty %+v", c)
	}
}

// With another limit, other gaps are between queued kernels.
func TestTheLimitOfQueuedGaps(t *testing.T) {
	s := script(20, whole)
	queuedBelow := func(limit time.Duration) (sum timeline.Nanos) {
		d := Devices(s.rec, limit)[0]
		d.Divide(s.history, false)
		for _, c := range d.Idle.Causes {
			if c.Cause == activity.Queued {
				sum += c.Nanos
			}
		}
		return sum
	}
	few, some, all := queuedBelow(time.Microsecond), queuedBelow(KernelWait), queuedBelow(60*time.Microsecond)
	if few != 0 || some == 0 || all <= some {
		t.Errorf("%v, %v and %v between queued kernels", few, some, all)
	}
}

// Where work was delivered for a part only, the rest is known as well as it was sampled, and is not called exact.
func TestExactInAPartOnly(t *testing.T) {
	s := script(40, func(duration timeline.Nanos) []timeline.Interval {
		return []timeline.Interval{timeline.Between(duration/4, duration/2)}
	})
	track := timeline.Track{TrackSpec: timeline.TrackSpec{ID: "gpu0.util", Kind: timeline.KindRate}}
	for at := timeline.Nanos(0); at < s.rec.Duration; at += 5 * ms {
		track.Points = append(track.Points, timeline.Point{From: at, At: min(at+5*ms, s.rec.Duration), Value: 50})
	}
	s.rec.Tracks = []timeline.Track{track}
	d := s.divided(t)
	c := d.Idle.Certainty
	if quarter := s.rec.Duration/2 - s.rec.Duration/4; c.Exact != quarter || c.Recorded != s.rec.Duration || c.Method == ByExact {
		t.Errorf("certainty %+v of %v", c, s.rec.Duration)
	}
	var truth timeline.Nanos // in the stretch
	for _, w := range d.windows {
		if w.grain != sampled {
			truth += w.idle()
		}
	}
	if want := truth + (s.rec.Duration-c.Exact)/2; max(want-d.Time.Idle, d.Time.Idle-want) > timeline.Nanos(len(d.windows)) {
		t.Errorf("idle for %v, want %v", d.Time.Idle, want)
	}
}
