// Package alarm wakes up goroutines that do something now and then.
//
// Where no CPU is free each thread that wakes up takes more from the program than its CPU time: whom it interrupts goes on
// later, with other caches, often on another CPU. There one goroutine leads, and alarms are gathered: they go off when it
// wakes up, and not on their own. What is done then, and who leads when, is not the package's.
package alarm

import (
	"sync"
	"time"
)

// Alarm is a time.Timer that goes off late where somebody leads, by at most as long as that one sleeps.
type Alarm struct {
	C        <-chan time.Time
	timer    *time.Timer
	due      time.Time
	gathered bool
}

// all alarms of the process that are not stopped.
var all = gathering{alarms: make(map[*Alarm]struct{})}

type gathering struct {
	mu      sync.Mutex
	alarms  map[*Alarm]struct{}
	leaders int
}

// New makes an alarm that goes off after d. It is to be stopped.
func New(d time.Duration) *Alarm {
	a := &Alarm{timer: time.NewTimer(time.Hour)}
	a.C = a.timer.C
	a.Reset(d)
	return a
}

// Reset has it go off after d, and not when it would have.
func (a *Alarm) Reset(d time.Duration) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.alarms[a] = struct{}{}
	a.due = time.Now().Add(d)
	if a.gathered = all.leaders > 0 && d > 0; a.gathered {
		a.timer.Stop()
	} else {
		a.timer.Reset(d)
	}
}

// Stop keeps it from going off.
func (a *Alarm) Stop() {
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(all.alarms, a)
	a.gathered = false
	a.timer.Stop()
}

// lead has so many more leaders: the first gathers what is set, the last lets it go.
func (g *gathering) lead(more int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.leaders += more
	for a := range g.alarms {
		switch {
		case g.leaders > 0 && !a.gathered:
			a.gathered = a.timer.Stop()
		case g.leaders == 0 && a.gathered:
			a.gathered = false
			a.timer.Reset(time.Until(a.due))
		}
	}
}

// ring has all go off that are due.
func (g *gathering) ring(now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for a := range g.alarms {
		if a.gathered && !a.due.After(now) {
			a.gathered = false
			a.timer.Reset(0)
		}
	}
}
