package program

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// queue knows for how long the threads of a process have waited for a CPU, by the scheduler's count, from time to time. A
// recording knows it of its own length, which begins late where omni-perf has to wait for a CPU itself. One goroutine.
type queue struct{ readings []queueReading }

type queueReading struct {
	at     time.Time
	waited map[int]time.Duration // by thread, since its start
}

// keptReadings bounds what a queue remembers: some cells, of which the follower may be behind.
const keptReadings = 64

// read reads it anew. Of a thread whose file cannot be read nothing is known.
func (q *queue) read(pid int) {
	tasks := filepath.Join("/proc", strconv.Itoa(pid), "task")
	folder, err := os.Open(tasks)
	if err != nil {
		return
	}
	defer folder.Close()
	names, _ := folder.Readdirnames(-1)
	r := queueReading{waited: make(map[int]time.Duration, len(names))}
	for _, name := range names {
		tid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if _, waited, ok := scheduled(pid, tid); ok {
			r.waited[tid] = waited
		}
	}
	r.at = time.Now()
	q.add(r)
}

// scheduled is for how long a thread has been on a CPU, and has waited for one, by the scheduler's count.
func scheduled(pid, tid int) (used, waited time.Duration, ok bool) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "task", strconv.Itoa(tid), "schedstat"))
	fields := bytes.Fields(text)
	if err != nil || len(fields) < 2 {
		return 0, 0, false
	}
	ns := [2]int64{}
	for i := range ns {
		if ns[i], err = strconv.ParseInt(string(fields[i]), 10, 64); err != nil {
			return 0, 0, false
		}
	}
	return time.Duration(ns[0]), time.Duration(ns[1]), true
}

func (q *queue) add(r queueReading) {
	q.readings = append(q.readings, r)
	if len(q.readings) > keptReadings {
		q.readings = q.readings[1:]
	}
}

// within is for how long the main thread waited between two times, at most, and the other one that waited longest: the
// main thread waits for others, as for the one that sends its output. It is known between the last reading before and the
// first one behind; 0: there are none.
func (q *queue) within(main int, from, to time.Time) time.Duration {
	var before, behind *queueReading
	for i := range q.readings {
		r := &q.readings[i]
		if !r.at.After(from) {
			before = r
		}
		if behind == nil && !r.at.Before(to) {
			behind = r
		}
	}
	if before == nil || behind == nil {
		return 0
	}
	var own, other time.Duration
	for tid, waited := range behind.waited {
		waited -= before.waited[tid] // 0 of one that started meanwhile
		if tid == main {
			own = waited
		} else {
			other = max(other, waited)
		}
	}
	return max(own+other, 0)
}
