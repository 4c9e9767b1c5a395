package host

import (
	"fmt"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

const (
	// maxThreadTracks bounds the threads that get a track of their own.
	maxThreadTracks = 64
	// worthTrack is the CPU time from which a thread gets one.
	worthTrack = timeline.Nanos(5 * time.Millisecond)
	// manyThreads are read once a second only: each costs a file.
	manyThreads = 32
)

// threads follows the CPU time of the target's threads.
type threads struct {
	s     *sampler
	known map[int]*ThreadCPU
	given int // tracks
	own   int // of the profiler, at the last reading
	off   bool
}

type ThreadCPU struct {
	since  timeline.Nanos // when it was first seen
	first  timeline.Nanos // CPU time then
	at     timeline.Nanos // of the last reading
	cpu    timeline.Nanos // then
	writer *timeline.TrackWriter
}

func newThreads(s *sampler) *threads {
	return &threads{s: s, known: make(map[int]*ThreadCPU)}
}

func (t *threads) read(at timeline.Nanos, everyone bool) {
	if t.off || (!everyone && len(t.known) > manyThreads) {
		return
	}
	tids, err := t.s.fs.Tasks(t.s.c.pid)
	if err != nil {
		return // the target is gone; the family's reading says so
	}
	alive := make(map[int]bool, len(tids))
	t.own = 0
	for _, tid := range tids {
		if t.s.c.opts.Own(tid) {
			t.own++
			continue
		}
		cpu, err := t.s.fs.taskCPU(t.s.c.pid, tid)
		if err != nil {
			if tid == t.s.c.pid { // CONFIG_SCHED_INFO is off, or a sandbox's /proc
				t.off = true
				t.s.sink.Note(timeline.NoteUnavailable, "CPU time of threads", err.Error())
				return
			}
			continue
		}
		alive[tid] = true
		t.report(at, tid, cpu)
	}
	for tid, th := range t.known {
		if alive[tid] {
			continue
		}
		if th.writer != nil {
			th.writer.End("the thread has ended")
		}
		delete(t.known, tid)
	}
}

func (t *threads) report(at timeline.Nanos, tid int, cpu timeline.Nanos) {
	th := t.known[tid]
	if th == nil || cpu < th.cpu { // new, or the id was used again
		t.known[tid] = &ThreadCPU{since: at, first: cpu, at: at, cpu: cpu}
		return
	}
	if th.writer == nil && cpu-th.first >= worthTrack {
		if t.given >= maxThreadTracks {
			t.s.sink.Note(timeline.NoteLeftOut, "thread.TID.cpu", fmt.Sprintf("more than %d threads used the CPU; later ones have no track", maxThreadTracks))
			return
		}
		t.given++
		th.writer = t.s.sink.Track(timeline.TrackSpec{
			ID: fmt.Sprintf("thread.%d.cpu", tid), Name: t.s.fs.taskName(t.s.c.pid, tid), Kind: timeline.KindRate, Unit: "cores", Source: "/proc/PID/task/TID/schedstat",
			Resolution: t.s.interval, PID: t.s.c.pid, Device: -1, Limit: 1,
		})
		th.at, th.cpu = th.since, th.first // its first point reaches back to when it was first seen
	}
	if th.writer == nil {
		return
	}
	if window := at - th.at; window > 0 {
		th.writer.AddWindow(th.at, at, (cpu-th.cpu).Seconds()/window.Seconds())
		th.at, th.cpu = at, cpu
	}
}
