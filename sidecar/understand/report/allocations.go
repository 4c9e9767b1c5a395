package report

import (
	"cmp"
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

// Allocations are those of a cell, each of which was recorded in the kernel.
type Allocations struct {
	Process       int              `json:"process"`
	Tool          string           `json:"tool"` // what recorded them: "memray 1.20.0"
	Count         int64            `json:"count"`
	PeakBytes     int64            `json:"peak_bytes"`     // most that the cell had allocated at once
	KeptBytes     int64            `json:"kept_bytes"`     // of it at the cell's end
	UnplacedBytes int64            `json:"unplaced_bytes"` // of PeakBytes, those that no line of the user's own allocated
	ReadingNS     int64            `json:"reading_ns"`     // for which the kernel read the recording, after the cell
	Lines         []AllocationLine `json:"lines"`          // most bytes at the peak first
}

// AllocationLine is the innermost line of the user's own that allocated, by whatever it called.
type AllocationLine struct {
	File            int    `json:"file"`
	Line            int    `json:"line"`
	PeakBytes       int64  `json:"peak_bytes"`
	PeakAllocations int64  `json:"peak_allocations"`
	KeptBytes       int64  `json:"kept_bytes"`
	Function        string `json:"function"` // that allocated most of it, the innermost one
}

// AllocatedStack is a stack and what it allocated.
type AllocatedStack struct {
	Places    []activity.Place // innermost first
	Function  string           // the innermost
	PeakBytes int64
	Count     int64 // of PeakBytes
	KeptBytes int64
}

// RecordedAllocations are a cell's before they are by line.
type RecordedAllocations struct {
	Allocations
	Stacks []AllocatedStack
}

// Files are those of its places.
func (r *RecordedAllocations) Files() (files []string) {
	seen := make(map[string]bool)
	for _, s := range r.Stacks {
		for _, at := range s.Places {
			if !seen[at.File] {
				seen[at.File] = true
				files = append(files, at.File)
			}
		}
	}
	return files
}

const maxAllocationLines = 500

// allocations fills Allocations.
func (b *builder) allocations(recorded *RecordedAllocations) {
	if recorded == nil {
		return
	}
	a := recorded.Allocations
	a.Process, a.Tool, a.Lines = b.doc.Targets[0].Process, clean(a.Tool), []AllocationLine{}
	type sum struct {
		line      AllocationLine
		at        activity.Place
		functions map[string]int64
	}
	sums := make(map[activity.Place]*sum)
	placed := int64(0)
	for _, s := range recorded.Stacks {
		i := slices.IndexFunc(s.Places, func(at activity.Place) bool {
			return at.Line > 0 && at.Line <= math.MaxInt32 && b.names.origins.Own(at.File)
		})
		if i < 0 {
			continue
		}
		at := s.Places[i]
		if sums[at] == nil {
			sums[at] = &sum{at: at, functions: make(map[string]int64)}
		}
		l := sums[at]
		l.line.PeakBytes, l.line.PeakAllocations, l.line.KeptBytes = l.line.PeakBytes+s.PeakBytes, l.line.PeakAllocations+s.Count, l.line.KeptBytes+s.KeptBytes
		l.functions[s.Function] += max(s.PeakBytes, s.KeptBytes)
		placed += s.PeakBytes
	}
	a.UnplacedBytes = max(a.PeakBytes-placed, 0)
	list := make([]*sum, 0, len(sums))
	for _, s := range sums {
		list = append(list, s)
	}
	slices.SortFunc(list, func(x, y *sum) int {
		return cmp.Or(cmp.Compare(y.line.PeakBytes, x.line.PeakBytes), cmp.Compare(y.line.KeptBytes, x.line.KeptBytes), x.at.Compare(y.at))
	})
	for _, s := range list[:min(len(list), maxAllocationLines)] {
		b.wanted[s.at] = true
		s.line.File, s.line.Line = b.codes.file(s.at.File), s.at.Line
		s.line.Function = clean(mostOf(s.functions))
		a.Lines = append(a.Lines, s.line)
	}
	b.doc.Allocations = &a
}

// mostOf is the key of the largest value, of equal ones the first in order.
func mostOf(bytes map[string]int64) (most string) {
	first := true
	for name, n := range bytes {
		if first || n > bytes[most] || n == bytes[most] && name < most {
			most, first = name, false
		}
	}
	return most
}

// inFiles is the same with other places.
func (a *Allocations) inFiles(visit func(file, line **int)) *Allocations {
	out := *a
	out.Lines = slices.Clone(a.Lines)
	for i := range out.Lines {
		file, line := &out.Lines[i].File, &out.Lines[i].Line
		visit(&file, &line)
		out.Lines[i].File = *file
	}
	return &out
}

func (c *checker) allocations() {
	a := c.d.Allocations
	if a == nil {
		return
	}
	c.index("allocations.process", a.Process, len(c.d.Processes))
	for _, v := range []int64{a.Count, a.PeakBytes, a.KeptBytes, a.UnplacedBytes, a.ReadingNS} {
		c.amount("allocations", v)
	}
	for i := range a.Lines {
		l := &a.Lines[i]
		c.index("allocations.lines.file", l.File, len(c.d.Files))
		c.must(l.Line > 0 && l.Line <= math.MaxInt32, "allocations.lines.line is %d", l.Line)
		for _, v := range []int64{l.PeakBytes, l.PeakAllocations, l.KeptBytes} {
			c.amount("allocations.lines", v)
		}
	}
}
