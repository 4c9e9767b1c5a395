package timeline

// Loader is an object of torch's DataLoader that a process iterates over, as its memory showed.
type Loader struct {
	Process  int    // index in Recording.Processes
	Thread   int    // native id of the thread that iterates
	ID       uint64 // the address of what makes its batches: the same at each pass
	Batch    int    // samples of a whole batch; 0: not known, or batches differ
	Workers  int    // processes that load for it; 0: it loads in the thread itself
	Prefetch int    // batches that each of them is asked for ahead; 0: not known, or there are none
	DropLast bool
	// Stream means that its dataset is an iterable one: each worker ends with a batch of its own that may be short.
	Stream bool
}

// LoaderReading is how many batches a pass over a loader had handed out, at a time when the next one was asked for.
type LoaderReading struct {
	At      Nanos
	Loader  int   // index in Recording.Loaders
	Pass    int   // over any loader of the thread: it counts up with each new iterator, and where one begins anew
	Yielded int64 // batches
	Samples int64 // of the whole pass; 0: not known
}

// QueueReading is how many batches of a loader's workers were made and not yet taken by the process that iterates, at a time
// when at least one more was asked of the workers, and the loop took one later.
type QueueReading struct {
	At     Nanos
	Loader int // index in Recording.Loaders
	Ready  int // batches
}

const (
	maxLoaders = 1 << 10
	// maxLoaderReadings bounds those of a recording, of all processes together: 2.6 MB.
	maxLoaderReadings = 1 << 16
	// maxQueueReadings bounds those of the queues of all loaders together: 22 minutes of one at 50 a second, then half as many.
	maxQueueReadings = 1 << 16
	// maxPasses bounds the passes of a recording, of which the first and the last reading are kept.
	maxPasses = maxLoaderReadings / 4
)

// loaders keeps what is read of the loaders of all processes.
type loaders struct {
	list     []Loader
	of       map[Loader]int
	readings []LoaderReading // in order of time for each thread
	passes   map[passKey]bool
	left     bool // some were left out
	queues   []QueueReading
	// Of the readings of a loader's queue one of so many is kept, so that those of a long recording are spread evenly.
	queueStride int
	queueSeen   map[int]int // readings, kept or not, by loader
}

// passKey is a pass of a thread.
type passKey struct{ process, thread, pass int }

// ReadLoader takes what was read of a loader; r.Loader is filled in. The calls for one thread come in order of time.
func (b *Builder) ReadLoader(l Loader, r LoaderReading) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := &b.loaders
	if k.passes == nil {
		k.passes = make(map[passKey]bool)
	}
	_, known := k.of[l]
	pass := passKey{l.Process, l.Thread, r.Pass}
	if !known && len(k.list) >= maxLoaders || !k.passes[pass] && len(k.passes) >= maxPasses {
		k.left = true
		return
	}
	k.passes[pass] = true
	r.At, r.Loader = max(r.At, 0), k.intern(l)
	if k.readings = append(k.readings, r); len(k.readings) > maxLoaderReadings {
		k.thin()
	}
}

func (k *loaders) intern(l Loader) int {
	id, known := k.of[l]
	if known {
		return id
	}
	if k.of == nil {
		k.of = make(map[Loader]int)
	}
	id = len(k.list)
	k.list, k.of[l] = append(k.list, l), id
	return id
}

// ReadQueue takes what was read of the queue of a loader's workers; r.Loader is filled in. The calls for one loader come in order of time.
func (b *Builder) ReadQueue(l Loader, r QueueReading) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := &b.loaders
	if _, known := k.of[l]; !known && len(k.list) >= maxLoaders {
		k.left = true
		return
	}
	r.At, r.Loader = max(r.At, 0), k.intern(l)
	if k.queueSeen == nil {
		k.queueSeen, k.queueStride = make(map[int]int), 1
	}
	n := k.queueSeen[r.Loader]
	if k.queueSeen[r.Loader]++; n%k.queueStride != 0 {
		return
	}
	if k.queues = append(k.queues, r); len(k.queues) >= maxQueueReadings {
		k.thinQueues()
	}
}

// thinQueues leaves out every second reading of each queue, and of those to come.
func (k *loaders) thinQueues() {
	k.queueStride *= 2
	counted := make(map[int]int)
	kept := k.queues[:0]
	for _, r := range k.queues {
		if counted[r.Loader]%2 == 0 {
			kept = append(kept, r)
		}
		counted[r.Loader]++
	}
	k.queues = kept
}

// thin leaves out every second reading, but for the first and the last of each pass.
func (k *loaders) thin() {
	key := func(r *LoaderReading) passKey {
		l := k.list[r.Loader]
		return passKey{l.Process, l.Thread, r.Pass}
	}
	last := make(map[passKey]int, len(k.passes))
	for i := range k.readings {
		last[key(&k.readings[i])] = i
	}
	counted := make(map[passKey]int, len(k.passes))
	kept := k.readings[:0]
	for i, r := range k.readings {
		pass := key(&r)
		if n := counted[pass]; n%2 == 0 || i == last[pass] {
			kept = append(kept, r)
		}
		counted[pass]++
	}
	k.readings = kept
}

// cutReadings keeps what was read between two times; at is where a reading has its own.
func cutReadings[R any](all []R, from, to Nanos, at func(*R) *Nanos) (out []R) {
	for _, r := range all {
		if when := at(&r); *when >= from && *when <= to {
			*when -= from
			out = append(out, r)
		}
	}
	return out
}

func (r *LoaderReading) at() *Nanos { return &r.At }
func (r *QueueReading) at() *Nanos  { return &r.At }

// cutLoaders gives the processes of loaders their new indices.
func cutLoaders(all []Loader, place func(int) int) (out []Loader) {
	for _, l := range all {
		l.Process = place(l.Process)
		out = append(out, l)
	}
	return out
}
