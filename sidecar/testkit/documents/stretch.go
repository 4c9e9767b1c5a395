package documents

import (
	"math/rand/v2"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// AnsweredStretch is a part of a recording, as somebody selects it, and what it has, in microseconds.
type AnsweredStretch struct {
	From, To  float64
	Threads   [][]float64 // by state
	Functions []float64   // own time, by index
	Activity  float64     // mean of the device's activity where it is known, in percent; -1 where it is nowhere
	Idle      float64
	Causes    []float64 // of Idle, by index: at least so much
}

// addDevice gives the document a device that is in use, with activity that is unknown now and then, the stretches in
// which it was idle throughout, and causes that have some of them as evidence.
func addDevice(d *Document, rnd *rand.Rand) {
	const windows = 40
	step := max(d.DurationNS/1000/windows, 1)
	activity := Track{ID: "gpu.util", Kind: "rate", Unit: "%", Device: new(int)}
	idle := &Idle{Devices: []DeviceIdle{{Intervals: [][2]int64{}}}}
	for i := range 1 + rnd.IntN(3) {
		cause := Cause{Kind: "unknown", Text: itoa(i), Evidence: [][2]int64{}}
		if i > 0 {
			cause.File, cause.Line = &i, &i
		}
		idle.Causes = append(idle.Causes, cause)
	}
	for i := range int64(windows) {
		at, value := (i+1)*step, float64(rnd.IntN(101))
		activity.At = append(activity.At, at)
		switch rnd.IntN(4) {
		case 0:
			activity.Value = append(activity.Value, nil)
		case 1:
			value = 0
			window := [2]int64{i * step * 1000, at * 1000}
			idle.Devices[0].Intervals = append(idle.Devices[0].Intervals, window)
			cause := &idle.Causes[rnd.IntN(len(idle.Causes))]
			cause.Evidence = append(cause.Evidence, window)
			fallthrough
		default:
			activity.Value = append(activity.Value, &value)
		}
	}
	d.Devices, d.Tracks, d.Idle = []Device{{Name: "device", Used: true}}, []Track{activity}, idle
}

// stretch sums a part of the document, by the report's rules.
func (d *Document) stretch(from, to float64) AnsweredStretch {
	a := AnsweredStretch{From: from, To: to, Functions: make([]float64, len(d.Functions))}
	for t, history := range d.histories() {
		thread, states := d.Threads[t], make([]float64, report.NumStates)
		counts := thread.RunsCell || thread.Main && thread.Process == d.Targets[0].Process
		for _, s := range history {
			us := max(min(float64(s.end), to)-max(float64(s.start), from), 0)
			states[s.state] += us
			if s.node > 0 && !thread.Internal && (counts || !report.State(s.state).Idle()) {
				a.Functions[d.Frames.Function[d.Nodes.Frame[s.node]]] += us
			}
		}
		a.Threads = append(a.Threads, states)
	}
	a.Activity, a.Idle = d.Tracks[0].over(from, to)
	left := a.Idle
	a.Causes = make([]float64, len(d.Idle.Causes))
	order := make([]int, len(d.Idle.Causes))
	for i, c := range d.Idle.Causes {
		order[i] = i
		for _, e := range c.Evidence {
			a.Causes[i] += max(min(float64(e[1])/1000, to)-max(float64(e[0])/1000, from), 0)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return int(a.Causes[j]*1000 - a.Causes[i]*1000) })
	for _, i := range order {
		a.Causes[i] = min(a.Causes[i], left)
		left -= a.Causes[i]
	}
	return a
}

// over is a rate's mean in a stretch, -1 where it is not known, and for how long the device was idle where it is.
func (t Track) over(from, to float64) (mean, idle float64) {
	var known, busy, last float64
	for i, at := range t.At {
		if us := min(float64(at), to) - max(last, from); us > 0 && t.Value[i] != nil {
			known += us
			busy += us * *t.Value[i] / 100
		}
		last = float64(at)
	}
	if known <= (to-from)/100 {
		return -1, known - busy
	}
	return 100 * busy / known, known - busy
}
