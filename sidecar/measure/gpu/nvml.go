package gpu

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// binding is the loaded library. A symbol it lacks would end the process when
// called, so every call asks has first.
type binding struct {
	lib   nvml.Interface
	found func(symbol string) error
	known sync.Map // name → bool
}

// has reports whether the library offers a function in any of the versions
// go-nvml would call.
func (b *binding) has(function string) bool {
	if ok, seen := b.known.Load(function); seen {
		return ok.(bool)
	}
	ok := false
	for _, version := range [...]string{"", "_v2", "_v3"} {
		ok = ok || b.found(function+version) == nil
	}
	b.known.Store(function, ok)
	return ok
}

// call runs one NVML function if the library has it.
func (b *binding) call(function string, run func() nvml.Return) error {
	if !b.has(function) {
		return fmt.Errorf("%s: %w: this driver is too old or too new to have it", function, ErrUnsupported)
	}
	return check(function, run())
}

// callError is what an NVML function returned. The library's own texts are not
// asked for: that would be one more symbol that may be missing.
type callError struct {
	function string
	code     nvml.Return
}

var codeTexts = map[nvml.Return]string{
	nvml.ERROR_UNINITIALIZED:           "the driver's library is no longer initialised",
	nvml.ERROR_INVALID_ARGUMENT:        "the driver refused an argument",
	nvml.ERROR_NO_PERMISSION:           "no permission",
	nvml.ERROR_DRIVER_NOT_LOADED:       "the driver is not loaded",
	nvml.ERROR_TIMEOUT:                 "the driver timed out",
	nvml.ERROR_IRQ_ISSUE:               "the driver sees an interrupt problem",
	nvml.ERROR_RESET_REQUIRED:          "the GPU must be reset before it can be used again",
	nvml.ERROR_OPERATING_SYSTEM:        "the operating system blocks the device, by a cgroup perhaps",
	nvml.ERROR_LIB_RM_VERSION_MISMATCH: "the driver was replaced while its library was in use",
	nvml.ERROR_MEMORY:                  "the driver is out of memory",
}

func (e *callError) Error() string {
	text, ok := codeTexts[e.code]
	if !ok {
		text = fmt.Sprintf("NVML error %d", int(e.code))
	}
	switch e.code {
	case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_FUNCTION_NOT_FOUND, nvml.ERROR_ARGUMENT_VERSION_MISMATCH, nvml.ERROR_DEPRECATED:
		text = ErrUnsupported.Error()
	case nvml.ERROR_GPU_IS_LOST:
		text = ErrLost.Error()
	}
	return e.function + ": " + text
}

// Is sorts the codes into the few kinds a collector treats differently.
func (e *callError) Is(target error) bool {
	switch e.code {
	case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_FUNCTION_NOT_FOUND, nvml.ERROR_ARGUMENT_VERSION_MISMATCH, nvml.ERROR_DEPRECATED:
		return target == ErrUnsupported
	case nvml.ERROR_NOT_FOUND, nvml.ERROR_NO_DATA:
		return target == ErrNoData
	case nvml.ERROR_GPU_IS_LOST, nvml.ERROR_UNINITIALIZED, nvml.ERROR_LIB_RM_VERSION_MISMATCH, nvml.ERROR_RESET_REQUIRED:
		return target == ErrLost
	}
	return false
}

func check(function string, code nvml.Return) error {
	if code == nvml.SUCCESS {
		return nil
	}
	return &callError{function: function, code: code}
}

func (b *binding) driverVersion() (version string, err error) {
	err = b.call("nvmlSystemGetDriverVersion", func() (code nvml.Return) {
		version, code = b.lib.SystemGetDriverVersion()
		return code
	})
	return version, err
}

// devices lists the GPUs, and in place of one that is divided its MIG
// instances. A GPU that cannot be opened is left out as long as another can.
func (b *binding) devices(driver string) ([]Device, error) {
	count := 0
	err := b.call("nvmlDeviceGetCount", func() (code nvml.Return) {
		count, code = b.lib.DeviceGetCount()
		return code
	})
	if err != nil {
		return nil, err
	}
	var list []Device
	var refused []error
	for i := range count {
		var handle nvml.Device
		err := b.call("nvmlDeviceGetHandleByIndex", func() (code nvml.Return) {
			handle, code = b.lib.DeviceGetHandleByIndex(i)
			return code
		})
		if err != nil {
			refused = append(refused, fmt.Errorf("GPU %d: %w", i, err))
			continue
		}
		parts := b.instances(handle)
		if len(parts) == 0 {
			parts = []*nvmlDevice{{api: b, handle: handle, whole: handle}}
		}
		for _, d := range parts {
			d.describe(len(list), driver)
			list = append(list, d)
		}
	}
	if len(list) == 0 {
		return nil, errors.Join(refused...)
	}
	return list, nil
}

// instances lists a GPU's MIG instances; none when it is not divided.
func (b *binding) instances(whole nvml.Device) []*nvmlDevice {
	on, most := 0, 0
	err := b.call("nvmlDeviceGetMigMode", func() (code nvml.Return) {
		on, _, code = whole.GetMigMode()
		return code
	})
	if err != nil || on == 0 {
		return nil
	}
	err = b.call("nvmlDeviceGetMaxMigDeviceCount", func() (code nvml.Return) {
		most, code = whole.GetMaxMigDeviceCount()
		return code
	})
	if err != nil {
		return nil
	}
	var list []*nvmlDevice
	for i := range most {
		d := &nvmlDevice{api: b, whole: whole, mig: true}
		err := b.call("nvmlDeviceGetMigDeviceHandleByIndex", func() (code nvml.Return) {
			d.handle, code = whole.GetMigDeviceHandleByIndex(i)
			return code
		})
		if err != nil {
			continue // the numbering has holes
		}
		err = b.call("nvmlDeviceGetGpuInstanceId", func() (code nvml.Return) {
			d.instance, code = d.handle.GetGpuInstanceId()
			return code
		})
		if err == nil {
			list = append(list, d)
		}
	}
	return list
}

func (d *nvmlDevice) describe(index int, driver string) {
	d.info = Info{Index: index, Driver: driver}
	_ = d.api.call("nvmlDeviceGetName", func() (code nvml.Return) {
		d.info.Name, code = d.handle.GetName()
		return code
	})
	_ = d.api.call("nvmlDeviceGetUUID", func() (code nvml.Return) {
		d.info.UUID, code = d.handle.GetUUID()
		return code
	})
	if d.info.Name == "" {
		d.info.Name = fmt.Sprintf("GPU %d", index)
	}
	d.info.Simulated = strings.Contains(d.info.Name, "simulated")
}
