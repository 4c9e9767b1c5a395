package gpu

import (
	"errors"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Errors are those that the driver reports of a device from when they were asked for.
type Errors interface {
	// Read returns the Xid numbers of those since the last call, and does not wait.
	Read() ([]int, error)
	Close()
}

// Errors begins to take note of them.
func (d *nvmlDevice) Errors() (Errors, error) {
	e := &nvmlErrors{api: d.api}
	err := d.api.call("nvmlEventSetCreate", func() (code nvml.Return) {
		e.set, code = d.api.lib.EventSetCreate()
		return code
	})
	if err != nil {
		return nil, err
	}
	err = d.api.call("nvmlDeviceRegisterEvents", func() nvml.Return {
		return d.whole.RegisterEvents(nvml.EventTypeXidCriticalError, e.set)
	})
	if err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

type nvmlErrors struct {
	api *binding
	set nvml.EventSet
}

// atOnce bounds what is read in one call: a broken device may report without end.
const atOnce = 32

func (e *nvmlErrors) Read() (xids []int, err error) {
	for range atOnce {
		var data nvml.EventData
		timeout := false
		err := e.api.call("nvmlEventSetWait", func() (code nvml.Return) {
			if data, code = e.set.Wait(0); code == nvml.ERROR_TIMEOUT {
				timeout, code = true, nvml.SUCCESS
			}
			return code
		})
		if err != nil || timeout {
			return xids, err
		}
		xids = append(xids, int(data.EventData))
	}
	return xids, nil
}

func (e *nvmlErrors) Close() {
	_ = e.api.call("nvmlEventSetFree", func() nvml.Return { return e.set.Free() })
}

const (
	errorInterval = 500 * time.Millisecond
	maxXids       = 64 // of one device; the first ones say why
)

// readErrors reads what errors the driver has reported since, and returns when to come again. Where it reports none,
// as of an instance or an old driver, that is no loss to speak of.
func (g *group) readErrors(now time.Time) time.Time {
	if g.errors == nil || now.Before(g.errorsAt) {
		return g.errorsAt
	}
	xids, err := g.errors.Read()
	for _, code := range xids {
		if len(g.known.Xids) < maxXids {
			g.known.Xids = append(g.known.Xids, timeline.Xid{At: max(g.sink.Since(timeline.Monotonic()), 0), Code: code})
		}
	}
	if len(xids) > 0 {
		g.describe()
	}
	g.errorsAt = now.Add(errorInterval)
	if err != nil && !errors.Is(err, ErrLost) {
		g.closeErrors()
	}
	return g.errorsAt
}

func (g *group) closeErrors() {
	if g.errors != nil {
		g.errors.Close()
		g.errors, g.errorsAt = nil, time.Time{}
	}
}
