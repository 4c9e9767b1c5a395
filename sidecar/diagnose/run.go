package diagnose

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// Run diagnoses a recording.
func Run(rec *timeline.Recording) Diagnosis {
	s := newStacks(rec)
	devices := readDevices(rec)
	d := Diagnosis{}
	for _, dev := range devices {
		d.GPUs = append(d.GPUs, dev.time)
	}
	used := slices.DeleteFunc(slices.Clone(devices), func(dev *device) bool { return !dev.time.Used || len(dev.windows) == 0 })
	for _, dev := range used {
		dev.divide(s)
	}
	d.Idle = idleOf(devices, used)
	main := newHost(s, responsible(rec, -1), 0)
	d.Steps = steps(rec, used, main)
	d.Regions = regions(rec)
	d.Findings = findings(&evidence{rec: rec, stacks: s, diagnosis: &d, devices: devices, main: main})
	return d
}

// device is one GPU while it is diagnosed.
type device struct {
	index   int
	windows []window // in order, not overlapping
	time    GPUTime
	shares  *attribution // nil unless used
	idle    DeviceIdle
}

// readDevices collects what is known of each GPU's activity, by index.
func readDevices(rec *timeline.Recording) []*device {
	byIndex := make(map[int]*device)
	get := func(index int) *device {
		d := byIndex[index]
		if d == nil {
			d = &device{index: index}
			byIndex[index] = d
		}
		return d
	}
	for _, g := range rec.GPUs {
		get(g.Index)
	}
	for i := range rec.Tracks {
		if t := &rec.Tracks[i]; t.ID == fmt.Sprintf("gpu%d.util", t.Device) {
			get(t.Device).windows = readWindows(t, rec.Duration)
		}
	}
	list := make([]*device, 0, len(byIndex))
	for _, d := range byIndex {
		d.measure(rec)
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b *device) int { return cmp.Compare(a.index, b.index) })
	return list
}

func readWindows(t *timeline.Track, duration timeline.Nanos) []window {
	var list []window
	last := timeline.Nanos(0)
	for _, p := range t.Points {
		from, at := max(p.From, last), min(p.At, duration)
		if math.IsNaN(p.Value) || from >= at {
			continue
		}
		list = append(list, window{from, at, min(max(p.Value/100, 0), 1)})
		last = at
	}
	return list
}

const (
	activeLevel = 0.03 // a window with more activity holds GPU work
	gapLevel    = 0.10 // a window with less counts as a gap
	maxGaps     = 256
)

// measure sums up busy, idle and unknown time, and decides whether the device
// was used by the program.
func (d *device) measure(rec *timeline.Recording) {
	t := GPUTime{Device: d.index, Unknown: rec.Duration}
	var gaps []Interval
	active := false
	for _, w := range d.windows {
		length := w.at - w.from
		busy := timeline.Nanos(math.Round(w.busy * float64(length)))
		t.Busy += busy
		t.Idle += length - busy
		t.Unknown -= length
		active = active || w.busy > activeLevel
		if w.busy <= gapLevel {
			gaps = append(gaps, Interval{w.from, w.at})
		}
	}
	gaps = merged(gaps)
	t.Gaps, t.GapCount = keepLongest(gaps, maxGaps), len(gaps)
	t.Used = active && !foreign(rec, d.index)
	d.time = t
}

// foreign tells a device on which only other programs' processes were seen.
func foreign(rec *timeline.Recording, index int) bool {
	for _, g := range rec.GPUs {
		if g.Index == index {
			return g.OtherProcesses > 0 && len(g.PIDs) == 0 && othersMatched(rec)
		}
	}
	return false
}

// othersMatched is true where the driver's process numbers could be matched at
// all: on some device a process of the target was seen.
func othersMatched(rec *timeline.Recording) bool {
	for _, g := range rec.GPUs {
		if len(g.PIDs) > 0 {
			return true
		}
	}
	return false
}

// firstWork is when the device first had something to do; 0 if from the start.
func (d *device) firstWork() timeline.Nanos {
	for _, w := range d.windows {
		if w.busy > activeLevel {
			return w.from
		}
	}
	return 0
}

// What the certainty rests on. docs/gpu-idle.md shows how the errors grow below.
const (
	goodFit         = 0.90 // R² from which a regression is taken at its word
	goodHeldOut     = 0.80 // and on windows it did not see
	usefulHeldOut   = 0.20 // below, it is worse than spreading evenly
	tightBounds     = 0.05 // of the idle time: the windows alone tell the causes apart
	minRepeats      = 8
	boundingHeldOut = 0.70  // from which a model may tighten the bounds
	minPerRate      = 8     // windows for every rate the regression finds
	maxSpread       = 0.015 // standard error of a state's idle time, of all idle time
)

// divide attributes the device's idle time.
func (d *device) divide(s *stacks) {
	h := newHost(s, responsible(s.rec, d.index), d.firstWork())
	model := chooseModel(h, d.windows)
	d.shares = attribute(h, d.windows, model)
	c := Certainty{
		Window: typicalWindow(d.windows), Windows: len(d.windows), Repeats: d.shares.repeats(),
		R2: math.NaN(), HeldOut: math.NaN(),
	}
	if model != nil {
		c.R2, c.HeldOut, c.Lag = model.r2, model.heldOut, time.Duration(model.lag)
	}
	switch {
	case d.shares.ambiguity() <= tightBounds:
		c.Method = ByWindows
	case model != nil && c.Repeats >= minRepeats && model.trusted(d.shares.idleShare()):
		c.Method = ByRepetition
	default:
		c.Method = ByAverage
	}
	c.Text = c.sentence()
	d.idle = DeviceIdle{Device: d.index, Idle: d.shares.idle, Certainty: c, Causes: d.shares.causes(s)}
	if c.Method == ByAverage && model != nil && model.heldOut >= boundingHeldOut && model.enough() {
		tighten(d.idle.Causes, timeline.Nanos(model.halfWidth(d.shares.idleShare())*float64(d.idle.Idle)))
	}
}

// halfWidth is how far a share of the idle time may be off under a model that is
// not good enough to be taken at its word: four standard errors, and half of the
// variance it does not foretell. The second part covers what a wrong model does,
// and was found by simulation (TestWhatDoesNotFitIsAnEstimate).
func (m *activityModel) halfWidth(idleShare float64) float64 {
	return 4*m.spread/max(idleShare, 1e-3) + (1-m.heldOut)/2
}

// tighten brings bounds nearer where a model allows.
func tighten(causes []CauseIdle, width timeline.Nanos) {
	for i := range causes {
		c := &causes[i]
		c.Low, c.High = max(c.Low, c.Nanos-width), min(c.High, c.Nanos+width)
	}
}

// enough tells whether there are windows enough for what was found from them.
func (m *activityModel) enough() bool { return m.rows >= minPerRate*len(m.rate) }

// trusted tells whether the regression may be taken at its word, where the
// device was idle for this share of the time.
func (m *activityModel) trusted(idleShare float64) bool {
	return m.r2 >= goodFit && m.heldOut >= goodHeldOut && m.enough() &&
		m.spread <= maxSpread*idleShare
}

// idleShare is the share of the measured time that was idle.
func (a *attribution) idleShare() float64 {
	measured := timeline.Nanos(0)
	for _, seg := range a.segments {
		measured += seg.end - seg.start
	}
	return float64(a.idle) / math.Max(float64(measured), 1)
}

// sentence is the certainty as a table's heading shows it.
func (c Certainty) sentence() string {
	window := c.Window.Round(time.Millisecond)
	switch c.Method {
	case ByWindows:
		return fmt.Sprintf("resolved by the %v windows: the causes last longer", window)
	case ByRepetition:
		return fmt.Sprintf("resolved below the %v window by %d repeated steps, R² %.2f", window, c.Repeats, c.R2)
	case ByAbsence:
		return "no GPU work was seen in this recording, so nothing is blamed for the idle time"
	}
	if math.IsNaN(c.R2) {
		return fmt.Sprintf("averaged over %v: shares are estimates, bounds in brackets", window)
	}
	return fmt.Sprintf("shares within the %v windows are estimates (R² %.2f), bounds in brackets", window, c.R2)
}

func typicalWindow(windows []window) time.Duration {
	lengths := make([]timeline.Nanos, len(windows))
	for i, w := range windows {
		lengths[i] = w.at - w.from
	}
	slices.Sort(lengths)
	return time.Duration(lengths[len(lengths)/2])
}

// ambiguity is how much of the idle time the windows leave open to which state
// it belongs: half the bounds' widths, as a share.
func (a *attribution) ambiguity() float64 {
	if a.idle == 0 {
		return 0
	}
	width := timeline.Nanos(0)
	for i := range a.low {
		width += a.high[i] - a.low[i]
	}
	return float64(width) / 2 / float64(a.idle)
}

// repeats counts how often the state with most idle time came back after
// another; a change for less than 5 ms does not count.
func (a *attribution) repeats() int {
	sums := make([]timeline.Nanos, len(a.host.states))
	for _, seg := range a.segments {
		sums[seg.state] += seg.idle
	}
	top := 0
	for i := range sums {
		if sums[i] > sums[top] {
			top = i
		}
	}
	count, away := 0, timeline.Nanos(math.MinInt64)
	for _, st := range a.host.stretches {
		if st.state != top {
			continue
		}
		if count == 0 || st.start-away >= timeline.Nanos(5*time.Millisecond) {
			count++
		}
		away = st.end
	}
	return count
}

// idleOf joins the devices: those that were used, or all of them where none was.
func idleOf(devices, used []*device) *Idle {
	known := slices.DeleteFunc(slices.Clone(devices), func(d *device) bool { return len(d.windows) == 0 })
	if len(known) == 0 {
		return nil
	}
	idle := &Idle{}
	if len(used) == 0 {
		c := Certainty{Method: ByAbsence, R2: math.NaN(), HeldOut: math.NaN()}
		c.Text = c.sentence()
		for _, d := range known {
			d.idle = DeviceIdle{Device: d.index, Idle: d.time.Idle, Certainty: c}
			if d.time.Idle > 0 {
				d.idle.Causes = []CauseIdle{{Cause: NoWork, Nanos: d.time.Idle, Share: 1, Low: d.time.Idle, High: d.time.Idle}}
			}
		}
		used = known
	}
	byLine := make(map[line]timeline.Nanos)
	for i, d := range used {
		idle.Total += d.idle.Idle
		idle.Devices = append(idle.Devices, d.idle)
		if i == 0 || lessCertain(d.idle.Certainty, idle.Certainty) {
			idle.Certainty = d.idle.Certainty
		}
		for _, c := range d.idle.Causes {
			c.Evidence = slices.Clone(c.Evidence)
			idle.Causes = mergeCause(idle.Causes, c)
			if c.Line > 0 {
				byLine[line{c.File, c.Line}] += c.Nanos
			}
		}
	}
	finishCauses(idle.Causes, idle.Total)
	for at, nanos := range byLine {
		idle.Lines = append(idle.Lines, LineIdle{at.file, at.number, nanos})
	}
	slices.SortFunc(idle.Lines, func(a, b LineIdle) int {
		return cmp.Or(cmp.Compare(b.Nanos, a.Nanos), strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return idle
}

func lessCertain(a, b Certainty) bool {
	rank := map[Method]int{ByWindows: 3, ByRepetition: 2, ByAbsence: 1, ByAverage: 0}
	if rank[a.Method] != rank[b.Method] {
		return rank[a.Method] < rank[b.Method]
	}
	return a.R2 < b.R2
}
