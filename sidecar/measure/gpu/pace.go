package gpu

import (
	"runtime"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// pace keeps what one kind of reading costs below a share of a core by stretching its intervals. Its thread must be
// locked to the goroutine.
type pace struct {
	share   float64       // of a core
	factor  int           // by which intervals are stretched
	checked time.Time     // since when it adds up
	spent   time.Duration // CPU time of the readings since then
}

const (
	paceWindow = 2 * time.Second
	maxFactor  = 8

	// figureShare is what memory, power, energy, clocks and processes of a device may cost.
	figureShare = 0.01
	// activityShare is what the activity of a device may cost: everything said of idle time rests on its windows, and
	// a reading of GPM takes 2 ms of CPU on an H100.
	activityShare = 0.04
	// machineShare is what the activity of all devices may cost, of all CPUs.
	machineShare = 0.01
)

// activityBudget is the share of a core for the activity of each of so many devices.
func activityBudget(devices int) float64 {
	return min(activityShare, machineShare*float64(runtime.NumCPU())/float64(max(devices, 1)))
}

func newPace(share float64) pace { return pace{share: share, factor: 1, checked: time.Now()} }

// of calls a reading and adds what it costs.
func (p *pace) of(read func() time.Time) time.Time {
	before := timeline.ThreadCPU()
	next := read()
	p.spent += timeline.ThreadCPU() - before
	return next
}

// tooCostly looks every two seconds, and reports whether the factor was raised.
func (p *pace) tooCostly() bool {
	wall := time.Since(p.checked)
	if wall < paceWindow {
		return false
	}
	spent := p.spent
	p.checked, p.spent = time.Now(), 0
	if spent.Seconds() <= p.share*wall.Seconds() || p.factor >= maxFactor {
		return false
	}
	p.factor *= 2
	return true
}
