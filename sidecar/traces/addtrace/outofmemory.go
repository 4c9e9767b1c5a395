package addtrace

import (
	"github.com/omni-perf/omni-perf/sidecar/traces/snapshot"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// maxAllocators bounds the lines of a failure, most bytes first.
const maxAllocators = 200

// Divide adds to an allocation that failed how torch's allocator had divided the device's memory, by the snapshot of its
// segments in a file. An error means that nothing of it is known.
func Divide(f *report.Failure, path string) error {
	s, err := snapshot.ReadFile(path)
	if err != nil {
		return err
	}
	h := s.Held(f.Device)
	f.Reserved = &report.Reserved{
		Bytes: h.Reserved, Segments: h.Segments, InUseBytes: h.InUse, AwaitingFreeBytes: h.AwaitingFree,
		FreeBytes: h.Free, LargestFreeBytes: h.LargestFree, ReleasableBytes: h.Releasable,
	}
	for _, l := range h.Lines[:min(len(h.Lines), maxAllocators)] {
		f.Allocators = append(f.Allocators, report.Allocator{Function: l.Function, Bytes: l.Bytes, Blocks: l.Blocks})
		f.AllocatedAt = append(f.AllocatedAt, activity.Place{File: l.File, Line: int(l.Line)})
	}
	return nil
}
