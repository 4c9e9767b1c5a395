package server

import (
	"fmt"
	"testing"
)

func TestTheShelfKeepsTheLastReports(t *testing.T) {
	var s shelf
	if _, ok := s.Report(""); ok {
		t.Error("an empty shelf has a report")
	}
	const more = 5
	for i := range maxReports + more {
		s.Add(entry{ReportID: fmt.Sprint(i)}, []byte{byte(i)})
		s.Add(entry{Outcome: "below the threshold"}, nil)
	}
	if n, size := s.Size(); n != maxReports || size != maxReports {
		t.Errorf("%d reports of %d bytes, want %d of 1 byte", n, size, maxReports)
	}
	last := maxReports + more - 1
	for id, want := range map[string]byte{"": byte(last), fmt.Sprint(last): byte(last), fmt.Sprint(more): more} {
		if got, ok := s.Report(id); !ok || got[0] != want {
			t.Errorf("report %q is %v, %v; want %d", id, got, ok, want)
		}
	}
	if _, ok := s.Report(fmt.Sprint(more - 1)); ok {
		t.Error("one report too many is still there")
	}
	entries := s.Entries()
	if len(entries) != 2*(maxReports+more) || entries[2*(more-1)].ReportID != "" || entries[2*more].ReportID != fmt.Sprint(more) {
		t.Errorf("%d entries; those of reports that were dropped have to be known for it, and those alone", len(entries))
	}
}

// A notebook of many small cells and a few long ones: it is the long ones that somebody will ask for.
func TestReportsOfShortCellsMakeRoomFirst(t *testing.T) {
	var s shelf
	s.Add(entry{ReportID: "training", DurationS: 3600}, []byte{1})
	for i := range 2 * maxReports {
		s.Add(entry{ReportID: fmt.Sprint(i), DurationS: 0.1}, []byte{1})
	}
	if _, ok := s.Report("training"); !ok {
		t.Error("the report of the long cell was dropped in favour of short ones")
	}
	for i := 2*maxReports - alwaysKept + 1; i < 2*maxReports; i++ {
		if _, ok := s.Report(fmt.Sprint(i)); !ok {
			t.Errorf("report %d, one of the last %d, was dropped", i, alwaysKept)
		}
	}
}

func TestTheShelfIsBoundedInBytes(t *testing.T) {
	var s shelf
	for i := range 4 {
		s.Add(entry{ReportID: fmt.Sprint(i)}, make([]byte, 12<<20))
	}
	if n, size := s.Size(); n != 2 || size != 24<<20 {
		t.Errorf("%d reports of %d bytes, want two of 12 MiB", n, size)
	}
	s.Add(entry{ReportID: "huge"}, make([]byte, 40<<20))
	if n, _ := s.Size(); n != 1 {
		t.Errorf("%d reports beside a huge one", n-1)
	}
	if _, ok := s.Report("huge"); !ok {
		t.Error("the newest report was not kept")
	}
}

func TestTheShelfForgetsOldEntries(t *testing.T) {
	var s shelf
	for i := range maxEntries + 10 {
		s.Add(entry{ExecutionCount: i}, nil)
	}
	if e := s.Entries(); len(e) != maxEntries || e[0].ExecutionCount != 10 {
		t.Errorf("%d entries from %d on, want %d from 10 on", len(e), e[0].ExecutionCount, maxEntries)
	}
}
