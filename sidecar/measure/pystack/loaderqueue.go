package pystack

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// The workers of torch's loader put the batches that they have made into a queue of multiprocessing, which counts them by a
// semaphore: put acquires it and get releases it, so that the most it can be, less what it is, is how many were put and not
// yet taken, as Queue.qsize() has it. A batch that waits for one before it to be made has been taken. With pin_memory a thread
// takes them and puts them into a queue.Queue, whose deque is counted, too.
//
//	_MultiProcessingDataLoaderIter._worker_result_queue._sem._semlock   (torch/utils/data/dataloader.py, multiprocessing/queues.py)
//	_MultiProcessingDataLoaderIter._data_queue.queue                    (queue.py)
//
// The iterator is found while the thread is in its __next__. From then on the queue is read whatever the thread does: read only
// there, a full queue, from which a batch is taken at once, would hardly ever be seen.

const (
	// The time between two readings is drawn between these: at a fixed pace they could fall on the same part of each step.
	queueLeast, queueMost = int64(10 * time.Millisecond), int64(30 * time.Millisecond)
	maxQueues             = 4 // of a thread
	maxQueueTries         = 4 // to find that of an iterator
	maxPending            = 1 << 13
	maxPrefetch           = 1 << 12
	keptInt               = 256           // up to this an int is one object that is never freed (Include/internal/pycore_runtime_structs.h, _PY_NSMALLPOSINTS)
	semaphoreMost         = math.MaxInt32 // SEM_VALUE_MAX, which a Queue without a size of its own has
)

// batchQueue is the queue of a loader's workers.
type batchQueue struct {
	iterator uint64
	loader   timeline.Loader
	capacity int64          // batches that the workers are asked for ahead
	held     []cpython.Held // as long as these words are the same the iterator is, and has that queue
	ranges   []Range        // of a reading: see the constants below, then the words of held
	buf      []byte
	yielded  uint64                  // address of the int _num_yielded, when last read
	pending  []timeline.QueueReading // since that was another; At is CLOCK_MONOTONIC
}

// What a reading consists of, by the number of the word.
const (
	queueAlive       = iota // the iterator's reference count
	queueYielded            // its _num_yielded: each batch has another int
	queueOutstanding        // its _tasks_outstanding
	queueValue              // of the semaphore
	queuePinned             // the length of the deque of pinned batches; the reference count again where there is none
	queueHeld
)

// watchQueue finds the queue of an iterator's workers.
func (s *session) watchQueue(t *thread, iterator uint64, l timeline.Loader) bool {
	known := &t.loading
	if slices.ContainsFunc(known.queues, func(q *batchQueue) bool { return q.iterator == iterator && q.loader.ID == l.ID }) {
		return true
	}
	q, ok := s.p.reader.findQueue(iterator, l)
	if !ok {
		return false
	}
	known.forgetQueue(iterator)
	if len(known.queues) >= maxQueues {
		known.queues = slices.Delete(known.queues, 0, 1)
	}
	known.queues = append(known.queues, q)
	s.queues = true
	return true
}

func (l *loading) forgetQueue(iterator uint64) {
	l.queues = slices.DeleteFunc(l.queues, func(q *batchQueue) bool { return q.iterator == iterator })
}

// findQueue finds that of an iterator.
func (r *reader) findQueue(iterator uint64, l timeline.Loader) (*batchQueue, bool) {
	if l.Workers == 0 || l.Prefetch == 0 {
		return nil, false
	}
	places, held, err := r.objects.Places(iterator, "_num_yielded", "_tasks_outstanding", "_worker_result_queue", "_base_seed", "_data_queue")
	if err != nil {
		return nil, false
	}
	yielded, outstanding, results, seed, data := places[0], places[1], places[2], places[3], places[4]
	if r.objects.TypeName(results.Value) != "Queue" {
		return nil, false
	}
	bounded, err := r.objects.Attribute(results.Value, "_sem")
	if err != nil {
		return nil, false
	}
	semaphore, err := r.objects.Attribute(bounded, "_semlock")
	if err != nil {
		return nil, false
	}
	value, most, ok := r.objects.Semaphore(semaphore)
	if !ok || most != semaphoreMost {
		return nil, false
	}
	pinned := iterator + cpython.Refcount
	if data.Value != results.Value { // a thread is between them
		deque, err := r.objects.Attribute(data.Value, "queue")
		if err != nil {
			return nil, false
		}
		if pinned, ok = r.objects.Deque(deque); !ok {
			return nil, false
		}
	}
	// The seed is drawn at random: another iterator at the same address has another one.
	digits, ok := r.objects.Digits(seed.Value)
	if !ok {
		return nil, false
	}
	held = append(held, cpython.Held(results), cpython.Held(seed), digits)
	q := &batchQueue{iterator: iterator, loader: l, capacity: int64(l.Workers) * int64(l.Prefetch), held: held, yielded: yielded.Value}
	for _, addr := range []uint64{iterator + cpython.Refcount, yielded.Addr, outstanding.Addr, value, pinned} {
		q.ranges = append(q.ranges, Range{Addr: addr, Len: cpython.WordSize})
	}
	for _, h := range held {
		q.ranges = append(q.ranges, Range{Addr: h.Addr, Len: cpython.WordSize})
	}
	q.buf = make([]byte, len(q.ranges)*cpython.WordSize)
	return q, true
}

// readQueues reads the queues that are known, where that is due.
func (s *session) readQueues() {
	if !s.queues {
		return
	}
	for _, t := range s.p.threads {
		known := &t.loading
		if len(known.queues) == 0 || s.at < known.queuesDue && known.queuesDue-s.at <= queueMost || t.session.excluded {
			continue
		}
		known.queuesDue = s.at + queueLeast + rand.Int64N(queueMost-queueLeast)
		known.queues = slices.DeleteFunc(known.queues, func(q *batchQueue) bool {
			q.loader.Process, q.loader.Thread = s.place, t.nativeID
			return !s.readQueue(q)
		})
	}
}

// readQueue reads one; false: the iterator is no more. A reading counts when a further batch was handed out: of a pass that the program has left
// nobody wants any.
func (s *session) readQueue(q *batchQueue) bool {
	r := s.p.reader
	if n, err := r.mem.Read(q.buf, q.ranges); err != nil || n != len(q.buf) {
		return false
	}
	word := func(i int) uint64 { return cpython.Word(q.buf, uint64(i)*cpython.WordSize) }
	for i, h := range q.held {
		if word(queueHeld+i) != h.Value {
			return false
		}
	}
	if word(queueAlive)&cpython.RefcountMask == 0 {
		return false
	}
	if now := word(queueYielded); now != q.yielded {
		for _, p := range q.pending {
			if p.At >= timeline.Nanos(s.begun) {
				p.At = s.sink.Since(int64(p.At))
				s.sink.ReadQueue(q.loader, p)
			}
		}
		q.pending, q.yielded = q.pending[:0], now
	}
	ready, ok := q.ready(word)
	if !ok || len(q.pending) >= maxPending {
		return true
	}
	if outstanding, ok := r.smallInteger(word(queueOutstanding)); !ok || outstanding == 0 {
		return true // no worker is to make any: the pass ends
	}
	q.pending = append(q.pending, timeline.QueueReading{At: timeline.Nanos(s.at), Ready: ready})
	return true
}

// ready is how many batches are in the queue; there are never more than the workers were asked for.
func (q *batchQueue) ready(word func(int) uint64) (int, bool) {
	value := word(queueValue) & (1<<32 - 1)
	if value > semaphoreMost {
		return 0, false
	}
	ready := semaphoreMost - int64(value)
	if q.ranges[queuePinned].Addr != q.ranges[queueAlive].Addr {
		pinned := word(queuePinned)
		if pinned > uint64(q.capacity) {
			return 0, false
		}
		ready += int64(pinned)
	}
	return int(ready), ready <= q.capacity
}

// smallInteger reads an int, and keeps those that are never freed.
func (r *reader) smallInteger(object uint64) (int64, bool) {
	if value, ok := r.smallInts[object]; ok {
		return value, true
	}
	value, ok := r.objects.Integer(object)
	if ok && value <= keptInt {
		if r.smallInts == nil || len(r.smallInts) > keptInt {
			r.smallInts = make(map[uint64]int64)
		}
		r.smallInts[object] = value
	}
	return value, ok
}
