package snapshot

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// Window is a part of a history, from From to To, both included: µs since its first event.
type Window struct{ From, To int64 }

// ParseWindow reads a window, as in "1.2s-1.5s", or a moment, as in "1.2s".
func ParseWindow(text string) (*Window, error) {
	first, last, isRange := strings.Cut(text, "-")
	if !isRange {
		last = first
	}
	from, err1 := time.ParseDuration(strings.TrimSpace(first))
	to, err2 := time.ParseDuration(strings.TrimSpace(last))
	if err1 != nil || err2 != nil || from < 0 || to < from {
		return nil, fmt.Errorf("%q is neither a time nor a range such as 1.2s-1.5s", text)
	}
	return &Window{From: from.Microseconds(), To: to.Microseconds()}, nil
}

// inWindow is what a stack had in a window.
type inWindow struct{ begin, came, went, end, blocks int64 }

// window lists what was there when a window began, what came and went, and what was there at its end, by stack.
func (s *Snapshot) window(w Window, opts Options) *table.Table {
	t := table.New(TableWindow, "Memory in the window",
		column("device", table.Text), column("begin_bytes", table.Bytes), column("came_bytes", table.Bytes), column("went_bytes", table.Bytes),
		column("end_bytes", table.Bytes), column("blocks", table.Int), // at the end
		column("category", table.Text), column("place", table.Text), optional("stack"))
	for _, device := range s.DeviceNumbers() {
		events := s.history(device)
		if len(events) == 0 {
			continue
		}
		if events[0].TimeUs <= 0 {
			t.Note = "This PyTorch recorded no times."
			continue
		}
		groups := s.windowOf(device, events, w)
		var keys []groupKey
		for k := range groups {
			keys = append(keys, k)
		}
		slices.SortFunc(keys, func(a, b groupKey) int {
			return cmp.Or(cmp.Compare(groups[b].end, groups[a].end), cmp.Compare(groups[b].came, groups[a].came),
				cmp.Compare(groups[b].begin, groups[a].begin), cmp.Compare(a.stack, b.stack), cmp.Compare(a.category, b.category))
		})
		for _, k := range keys[:min(len(keys), opts.Rows)] {
			g := groups[k]
			t.Add(DeviceName(device), g.begin, g.came, g.went, g.end, g.blocks, k.category.String(), s.Place(k.stack), s.Trace(k.stack))
		}
	}
	return t
}

func (s *Snapshot) windowOf(device int, events []Event, w Window) map[groupKey]*inWindow {
	groups := map[groupKey]*inWindow{}
	of := func(a allocation) *inWindow {
		k := groupKey{s.category(a), a.stack}
		if groups[k] == nil {
			groups[k] = &inWindow{}
		}
		return groups[k]
	}
	r := newReplay(s, device)
	i, start := 0, events[0].TimeUs
	for ; i < len(events) && events[i].TimeUs-start < w.From; i++ {
		r.apply(events[i])
	}
	for _, a := range r.live {
		of(a).begin += a.size
	}
	for ; i < len(events) && events[i].TimeUs-start <= w.To; i++ {
		e := events[i]
		switch e.Action {
		case Alloc:
			of(allocation{size: e.Size, stack: e.Stack}).came += e.Size
		case FreeCompleted:
			if a, live := r.live[e.Address]; live {
				of(a).went += a.size
			}
		}
		r.apply(e)
	}
	for _, a := range r.live {
		g := of(a)
		g.end += a.size
		g.blocks++
	}
	return groups
}

// mostRanges bounds how many pieces of reserved memory are followed; a history with more is damaged.
const mostRanges = 1 << 14

// piece is reserved memory from an address on.
type piece struct{ at, size int64 }

// segmentsAt reports how the memory of each device was divided at its peak, at the first allocations that failed and at the window's end.
func (s *Snapshot) segmentsAt(peaks []moment, window *Window) *table.Table {
	t := table.New(TableSegmentsAt, "Reserved memory and its fragments, at some moments",
		column("device", table.Text), column("at", table.Text), column("time_us", table.Micros), column("segments", table.Int),
		column("reserved_bytes", table.Bytes), column("used_bytes", table.Bytes), column("free_bytes", table.Bytes),
		column("largest_free_bytes", table.Bytes), column("fragmented_share", table.Ratio))
	for _, p := range peaks {
		if p.device == HostMemory {
			continue // a segment of it is one block
		}
		events := s.history(p.device)
		add := func(at string, event int) {
			f := s.dividedAt(moment{device: p.device, event: event})
			fragmented, when := 0.0, math.NaN()
			if f.free > 0 {
				fragmented = 1 - float64(f.largestFree)/float64(f.free)
			}
			if len(events) > 0 && events[0].TimeUs > 0 {
				when = float64(events[max(0, event)].TimeUs - events[0].TimeUs)
			}
			t.Add(DeviceName(p.device), at, when, f.count, f.reserved, f.used, f.free, f.largestFree, fragmented)
		}
		add("peak", p.event)
		failures := 0
		for i := range events {
			if events[i].Action == OutOfMemory && failures < mostOOMs {
				failures++
				add("failure", i)
			}
		}
		if window != nil && len(events) > 0 && events[0].TimeUs > 0 {
			at, _ := slices.BinarySearchFunc(events, window.To, func(e Event, to int64) int { return cmp.Compare(e.TimeUs-events[0].TimeUs, to+1) })
			add("window", at-1)
		}
	}
	return t
}

// dividedAt finds the segments there were after an event, by undoing what came later, and the free pieces between what was in use.
func (s *Snapshot) dividedAt(m moment) (f space) {
	var pieces []piece
	for _, segment := range s.Segments {
		if segment.Device == m.device && len(pieces) < mostRanges {
			pieces = append(pieces, piece{segment.Address, segment.Total})
		}
	}
	slices.SortFunc(pieces, func(a, b piece) int { return cmp.Compare(a.at, b.at) })
	for _, e := range slices.Backward(s.history(m.device)[m.event+1:]) {
		switch e.Action {
		case SegmentAlloc:
			pieces = without(pieces, piece{e.Address, e.Size})
		case SegmentFree:
			if at, _ := slices.BinarySearchFunc(pieces, e.Address, func(p piece, at int64) int { return cmp.Compare(p.at, at) }); len(pieces) < mostRanges {
				pieces = slices.Insert(pieces, at, piece{e.Address, e.Size})
			}
		}
	}
	var live []piece
	for at, a := range s.liveAt(m) {
		live = append(live, piece{at, blockOf(a.size)})
	}
	slices.SortFunc(live, func(a, b piece) int { return cmp.Compare(a.at, b.at) })
	for _, p := range pieces {
		f.count++
		f.reserved += p.size
		from, _ := slices.BinarySearchFunc(live, p.at, func(l piece, at int64) int { return cmp.Compare(l.at, at) })
		at := p.at
		gap := func(until int64) {
			if until > at {
				f.free += until - at
				f.largestFree = max(f.largestFree, until-at)
			}
		}
		for ; from < len(live) && live[from].at-p.at < p.size; from++ {
			gap(live[from].at)
			at = max(at, live[from].at+live[from].size)
		}
		gap(p.at + p.size)
	}
	f.used = f.reserved - f.free
	return f
}

// without takes a piece out of what is reserved: all of one, or a part, as expandable segments have.
func without(pieces []piece, gone piece) []piece {
	i, found := slices.BinarySearchFunc(pieces, gone.at, func(p piece, at int64) int { return cmp.Compare(p.at, at) })
	if !found {
		i--
	}
	if i < 0 || gone.at-pieces[i].at >= pieces[i].size {
		return pieces
	}
	before := piece{pieces[i].at, gone.at - pieces[i].at}
	behind := piece{gone.at + gone.size, pieces[i].at + pieces[i].size - gone.at - gone.size}
	pieces = slices.Delete(pieces, i, i+1)
	for _, rest := range []piece{behind, before} {
		if rest.size > 0 {
			pieces = slices.Insert(pieces, i, rest)
		}
	}
	return pieces
}
