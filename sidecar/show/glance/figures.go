package glance

import (
	"time"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// Plain is the figures of a report by names that say what they are, for trackers of experiments and scripts. What is
// not known, or was not there, is absent.
type Plain struct {
	Name     string             `json:"name"`
	Headline string             `json:"headline"`
	Figures  map[string]float64 `json:"figures"`
}

// PlainOf reads them.
func PlainOf(r *report.View) Plain {
	p := Plain{Name: r.Name, Headline: r.Headline.Text, Figures: map[string]float64{"duration_s": report.Seconds(r.DurationNS)}}
	if p.Name == "" {
		p.Name = r.Target().Name
	}
	f := FiguresOf(r)
	seconds := func(name string, d *time.Duration) {
		if d != nil {
			p.Figures[name] = d.Seconds()
		}
	}
	bytes := func(name string, n *int64) {
		if n != nil {
			p.Figures[name] = float64(*n)
		}
	}
	seconds("cpu_s", f.CPU)
	seconds("gpu_idle_s", f.Idle)
	if f.Idle != nil {
		seconds("gpu_known_s", &f.Known)
	}
	if f.Energy != nil {
		p.Figures["gpu_energy_j"] = *f.Energy
	}
	if f.PeakAtLeast {
		bytes("peak_memory_at_least_bytes", f.Peak)
	} else {
		bytes("peak_memory_bytes", f.Peak)
	}
	bytes("kept_memory_bytes", f.Kept)
	if t := r.StepTimes(); t.Count > 0 {
		p.Figures["steps"] = float64(t.Count)
		p.Figures["step_median_s"] = report.Seconds(t.MedianNS)
		p.Figures["step_p95_s"] = report.Seconds(t.P95NS)
		p.Figures["data_wait_s"] = report.Seconds(t.DataWaitNS)
		for name, rate := range map[string]float64{
			"steps_per_s": t.PerSecond(), "samples_per_s": t.Samples.PerSecond(), "tokens_per_s": t.Tokens.PerSecond(),
		} {
			if rate > 0 {
				p.Figures[name] = rate
			}
		}
	}
	return p
}

// PlainJSON writes them.
func PlainJSON(r *report.View) ([]byte, error) { return indented(PlainOf(r)) }
