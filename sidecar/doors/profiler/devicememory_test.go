package profiler

import (
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/gpu"
)

// A device's memory is scarce where little is free and more was taken of it meanwhile.
func TestScarceDeviceMemory(t *testing.T) {
	const gib, mib = 1 << 30, 1 << 20
	for _, c := range []struct {
		name string
		used []uint64 // of 8 GiB
		want bool
	}{
		{"never read", nil, false},
		{"much is free", []uint64{2 * gib, 6 * gib}, false},
		{"full from the beginning on", []uint64{8*gib - 100*mib, 8*gib - 100*mib, 8*gib - 95*mib}, false},
		{"fills", []uint64{6 * gib, 7*gib + mib}, true},
		{"gives back and takes again", []uint64{8*gib - 100*mib, 6 * gib, 8*gib - 100*mib}, true},
		{"beyond the total, as some drivers say", []uint64{8 * gib, 8*gib + 20*mib}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var d deviceMemory
			d.read(1, gpu.Memory{Used: 1, Total: gib}) // of a recording before
			scarce, got := d.watch(), false
			for _, used := range c.used {
				d.read(0, gpu.Memory{Used: used, Total: 8 * gib})
				got = scarce()
			}
			if got != c.want {
				t.Errorf("scarce: %v, want %v", got, c.want)
			}
		})
	}
}
