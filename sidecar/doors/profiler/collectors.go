// Package profiler puts the parts together: the collectors that record a process,
// and the way from its Recording to a Report.
//
// It is the one place that knows every collector and every step of that way. Front
// doors get a recorder.Recorder and a function from it and know neither; which
// process is recorded, and for whom, is theirs.
package profiler

import (
	"context"

	"github.com/omni-perf/omni-perf/sidecar/measure/cupti"
	"github.com/omni-perf/omni-perf/sidecar/measure/gpu"
	"github.com/omni-perf/omni-perf/sidecar/measure/host"
	"github.com/omni-perf/omni-perf/sidecar/measure/proctree"
	"github.com/omni-perf/omni-perf/sidecar/measure/pystack"
	"github.com/omni-perf/omni-perf/sidecar/measure/pytasks"
	"github.com/omni-perf/omni-perf/sidecar/measure/recorder"
	"github.com/omni-perf/omni-perf/sidecar/measure/spare"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// Recorder makes the recorder of a process with all the collectors there are.
// role is the target's in Recording.Processes; gpus opens the driver, once, when
// it is first needed.
func Recorder(target timeline.Target, role timeline.Role, gpus func() *gpu.Driver) *recorder.Recorder {
	own := &recorder.OwnThreads{}
	machine := host.New(target.PID, host.Options{Role: role, Own: own.Has})
	sharing := new(pystack.Sharing)
	stacks := &pythonStacks{spare: machine.Spare, sharing: sharing}
	descendants := newDescendants(target.PID, stacks.current, machine.Spare, sharing)
	memory := &deviceMemory{}
	return recorder.New(recorder.Options{
		Target: target,
		Stacks: stacks,
		Tree: func(b *timeline.Builder, children recorder.Children) recorder.Tree {
			return proctree.New(target.PID, b, proctree.Options{
				Role: role, Alone: children == recorder.ChildrenNone, Spare: machine.Spare, Marks: marksOf(target.PID),
			})
		},
		Collectors: []recorder.Named{
			{Name: "child processes", Collector: descendants, Patience: recorder.StackPatience},
			{Name: "tasks of event loops", Collector: loopTasks{stacks.current, descendants, machine.Spare}, Patience: recorder.StackPatience},
			{Name: "process and machine figures", Collector: hostFigures{machine}},
			{Name: "GPU lanes", Collector: gpuLanes{gpus, machine.PIDs, memory}},
			{Name: cupti.What, Collector: exactWork{memory}, Patience: recorder.StackPatience},
		},
		Own:     own,
		Threads: host.NewThreadLog(target.PID),
		Code:    host.NewCode(target, host.CodeRules{Own: maybeOwn, Defines: origin.Defines}),
		Host:    host.Machine,
	})
}

// maybeOwn returns a function that reports whether a file may be the user's own, as far as a
// recording shows before its files have been looked at.
func maybeOwn(rec *timeline.Recording) func(file string) bool {
	files := origin.New(rec)
	return func(file string) bool {
		owner := files.Of(file).Owner
		return owner == origin.Module || owner == origin.Script
	}
}

// treeOf is the tree that Recorder gave a run.
func treeOf(run recorder.Run) *proctree.Tree {
	tree, _ := run.Tree.(*proctree.Tree)
	return tree
}

// loopTasks reads the tasks of event loops, the target's and those of its descendants whose stacks are read.
type loopTasks struct {
	target      func() *pystack.Process
	descendants *descendants
	spare       spare.CPUs
}

func (l loopTasks) Collect(ctx context.Context, run recorder.Run) error {
	var now []pytasks.Source
	sources := func() []pytasks.Source {
		now = now[:0]
		if target := l.target(); target != nil {
			now = append(now, pytasks.Source{Of: target})
		}
		now = append(now, l.descendants.sources(run.Builder)...)
		return now
	}
	(&pytasks.Collector{Sources: sources, Spare: l.spare}).Collect(ctx, run.Builder)
	return nil
}

type hostFigures struct{ *host.Collector }

func (h hostFigures) Collect(ctx context.Context, run recorder.Run) error {
	return h.Collector.Collect(ctx, run.Builder, timeline.FigurePace{Interval: run.FigureInterval, Later: run.FigureLater}, treeOf(run))
}

// exactWork takes in what processes record of their GPUs themselves.
type exactWork struct{ memory *deviceMemory }

func (e exactWork) Collect(ctx context.Context, run recorder.Run) error {
	if run.Rings == "" {
		return nil
	}
	return cupti.Collector{Folder: run.Rings, Scarce: e.memory.watch()}.Collect(ctx, run.Builder)
}

type gpuLanes struct {
	open   func() *gpu.Driver
	pids   func() []int
	memory *deviceMemory
}

func (g gpuLanes) Collect(ctx context.Context, run recorder.Run) error {
	// It leaves its own notes, the one about its error included.
	_ = g.open().Collect(ctx, run.Builder, gpu.Options{Interval: run.FigureInterval, Later: run.FigureLater, PIDs: g.pids, Memory: g.memory.read})
	return nil
}
