package glance

import (
	"maps"
	"slices"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

func TestFiguresByPlainNames(t *testing.T) {
	cpu, peak, joules, samples := int64(3e9), int64(5<<20), 42.0, int64(8)
	d := &report.Document{
		Document: report.Kind, Version: report.Version, DurationNS: 2e9, Headline: report.Headline{Text: "half of it was loading"},
		Hosts:     make([]report.Host, 1),
		Targets:   []report.Target{{Kind: report.TargetScript, Name: "train.py", EndNS: 2e9}},
		Processes: []report.Process{{PID: 100, Role: "script", CPUNS: &cpu, PeakAtLeastBytes: &peak}},
		Devices: []report.Device{
			{Used: true, BusyNS: 5e8, IdleNS: 1e9, UnknownNS: 5e8, EnergyJ: &joules}, {BusyNS: 0, IdleNS: 2e9},
		},
		Spans: report.Spans{First: report.Column{0}},
		Nodes: report.Nodes{Parent: report.Column{0}, Frame: report.Column{0}},
		Steps: []report.Step{
			{StartNS: 0, EndNS: 5e8, DataWaitNS: 1e8, Samples: &samples}, {StartNS: 5e8, EndNS: 1e9, Samples: &samples},
		},
		Enumerations: report.Enumerations{
			State: []string{"python", "native", "waiting", "io", "gil", "off", "unknown"}, Code: []string{"own"},
		},
	}
	r, err := report.Check(d)
	if err != nil {
		t.Fatal(err)
	}
	got := PlainOf(r)
	want := map[string]float64{
		"duration_s": 2, "cpu_s": 3, "gpu_idle_s": 1, "gpu_known_s": 1.5, "gpu_energy_j": 42, "peak_memory_at_least_bytes": 5 << 20,
		"steps": 2, "steps_per_s": 2, "samples_per_s": 16, "step_median_s": 0.5, "step_p95_s": 0.5, "data_wait_s": 0.1,
	}
	if !maps.Equal(got.Figures, want) {
		t.Errorf("got %v, want %v", got.Figures, want)
	}
	if got.Name != "train.py" || got.Headline != d.Headline.Text {
		t.Errorf("got %q, %q", got.Name, got.Headline)
	}
	d.Processes[0].CPUNS, d.Processes[0].PeakAtLeastBytes, d.Devices, d.Steps = nil, nil, nil, nil
	if r, err = report.Check(d); err != nil {
		t.Fatal(err)
	}
	if names := slices.Collect(maps.Keys(PlainOf(r).Figures)); len(names) != 1 || names[0] != "duration_s" {
		t.Errorf("of what is not known there are figures: %v", names)
	}
}
