package findings

import (
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// leastWarmUp is a twentieth of the time.
const leastWarmUp = 0.05

// warmUp is the idle time that the first cycles had beyond that of the later ones. Of several ranks it is said of
// the one that lost most; Lost is that of all.
func warmUp(t Tables) *Finding {
	cycles := t.get(analyses.TableCycles)
	var worst *Finding
	var lost, whole float64
	for from := 0; from < cycles.Len(); {
		to := from + 1
		for to < cycles.Len() && cycles.IntAt("rank", to) == cycles.IntAt("rank", from) {
			to++
		}
		for r := from; r < to; r++ {
			whole += cycles.FloatAt("kernel_time_us", r)
		}
		if f := warmUpOf(cycles, from, to); f != nil {
			lost += f.Evidence["idle_us"]
			if worst == nil || f.Evidence["idle_us"] > worst.Evidence["idle_us"] {
				worst = f
			}
		}
		from = to
	}
	if worst == nil {
		return nil
	}
	worst.Value = ratio(lost, whole)
	worst.Lost = worst.Value
	if cycles.IntAt("rank", 0) == cycles.IntAt("rank", cycles.Len()-1) {
		worst.Rank = nil // there is only this one
	}
	t.onDevices(worst.Evidence)
	return worst
}

// warmUpOf is that of one rank, whose cycles are some rows. What is usual is the median of the second half.
func warmUpOf(cycles *table.Table, from, to int) *Finding {
	if to-from < 2 {
		return nil
	}
	share := func(r int) float64 { return cycles.FloatAt("idle_share", r) }
	var later []float64
	for r := from + (to-from+1)/2; r < to; r++ {
		if s := share(r); !math.IsNaN(s) {
			later = append(later, s)
		}
	}
	if len(later) == 0 {
		return nil
	}
	slices.Sort(later)
	usual := later[(len(later)-1)/2]
	f := &Finding{
		ID: WarmUp, Unit: Share, Threshold: leastWarmUp, Rank: pointer(cycles.IntAt("rank", from)),
		Evidence: map[string]float64{"usual_share": usual},
	}
	var idle, all float64
	for r := from; r < from+(to-from+1)/2; r++ {
		beyond := (share(r) - usual) * cycles.FloatAt("kernel_time_us", r)
		if !(share(r) > usual+leastWarmUp) {
			break
		}
		f.Evidence["idle_us"] += beyond
		f.Evidence["cycles"]++
		idle, all = idle+cycles.FloatAt("idle_time_us", r), all+cycles.FloatAt("kernel_time_us", r)
		if us := cycles.FloatAt("longest_call_us", r); us > f.Evidence["call_us"] {
			f.Name, f.Evidence["call_us"] = cycles.TextAt("longest_call", r), us
		}
	}
	if f.Evidence["cycles"] == 0 {
		return nil
	}
	f.Evidence["idle_share"] = ratio(idle, all)
	if f.Evidence["call_us"] < 0.1*f.Evidence["idle_us"] { // it is not what took the time
		f.Name = ""
		delete(f.Evidence, "call_us")
	}
	return f
}
