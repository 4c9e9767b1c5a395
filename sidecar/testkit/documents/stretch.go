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
	Levels    []float64   // of each track: a rate's mean where it is known, a gauge's largest value; -1 where it is nowhere
	Idle      float64     // of the devices in use together
	Causes    []float64   // of Idle, by index: at least so much
}

// addDevices gives the document one to three devices, the first of them in use, with activity that is unknown now and
// then, the stretches in which each was idle throughout, causes that have some of them as evidence, and a gauge.
func addDevices(d *Document, rnd *rand.Rand) {
	const windows = 40
	step := max(d.DurationNS/1000/windows, 1)
	idle := &Idle{}
	for i := range 1 + rnd.IntN(3) {
		cause := Cause{Kind: "unknown", Text: itoa(i), Evidence: [][2]int64{}}
		if i > 0 {
			cause.File, cause.Line = &i, &i
		}
		idle.Causes = append(idle.Causes, cause)
	}
	d.Devices, d.Tracks = nil, nil
	for i := range 1 + rnd.IntN(3) {
		d.Devices = append(d.Devices, Device{Number: i, Name: "device", Used: i == 0 || rnd.IntN(2) == 0})
		d.Tracks = append(d.Tracks, Track{ID: "gpu.util", Kind: "rate", Unit: "%", Device: &i})
		idle.Devices = append(idle.Devices, DeviceIdle{Device: i, Intervals: [][2]int64{}})
	}
	memory := Track{ID: "rss", Kind: "gauge", Unit: "B"}
	for i := range int64(windows) {
		at := (i + 1) * step
		window := [2]int64{i * step * 1000, at * 1000}
		for device := range d.Devices {
			value := float64(rnd.IntN(101))
			switch rnd.IntN(4) {
			case 0:
				d.Tracks[device].add(at, nil)
				continue
			case 1:
				value = 0
				idle.Devices[device].Intervals = append(idle.Devices[device].Intervals, window)
				if cause := &idle.Causes[rnd.IntN(len(idle.Causes))]; d.Devices[device].Used && !slices.Contains(cause.Evidence, window) {
					cause.Evidence = append(cause.Evidence, window)
				}
			}
			d.Tracks[device].add(at, &value)
		}
		if value := float64(rnd.IntN(1e6)); rnd.IntN(5) > 0 {
			memory.add(at, &value)
		} else {
			memory.add(at, nil)
		}
	}
	d.Tracks = append(d.Tracks, memory)
	d.Idle = idle
}

func (t *Track) add(at int64, value *float64) {
	t.At, t.Value = append(t.At, at), append(t.Value, value)
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
	for _, t := range d.Tracks {
		if t.Kind == "gauge" {
			a.Levels = append(a.Levels, t.largest(from, to))
			continue
		}
		mean, idle := t.over(from, to)
		a.Levels = append(a.Levels, mean)
		if d.Devices[*t.Device].Used {
			a.Idle += idle
		}
	}
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

// largest is a gauge's largest value in a stretch, else the one that is read first after it began; -1 where neither is known.
func (t Track) largest(from, to float64) float64 {
	most, first := -1.0, -1.0
	for i := len(t.At) - 1; i >= 0 && float64(t.At[i]) > from; i-- {
		first = -1
		if t.Value[i] == nil {
			continue
		}
		first = *t.Value[i]
		if float64(t.At[i]) <= to {
			most = max(most, first)
		}
	}
	if most < 0 {
		return first
	}
	return most
}
