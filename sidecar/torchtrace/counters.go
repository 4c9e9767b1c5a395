package torchtrace

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// queueChange is a change of the number of outstanding operations of a stream:
// up when a runtime call enqueues one, down when it starts to run.
type queueChange struct {
	stream int64
	at     int64 // ns
	delta  int32
	length int32 // after the change
}

// queueChanges lists them by stream, then time.
func queueChanges(v *view) []queueChange {
	keep := func(*call) bool { return true }
	if v.hta {
		names := symSet(v.t, htaQueued)
		keep = func(c *call) bool { return c.row >= 0 && names[c.name] }
	}
	joined := pairs(v, keep)
	if v.hta { // index_correlation > 0: HTA overlooks what links to row 0
		joined = slices.DeleteFunc(joined, func(p launched) bool {
			return p.span.row >= 0 && v.t.Device.index[p.span.row] == 0
		})
	}
	changes := make([]queueChange, 0, 2*len(joined))
	for _, p := range joined {
		changes = append(changes, queueChange{stream: p.span.stream, at: p.call.start, delta: 1})
	}
	for _, p := range joined {
		changes = append(changes, queueChange{stream: p.span.stream, at: p.span.start, delta: -1})
	}
	slices.SortStableFunc(changes, func(a, b queueChange) int {
		return cmp.Or(cmp.Compare(a.stream, b.stream), cmp.Compare(a.at, b.at))
	})
	for i := range changes {
		c := &changes[i]
		c.length = c.delta
		if i > 0 && changes[i-1].stream == c.stream {
			c.length += changes[i-1].length
		}
	}
	return changes
}

// queueSummary describes the queue length per stream, over its changes.
func queueSummary(v *view, changes []queueChange) *Table {
	t := newTable(TableQueueLength, "Queue length by stream", append([]*Column{
		{Name: "rank", Kind: Int},
		{Name: "stream", Kind: Int}},
		summaryColumns("queue_length_", "", Float)...)...)
	for len(changes) > 0 {
		n := 0
		var lengths []float64
		for n < len(changes) && changes[n].stream == changes[0].stream {
			lengths = append(lengths, float64(changes[n].length))
			n++
		}
		t.add(append([]any{v.t.Rank, changes[0].stream}, describe(lengths).values()...)...)
		changes = changes[n:]
	}
	return t
}

// queueSeries has a row per change.
func queueSeries(v *view, changes []queueChange) *Table {
	t := newTable(TableQueueSeries, "Queue length over time",
		&Column{Name: "rank", Kind: Int},
		&Column{Name: "stream", Kind: Int},
		&Column{Name: "ts_us", HTAName: "ts", Kind: Micros},
		&Column{Name: "queue_length", Kind: Int})
	zero := v.zero()
	for _, c := range changes {
		t.add(v.t.Rank, c.stream, micros(c.at-zero), int(c.length))
	}
	return t
}

// zero is the time that series count from: the rank's first call or span.
func (v *view) zero() int64 {
	zero := int64(math.MaxInt64)
	if len(v.spans) > 0 {
		zero = v.spans[0].start
	}
	for i := range v.calls {
		zero = min(zero, v.calls[i].start)
	}
	return zero
}

// bandwidthChange is the bandwidth in use by one type of copy, after a copy
// started or ended.
type bandwidthChange struct {
	name  string
	at    int64 // ns
	delta float64
	gbps  float64 // after the change
}

// memoryOpType groups copies by direction, as HTA does.
func memoryOpType(name string) string {
	switch {
	case strings.HasPrefix(name, "Memset"):
		return "Memset"
	case !strings.HasPrefix(name, "Memcpy"):
		return "Memcpy Unknown"
	}
	return name[:min(len(name), len("Memcpy DtoH"))]
}

// bandwidthChanges lists them by type, then time.
func bandwidthChanges(v *view) []bandwidthChange {
	var starts, ends []bandwidthChange
	for i := range v.spans {
		s := &v.spans[i]
		if s.kind != MemoryOp {
			continue
		}
		gbps, known := v.bandwidth(s)
		if !known {
			continue
		}
		dur := s.dur
		if dur == 0 {
			dur = 1000 // HTA's way not to lose it
		}
		name := memoryOpType(v.t.Text(s.name))
		starts = append(starts, bandwidthChange{name: name, at: s.start, delta: gbps})
		ends = append(ends, bandwidthChange{name: name, at: s.start + dur, delta: -gbps})
	}
	changes := append(ends, starts...)
	if v.hta {
		changes = append(starts, ends...)
	}
	slices.SortStableFunc(changes, func(a, b bandwidthChange) int {
		return cmp.Or(strings.Compare(a.name, b.name), cmp.Compare(a.at, b.at))
	})
	running := 0
	for i := range changes {
		c := &changes[i]
		c.gbps = c.delta
		if i > 0 && changes[i-1].name == c.name {
			c.gbps += changes[i-1].gbps
		} else {
			running = 0
		}
		if math.Signbit(c.delta) {
			running--
		} else {
			running++
		}
		if running == 0 && !v.hta {
			c.gbps = 0 // no remainder of the floating-point sum
		}
	}
	return changes
}

// bandwidth of a copy as recorded, else from bytes and duration.
func (v *view) bandwidth(s *span) (gbps float64, known bool) {
	if s.row < 0 {
		return 0, v.hta
	}
	if gbps = v.t.Device.GBps[s.row]; !math.IsNaN(gbps) {
		return gbps, true
	}
	if v.hta {
		return 0, true
	}
	if bytes := v.t.Device.Bytes[s.row]; bytes > 0 && s.dur > 0 {
		return float64(bytes) / float64(s.dur), true // bytes per ns are GB per s
	}
	return 0, false
}

// bandwidthSummary describes the bandwidth in use per type, over its changes,
// times without any left out.
func bandwidthSummary(v *view, changes []bandwidthChange) *Table {
	t := newTable(TableMemoryBandwidth, "Memory bandwidth by type of copy", append([]*Column{
		{Name: "rank", Kind: Int},
		{Name: "name", Kind: Text}},
		summaryColumns("memory_bw_gbps_", "_gbps", GBps)...)...)
	for len(changes) > 0 {
		n := 0
		var used []float64
		for n < len(changes) && changes[n].name == changes[0].name {
			if changes[n].gbps > 0 {
				used = append(used, changes[n].gbps)
			}
			n++
		}
		if len(used) > 0 {
			t.add(append([]any{v.t.Rank, changes[0].name}, describe(used).values()...)...)
		}
		changes = changes[n:]
	}
	return t
}

// bandwidthSeries has a row per change.
func bandwidthSeries(v *view, changes []bandwidthChange) *Table {
	t := newTable(TableBandwidthSeries, "Memory bandwidth over time",
		&Column{Name: "rank", Kind: Int},
		&Column{Name: "name", Kind: Text},
		&Column{Name: "ts_us", HTAName: "ts", Kind: Micros},
		&Column{Name: "memory_bw_gbps", Kind: GBps})
	zero := v.zero()
	for _, c := range changes {
		t.add(v.t.Rank, c.name, micros(c.at-zero), c.gbps)
	}
	return t
}
