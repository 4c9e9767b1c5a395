package findings

import (
	"math"

	"github.com/omni-perf/omni-perf/sidecar/traces/changes"
)

// stepChanged is how the steps' length differs from each run that it is compared with, and what else changed most.
// A change within noise has evidence "noise".
func stepChanged(t Tables) (list []*Finding) {
	table := t.get(changes.TableName)
	for r := range table.Len() {
		if table.TextAt("kind", r) != changes.Step {
			continue
		}
		change, before := table.FloatAt("change_us", r), table.FloatAt("before_us", r)
		f := &Finding{
			ID: StepChanged, Value: math.Abs(change), Unit: Micros, Name: table.TextAt("run", r), Lost: math.Abs(ratio(change, before)),
			Evidence: map[string]float64{
				"before_us": before, "after_us": table.FloatAt("after_us", r), "low_us": table.FloatAt("low_us", r), "high_us": table.FloatAt("high_us", r),
			},
		}
		if table.TextAt("verdict", r) == "" {
			f.Evidence["noise"] = 1
		}
		list = append(list, f)
	}
	return list
}
