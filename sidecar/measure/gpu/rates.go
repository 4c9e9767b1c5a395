package gpu

import (
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// rates reads nvmlDeviceGetUtilizationRates, the last resort: a mean over the
// past 1/6 to 1 s (nvml.h l. 249) whose exact window nobody knows. It is taken
// for the time since the reading before.
type rates struct {
	d    *nvmlDevice
	last int64
}

func openRates(d *nvmlDevice) (Activity, error) {
	r := &rates{d: d}
	_, err := r.read()
	r.last = timeline.Monotonic()
	return r, err
}

func (r *rates) Source() string            { return "NVML utilization rates" }
func (r *rates) Period() time.Duration     { return assumedPeriod }
func (r *rates) Resolution() time.Duration { return maxPeriod }
func (r *rates) Close()                    {}
func (r *rates) Finish() ([]Window, error) { return r.Read() }

func (r *rates) read() (float64, error) {
	var u nvml.Utilization
	err := r.d.api.call("nvmlDeviceGetUtilizationRates", func() (code nvml.Return) {
		u, code = r.d.handle.GetUtilizationRates()
		return code
	})
	return float64(u.Gpu), err
}

func (r *rates) Read() ([]Window, error) {
	value, err := r.read()
	if err != nil {
		return nil, err
	}
	now := timeline.Monotonic()
	w := newWindow(max(r.last, now-int64(maxPeriod)), now)
	w.Values[Util] = value
	r.last = now
	return []Window{w}, nil
}
