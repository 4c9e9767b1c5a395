package server

import (
	"slices"
	"sync"

	"github.com/omni-perf/omni-perf/sidecar/show/glance"
)

// Limits of what a session keeps. The bytes are in memory, of which a sidecar promises to need little.
const (
	maxReports     = 200
	maxReportBytes = 32 << 20
	maxEntries     = 1000 // lines of the list, reports or not
	// alwaysKept are the last reports, which stay also where earlier ones of longer cells make room.
	alwaysKept = 20
)

// entry is one line of the list of recordings.
type entry struct {
	ReportID       string // empty when the report is not kept (any more)
	ExecutionCount int
	Name           string
	DurationS      float64
	Outcome        string
	Headline       string
	FirstLine      string   // of the cell
	Lines          []string // of it that say something
	StartedAt      string   // RFC 3339
	Short          bool     // below the threshold: of Figures there is what it kept, nothing else
	Figures        glance.Figures
	Output         string // id of the element of the notebook that shows the chart; empty: there is none
}

// shelf keeps reports, as gzip JSON, and a record of every recording.
// The zero value is empty; any goroutine may use it.
type shelf struct {
	mu      sync.Mutex
	entries []entry // oldest first
	reports []shelved
	bytes   int
}

type shelved struct {
	id        string
	durationS float64
	gzip      []byte
}

// Add records e and, unless e.ReportID is empty, keeps its report, which the
// shelf owns from then on. To make room, the reports of short cells go first, but for the
// last ones; the newest always stays.
func (s *shelf) Add(e entry, gzip []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries = append(s.entries, e)
	if over := len(s.entries) - maxEntries; over > 0 {
		s.entries = slices.Delete(s.entries, 0, over)
	}
	if e.ReportID == "" {
		return
	}
	s.reports = append(s.reports, shelved{e.ReportID, e.DurationS, gzip})
	s.bytes += len(gzip)
	for len(s.reports) > 1 && (len(s.reports) > maxReports || s.bytes > maxReportBytes) {
		s.dropLocked()
	}
}

// dropLocked drops the report of the shortest of the earlier cells, or the oldest one.
func (s *shelf) dropLocked() {
	at := 0
	for i := range max(len(s.reports)-alwaysKept, 0) {
		if s.reports[i].durationS < s.reports[at].durationS {
			at = i
		}
	}
	gone := s.reports[at]
	s.reports = slices.Delete(s.reports, at, at+1)
	s.bytes -= len(gone.gzip)
	for i := range s.entries {
		if s.entries[i].ReportID == gone.id {
			s.entries[i].ReportID = ""
		}
	}
}

// Report returns the report of that id, the last one for the empty id.
func (s *shelf) Report(id string) (gzip []byte, ok bool) {
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
func (s *shelf) Entries() []entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.entries)
}

// Size returns how many reports are kept and their bytes.
func (s *shelf) Size() (reports, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.reports), s.bytes
}
