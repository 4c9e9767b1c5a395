package pystack

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/alarm"
	"github.com/omni-perf/omni-perf/sidecar/measure/spare"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// worker is the goroutine that samples, from newWorker to end.
//
// Where a CPU is free it has a thread of its own and keeps off the CPUs of whom it reads. Where none is, each thread of ours that
// wakes up takes a moment from the program, and more than its CPU time: there all of the process is done by one
// thread, when the target's sampler wakes up, and the worker has it for itself only from one sleep to the next.
type worker struct {
	is     manner
	leads  bool          // where it shares its thread
	away   *apart        // of a thread of its own
	leader *alarm.Leader // of one that leads
	spent  time.Duration // CPU time, up to the last sleep
	resume time.Duration // CPU time of the thread at the end of that
	alarm  *alarm.Alarm
}

// manner is how a worker goes about it.
type manner uint8

const (
	idle    manner = iota // it has nobody to read
	alone                 // it has a thread of its own
	leading               // it shares one, and all others wait for it
	modest                // it shares one
	manners
)

// sharedWake is about what the kernel and Go's scheduler use of each sleep, while the thread's CPU time is not the worker's.
const sharedWake = 10 * time.Microsecond

// newWorker locks the calling goroutine to its thread, until end.
func newWorker(leads bool) *worker {
	runtime.LockOSThread()
	w := &worker{leads: leads, resume: timeline.ThreadCPU(), alarm: alarm.New(time.Hour)}
	w.be(alone)
	return w
}

func (w *worker) end() {
	w.be(idle)
	w.alarm.Stop()
	runtime.UnlockOSThread()
}

// cpu is the CPU time it has used.
func (w *worker) cpu() time.Duration { return w.spent + timeline.ThreadCPU() - w.resume }

// suit has it share its thread where no CPU is free, and not where some are; in between it stays as it is.
func (w *worker) suit(so time.Duration, free spare.CPUs) {
	switch share, _ := free.Share(so); {
	case share == 0 && w.leads:
		w.be(leading)
	case share == 0:
		w.be(modest)
	case share > 0.5 || w.is == idle:
		w.be(alone)
	}
}

func (w *worker) be(is manner) {
	if w.is == is {
		return
	}
	if w.away != nil {
		w.away.end()
		w.away = nil
	}
	if w.leader != nil {
		w.leader.End()
		w.leader = nil
	}
	if is == alone {
		w.away = newApart(ownThread{})
	}
	if is == leading {
		w.leader, _ = alarm.Lead() // without one it sleeps as the modest do
	}
	processors.change(w.is, is)
	w.is = is
}

// due reports whether the CPUs of the read threads are to be asked for.
func (w *worker) due(at int64) bool { return w.away != nil && w.away.due(at) }

// missed notes that so many ticks were missed at a time.
func (w *worker) missed(ticks, at int64) {
	if w.away != nil {
		w.away.missed(ticks, at)
	}
}

// wait sleeps, and lets all others go on; false when ctx ends before.
func (w *worker) wait(ctx context.Context, length time.Duration) bool {
	if w.is != alone {
		w.leave()
		defer w.back()
	}
	if w.leader != nil {
		return w.leader.Sleep(ctx, length)
	}
	w.alarm.Reset(length)
	select {
	case <-ctx.Done():
		return false
	case <-w.alarm.C:
		return ctx.Err() == nil
	}
}

// leave gives the thread to all others, until back.
func (w *worker) leave() {
	w.spent = w.cpu() + sharedWake
	runtime.UnlockOSThread()
}

func (w *worker) back() {
	runtime.LockOSThread()
	w.resume = timeline.ThreadCPU()
}

// enough Ps for all whose sleep keeps one, while the rest of the process goes on working: where no P is idle, the scheduler's
// watchdog takes those of threads that read /proc. It then wakes up a thousand times a second, which is 1 % of a core.
const enough = 8

// processors sets how many Ps Go's scheduler has.
var processors scheduler

type scheduler struct {
	mu      sync.Mutex
	workers [manners]int
	now     int // Ps; 0: it was never set
}

// change takes note that a worker goes about it in another manner.
func (s *scheduler) change(from, to manner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.workers[from]--
	s.workers[to]++
	if want := s.want(runtime.NumCPU()); want != s.now {
		s.now = want
		runtime.GOMAXPROCS(want)
	}
}

// want is one P while every worker shares its thread: nothing that wakes up then wakes another thread.
func (s *scheduler) want(cpus int) int {
	if s.workers[alone] == 0 && s.workers[leading]+s.workers[modest] > 0 {
		return 1
	}
	return max(enough, cpus)
}
