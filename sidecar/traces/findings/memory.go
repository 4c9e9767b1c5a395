package findings

import (
	"math"

	"github.com/omni-perf/omni-perf/sidecar/traces/snapshot"
)

// memoryPeak is the highest use of a device's memory in a snapshot, and what had
// most of it.
func memoryPeak(t Tables) *Finding {
	peaks := t.get(snapshot.TablePeaks)
	top := -1
	for r := range peaks.Len() {
		if top < 0 || peaks.FloatAt("peak_bytes", r) > peaks.FloatAt("peak_bytes", top) {
			top = r
		}
	}
	if top < 0 || peaks.FloatAt("peak_bytes", top) <= 0 {
		return nil
	}
	f := &Finding{
		ID: MemoryPeak, Value: peaks.FloatAt("peak_bytes", top), Unit: Bytes,
		Name: peaks.TextAt("category", top), Place: parsed(peaks.TextAt("place", top)), On: peaks.TextAt("device", top),
		Evidence: map[string]float64{"reserved_bytes": peaks.FloatAt("reserved_bytes", top)},
	}
	if blocks := peaks.FloatAt("max_memory_allocated_bytes", top); blocks > 0 {
		f.Evidence["max_memory_allocated_bytes"] = blocks
	}
	for name, column := range map[string]string{
		"at_us": "time_us", "history_us": "history_us", "category_share": "category_share", "place_share": "place_share",
	} {
		if v := peaks.FloatAt(column, top); !math.IsNaN(v) {
			f.Evidence[name] = v
		}
	}
	return f
}

// outOfMemory is the largest allocation that failed.
func outOfMemory(t Tables) *Finding {
	failed := t.get(snapshot.TableOutOfMemory)
	worst := -1
	for r := range failed.Len() {
		if worst < 0 || failed.FloatAt("requested_bytes", r) > failed.FloatAt("requested_bytes", worst) {
			worst = r
		}
	}
	if worst < 0 {
		return nil
	}
	return &Finding{
		ID: OutOfMemory, Value: failed.FloatAt("requested_bytes", worst), Unit: Bytes,
		Place: parsed(failed.TextAt("place", worst)), On: failed.TextAt("device", worst),
		Evidence: map[string]float64{"free_bytes": failed.FloatAt("device_free_bytes", worst), "failures": float64(failed.Len())},
	}
}

// unusedReserved is what the allocator held at the end without a use for it.
func unusedReserved(t Tables) *Finding {
	spaces := t.get(snapshot.TableFragmentation)
	worst, free := -1, func(row int) float64 { return spaces.FloatAt("free_bytes", row) }
	for r := range spaces.Len() {
		if spaces.TextAt("segments", r) == "all" && (worst < 0 || free(r) > free(worst)) {
			worst = r
		}
	}
	if worst < 0 {
		return nil
	}
	return &Finding{
		ID: UnusedReserved, Value: ratio(free(worst), spaces.FloatAt("reserved_bytes", worst)), Unit: Share, Threshold: leastUnused,
		On: spaces.TextAt("device", worst),
		Evidence: map[string]float64{
			"free_bytes": free(worst), "reserved_bytes": spaces.FloatAt("reserved_bytes", worst),
			"largest_free_bytes": spaces.FloatAt("largest_free_bytes", worst), "releasable_bytes": spaces.FloatAt("releasable_bytes", worst),
		},
	}
}
