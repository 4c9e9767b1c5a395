package snapshot

import (
	"cmp"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// What snapshots are compared by, as TableChanges has it.
const (
	ChangePeak     = "peak"     // the highest of a device
	ChangeReserved = "reserved" // then
	ChangeCategory = "category" // of the peak
	ChangePlace    = "place"    // of the peak
	ChangeLive     = "live"     // at the end, by place
)

var changeKinds = []string{ChangePeak, ChangeReserved, ChangeCategory, ChangePlace, ChangeLive}

// leastChange is what a category or place must have changed by to have a row, of the higher peak.
const leastChange = 0.001

type changeKey struct{ device, kind, name string }

// Compare sets the memory of a snapshot beside that of another: what each had at its peak, and at the end.
func Compare(before, after *Snapshot) *table.Table {
	t := table.New(TableChanges, "Memory against another snapshot",
		column("device", table.Text), column("kind", table.Text), // peak, reserved, category, place, live
		optional("name"),
		column("before_bytes", table.Bytes), column("after_bytes", table.Bytes), column("change_bytes", table.Bytes))
	old, now := before.figures(), after.figures()
	var keys []changeKey
	for k := range old {
		keys = append(keys, k)
	}
	for k := range now {
		if _, both := old[k]; !both {
			keys = append(keys, k)
		}
	}
	change := func(k changeKey) int64 { return now[k] - old[k] }
	size := func(k changeKey) int64 { return max(change(k), -change(k)) }
	slices.SortFunc(keys, func(a, b changeKey) int {
		return cmp.Or(cmp.Compare(a.device, b.device), cmp.Compare(slices.Index(changeKinds, a.kind), slices.Index(changeKinds, b.kind)),
			cmp.Compare(size(b), size(a)), cmp.Compare(a.name, b.name))
	})
	for _, k := range keys {
		peak := changeKey{device: k.device, kind: ChangePeak}
		if k.name != "" && float64(size(k)) <= leastChange*float64(max(old[peak], now[peak])) {
			continue
		}
		t.Add(k.device, k.kind, k.name, old[k], now[k], change(k))
	}
	return t
}

// figures are what a snapshot is compared by, in bytes.
func (s *Snapshot) figures() map[changeKey]int64 {
	sums := map[changeKey]int64{}
	for _, p := range s.peaks() {
		device := DeviceName(p.device)
		sums[changeKey{device, ChangePeak, ""}], sums[changeKey{device, ChangeReserved, ""}] = p.total, p.reserved
		for _, a := range s.liveAt(p) {
			sums[changeKey{device, ChangeCategory, s.category(a).String()}] += a.size
			if a.stack != 0 {
				sums[changeKey{device, ChangePlace, s.Place(a.stack)}] += a.size
			}
		}
	}
	for _, segment := range s.Segments {
		for _, b := range segment.Blocks {
			if b.State != Inactive {
				sums[changeKey{DeviceName(segment.Device), ChangeLive, s.Place(b.Stack)}] += b.Requested
			}
		}
	}
	return sums
}
