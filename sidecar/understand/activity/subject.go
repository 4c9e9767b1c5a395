package activity

import (
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/interpret"
)

// AnyDevice means all devices: the thread is that of the program.
const AnyDevice = -1

// Explain is the thread by which a device's idle time is explained, or the whole recording,
// and what ran beside it. firstWork is when the device first had work.
func (s *Stacks) Explain(device int, firstWork timeline.Nanos) (*Reading, *Bystanders) {
	t := s.responsible(device)
	life := lifeOf(s, t)
	life.firstWork = firstWork
	h, beside := newHistory(s, t, life), NewBystanders(s, t)
	beside.resolve(h)
	return &Reading{Thread: t, stacks: s, History: h, Ended: life.end}, beside
}

// responsible picks the thread a device's idle time is charged to: exactly one,
// else n threads would count it n times. It is the subject's, if its process is on the
// device or nobody knows whose is; else the main thread of a process that is.
func (s *Stacks) responsible(device int) *timeline.Thread {
	subject := s.subject()
	if subject == nil {
		return nil
	}
	var pids []int
	for _, g := range s.Rec.GPUs {
		if g.Index == device {
			pids = g.PIDs
		}
	}
	if len(pids) == 0 || slices.Contains(pids, subject.PID) {
		return subject
	}
	best := subject
	for i := range s.Rec.Threads {
		t := &s.Rec.Threads[i]
		if t.Main && len(t.Spans) > 0 && slices.Contains(pids, t.PID) && (best == subject || interpret.Known(t) > interpret.Known(best)) { // it may have been lost and found again
			best = t
		}
	}
	return best
}

// subject is the thread that explains the recording; nil: no stack of it was seen.
func (s *Stacks) subject() *timeline.Thread {
	if i := s.About.Thread; i >= 0 && i < len(s.Rec.Threads) && len(s.Rec.Threads[i].Spans) > 0 {
		return &s.Rec.Threads[i]
	}
	return nil
}
