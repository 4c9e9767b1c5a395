package gpu

import (
	"errors"
	"fmt"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Driver is NVML on this machine. It is opened once per process: go-nvml keeps
// the entry points of the library in package variables, and unloading it would
// leave the linker's bindings dangling, so there is no Close.
type Driver struct {
	ready   chan struct{} // closed when devices and err stand
	devices []Device
	version string
	err     error
}

// Open starts loading NVML in the background, which can take hundreds of
// milliseconds, and returns at once. libraryPath is empty for the system's.
func Open(libraryPath string) *Driver {
	d := &Driver{ready: make(chan struct{})}
	go func() {
		defer close(d.ready)
		d.err = d.load(libraryPath)
	}()
	return d
}

// Ready is closed when the driver has been loaded, or could not be.
func (d *Driver) Ready() <-chan struct{} { return d.ready }

// Err waits for Ready and returns why there are no devices; it is ErrNoDriver on
// a machine without one.
func (d *Driver) Err() error {
	<-d.ready
	return d.err
}

// Devices waits for Ready and returns the devices by index.
func (d *Driver) Devices() []Device {
	<-d.ready
	return d.devices
}

// Version waits for Ready and returns the driver's version; it may be empty.
func (d *Driver) Version() string {
	<-d.ready
	return d.version
}

const systemLibrary = "libnvidia-ml.so.1"

// errNotInstalled is the ErrNoDriver of a machine that has nothing of NVIDIA's: a driver that
// is there and does not load has another.
var errNotInstalled = fmt.Errorf("%w: %s was not found", ErrNoDriver, systemLibrary)

func (d *Driver) load(path string) error {
	if path == "" {
		path = systemLibrary
	}
	// A handle of our own, for two reasons: Init would call a symbol nobody has
	// looked up, and the library must stay loaded.
	library := dl.New(path, dl.RTLD_LAZY|dl.RTLD_GLOBAL)
	if err := library.Open(); err != nil {
		if path == systemLibrary && strings.Contains(err.Error(), "No such file") {
			return errNotInstalled
		}
		return fmt.Errorf("%w: %s could not be loaded: %w", ErrNoDriver, path, err)
	}
	api := &binding{lib: nvml.New(nvml.WithLibraryPath(path)), found: library.Lookup}
	if !api.has("nvmlInit") {
		return fmt.Errorf("%w: %s is not NVML, it has no nvmlInit", ErrNoDriver, path)
	}
	if err := check("nvmlInit", api.lib.Init()); err != nil {
		return initError(err)
	}
	if version, err := api.driverVersion(); err == nil {
		d.version = version
	}
	devices, err := api.devices(d.version)
	if err != nil {
		return fmt.Errorf("NVML lists no devices: %w", err)
	}
	if len(devices) == 0 {
		return fmt.Errorf("%w for any GPU: NVML lists no device", ErrNoDriver)
	}
	d.devices = devices
	return nil
}

// initError turns what nvmlInit says into what a user can do about it.
func initError(err error) error {
	var call *callError
	if !errors.As(err, &call) {
		return err
	}
	switch call.code {
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return fmt.Errorf("NVML does not fit the loaded kernel module: the driver was upgraded, reboot or reload it: %w", err)
	case nvml.ERROR_DRIVER_NOT_LOADED, nvml.ERROR_GPU_NOT_FOUND:
		return fmt.Errorf("%w: its library is there, its kernel module is not loaded: %w", ErrNoDriver, err)
	case nvml.ERROR_NO_PERMISSION:
		return fmt.Errorf("no permission to use the NVIDIA driver: add the user to the group of /dev/nvidia*: %w", err)
	}
	return fmt.Errorf("NVML did not start: %w", err)
}
