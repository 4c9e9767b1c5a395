package findings

import (
	"math"

	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
)

// servingIdle is the phase of serving that most of the devices' idle time is in.
func servingIdle(t Tables) *Finding {
	phases := t.get(analyses.TableServingPhases)
	idle, all := sumBy(phases, "phase", "idle_us")
	if all <= 0 || !worthACause(t) {
		return nil
	}
	f := &Finding{ID: ServingIdle, Unit: Share, Threshold: leastPlace, Evidence: t.onDevices(map[string]float64{"idle_us": all})}
	for r := range phases.Len() {
		if name := phases.TextAt("phase", r); f.Name == "" || idle[name] > idle[f.Name] {
			f.Name = name
		}
	}
	steps, us, requests := 0.0, 0.0, 0.0
	for r := range phases.Len() {
		if n := phases.FloatAt("steps", r); phases.TextAt("phase", r) == f.Name && n > 0 {
			steps, us = steps+n, us+n*phases.FloatAt("mean_step_us", r)
			if of := phases.FloatAt("mean_requests", r); !math.IsNaN(of) {
				requests += n * of
			}
		}
	}
	f.Value = ratio(idle[f.Name], all)
	f.Lost = t.ofIdle(f.Value)
	f.Evidence["steps"], f.Evidence["mean_step_us"], f.Evidence["mean_requests"] = steps, ratio(us, steps), ratio(requests, steps)
	return f
}
