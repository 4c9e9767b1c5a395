package pystack

import (
	"math"
	"strings"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// While torch's loader makes a batch, or waits for one, its iterator is the first local of
//
//	_BaseDataLoaderIter.__next__, …._next_data  (torch/utils/data/dataloader.py)
//
// and has counted the batches before that one: _num_yielded. It is read from the iterator's attributes, and what
// was read holds if the first of the frames is then where it was, in that call, with that iterator. Each value is one of the
// kind that torch has there, or it is not known.

// loads is what a function of torch's loader does.
type loads uint8

const (
	loadsNot  loads = iota
	loadsNext       // asks for a batch, and counts it when it has it
	loadsData       // makes it, or waits for it
)

// loadsOf returns it by torch's names.
func loadsOf(function, file string) loads {
	switch {
	case !strings.HasSuffix(file, "torch/utils/data/dataloader.py"):
	case function == "_BaseDataLoaderIter.__next__":
		return loadsNext
	case strings.HasSuffix(function, "DataLoaderIter._next_data"):
		return loadsData
	}
	return loadsNot
}

const (
	loaderEvery = int64(10 * time.Millisecond) // least time between two readings of a thread
	// longReading is from when on a reading does not count: the thread may have come back into the same call.
	longReading    = int64(200 * time.Microsecond)
	maxPassing     = 32 // iterators of a thread that are told apart
	maxLengthTries = 4
	maxYielded     = 1 << 40
	maxBatch       = 1 << 24
	maxWorkers     = 1 << 12
)

// loading is what is kept of the loaders that a thread iterates over.
type loading struct {
	readAt  int64 // CLOCK_MONOTONIC of the last reading
	passes  int   // so far
	passing map[uint64]passing

	queues    []*batchQueue // of workers, that are read from time to time …
	queuesDue int64         // … next then; CLOCK_MONOTONIC
}

// passing is a pass over a loader, by the address of its iterator.
type passing struct {
	seed, yielded int64 // of the iterator: a number that it has drawn, and batches
	pass          int
	loader        timeline.Loader
	samples       int64
	tries         int // to find out how many samples it has: its sampler may not have begun
	queueTries    int // to find the queue of its workers
}

// readLoader reads the iterator of torch's loader where a thread's stack, which was just read, is in one.
func (s *session) readLoader(t *thread, v verdict) {
	if v == stackLost || s.at-t.loading.readAt < loaderEvery {
		return
	}
	for i := len(t.stack) - 2; i >= 0; i-- {
		if t.stack[i].object.loads == loadsNext && t.stack[i+1].object.loads == loadsData {
			t.loading.readAt = s.at
			s.readIterator(t, &t.stack[i])
			return
		}
	}
}

func (s *session) readIterator(t *thread, f *frame) {
	r, known := s.p.reader, &t.loading
	iterator, err := r.local(f, "self")
	if err != nil || !strings.HasSuffix(r.objects.TypeName(iterator), "DataLoaderIter") {
		return
	}
	at := s.clock.now()
	if !r.stillCalls(f, iterator) {
		return
	}
	yielded, ok := r.integer(iterator, "_num_yielded", maxYielded)
	if !ok || !r.stillCalls(f, iterator) || s.clock.now()-at > longReading {
		return
	}
	seed, _ := r.integer(iterator, "_base_seed", math.MaxInt64)
	now, going := known.passing[iterator]
	if !going || now.seed != seed {
		known.forgetQueue(iterator)
	}
	if !going || now.seed != seed || yielded < now.yielded {
		now = passing{seed: seed, pass: known.passes, loader: r.loader(iterator)}
	}
	if now.samples == 0 && now.tries < maxLengthTries {
		now.samples = r.passSamples(iterator)
		now.tries++
	}
	if now.queueTries < maxQueueTries && now.loader.Workers > 0 {
		if now.queueTries++; s.watchQueue(t, iterator, now.loader) {
			now.queueTries = 0
		}
	}
	now.yielded = yielded
	if now.pass == known.passes {
		known.passes++
	}
	if known.passing == nil || len(known.passing) >= maxPassing && !going {
		known.passing = make(map[uint64]passing)
	}
	known.passing[iterator] = now
	now.loader.Process, now.loader.Thread = s.place, t.nativeID
	s.sink.ReadLoader(now.loader, timeline.LoaderReading{At: s.sink.Since(at), Pass: now.pass, Yielded: yielded, Samples: now.samples})
}

// stillCalls reports whether a frame is in the call that the sample showed, with the same object as its self.
func (r *reader) stillCalls(f *frame, self uint64) bool {
	var now [2 * cpython.WordSize]byte
	n, err := r.mem.Read(now[:], []Range{{Addr: f.addr + r.l.Frame.Instr, Len: cpython.WordSize}, {Addr: f.addr + r.l.Frame.Locals, Len: cpython.WordSize}})
	return err == nil && n == len(now) && cpython.Word(now[:], 0) == f.instr && cpython.Word(now[:], cpython.WordSize)&^r.l.Frame.CodeTag == self
}

// loader reads what an iterator goes over.
func (r *reader) loader(iterator uint64) (l timeline.Loader) {
	if workers, ok := r.integer(iterator, "_num_workers", maxWorkers); ok {
		l.Workers = int(workers)
	}
	if prefetch, ok := r.integer(iterator, "_prefetch_factor", maxPrefetch); ok && l.Workers > 0 {
		l.Prefetch = int(prefetch)
	}
	kind, ok := r.integer(iterator, "_dataset_kind", 1)
	if l.Stream = kind == 1; !ok {
		return l // the iterator of another library, perhaps
	}
	batches, err := r.objects.Attribute(iterator, "_index_sampler")
	if err != nil {
		return l
	}
	l.ID = batches
	if r.objects.TypeName(batches) != "BatchSampler" {
		return l // others make batches of any size
	}
	if batch, ok := r.integer(batches, "batch_size", maxBatch); ok {
		last, _ := r.integer(batches, "drop_last", 1)
		l.Batch, l.DropLast = int(batch), last == 1
	}
	return l
}

// integer reads an attribute that is an int, or a bool, from 0 to most.
func (r *reader) integer(object uint64, name string, most int64) (int64, bool) {
	at, err := r.objects.Attribute(object, name)
	if err != nil {
		return 0, false
	}
	value, ok := r.objects.Integer(at)
	return value, ok && value <= most
}
