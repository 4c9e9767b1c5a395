package gpu

import (
	"time"

	"golang.org/x/sys/unix"
)

// pace keeps the cost of polling below a hundredth of a core by stretching the
// intervals. Its thread must be locked to the goroutine.
type pace struct {
	factor   int // by which intervals are stretched
	checked  time.Time
	cpuSince time.Duration
}

const (
	paceWindow = 2 * time.Second
	maxFactor  = 8
)

func (p *pace) start() {
	p.factor, p.checked, p.cpuSince = 1, time.Now(), ThreadCPU()
}

// tooCostly looks every two seconds, and reports whether the factor was raised.
func (p *pace) tooCostly() bool {
	wall := time.Since(p.checked)
	if wall < paceWindow {
		return false
	}
	cpu := ThreadCPU()
	spent := cpu - p.cpuSince
	p.checked, p.cpuSince = time.Now(), cpu
	if spent*100 <= wall || p.factor >= maxFactor {
		return false
	}
	p.factor *= 2
	return true
}

func ThreadCPU() time.Duration {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
