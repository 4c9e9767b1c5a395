package recorder

import (
	"fmt"
	"testing"
)

func TestShelfKeepsTheLastReports(t *testing.T) {
	var s Shelf
	if _, ok := s.Report(""); ok {
		t.Error("an empty shelf has a report")
	}
	for i := 1; i <= 25; i++ {
		s.Add(Entry{ReportID: fmt.Sprint(i)}, []byte{byte(i)})
		s.Add(Entry{Outcome: "below the threshold"}, nil)
	}
	if n, size := s.Size(); n != maxReports || size != maxReports {
		t.Errorf("%d reports of %d bytes, want %d of 1 byte", n, size, maxReports)
	}
	for id, want := range map[string]byte{"": 25, "25": 25, "6": 6} {
		if got, ok := s.Report(id); !ok || got[0] != want {
			t.Errorf("report %q is %v, %v; want %d", id, got, ok, want)
		}
	}
	if _, ok := s.Report("5"); ok {
		t.Error("the 21st last report is still there")
	}
	entries := s.Entries()
	if len(entries) != 50 || entries[8].ReportID != "" || entries[10].ReportID != "6" {
		t.Errorf("%d entries, the fifth cell's report %q, the sixth's %q; want 50, none, 6", len(entries), entries[8].ReportID, entries[10].ReportID)
	}
}

func TestShelfIsBoundedInBytes(t *testing.T) {
	var s Shelf
	for i := range 4 {
		s.Add(Entry{ReportID: fmt.Sprint(i)}, make([]byte, 12<<20))
	}
	if n, size := s.Size(); n != 2 || size != 24<<20 {
		t.Errorf("%d reports of %d bytes, want two of 12 MiB", n, size)
	}
	s.Add(Entry{ReportID: "huge"}, make([]byte, 40<<20))
	if n, _ := s.Size(); n != 1 {
		t.Errorf("%d reports beside a huge one", n-1)
	}
	if _, ok := s.Report("huge"); !ok {
		t.Error("the newest report was not kept")
	}
}

func TestShelfForgetsOldEntries(t *testing.T) {
	var s Shelf
	for i := range maxEntries + 10 {
		s.Add(Entry{ExecutionCount: i}, nil)
	}
	if e := s.Entries(); len(e) != maxEntries || e[0].ExecutionCount != 10 {
		t.Errorf("%d entries from %d on, want %d from 10 on", len(e), e[0].ExecutionCount, maxEntries)
	}
}
