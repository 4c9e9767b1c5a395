package snapshot

import "github.com/omni-perf/omni-perf/sidecar/traces/table"

// How much is listed around allocations that failed.
const (
	mostOOMs     = 3 // per device, the first ones: what comes after is often the same again
	eventsBefore = 20
	eventsAfter  = 5
)

func (a Action) String() string {
	return [...]string{"alloc", "free requested", "free completed", "segment alloc", "segment free", "out of memory", "other"}[a]
}

// aroundOOM lists what happened before and after allocations that failed.
func (s *Snapshot) aroundOOM() *table.Table {
	t := table.New(TableAroundOOM, "What happened around allocations that failed",
		column("device", table.Text), column("failure", table.Int), column("event", table.Int), // from the failure, which is 0
		column("time_us", table.Micros), column("action", table.Text), column("bytes", table.Bytes),
		column("allocated_bytes", table.Bytes), column("reserved_bytes", table.Bytes), // afterwards
		column("place", table.Text))
	for device, d := range s.Devices {
		var failures []int
		for i := range d.Events {
			if d.Events[i].Action == OutOfMemory && len(failures) < mostOOMs {
				failures = append(failures, i)
			}
		}
		if len(failures) == 0 {
			continue
		}
		r := newReplay(s, device)
		for i, e := range d.Events {
			r.apply(e)
			for n, at := range failures {
				if i >= at-eventsBefore && i <= at+eventsAfter {
					t.Add(DeviceName(device), n+1, i-at, float64(e.TimeUs-d.Events[0].TimeUs), e.Action.String(), e.Size, r.total, r.reserved, s.Place(e.Stack))
				}
			}
		}
	}
	return t
}
