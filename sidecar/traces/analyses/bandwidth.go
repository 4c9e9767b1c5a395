package analyses

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// bandwidthChange is the bandwidth in use by one type of copy on a device, after
// a copy started or ended.
type bandwidthChange struct {
	device int32
	name   string
	at     int64 // ns since the epoch
	delta  float64
	gbps   float64 // after the change
	cycle  int32   // of the rank, from 1 on; set when it is known
}

func (c *bandwidthChange) setCycle(n int) { c.cycle = int32(n) }

func compareCopies(a, b bandwidthChange) int {
	return cmp.Or(strings.Compare(a.name, b.name), cmp.Compare(a.device, b.device))
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

// observeBandwidth lists the changes by type and device, then time.
func observeBandwidth(r *recording) series[bandwidthChange] {
	var starts, ends []bandwidthChange
	for i := range r.spans {
		s := &r.spans[i]
		if s.kind != MemoryOp {
			continue
		}
		gbps, known := r.bandwidth(s)
		if !known {
			continue
		}
		dur := s.dur
		if dur == 0 {
			dur = 1000 // HTA's way not to lose it
		}
		c := bandwidthChange{name: memoryOpType(r.t.Text(s.name)), at: r.t.UnixNs(s.start), delta: gbps}
		if !r.hta {
			c.device = r.of[s.device]
		}
		starts = append(starts, c)
		c.at, c.delta = c.at+dur, -gbps
		ends = append(ends, c)
	}
	changes := append(ends, starts...)
	if r.hta {
		changes = append(starts, ends...)
	}
	slices.SortStableFunc(changes, func(a, b bandwidthChange) int {
		return cmp.Or(compareCopies(a, b), cmp.Compare(a.at, b.at))
	})
	addUp(changes, r.hta)
	return series[bandwidthChange]{changes, r.zero()}
}

// addUp sets what is in use after each change.
func addUp(changes []bandwidthChange, hta bool) {
	running := 0
	for i := range changes {
		c := &changes[i]
		c.gbps = c.delta
		if i > 0 && compareCopies(changes[i-1], *c) == 0 {
			c.gbps += changes[i-1].gbps
		} else {
			running = 0
		}
		if math.Signbit(c.delta) {
			running--
		} else {
			running++
		}
		if running == 0 && !hta {
			c.gbps = 0 // no remainder of the floating-point sum
		}
	}
}

// bandwidth of a copy as recorded, else from bytes and duration.
func (r *recording) bandwidth(s *span) (gbps float64, known bool) {
	if s.row < 0 {
		return 0, r.hta
	}
	if gbps = r.t.Device.GBps[s.row]; !math.IsNaN(gbps) {
		return gbps, true
	}
	if r.hta {
		return 0, true
	}
	if bytes := r.t.Device.Bytes[s.row]; bytes > 0 && s.dur > 0 {
		return float64(bytes) / float64(s.dur), true // bytes per ns are GB per s
	}
	return 0, false
}

// answerBandwidth describes the bandwidth in use per type, over its changes on
// all devices, times without any left out.
func answerBandwidth(a asked[series[bandwidthChange]]) []*table.Table {
	summary := table.New(TableMemoryBandwidth, "Memory bandwidth by type of copy", append([]*table.Column{
		{Name: "rank", Kind: table.Int},
		{Name: "name", Kind: table.Text}},
		summaryColumns("memory_bw_gbps_", "_gbps", table.GBps)...)...)
	columns := []*table.Column{{Name: "rank", Kind: table.Int}, {Name: "name", Kind: table.Text}}
	if !a.opts.AsHTA() {
		columns = append(columns, &table.Column{Name: "device", Kind: table.Int})
	}
	over := table.New(TableBandwidthSeries, "Memory bandwidth over time", append(a.seriesColumns(columns),
		&table.Column{Name: "ts_us", HTAName: "ts", Kind: table.Micros},
		&table.Column{Name: "memory_bw_gbps", Kind: table.GBps})...)
	for _, rank := range a.ranks {
		changes, zero := joinSeries(rank.parts, compareCopies)
		runsOf(changes, func(a, b bandwidthChange) bool { return a.name == b.name }, func(run []bandwidthChange) {
			var used []float64
			for _, c := range run {
				if c.gbps > 0 {
					used = append(used, c.gbps)
				}
			}
			if len(used) > 0 {
				summary.Add(append([]any{rank.rank, run[0].name}, describe(used).values()...)...)
			}
		})
		if !a.opts.wants(TableBandwidthSeries) {
			continue
		}
		for _, c := range changes {
			cells := []any{rank.rank, c.name}
			if !a.opts.AsHTA() {
				cells = append(cells, int64(c.device))
			}
			over.Add(append(a.seriesCells(cells, c.cycle), micros(c.at-zero), c.gbps)...)
		}
	}
	return []*table.Table{summary, over}
}
