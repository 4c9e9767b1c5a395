package gpu

import (
	"errors"
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// nvmlDevice is a Device of NVML.
type nvmlDevice struct {
	api      *binding
	handle   nvml.Device // the GPU or the MIG instance
	whole    nvml.Device // the GPU
	mig      bool
	instance int // the MIG instance's number on its GPU
	info     Info
}

func (d *nvmlDevice) Info() Info { return d.info }

func (d *nvmlDevice) Memory() (Memory, error) {
	// The second version leaves what the driver reserves for itself out of
	// "used"; the first counts it in.
	if d.api.found("nvmlDeviceGetMemoryInfo_v2") == nil {
		var m nvml.Memory_v2
		err := d.api.call("nvmlDeviceGetMemoryInfo", func() (code nvml.Return) {
			m, code = d.handle.GetMemoryInfo_v2()
			return code
		})
		if err == nil {
			return Memory{Used: m.Used, Total: m.Total}, nil
		}
		if !errors.Is(err, ErrUnsupported) || d.api.found("nvmlDeviceGetMemoryInfo") != nil {
			return Memory{}, err
		}
	}
	var m nvml.Memory
	err := d.api.call("nvmlDeviceGetMemoryInfo", func() (code nvml.Return) {
		m, code = d.handle.GetMemoryInfo()
		return code
	})
	return Memory{Used: m.Used, Total: m.Total}, err
}

const valueNotAvailable = ^uint64(0)

func (d *nvmlDevice) Processes() ([]Process, error) {
	var infos []nvml.ProcessInfo
	err := d.api.call("nvmlDeviceGetComputeRunningProcesses", func() (code nvml.Return) {
		infos, code = d.handle.GetComputeRunningProcesses()
		return code
	})
	if err != nil {
		return nil, err
	}
	list := make([]Process, 0, len(infos))
	for _, p := range infos {
		bytes := p.UsedGpuMemory
		if bytes == valueNotAvailable {
			bytes = 0
		}
		list = append(list, Process{PID: int(p.Pid), Bytes: bytes})
	}
	return list, nil
}

func (d *nvmlDevice) Power() (float64, error) {
	var milliwatts uint32
	err := d.api.call("nvmlDeviceGetPowerUsage", func() (code nvml.Return) {
		milliwatts, code = d.whole.GetPowerUsage()
		return code
	})
	return float64(milliwatts) / 1000, err
}

func (d *nvmlDevice) Energy() (float64, error) {
	var millijoules uint64
	err := d.api.call("nvmlDeviceGetTotalEnergyConsumption", func() (code nvml.Return) {
		millijoules, code = d.whole.GetTotalEnergyConsumption()
		return code
	})
	return float64(millijoules) / 1000, err
}

func (d *nvmlDevice) Clock() (float64, error) {
	var megahertz uint32
	err := d.api.call("nvmlDeviceGetClockInfo", func() (code nvml.Return) {
		megahertz, code = d.whole.GetClockInfo(nvml.CLOCK_SM)
		return code
	})
	return float64(megahertz), err
}

func (d *nvmlDevice) Temperature() (float64, error) {
	if d.api.has("nvmlDeviceGetTemperatureV") {
		var t nvml.Temperature
		err := d.api.call("nvmlDeviceGetTemperatureV", func() (code nvml.Return) {
			t, code = d.whole.GetTemperatureV().V1()
			return code
		})
		if err == nil || errors.Is(err, ErrLost) {
			return float64(t.Temperature), err
		}
	}
	// Deprecated in API 13, and the only one before it.
	var celsius uint32
	err := d.api.call("nvmlDeviceGetTemperature", func() (code nvml.Return) {
		celsius, code = d.whole.GetTemperature(nvml.TEMPERATURE_GPU)
		return code
	})
	return float64(celsius), err
}

// Bits of nvmlClocksEventReasons (nvml.h l. 3335) that mean lost speed. Idle,
// clocks set by the user and display clocks do not.
var throttleReasons = []struct {
	bit    uint64
	reason timeline.ThrottleReason
}{
	{0x04, timeline.PowerCap},
	{0x08, timeline.HardwareSlow},
	{0x20, timeline.ThermalSoftware},
	{0x40, timeline.ThermalHardware},
	{0x80, timeline.PowerBrake},
}

func (d *nvmlDevice) Throttle() (Throttle, error) {
	var bits uint64
	// The newer name first; both return the same mask.
	function, read := "nvmlDeviceGetCurrentClocksEventReasons", d.whole.GetCurrentClocksEventReasons
	if !d.api.has(function) {
		function, read = "nvmlDeviceGetCurrentClocksThrottleReasons", d.whole.GetCurrentClocksThrottleReasons
	}
	err := d.api.call(function, func() (code nvml.Return) {
		bits, code = read()
		return code
	})
	var t Throttle
	for _, r := range throttleReasons {
		if bits&r.bit != 0 {
			t.Reasons = append(t.Reasons, r.reason)
		}
	}
	return t, err
}

// Activities opens GPM where the device has it, then the sample buffer, then
// the utilization rates. On MIG only GPM knows a part's activity.
func (d *nvmlDevice) Activities() ([]Activity, error) {
	var list []Activity
	var refused []error
	add := func(a Activity, err error) {
		if err != nil {
			refused = append(refused, err)
			return
		}
		list = append(list, a)
	}
	add(openGPM(d))
	if d.mig {
		if len(list) == 0 {
			return nil, fmt.Errorf("the activity of a MIG instance is only known to GPM, on Hopper and newer: %w", errors.Join(refused...))
		}
		return list, nil
	}
	add(openSamples(d))
	add(openRates(d))
	if len(list) == 0 {
		return nil, errors.Join(refused...)
	}
	return list, nil
}
