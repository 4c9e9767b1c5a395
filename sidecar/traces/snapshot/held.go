package snapshot

import (
	"cmp"
	"maps"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// Held is how the memory that the allocator had of one device was divided when the snapshot was taken.
type Held struct {
	Segments                  int
	Reserved                  int64
	InUse, AwaitingFree, Free int64 // of it; together all of it
	LargestFree               int64 // the largest piece of Free
	Releasable                int64 // segments that are wholly free
	Lines                     []HeldLine
	Unplaced                  int64 // of InUse, of which no line of Python is known
}

// HeldLine is what one line allocated and was in use.
type HeldLine struct {
	Frame
	Bytes  int64
	Blocks int
}

// Held divides the memory of a device. Lines are the innermost ones of the user's own, else of Python; without a
// history of allocations there are none.
func (s *Snapshot) Held(device int) Held {
	all, lines := space{}, map[Frame]*HeldLine{}
	var h Held
	for _, segment := range s.Segments {
		if segment.Device != device {
			continue
		}
		all.add(segment)
		for _, b := range segment.Blocks {
			switch b.State {
			case AwaitingFree:
				h.AwaitingFree += b.Size
			case Active:
				h.InUse += b.Size
				f := s.frame(b.Stack)
				if f == nil {
					h.Unplaced += b.Size
					continue
				}
				if lines[*f] == nil {
					lines[*f] = &HeldLine{Frame: *f}
				}
				lines[*f].Bytes += b.Size
				lines[*f].Blocks++
			}
		}
	}
	h.Segments, h.Reserved, h.Free, h.LargestFree, h.Releasable = int(all.count), all.reserved, all.free, all.largestFree, all.releasable
	for _, l := range slices.SortedFunc(maps.Values(lines), func(a, b *HeldLine) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	}) {
		h.Lines = append(h.Lines, *l)
	}
	return h
}

// frame is the innermost frame of the user's own code, else of Python; nil where neither is known.
func (s *Snapshot) frame(id StackID) (python *Frame) {
	if int(id) >= len(s.Stacks) {
		return nil
	}
	for _, f := range s.Stacks[id] {
		switch {
		case !f.isPython():
		case origin.ByName(f.File).Own():
			return f
		case python == nil:
			python = f
		}
	}
	return python
}
