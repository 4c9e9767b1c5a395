package pystack

import (
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// A thread that waits for an event, a queue, a semaphore or a future is in Condition.wait of threading, called by a function of the standard
// library that says what it waits for. Who will notify the condition nothing shows, but for a future's: a pool's thread that computes it has
// the future's work item in its frame.

// The files that have them, by the end of their names.
const threading, queues, futures = "/threading.py", "/queue.py", "/concurrent/futures/_base.py"

// awaitedBy are the functions that wait for a condition, and what for. Of those that call each other the outermost counts.
var awaitedBy = map[string]struct {
	file string
	what timeline.Object
}{
	"Condition.wait":     {threading, timeline.Object{Call: "wait", Kind: timeline.ObjectCondition}},
	"Condition.wait_for": {threading, timeline.Object{Call: "wait", Kind: timeline.ObjectCondition}},
	"Event.wait":         {threading, timeline.Object{Call: "wait", Kind: timeline.ObjectEvent}},
	"Semaphore.acquire":  {threading, timeline.Object{Call: "acquire", Kind: timeline.ObjectSemaphore}},
	"Barrier._wait":      {threading, timeline.Object{Call: "wait", Kind: timeline.ObjectBarrier}},
	"Barrier._enter":     {threading, timeline.Object{Call: "wait", Kind: timeline.ObjectBarrier}},
	"Thread.start":       {threading, timeline.Object{}}, // until the thread runs: a moment
	"Barrier.wait":       {threading, timeline.Object{Call: "wait", Kind: timeline.ObjectBarrier}},
	"Queue.get":          {queues, timeline.Object{Call: "get", Kind: timeline.ObjectQueue}},
	"Queue.put":          {queues, timeline.Object{Call: "put", Kind: timeline.ObjectQueue}},
	"Queue.join":         {queues, timeline.Object{Call: "join", Kind: timeline.ObjectQueue}},
	"Future.result":      {futures, timeline.Object{Call: "result", Kind: timeline.ObjectFuture, Holder: -1}},
	"Future.exception":   {futures, timeline.Object{Call: "result", Kind: timeline.ObjectFuture, Holder: -1}},
	"wait":               {futures, timeline.Object{Call: "wait", Kind: timeline.ObjectFuture, Holder: -1}},
	"as_completed":       {futures, timeline.Object{Call: "wait", Kind: timeline.ObjectFuture, Holder: -1}},
}

// awaitedIn is what a thread waits for in a function that waits for a condition; nil: it is none of these.
func awaitedIn(function, file string) *timeline.Object {
	by, ok := awaitedBy[function]
	if !ok || !strings.HasSuffix(file, by.file) {
		return nil
	}
	what := by.what
	return &what
}

// notified is what a thread waits for that is in Condition.wait.
func (s *session) notified(t *thread) timeline.ObjectID {
	var f *frame
	for i := len(t.stack) - 1; i >= 0 && t.stack[i].object.awaited != nil; i-- {
		f = &t.stack[i]
	}
	if f == nil || f.object.awaited.Kind == "" {
		return 0
	}
	what := f.object.awaited
	if what.Kind == timeline.ObjectFuture && what.Call == "result" {
		if by := s.computes(f); by != nil {
			if on := s.ofThread(what.Call, what.Kind, by); on != 0 {
				return on
			}
		}
	}
	return s.sink.Object(*what)
}

// computes is the thread of a pool that runs the function of the future whose result a frame waits for; nil: it is not known, or none does.
func (s *session) computes(f *frame) *thread {
	r := s.p.reader
	future, err := r.local(f, "self")
	if err != nil || future == 0 {
		return nil
	}
	for _, t := range s.p.threads {
		for i := range t.stack {
			if t.stack[i].object.role != roleWorks {
				continue
			}
			item, err := r.local(&t.stack[i], "self")
			if err != nil || item == 0 {
				continue
			}
			if of, err := r.objects.Attribute(item, "future"); err == nil && of == future {
				return t
			}
		}
	}
	return nil
}
