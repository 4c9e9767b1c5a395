package torchtrace

import (
	"cmp"
	"fmt"
	"slices"
)

// device is a memory's place: type (0 CPU, else accelerator) and id.
type device struct {
	kind int8
	id   int16
}

func (d device) String() string {
	if d.kind == 0 {
		return "cpu"
	}
	return fmt.Sprintf("device %d", d.id)
}

// memoryByDevice lists the rows of MemoryChanges per device, by time.
func memoryByDevice(t *Trace) (devices []device, rows map[device][]int) {
	m := &t.Memory
	rows = map[device][]int{}
	for row := range m.Time {
		d := device{m.DeviceType[row], m.DeviceID[row]}
		if rows[d] == nil {
			devices = append(devices, d)
		}
		rows[d] = append(rows[d], row)
	}
	slices.SortFunc(devices, func(a, b device) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.id, b.id)) })
	for _, d := range devices {
		slices.SortStableFunc(rows[d], func(a, b int) int { return cmp.Compare(m.Time[a], m.Time[b]) })
	}
	return devices, rows
}

const noMemory = "no [memory] records: profile with profile_memory=True"

// memoryPeaks has a row per device: the highest totals and the totals at the end.
func memoryPeaks(v *view) *Table {
	t := newTable(TableMemoryPeaks, "Memory peaks",
		&Column{Name: "rank", Kind: Int},
		&Column{Name: "device", Kind: Text},
		&Column{Name: "peak_allocated_bytes", Kind: Bytes},
		&Column{Name: "peak_at_us", Kind: Micros}, // since the first memory record
		&Column{Name: "peak_reserved_bytes", Kind: Bytes},
		&Column{Name: "end_allocated_bytes", Kind: Bytes},
		&Column{Name: "end_reserved_bytes", Kind: Bytes},
		&Column{Name: "allocations", Kind: Int},
		&Column{Name: "frees", Kind: Int})
	m := &v.t.Memory
	if m.Len() == 0 {
		t.Note = noMemory
		return t
	}
	zero := slices.Min(m.Time)
	devices, rows := memoryByDevice(v.t)
	for _, d := range devices {
		list := rows[d]
		peak, reserved, at := m.Allocated[list[0]], int64(0), m.Time[list[0]]
		var allocations, frees int
		for _, row := range list {
			if m.Allocated[row] > peak {
				peak, at = m.Allocated[row], m.Time[row]
			}
			reserved = max(reserved, m.Reserved[row])
			allocations += b2i(m.Bytes[row] > 0)
			frees += b2i(m.Bytes[row] < 0)
		}
		last := list[len(list)-1]
		t.add(v.t.Rank, d.String(), peak, micros(at-zero), reserved, m.Allocated[last], m.Reserved[last], allocations, frees)
	}
	return t
}

// memoryTimeline has a row per change.
func memoryTimeline(v *view) *Table {
	t := newTable(TableMemoryTimeline, "Memory over time",
		&Column{Name: "rank", Kind: Int},
		&Column{Name: "device", Kind: Text},
		&Column{Name: "ts_us", Kind: Micros}, // since the first memory record
		&Column{Name: "bytes", Kind: Bytes},
		&Column{Name: "allocated_bytes", Kind: Bytes},
		&Column{Name: "reserved_bytes", Kind: Bytes})
	m := &v.t.Memory
	if m.Len() == 0 {
		t.Note = noMemory
		return t
	}
	zero := slices.Min(m.Time)
	devices, rows := memoryByDevice(v.t)
	for _, d := range devices {
		for _, row := range rows[d] {
			t.add(v.t.Rank, d.String(), micros(m.Time[row]-zero), m.Bytes[row], m.Allocated[row], m.Reserved[row])
		}
	}
	return t
}
