package pystack

import (
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// A thread that waits for an event, a queue, a semaphore or a future is in Condition.wait of threading, called by a function of the standard
// library that says what it waits for. Who will notify the condition nothing shows, but for a future's: a pool's thread that computes it has
// the future's work item in its frame. What processes share is made of semaphores: who has one nothing shows.

// The files that have them, by the end of their names.
const (
	threading, queues, futures = "/threading.py", "/queue.py", "/concurrent/futures/_base.py"
	sharedLocks, sharedQueues  = "/multiprocessing/synchronize.py", "/multiprocessing/queues.py"
)

// sharedQueue is the class whose objects processes share.
const sharedQueue = "multiprocessing.Queue"

// awaitedBy are the functions that wait for a condition or a semaphore, by file, and what for. Of those that call each other the outermost counts.
var awaitedBy = map[string]map[string]timeline.Object{
	threading: {
		"Condition.wait":     {Call: "wait", Kind: timeline.ObjectCondition},
		"Condition.wait_for": {Call: "wait", Kind: timeline.ObjectCondition},
		"Event.wait":         {Call: "wait", Kind: timeline.ObjectEvent},
		"Semaphore.acquire":  {Call: "acquire", Kind: timeline.ObjectSemaphore},
		"Barrier._wait":      {Call: "wait", Kind: timeline.ObjectBarrier},
		"Barrier._enter":     {Call: "wait", Kind: timeline.ObjectBarrier},
		"Thread.start":       {}, // until the thread runs: a moment
		"Barrier.wait":       {Call: "wait", Kind: timeline.ObjectBarrier},
	},
	queues: {
		"Queue.get":  {Call: "get", Kind: timeline.ObjectQueue},
		"Queue.put":  {Call: "put", Kind: timeline.ObjectQueue},
		"Queue.join": {Call: "join", Kind: timeline.ObjectQueue},
	},
	futures: {
		"Future.result":    {Call: "result", Kind: timeline.ObjectFuture, Holder: -1},
		"Future.exception": {Call: "result", Kind: timeline.ObjectFuture, Holder: -1},
		"wait":             {Call: "wait", Kind: timeline.ObjectFuture, Holder: -1},
		"as_completed":     {Call: "wait", Kind: timeline.ObjectFuture, Holder: -1},
	},
	sharedLocks: {
		"SemLock.__enter__":  {Call: "lock", Kind: timeline.ObjectLock, Holder: -1},
		"Condition.wait":     {Call: "wait", Kind: timeline.ObjectCondition},
		"Condition.wait_for": {Call: "wait", Kind: timeline.ObjectCondition},
		"Event.wait":         {Call: "wait", Kind: timeline.ObjectEvent},
	},
	sharedQueues: {
		"Queue.get":          {Call: "get", Kind: timeline.ObjectQueue, Name: sharedQueue},
		"Queue.put":          {Call: "put", Kind: timeline.ObjectQueue, Name: sharedQueue},
		"JoinableQueue.join": {Call: "join", Kind: timeline.ObjectQueue, Name: sharedQueue},
	},
}

// awaitedIn is what a thread waits for in a function that waits for a condition or a semaphore; nil: it is none of these.
func awaitedIn(function, file string) *timeline.Object {
	for end, by := range awaitedBy {
		if what, ok := by[function]; ok && strings.HasSuffix(file, end) {
			return &what
		}
	}
	return nil
}

// notified is what a thread waits for that is in Condition.wait, or at a semaphore that processes share.
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
