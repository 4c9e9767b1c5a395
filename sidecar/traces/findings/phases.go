package findings

import "github.com/omni-perf/omni-perf/sidecar/traces/analyses"

// leastPhase is the share of the devices' work that a second phase must have: inference has one.
const leastPhase = 0.01

// phases is what the devices' work was for, of training.
func phases(t Tables) *Finding {
	work, all := sumBy(t.get(analyses.TablePhases), "phase", "device_us")
	f := &Finding{ID: Phases, Unit: Share, Evidence: t.onDevices(map[string]float64{"device_us": all})}
	known := 0
	for phase := analyses.Forward; phase <= analyses.OtherPhase; phase++ {
		part := ratio(work[phase.String()], all)
		f.Evidence[phase.String()+"_share"] = part
		if phase == analyses.OtherPhase || part < leastPhase {
			continue
		}
		known++
		if part > f.Value {
			f.Value, f.Name = part, phase.String()
		}
	}
	if known < 2 {
		return nil
	}
	return f
}
