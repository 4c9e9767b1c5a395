package profiler

import (
	"sync"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/gpu"
)

// CUPTI's buffers on a device took 1 GiB of it after many kernels in some versions (docs/exact.md). A device whose
// memory grows while less than that is free may run out of it because it is recorded.
const (
	scarce = 1 << 30
	grown  = 16 << 20 // more than CUPTI takes as it begins, and than a driver's figure wavers
)

// deviceMemory is what was last read of each device's memory, for those who have to spare it.
type deviceMemory struct {
	mu     sync.Mutex
	latest map[int]deviceReading
}

type deviceReading struct {
	gpu.Memory
	at time.Time
}

func (d *deviceMemory) read(device int, m gpu.Memory) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.latest == nil {
		d.latest = make(map[int]deviceReading)
	}
	d.latest[device] = deviceReading{m, time.Now()}
}

// watch returns a function that reports whether from now on the memory of a device has become scarce, and more of it used.
func (d *deviceMemory) watch() func() bool {
	began, least := time.Now(), make(map[int]uint64)
	return func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		for device, m := range d.latest {
			if m.at.Before(began) {
				continue
			}
			if before, known := least[device]; !known || m.Used < before {
				least[device] = m.Used
			}
			if m.Used >= least[device]+grown && m.Total-min(m.Used, m.Total) < scarce {
				return true
			}
		}
		return false
	}
}
