package profiler

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/proctree"
	"github.com/omni-perf/omni-perf/sidecar/measure/pystack"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// attempt is a process that is to be attached to.
type attempt struct {
	member proctree.Member
	due    time.Time
	pause  time.Duration // before the next attempt
	until  time.Time     // when it is given up as none that runs Python
	anew   bool          // as a process that nobody knows: as a fork it could not be read
}

const (
	// startUp is how long an interpreter takes at least until it runs code: looking
	// earlier is of no use.
	startUp = 15 * time.Millisecond
	// unlikely is how long a program must have run that is not called Python, to be
	// looked at in case it is one all the same.
	unlikely = 500 * time.Millisecond
	// pythonPatience is how long a process called Python may take to become one.
	pythonPatience = 10 * time.Second
	attachPause    = 50 * time.Millisecond // the longest between two attempts
	// attachShare is what attaching may cost in CPU time, as a share of a core, once
	// attachBurst is used up: programs that start ever new interpreters must not pay for it.
	attachShare = 0.02
	attachBurst = 150 * time.Millisecond
)

// enqueue replaces an attempt at the same process, which ran another program then.
func (w *watch) enqueue(a attempt) {
	w.mu.Lock()
	w.queue = slices.DeleteFunc(w.queue, func(old attempt) bool { return old.member.Identity == a.member.Identity })
	w.queue = append(w.queue, a)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// next takes the attempt that is due, or returns how long there is none.
func (w *watch) next() (a attempt, wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = slices.DeleteFunc(w.queue, func(a attempt) bool { return !w.runsLocked(a.member) })
	if len(w.queue) == 0 {
		return a, time.Hour
	}
	first := 0
	for i := range w.queue {
		if w.queue[i].due.Before(w.queue[first].due) {
			first = i
		}
	}
	if wait := time.Until(w.queue[first].due); wait > 0 {
		return a, wait
	}
	a = w.queue[first]
	w.queue = slices.Delete(w.queue, first, first+1)
	return a, 0
}

// attach makes the attempts that are due, at a cost that is bounded.
func (w *watch) attach(ctx context.Context) {
	runtime.LockOSThread() // whose CPU time it is
	defer runtime.UnlockOSThread()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	left, at := attachBurst, time.Now()
	for ctx.Err() == nil {
		a, wait := w.next()
		now := time.Now()
		left = min(left+time.Duration(attachShare*float64(now.Sub(at))), attachBurst)
		at = now
		if wait == 0 && left < 0 {
			w.enqueue(a)
			wait = time.Duration(float64(-left) / attachShare)
		}
		if wait > 0 {
			timer.Reset(wait)
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			case <-w.wake:
				if left < 0 { // whoever came has to wait, too
					time.Sleep(min(wait, attachPause))
				}
			}
			continue
		}
		start := timeline.ThreadCPU()
		w.try(a)
		left -= timeline.ThreadCPU() - start
	}
}

// try attaches to a process, now or later.
func (w *watch) try(a attempt) {
	m := a.member
	if w.d.get(m.Identity) != nil {
		return
	}
	if from := w.forkedFrom(m); from != nil && !a.anew { // found meanwhile
		w.fork(from, m)
		return
	}
	p, err := pystack.Attach(m.PID, pystack.Options{})
	reason := timeline.StacksFailed
	switch {
	case err == nil:
		if !w.runs(m) {
			p.Close()
			return
		}
		w.join(m, p)
		return
	case errors.Is(err, pystack.ErrGone):
		return
	case errors.Is(err, pystack.ErrPermission):
		reason = timeline.StacksDenied
	case errors.Is(err, pystack.ErrUnsupported), errors.Is(err, pystack.ErrFreeThreaded):
		reason = timeline.StacksUnsupported
	case errors.Is(err, pystack.ErrNotPython):
		reason = timeline.StacksNotPython
	}
	if reason != timeline.StacksNotPython || m.Python {
		w.refuse(m, reason, err.Error())
	}
	if time.Now().After(a.until) {
		return
	}
	// One that is being set up looks like one that nobody knows.
	a.due, a.pause = time.Now().Add(a.pause), min(2*a.pause, attachPause*20)
	w.enqueue(a)
}
