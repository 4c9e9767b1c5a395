package findings

import (
	"math"

	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
)

// leastWork is the share of the devices' work from which on the efficiency of a kind of operators matters.
const leastWork = 0.1

// efficiency is how near to the device's peaks the operators came that compute most.
func efficiency(t Tables) *Finding {
	kinds := t.get(analyses.TableEfficiencyKinds)
	work := map[string]float64{}
	reached := map[string]float64{} // µs that the peaks allow, and of what time
	rated := map[string]float64{}
	all := 0.0
	for r := range kinds.Len() {
		kind, us := kinds.TextAt("kind", r), kinds.FloatAt("device_us", r)
		all += us
		work[kind] += us
		if of := kinds.FloatAt("roofline_share", r); !math.IsNaN(of) {
			known := us * kinds.FloatAt("known_share", r)
			reached[kind] += of * known
			rated[kind] += known
		}
	}
	f := &Finding{ID: Efficiency, Unit: Share}
	for _, kind := range []string{analyses.KindGEMM, analyses.KindAttention, analyses.KindConvolution} {
		if rated[kind] > 0 && work[kind] >= leastWork*all && work[kind] > work[f.Name] {
			f.Name, f.Value = kind, reached[kind]/rated[kind]
		}
	}
	if f.Name == "" {
		return nil
	}
	f.Evidence = t.onDevices(map[string]float64{"device_us": work[f.Name], "work_share": ratio(work[f.Name], all), "known_us": rated[f.Name]})
	return f
}
