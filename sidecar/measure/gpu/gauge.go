package gpu

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// gauge is a lane of instantaneous values. Its track begins with its first
// value, so that a figure the device does not have leaves a note and no lane.
type gauge struct {
	name, unit string
	every      time.Duration
	read       func() (float64, error) // NaN = unknown this time
	at         time.Time               // when to read next
	track      *timeline.TrackWriter
	failures   int   // in a row
	err        error // the last of them
	ended      bool
}

// maxFailures in a row end a lane; what can never work ends it at once.
const maxFailures = 3

// readGauge reads one lane if it is due and returns when it is due next; zero
// means never again.
func (g *group) readGauge(lane *gauge, now time.Time) time.Time {
	if lane.ended || g.lost {
		return time.Time{}
	}
	if now.Before(lane.at) {
		return lane.at
	}
	g.slowDown(lane, now)
	lane.at = now.Add(time.Duration(g.figuring.factor) * lane.every)
	value, err := lane.read()
	switch {
	case err == nil:
		lane.failures = 0
		if !math.IsNaN(value) {
			g.writeGauge(lane, value)
		}
		return lane.at
	case errors.Is(err, ErrLost):
		g.endAll(err)
		return time.Time{}
	}
	lane.err = err
	lane.failures++
	if lane.failures < maxFailures && !errors.Is(err, ErrUnsupported) {
		return lane.at
	}
	g.endGauge(lane)
	return time.Time{}
}

// slowDown reads a lane less often from the end of the first figures on, if that was asked for.
func (g *group) slowDown(lane *gauge, now time.Time) {
	if g.opts.Later <= lane.every || now.Sub(g.began) < timeline.FirstFigures {
		return
	}
	lane.every = g.opts.Later
	if lane.track != nil {
		lane.track.Coarsen(lane.every)
	}
}

func (g *group) endGauge(lane *gauge) {
	lane.ended = true
	if lane.track != nil {
		lane.track.End(lane.err.Error())
	} else {
		g.sink.Note(timeline.NoteFailed, g.id(lane.name), lane.err.Error())
	}
}

func (g *group) writeGauge(lane *gauge, value float64) {
	if lane.track == nil {
		spec := timeline.TrackSpec{
			ID: g.id(lane.name), Kind: timeline.KindGauge, Unit: lane.unit, Source: "NVML",
			Resolution: lane.every, Device: g.info.Index,
		}
		switch lane.name {
		case "mem", "mem.self":
			spec.Limit = float64(g.total)
		case "throttle":
			spec.Limit = 1
		}
		lane.track = g.sink.Track(spec)
	}
	if at := g.sink.Since(timeline.Monotonic()); at >= 0 {
		lane.track.Add(at, value)
	}
}

func (g *group) readMemory() (float64, error) {
	m, err := g.device.Memory()
	if err == nil && g.opts.Memory != nil {
		g.opts.Memory(g.info.Index, m)
	}
	g.total = m.Total
	return float64(m.Used), err
}

// energyState is whether a device counts its energy.
type energyState int

const (
	energyUnasked energyState = iota
	energyCounted
	energyMissing // before Volta, or where the driver does not offer it: that is no loss to speak of
)

// readEnergy is what the device used since the first reading.
func (g *group) readEnergy() (float64, error) {
	if g.energy == energyMissing {
		return math.NaN(), nil
	}
	joules, err := g.device.Energy()
	switch {
	case err == nil && g.energy == energyUnasked:
		g.joules, g.energy = joules, energyCounted
	case err != nil && !errors.Is(err, ErrLost) && g.energy == energyUnasked:
		g.energy = energyMissing
		return math.NaN(), nil
	}
	return joules - g.joules, err
}

// readThrottle is 1 while the device runs slower than it could; the device's
// description gathers why.
func (g *group) readThrottle() (float64, error) {
	t, err := g.device.Throttle()
	if err != nil || len(t.Reasons) == 0 {
		return 0, err
	}
	changed := false
	for _, reason := range t.Reasons {
		if !slices.Contains(g.known.Throttle, reason) {
			g.known.Throttle = append(slices.Clone(g.known.Throttle), reason)
			slices.SortFunc(g.known.Throttle, byListedOrder)
			changed = true
		}
	}
	if changed {
		g.describe()
	}
	return 1, nil
}

func byListedOrder(a, b timeline.ThrottleReason) int {
	all := timeline.ThrottleReasons()
	return slices.Index(all, a) - slices.Index(all, b)
}

// readProcesses finds the target's processes on the device and returns the
// memory they hold there.
func (g *group) readProcesses() (float64, error) {
	listed, err := g.device.Processes()
	if err != nil {
		return 0, err
	}
	var ours []int
	if g.opts.PIDs != nil {
		ours = g.opts.PIDs()
	}
	u := match(listed, ours, namespaceIDs)
	if len(u.pids) > 0 {
		g.matched = true
	} else {
		g.unmatched = max(g.unmatched, len(listed))
	}
	changed := u.others > g.known.OtherProcesses
	g.known.OtherProcesses = max(g.known.OtherProcesses, u.others)
	for _, pid := range u.pids {
		if !slices.Contains(g.known.PIDs, pid) {
			g.known.PIDs = append(g.known.PIDs, pid)
			changed = true
		}
	}
	if changed {
		g.describe()
	}
	// None of a list that has others may be a numbering we cannot match: unknown.
	if !u.known || (len(u.pids) == 0 && len(listed) > 0) {
		return math.NaN(), nil
	}
	return float64(u.bytes), nil
}
