package server

import (
	"github.com/omni-perf/omni-perf/sidecar/api"
	"github.com/omni-perf/omni-perf/sidecar/traces/addtrace"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// What is taken of a cell's failed allocations; the extension sends less.
const (
	maxFailures = 16
	maxHeld     = 1000
)

// failures are the allocations on devices that failed while a cell ran. Of a snapshot that cannot be read nothing is said.
func (s *kernelSession) failures(sent []*api.OutOfMemory) (out []report.Failure) {
	for _, f := range sent[:min(len(sent), maxFailures)] {
		failure := failureOf(f)
		if f.Snapshot != "" {
			if err := addtrace.Divide(&failure, f.Snapshot); err != nil {
				s.Log.Warn("no snapshot of a failed allocation", "error", err)
			}
		}
		out = append(out, failure)
	}
	return out
}

func failureOf(f *api.OutOfMemory) report.Failure {
	out := report.Failure{
		At: f.AtNs, OutOfMemory: report.OutOfMemory{
			Device: int(max(f.Device, 0)), RequestedBytes: max(f.RequestedBytes, 0), UsableBytes: max(f.UsableBytes, 0), FreeBytes: max(f.FreeBytes, 0),
			All: f.All, Variables: []report.Variable{}, Allocators: []report.Allocator{},
		},
	}
	for _, at := range f.Stack {
		out.Stack = append(out.Stack, place(at))
	}
	for _, h := range f.Held[:min(len(f.Held), maxHeld)] {
		v := report.Variable{Name: h.Name, Kind: h.Kind, Function: h.Place.GetFunction(), Bytes: max(h.Bytes, 0), Tensors: int(max(h.Tensors, 0))}
		if h.Shape != "" {
			v.Shape = &h.Shape
		}
		out.Variables, out.VariablePlaces = append(out.Variables, v), append(out.VariablePlaces, place(h.Place))
	}
	return out
}

// maxTorchDevices bounds the devices of a cell.
const maxTorchDevices = 64

// torchMemory is what torch's allocator said of each device.
func torchMemory(sent []*api.TorchMemory) (out []report.TorchDevice) {
	figures := func(f *api.TorchFigures) report.AllocatorFigures {
		return report.AllocatorFigures{Allocated: max(f.GetAllocatedBytes(), 0), Reserved: max(f.GetReservedBytes(), 0), Peak: max(f.GetPeakBytes(), 0)}
	}
	for _, d := range sent[:min(len(sent), maxTorchDevices)] {
		out = append(out, report.TorchDevice{Device: int(max(d.Device, 0)), Before: figures(d.Before), After: figures(d.After)})
	}
	return out
}

// What is taken of a cell's allocations; the extension sends less.
const (
	maxStacks = 10_000
	maxFrames = 64
)

// allocations are those of a cell, where each was recorded.
func allocations(sent *api.Allocations) *report.RecordedAllocations {
	if sent == nil {
		return nil
	}
	out := &report.RecordedAllocations{Allocations: report.Allocations{
		Tool: sent.Tool, Count: max(sent.Allocations, 0), PeakBytes: max(sent.PeakBytes, 0), KeptBytes: max(sent.KeptBytes, 0), ReadingNS: max(sent.ReadingNs, 0),
	}}
	for _, s := range sent.Stacks[:min(len(sent.Stacks), maxStacks)] {
		stack := report.AllocatedStack{PeakBytes: max(s.PeakBytes, 0), Count: max(s.PeakAllocations, 0), KeptBytes: max(s.KeptBytes, 0)}
		for i, at := range s.Stack[:min(len(s.Stack), maxFrames)] {
			stack.Places = append(stack.Places, place(at))
			if i == 0 {
				stack.Function = at.GetFunction()
			}
		}
		out.Stacks = append(out.Stacks, stack)
	}
	return out
}

func place(p *api.OutOfMemory_Place) activity.Place {
	return activity.Place{File: p.GetFile(), Line: int(p.GetLine())}
}
