package host

import (
	"context"
	"sort"
	"sync"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// ThreadLog remembers for some seconds what the threads of a process did, read
// from their schedstat files at 20 Hz: whether they were on a CPU, waited for one,
// or waited for something else. It serves where stacks come from inside the
// process, whose frames do not show that. Methods may be called from any goroutine.
type ThreadLog struct {
	pid   int
	clock timeline.Clock

	mu      sync.Mutex
	fs      files
	threads map[int][]threadUse // by id, in order of time
}

// threadUse is what a thread had used at a time.
type threadUse struct {
	at          int64          // CLOCK_MONOTONIC
	cpu, queued timeline.Nanos // on a CPU; runnable without one
}

// threadLogLength is how many readings are kept: 10 s, several times the delay
// with which stacks arrive.
const threadLogLength = 200

// NewThreadLog makes an empty log.
func NewThreadLog(pid int) *ThreadLog {
	return &ThreadLog{pid: pid, clock: timeline.Monotonic, fs: newFiles("/proc", "/sys"), threads: make(map[int][]threadUse)}
}

// Watch reads until ctx ends.
func (l *ThreadLog) Watch(ctx context.Context) {
	ticker := time.NewTicker(earlyInterval)
	defer ticker.Stop()
	for {
		l.Read()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Read reads once more.
func (l *ThreadLog) Read() {
	l.mu.Lock()
	defer l.mu.Unlock()
	tids, err := l.fs.Tasks(l.pid)
	if err != nil {
		return // gone
	}
	now := make(map[int][]threadUse, len(tids))
	for _, tid := range tids {
		use, err := l.fs.taskUse(l.pid, tid)
		if err != nil {
			continue
		}
		use.at = l.clock()
		log := append(l.threads[tid], use)
		now[tid] = log[max(len(log)-threadLogLength, 0):]
	}
	for tid, log := range l.threads { // stacks of the dead may still arrive
		if now[tid] == nil && len(log) > 0 && l.clock()-log[len(log)-1].at < int64(10*time.Second) {
			now[tid] = log
		}
	}
	l.threads = now
}

// State returns what a thread did mostly around a time; ok is false when nothing was
// read of it then.
func (l *ThreadLog) State(tid int, at int64) (state timeline.State, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	log := l.threads[tid]
	if len(log) < 2 {
		return timeline.StateUnknown, false
	}
	i := sort.Search(len(log), func(i int) bool { return log[i].at >= at })
	i = min(max(i, 1), len(log)-1)
	before, after := log[i-1], log[i]
	length := timeline.Nanos(after.at - before.at)
	cpu, queued := after.cpu-before.cpu, after.queued-before.queued
	switch {
	case 2*(cpu+queued) < length:
		return timeline.StateWaiting, true
	case cpu < queued:
		return timeline.StateOff, true
	}
	return timeline.StatePython, true
}
