package kineto

import (
	"os"
	"sync"
	"time"
)

// Progress of a Load. Bytes count the files as stored, before gunzip.
type Progress struct {
	File            string // the file last worked on
	FilesDone       int
	Files           int
	Bytes, AllBytes int64
	Events          int64 // events read so far, all files
	Done            bool  // true in the last call only
}

// meter counts the progress of several files and reports it at most ten times
// a second, one call at a time.
type meter struct {
	mu     sync.Mutex
	report func(Progress)
	state  Progress
	last   time.Time
}

func newMeter(files []string, report func(Progress)) *meter {
	m := &meter{report: report, state: Progress{Files: len(files)}}
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			m.state.AllBytes += info.Size()
		}
	}
	return m
}

func (m *meter) add(file string, bytes, events int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state.File = file
	m.state.Bytes += bytes
	m.state.Events += events
	if now := time.Now(); m.report != nil && now.Sub(m.last) >= 100*time.Millisecond {
		m.last = now
		m.report(m.state)
	}
}

func (m *meter) fileDone() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state.FilesDone++
}

func (m *meter) finish() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state.Done = true
	if m.report != nil {
		m.report(m.state)
	}
}
