package gpu

import (
	"fmt"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// gpmPeriod is just above the 100 ms two samples must lie apart (nvml.h l. 13889).
const gpmPeriod = 102 * time.Millisecond

// gpmLate is how old the counters are that a sample has, on average. The driver takes them each 100 ms, at times of its
// own, and hands them out some time later: on an H100 they were, in two sessions, 40 to 190 ms old (docs/decisions/gpm-late.md).
const gpmLate = 110 * time.Millisecond

// gpmMetrics says which of GPM's metrics we ask for. Its PCIe figures are MiB/s.
var gpmMetrics = []struct {
	metric Metric
	id     nvml.GpmMetricId
	factor float64
}{
	{Util, nvml.GPM_METRIC_GRAPHICS_UTIL, 1},
	{SM, nvml.GPM_METRIC_SM_UTIL, 1},
	{Occupancy, nvml.GPM_METRIC_SM_OCCUPANCY, 1},
	{Tensor, nvml.GPM_METRIC_ANY_TENSOR_UTIL, 1},
	{DRAM, nvml.GPM_METRIC_DRAM_BW_UTIL, 1},
	{PCIeTx, nvml.GPM_METRIC_PCIE_TX_PER_SEC, 1 << 20},
	{PCIeRx, nvml.GPM_METRIC_PCIE_RX_PER_SEC, 1 << 20},
}

// gpm reads the counters of Hopper and newer: the means between two samples
// that we take ourselves, so their times are ours too.
type gpm struct {
	d         *nvmlDevice
	last, new nvml.GpmSample
	lastAt    int64         // of its counters, CLOCK_MONOTONIC; 0 = no sample yet
	late      time.Duration // by how much counters are older than the sample
	sum       time.Duration // of the windows' lengths
	count     int
	query     nvml.GpmMetricsGetType // 13 KB, kept
}

func openGPM(d *nvmlDevice) (Activity, error) {
	for _, f := range []string{"nvmlGpmSampleAlloc", "nvmlGpmSampleFree", "nvmlGpmSampleGet", "nvmlGpmMigSampleGet", "nvmlGpmMetricsGet"} {
		if !d.api.has(f) {
			return nil, fmt.Errorf("%s: %w", f, ErrUnsupported)
		}
	}
	var support nvml.GpmSupport
	err := d.api.call("nvmlGpmQueryDeviceSupport", func() (code nvml.Return) {
		support, code = d.whole.GpmQueryDeviceSupport()
		return code
	})
	if err != nil {
		return nil, err
	}
	if support.IsSupportedDevice == 0 {
		return nil, fmt.Errorf("GPM: %w: it needs Hopper or newer", ErrUnsupported)
	}
	g := &gpm{d: d}
	if !d.info.Simulated { // whose counters are of the moment
		g.late = gpmLate
	}
	for _, sample := range []*nvml.GpmSample{&g.last, &g.new} {
		err := d.api.call("nvmlGpmSampleAlloc", func() (code nvml.Return) {
			*sample, code = d.api.lib.GpmSampleAlloc()
			if code != nvml.SUCCESS {
				*sample = nil
			}
			return code
		})
		if err != nil {
			g.Close()
			return nil, err
		}
	}
	if _, err := g.Read(); err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}

func (g *gpm) Source() string        { return "GPM" }
func (g *gpm) Period() time.Duration { return gpmPeriod }

// Resolution is the mean length of the windows, which are longer than asked for
// where the machine is busy; the first ones say little.
func (g *gpm) Resolution() time.Duration {
	if g.count < 5 {
		return gpmPeriod
	}
	return g.sum / time.Duration(g.count)
}

// Finish leaves a rest of less than 100 ms unknown, for which GPM has no figure, and what is later than its counters.
func (g *gpm) Finish() ([]Window, error) { return g.Read() }

func (g *gpm) Close() {
	for _, sample := range []nvml.GpmSample{g.last, g.new} {
		if sample != nil {
			sample.Free()
		}
	}
	g.last, g.new = nil, nil
}

func (g *gpm) Read() ([]Window, error) {
	before := timeline.Monotonic()
	if g.lastAt != 0 && before-int64(g.late)-g.lastAt < int64(100*time.Millisecond) {
		return nil, nil
	}
	if err := g.sample(); err != nil {
		return nil, err
	}
	after := timeline.Monotonic()
	from, at := g.lastAt, before+(after-before)/2-int64(g.late)
	defer func() {
		g.last, g.new = g.new, g.last
		g.lastAt = at
	}()
	if from == 0 {
		return nil, nil
	}
	g.query.NumMetrics = uint32(len(gpmMetrics))
	g.query.Sample1, g.query.Sample2 = g.last, g.new
	for i, m := range gpmMetrics {
		g.query.Metrics[i] = nvml.GpmMetric{MetricId: uint32(m.id)}
	}
	err := g.d.api.call("nvmlGpmMetricsGet", func() nvml.Return { return g.d.api.lib.GpmMetricsGet(&g.query) })
	if err != nil {
		return nil, err
	}
	w := newWindow(from, at)
	for i, m := range gpmMetrics {
		if got := g.query.Metrics[i]; got.NvmlReturn == uint32(nvml.SUCCESS) {
			w.Values[m.metric] = got.Value * m.factor
		}
	}
	g.sum += time.Duration(at - from)
	g.count++
	return []Window{w}, nil
}

func (g *gpm) sample() error {
	if g.d.mig {
		return g.d.api.call("nvmlGpmMigSampleGet", func() nvml.Return { return g.new.MigGet(g.d.whole, g.d.instance) })
	}
	return g.d.api.call("nvmlGpmSampleGet", func() nvml.Return { return g.new.Get(g.d.whole) })
}
