package recorder

import (
	"slices"
	"sync"
)

// Limits of what a session keeps.
const (
	maxReports     = 20
	maxReportBytes = 32 << 20
	maxEntries     = 1000 // lines of the list, reports or not
)

// Entry is one line of the list of recordings.
type Entry struct {
	ReportID       string // empty when the report is not kept (any more)
	ExecutionCount int
	Name           string
	DurationS      float64
	Outcome        string
	Headline       string
	FirstLine      string // of the cell
	StartedAt      string // RFC 3339
}

// Shelf keeps the last reports, as gzip JSON, and a record of every recording.
// The zero value is empty; any goroutine may use it.
type Shelf struct {
	mu      sync.Mutex
	entries []Entry // oldest first
	reports []shelved
	bytes   int
}

type shelved struct {
	id   string
	gzip []byte
}

// Add records e and, unless e.ReportID is empty, keeps its report, which the
// Shelf owns from then on. The oldest reports make room; the newest always stays.
func (s *Shelf) Add(e Entry, gzip []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries = append(s.entries, e)
	if over := len(s.entries) - maxEntries; over > 0 {
		s.entries = slices.Delete(s.entries, 0, over)
	}
	if e.ReportID == "" {
		return
	}
	s.reports = append(s.reports, shelved{e.ReportID, gzip})
	s.bytes += len(gzip)
	for len(s.reports) > 1 && (len(s.reports) > maxReports || s.bytes > maxReportBytes) {
		s.dropOldestLocked()
	}
}

func (s *Shelf) dropOldestLocked() {
	gone := s.reports[0]
	s.reports = slices.Delete(s.reports, 0, 1)
	s.bytes -= len(gone.gzip)
	for i := range s.entries {
		if s.entries[i].ReportID == gone.id {
			s.entries[i].ReportID = ""
		}
	}
}

// Report returns the report of that id, the last one for the empty id.
func (s *Shelf) Report(id string) (gzip []byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.reports) - 1; i >= 0; i-- {
		if id == "" || s.reports[i].id == id {
			return s.reports[i].gzip, true
		}
	}
	return nil, false
}

// Entries returns the list, oldest first.
func (s *Shelf) Entries() []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.entries)
}

// Size returns how many reports are kept and their bytes.
func (s *Shelf) Size() (reports, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.reports), s.bytes
}
