package live

import (
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Alarm is something that the user of a recording in progress wants to know without looking for it.
type Alarm struct {
	ID     AlarmID `json:"id"`
	Value  float64 `json:"value"`   // of the last two windows, their mean; for MemoryFills bytes per second
	Usual  float64 `json:"usual"`   // the median of the windows before
	LeftNS int64   `json:"left_ns"` // of MemoryFills: until the limit is reached at this pace
	Who    string  `json:"who"`     // of WorkerDied: what the process is called …
	Signal int     `json:"signal"`  // … and which signal ended it
}

// AlarmID is the kind of an alarm.
type AlarmID string

// The alarms.
const (
	PaceFalls      AlarmID = "pace-falls"       // steps follow each other more slowly, beyond their noise
	GPUIdles       AlarmID = "gpu-idles"        // the devices in use idle more than they did, beyond noise
	MemoryFills    AlarmID = "memory-fills"     // resident memory grows steadily towards its limit
	GPUMemoryFills AlarmID = "gpu-memory-fills" // a device's does
	WorkerDied     AlarmID = "worker-died"      // a signal ended a worker
)

// window is what was seen in some ten seconds; NaN: not known.
type window struct {
	length            float64 // seconds
	pace, idle        float64 // steps per second, share of the devices in use
	memory, gpuMemory Figure  // at its end; a limit of 0: none is known
}

const (
	windowLength = 10 * second
	keptWindows  = 360 // an hour
	// usualWindows must be known before the last two ones are compared with them.
	usualWindows = 6
	// alarmNoise is by how many deviations the last windows must differ from the usual …
	alarmNoise = 4
	// … and by what part of it at least: of a pace, and of a share of idle time the difference of the shares.
	leastFall = 0.2
	// stepsOff is by how many steps a window may be wrong: one at each end.
	stepsOff = 2
	// steadyWindows are those in each of which memory must have grown, by steadyPart of the mean growth at least.
	steadyWindows = 6
	steadyPart    = 0.25
	// soonFull is from when on memory that grows is an alarm.
	soonFull = 30 * 60.0
)

// alarms are due by the windows so far, the newest last.
func alarms(windows []window) (list []Alarm) {
	if now, usual, noise := lastAndUsual(windows, func(w window) float64 { return w.pace }); usual > 0 {
		if usual-now > max(alarmNoise*noise, leastFall*usual, stepsOff/windows[len(windows)-1].length) {
			list = append(list, Alarm{ID: PaceFalls, Value: now, Usual: usual})
		}
	}
	if now, usual, noise := lastAndUsual(windows, func(w window) float64 { return 1 - w.idle }); usual > 0 && usual-now > max(alarmNoise*noise, leastFall) {
		list = append(list, Alarm{ID: GPUIdles, Value: 1 - now, Usual: 1 - usual})
	}
	for id, of := range map[AlarmID]func(window) Figure{
		MemoryFills: func(w window) Figure { return w.memory }, GPUMemoryFills: func(w window) Figure { return w.gpuMemory },
	} {
		if slope, left := growth(windows, of); left < soonFull {
			list = append(list, Alarm{ID: id, Value: slope, LeftNS: int64(left * 1e9)})
		}
	}
	slices.SortStableFunc(list, func(a, b Alarm) int { return slices.Index(alarmOrder, a.ID) - slices.Index(alarmOrder, b.ID) })
	return list
}

// alarmOrder is that in which they are shown.
var alarmOrder = []AlarmID{WorkerDied, MemoryFills, GPUMemoryFills, PaceFalls, GPUIdles}

// lastAndUsual compares the higher one of the last two windows' figures with the median of those before, and gives the
// deviation of these, by their median deviation, which outliers do not move. usual is NaN where too little is known.
func lastAndUsual(windows []window, of func(window) float64) (now, usual, noise float64) {
	if len(windows) < usualWindows+2 {
		return math.NaN(), math.NaN(), math.NaN()
	}
	last := windows[len(windows)-2:]
	var before []float64
	for _, w := range windows[:len(windows)-2] {
		if v := of(w); !math.IsNaN(v) {
			before = append(before, v)
		}
	}
	if len(before) < usualWindows {
		return math.NaN(), math.NaN(), math.NaN()
	}
	usual = median(before)
	for i, v := range before {
		before[i] = math.Abs(v - usual)
	}
	const normal = 1.4826 // of a normal distribution: standard deviations in a median deviation
	return max(of(last[0]), of(last[1])), usual, normal * median(before)
}

func median(values []float64) float64 {
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

// growth is by how much a figure grows in a second, and in how many it will have reached its limit; infinite where it does
// not grow in each of the last windows, or no limit is known.
func growth(windows []window, of func(window) Figure) (slope, left float64) {
	if len(windows) <= steadyWindows {
		return 0, math.Inf(1)
	}
	last := windows[len(windows)-steadyWindows-1:]
	first, now := of(last[0]), of(last[steadyWindows])
	seconds := 0.0
	for _, w := range last[1:] {
		seconds += w.length
	}
	mean := (now.Value - first.Value) / steadyWindows
	for i := 1; i < len(last); i++ {
		if !(of(last[i]).Value-of(last[i-1]).Value >= steadyPart*mean) {
			return 0, math.Inf(1)
		}
	}
	if slope = (now.Value - first.Value) / seconds; !(slope > 0) || now.Limit <= 0 {
		return slope, math.Inf(1)
	}
	return slope, max(now.Limit-now.Value, 0) / slope
}

// watch gathers looks into windows.
type watch struct {
	windows []window
	began   int64 // CLOCK_MONOTONIC at which the open window began; 0: none is open
	last    int64
	steps   int64 // at its begin
	idle    float64
	idleNS  float64 // for which idle is known
	died    []Alarm
	dead    map[int]bool // by pid
}

// look adds a look at an instant of CLOCK_MONOTONIC and returns which alarms are due.
func (w *watch) look(at int64, now *Now, marked Progress) []Alarm {
	if w.began == 0 {
		w.began, w.last, w.steps = at, at, marked.Steps
	}
	if busy := now.Busy(); busy != nil {
		since := float64(at - w.last)
		w.idle, w.idleNS = w.idle+(1-*busy)*since, w.idleNS+since
	}
	w.last = at
	if at-w.began >= int64(windowLength) {
		w.windows = append(w.windows, w.close(at, now, marked))
		w.windows = w.windows[max(len(w.windows)-keptWindows, 0):]
		w.began, w.steps, w.idle, w.idleNS = at, marked.Steps, 0, 0
	}
	return slices.Concat(w.died, alarms(w.windows))
}

func (w *watch) close(at int64, now *Now, marked Progress) window {
	closed := window{length: float64(at-w.began) / 1e9, pace: math.NaN(), idle: math.NaN()}
	if marked.Steps > 0 && w.steps > 0 { // before the first one there is all that is set up
		closed.pace = float64(marked.Steps-w.steps) / closed.length
	}
	if w.idleNS > 0 {
		closed.idle = w.idle / w.idleNS
	}
	if now.Memory != nil {
		closed.memory = *now.Memory
	}
	for _, d := range now.Devices { // the fullest one
		if m := d.Memory; d.Used && m != nil && m.Limit > 0 && m.Value*closed.gpuMemory.Limit >= closed.gpuMemory.Value*m.Limit {
			closed.gpuMemory = *m
		}
	}
	return closed
}

// deaths notes the workers that a signal ended, each once.
func (w *watch) deaths(rec *timeline.Recording, killed func(*timeline.Process) bool, name func(timeline.Process) string) {
	for i := range rec.Processes {
		if p := &rec.Processes[i]; killed(p) && !w.dead[p.PID] {
			if w.dead == nil {
				w.dead = make(map[int]bool)
			}
			w.dead[p.PID] = true
			if len(w.died) < mostDied {
				w.died = append(w.died, Alarm{ID: WorkerDied, Who: name(*p), Signal: p.Signal})
			}
		}
	}
}

// mostDied bounds the alarms about workers.
const mostDied = 3
