package analyses

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// memoryDevice is a memory's place: type (0 CPU, else accelerator) and id.
type memoryDevice struct {
	kind int8
	id   int16
}

func (d memoryDevice) String() string {
	if d.kind == 0 {
		return "cpu"
	}
	return fmt.Sprintf("device %d", d.id)
}

func compareMemories(a, b memoryDevice) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.id, b.id))
}

// memoryChange is one allocation or release.
type memoryChange struct {
	memoryDevice
	at                         int64 // ns since the epoch
	bytes, allocated, reserved int64 // the change; totals after it, None where they were not recorded
	cycle                      int32 // of the rank, from 1 on; set when it is known
}

func (c *memoryChange) setCycle(n int) { c.cycle = int32(n) }

// observeMemory lists the changes by device, then time. The profiler knows what
// is reserved on accelerators only.
func observeMemory(r *recording) series[memoryChange] {
	m := &r.t.Memory
	s := series[memoryChange]{zero: math.MaxInt64}
	for row, at := range m.Time {
		c := memoryChange{
			memoryDevice: memoryDevice{m.DeviceType[row], m.DeviceID[row]}, at: r.t.UnixNs(at),
			bytes: m.Bytes[row], allocated: m.Allocated[row], reserved: m.Reserved[row],
		}
		if c.kind == 0 {
			c.id, c.reserved = 0, table.None
		}
		s.zero = min(s.zero, c.at)
		s.changes = append(s.changes, c)
	}
	slices.SortStableFunc(s.changes, func(a, b memoryChange) int {
		return cmp.Or(compareMemories(a.memoryDevice, b.memoryDevice), cmp.Compare(a.at, b.at))
	})
	return s
}

const noMemory = "no [memory] records: profile with profile_memory=True"

// answerMemory has a row per device, the highest totals and those at the end;
// and the changes themselves.
func answerMemory(a asked[series[memoryChange]]) []*table.Table {
	peaks := table.New(TableMemoryPeaks, "Memory peaks",
		&table.Column{Name: "rank", Kind: table.Int},
		&table.Column{Name: "device", Kind: table.Text},
		&table.Column{Name: "peak_allocated_bytes", Kind: table.Bytes},
		&table.Column{Name: "peak_at_us", Kind: table.Micros}, // since the first memory record
		&table.Column{Name: "peak_reserved_bytes", Kind: table.Bytes},
		&table.Column{Name: "end_allocated_bytes", Kind: table.Bytes},
		&table.Column{Name: "end_reserved_bytes", Kind: table.Bytes},
		&table.Column{Name: "allocations", Kind: table.Int},
		&table.Column{Name: "frees", Kind: table.Int})
	over := table.New(TableMemoryTimeline, "Memory over time",
		&table.Column{Name: "rank", Kind: table.Int},
		&table.Column{Name: "device", Kind: table.Text},
		&table.Column{Name: "cycle", Kind: table.Int},
		&table.Column{Name: "ts_us", Kind: table.Micros}, // since the first memory record
		&table.Column{Name: "bytes", Kind: table.Bytes},
		&table.Column{Name: "allocated_bytes", Kind: table.Bytes},
		&table.Column{Name: "reserved_bytes", Kind: table.Bytes})
	var why notes
	for _, rank := range a.ranks {
		changes, zero := joinSeries(rank.parts, func(a, b memoryChange) int { return compareMemories(a.memoryDevice, b.memoryDevice) })
		note := ""
		if len(changes) == 0 {
			note = noMemory
		}
		why.add(rank.rank, note)
		runsOf(changes, func(a, b memoryChange) bool { return a.memoryDevice == b.memoryDevice }, func(run []memoryChange) {
			peak, reserved := run[0], int64(table.None)
			var allocations, frees int
			for _, c := range run {
				if c.allocated > peak.allocated {
					peak = c
				}
				reserved = max(reserved, c.reserved)
				allocations += count(c.bytes > 0)
				frees += count(c.bytes < 0)
			}
			last := run[len(run)-1]
			peaks.Add(rank.rank, peak.String(), peak.allocated, micros(peak.at-zero), reserved, last.allocated, last.reserved, allocations, frees)
		})
		if !a.opts.wants(TableMemoryTimeline) {
			continue
		}
		for _, c := range changes {
			over.Add(rank.rank, c.String(), int(c.cycle), micros(c.at-zero), c.bytes, c.allocated, c.reserved)
		}
	}
	peaks.Note, over.Note = why.String(), why.String()
	return []*table.Table{peaks, over}
}
