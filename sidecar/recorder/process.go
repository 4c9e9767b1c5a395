package recorder

import (
	"context"

	"github.com/omni-perf/omni-perf/sidecar/gpu"
	"github.com/omni-perf/omni-perf/sidecar/host"
	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// ForProcess makes the recorder of a process with all the collectors there are.
// role is the target's in Recording.Processes; gpus opens the driver, once, when
// it is first needed.
func ForProcess(target timeline.Target, role string, gpus func() *gpu.Driver) *Recorder {
	own := &OwnThreads{}
	machine := host.New(target.PID, host.Options{Role: role, Own: own.Has})
	return New(Options{
		Target: target,
		Stacks: &pythonStacks{},
		Collectors: []Named{
			{"process and machine figures", hostFigures{machine}},
			{"GPU lanes", gpuLanes{gpus, machine.PIDs}},
		},
		Own:     own,
		Threads: host.NewThreadLog(target.PID),
		Code:    host.NewCode(target),
	})
}

type hostFigures struct{ *host.Collector }

func (h hostFigures) Collect(ctx context.Context, run Run) error {
	return h.Collector.Collect(ctx, run.Builder, run.FigureInterval)
}

type gpuLanes struct {
	open func() *gpu.Driver
	pids func() []int
}

func (g gpuLanes) Collect(ctx context.Context, run Run) error {
	// It leaves its own notes, the one about its error included.
	_ = g.open().Collect(ctx, run.Builder, gpu.Options{Interval: run.FigureInterval, PIDs: g.pids})
	return nil
}
