package report

import (
	"math"

	"github.com/omni-perf/omni-perf/sidecar/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/timeline"
	"github.com/omni-perf/omni-perf/sidecar/wording"
)

// addDiagnosis fills GPUs, Idle, Steps, Regions and Findings, and returns the
// idle seconds of each source line.
func (r *Report) addDiagnosis(rec *timeline.Recording, d *diagnose.Diagnosis, n *names, text func(string, int) string) map[place]float64 {
	r.GPUs, r.Steps, r.Regions, r.Findings, r.HeadlineLimits = []GPU{}, []Step{}, []Region{}, []Finding{}, []int{}
	idle := make(map[place]float64)
	if d == nil {
		return idle
	}
	for _, g := range d.GPUs {
		r.GPUs = append(r.GPUs, gpu(rec, g))
	}
	known := false // whether the steps' device time is
	if d.Idle != nil {
		known = true
		r.Idle = idleOf(d.Idle, d.GPUs, n, text)
		for _, l := range d.Idle.Lines {
			idle[place{l.Place.File, l.Place.Line}] += l.Nanos.Seconds()
		}
	}
	for _, s := range d.Steps {
		step := Step{StartS: s.Start.Seconds(), EndS: s.End.Seconds(), Name: clean(s.Name), DataWaitS: s.DataWait.Seconds()}
		if known && s.Unknown < s.End-s.Start {
			busy := s.Busy.Seconds()
			step.BusyS = &busy
		}
		r.Steps = append(r.Steps, step)
	}
	for _, g := range d.Regions {
		r.Regions = append(r.Regions, Region{Name: clean(g.Name), Count: g.Count,
			TotalS: g.Total.Seconds(), P50S: g.P50.Seconds(), P95S: g.P95.Seconds()})
	}
	s := wording.Scope{Duration: rec.Duration, Place: n.place}
	for _, f := range d.Findings {
		r.Findings = append(r.Findings, Finding{
			ID: string(f.ID), Severity: string(f.Severity), Text: s.Finding(f), Hint: wording.Advice(f.Advice),
			File: n.file(f.Place.File), Line: f.Place.Line, SourceText: text(f.Place.File, f.Place.Line),
			Evidence: intervals(f.Evidence), CostS: f.Cost.Seconds(),
		})
	}
	r.addHeadline(d, s)
	return idle
}

func gpu(rec *timeline.Recording, t diagnose.GPUTime) GPU {
	g := GPU{Index: t.Device, BusyS: t.Busy.Seconds(), IdleS: t.Idle.Seconds(), UnknownS: t.Unknown.Seconds(), Used: t.Used}
	for _, known := range rec.GPUs {
		if known.Index == t.Device {
			g.UUID, g.Name, g.Source = clean(known.UUID), clean(known.Name), clean(known.Source)
			g.ResolutionS, g.OtherProcesses, g.Simulated = known.Resolution.Seconds(), known.OtherProcesses, known.Simulated
		}
	}
	return g
}

func idleOf(d *diagnose.Idle, gpus []diagnose.GPUTime, n *names, text func(string, int) string) *Idle {
	out := &Idle{
		GPUIdleS: d.Total.Seconds(), Certainty: wording.Certainty(d.Certainty), Method: string(d.Certainty.Method),
		Devices: []DeviceIdle{}, Causes: causes(d.Causes, d.Certainty.Method, n, text),
	}
	if r2 := d.Certainty.R2; !math.IsNaN(r2) {
		out.R2 = &r2
	}
	for _, dev := range d.Devices {
		shown := DeviceIdle{
			Device: dev.Device, IdleS: dev.Idle.Seconds(), Certainty: wording.Certainty(dev.Certainty),
			Causes: causes(dev.Causes, dev.Certainty.Method, n, text), Intervals: [][2]float64{},
		}
		for _, g := range gpus {
			if g.Device == dev.Device {
				shown.Intervals = intervals(g.Gaps)
			}
		}
		out.Devices = append(out.Devices, shown)
	}
	return out
}

func causes(list []diagnose.CauseIdle, method diagnose.Method, n *names, text func(string, int) string) []Cause {
	out := make([]Cause, 0, len(list))
	for _, c := range list {
		shown := Cause{
			ID: string(c.Cause), Cause: wording.Cause(c.Cause), Seconds: c.Nanos.Seconds(), Share: c.Share,
			File: n.file(c.Place.File), Line: c.Place.Line, SourceText: text(c.Place.File, c.Place.Line),
			Hint: wording.Advice(c.Advice), Evidence: intervals(c.Evidence),
		}
		if method == diagnose.ByAverage {
			bound, low, high := max(c.High-c.Nanos, c.Nanos-c.Low).Seconds(), c.Low.Seconds(), c.High.Seconds()
			shown.BoundS, shown.LowS, shown.HighS = &bound, &low, &high
		}
		out = append(out, shown)
	}
	return out
}

func intervals(list []diagnose.Interval) [][2]float64 {
	out := make([][2]float64, 0, len(list))
	for _, i := range list {
		out = append(out, [2]float64{i.Start.Seconds(), i.End.Seconds()})
	}
	return out
}
