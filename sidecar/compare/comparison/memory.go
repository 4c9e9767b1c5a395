package comparison

import (
	"math"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/significance"
)

// Memory is how the largest resident memory of the recorded program differs. Its JSON names are an interface.
type Memory struct {
	BeforeBytes int64                `json:"before_bytes"` // mean of the runs
	AfterBytes  int64                `json:"after_bytes"`
	ChangeBytes int64                `json:"change_bytes"`
	LowBytes    int64                `json:"low_bytes"` // of the change
	HighBytes   int64                `json:"high_bytes"`
	Verdict     significance.Verdict `json:"verdict"`  // "" is within noise
	AtLeast     [2]bool              `json:"at_least"` // before and after: of a run it is the largest reading, and may have been more
}

// peakMissed is the share by which the largest reading may be below the peak (docs/memory.md).
const peakMissed = 0.15

// memoryOf compares the peaks; nil where one is not known.
func memoryOf(before, after []*report.View) *Memory {
	m := &Memory{}
	var readings [2][]significance.Reading
	for side, runs := range [][]*report.View{before, after} {
		for _, v := range runs {
			peak, atLeast := v.Processes[v.Program()].PeakMemory()
			if peak == nil {
				return nil
			}
			r := significance.Reading{Value: float64(*peak), Noise: timeline.InexactMark}
			if atLeast {
				r.Under, m.AtLeast[side] = peakMissed*r.Value, true
			}
			readings[side] = append(readings[side], r)
		}
	}
	bytes := func(v float64) int64 { return int64(math.Round(v)) }
	d := significance.Of(readings[0], readings[1], Level)
	m.BeforeBytes, m.AfterBytes, m.LowBytes, m.HighBytes, m.Verdict = bytes(d.Before), bytes(d.After), bytes(d.Low), bytes(d.High), d.Verdict
	m.ChangeBytes = m.AfterBytes - m.BeforeBytes
	return m
}
