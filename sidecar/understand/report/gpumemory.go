package report

import (
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

// GPUMemory is a line of the user's own while which ran the memory of its process on a GPU grew, by the driver's figure.
type GPUMemory struct {
	Device         int   `json:"device"` // index into devices
	File           int   `json:"file"`
	Line           int   `json:"line"`
	Function       *int  `json:"function"`
	Process        int   `json:"process"`
	GrownBytes     int64 `json:"grown_bytes"`
	UncertainBytes int64 `json:"uncertain_bytes"` // of them, those of a time in which other lines computed, too
}

// GPUMemoryReading is what a process's memory on a GPU did, and how it was read.
type GPUMemoryReading struct {
	Device        int   `json:"device"`
	Process       int   `json:"process"`
	ResolutionNS  int64 `json:"resolution_ns"`
	WholeDevice   bool  `json:"whole_device"` // the figure is the device's, which no other process used
	GrownBytes    int64 `json:"grown_bytes"`
	UnplacedBytes int64 `json:"unplaced_bytes"`
	ReleasedBytes int64 `json:"released_bytes"`
	PeakBytes     int64 `json:"peak_bytes"` // the highest figure: at least
}

// TorchMemory is what torch's allocator said of itself before a cell and after it, in the program.
type TorchMemory struct {
	Process              int   `json:"process"`
	Device               int   `json:"device"` // the program's number of it, as in "cuda:0"
	AllocatedBeforeBytes int64 `json:"allocated_before_bytes"`
	AllocatedBytes       int64 `json:"allocated_bytes"`
	ReservedBeforeBytes  int64 `json:"reserved_before_bytes"`
	ReservedBytes        int64 `json:"reserved_bytes"`
	// The peak of what was allocated is exact where torch's own mark rose, else at least what was seen.
	PeakBytes        *int64 `json:"peak_bytes"`
	PeakAtLeastBytes *int64 `json:"peak_at_least_bytes"`
}

// AllocatorFigures are what torch's allocator has of a device.
type AllocatorFigures struct{ Allocated, Reserved, Peak int64 }

// TorchDevice are the figures of a device before and after a cell. Torch's mark of the peak is not reset for a cell, since
// it is also the program's.
type TorchDevice struct {
	Device        int
	Before, After AllocatorFigures
}

// memory is the row of a report.
func (t TorchDevice) memory(process int) TorchMemory {
	m := TorchMemory{
		Process: process, Device: t.Device, AllocatedBeforeBytes: t.Before.Allocated, AllocatedBytes: t.After.Allocated,
		ReservedBeforeBytes: t.Before.Reserved, ReservedBytes: t.After.Reserved,
	}
	switch {
	case t.After.Peak > t.Before.Peak:
		m.PeakBytes = &t.After.Peak
	case t.After.Peak < t.Before.Peak: // the program reset it
		m.PeakAtLeastBytes = pointer(max(t.After.Peak, t.Before.Allocated))
	default:
		m.PeakAtLeastBytes = pointer(max(t.Before.Allocated, t.After.Allocated))
	}
	return m
}

// gpuMemory fills the growth of memory on GPUs, and what torch's allocator said.
func (b *builder) gpuMemory(torch []TorchDevice) {
	own := func(id timeline.FrameID) bool { return b.names.code(b.rec.Frames[id]).Own() }
	lines, sums := activity.GPUMemory(b.rec, b.ownerOf, own)
	device := func(number int) int {
		return slices.IndexFunc(b.doc.Devices, func(d Device) bool { return d.Number == number })
	}
	for _, l := range lines[:min(len(lines), maxMemoryLines)] {
		if at := device(l.Device); at >= 0 {
			b.wanted[l.Place] = true
			b.doc.GPUMemory = append(b.doc.GPUMemory, GPUMemory{
				Device: at, File: b.codes.file(l.Place.File), Line: l.Place.Line, Function: pointer(b.codes.functionOf(l.Function)), Process: b.placed(l.Process),
				GrownBytes: l.Grown, UncertainBytes: l.Uncertain,
			})
		}
	}
	for _, s := range sums {
		if at := device(s.Device); at >= 0 {
			b.doc.GPUMemoryReads = append(b.doc.GPUMemoryReads, GPUMemoryReading{
				Device: at, Process: b.placed(s.Process), ResolutionNS: max(int64(s.Resolution), 0), WholeDevice: s.Whole,
				GrownBytes: s.Grown, UnplacedBytes: s.Unplaced, ReleasedBytes: s.Released, PeakBytes: s.Peak,
			})
		}
	}
	for _, t := range torch {
		b.doc.TorchMemory = append(b.doc.TorchMemory, t.memory(b.doc.Targets[0].Process))
	}
}

// gpuMemory checks what a document says of memory on GPUs.
func (c *checker) gpuMemory() {
	for i := range c.d.GPUMemory {
		m := &c.d.GPUMemory[i]
		c.index("gpu_memory.device", m.Device, len(c.d.Devices))
		c.index("gpu_memory.file", m.File, len(c.d.Files))
		c.indexOrNull("gpu_memory.function", m.Function, len(c.d.Functions))
		c.index("gpu_memory.process", m.Process, len(c.d.Processes))
		c.must(m.Line > 0 && m.Line <= math.MaxInt32, "gpu_memory.line is %d", m.Line)
		c.amount("gpu_memory.grown_bytes", m.GrownBytes)
		c.amount("gpu_memory.uncertain_bytes", m.UncertainBytes)
		c.must(m.UncertainBytes <= m.GrownBytes, "gpu_memory: more is uncertain than has grown")
	}
	for i := range c.d.GPUMemoryReads {
		m := &c.d.GPUMemoryReads[i]
		c.index("gpu_memory_reading.device", m.Device, len(c.d.Devices))
		c.index("gpu_memory_reading.process", m.Process, len(c.d.Processes))
		for _, v := range []int64{m.ResolutionNS, m.GrownBytes, m.UnplacedBytes, m.ReleasedBytes, m.PeakBytes} {
			c.amount("gpu_memory_reading", v)
		}
		c.must(m.UnplacedBytes <= m.GrownBytes, "gpu_memory_reading: more is in no line than has grown")
	}
	for i := range c.d.TorchMemory {
		m := &c.d.TorchMemory[i]
		c.index("torch_memory.process", m.Process, len(c.d.Processes))
		for _, v := range []int64{int64(m.Device), m.AllocatedBeforeBytes, m.AllocatedBytes, m.ReservedBeforeBytes, m.ReservedBytes} {
			c.amount("torch_memory", v)
		}
		for _, v := range []*int64{m.PeakBytes, m.PeakAtLeastBytes} {
			if v != nil {
				c.amount("torch_memory: peak", *v)
			}
		}
	}
}
