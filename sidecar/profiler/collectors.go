// Package profiler puts the parts together: the collectors that record a process,
// and the way from its Recording to a Report.
//
// It is the one place that knows every collector and every step of that way. Front
// doors get a recorder.Recorder and a function from it and know neither; which
// process is recorded, and for whom, is theirs.
package profiler

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/gpu"
	"github.com/omni-perf/omni-perf/sidecar/host"
	"github.com/omni-perf/omni-perf/sidecar/pystack"
	"github.com/omni-perf/omni-perf/sidecar/recorder"
	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// Recorder makes the recorder of a process with all the collectors there are.
// role is the target's in Recording.Processes; gpus opens the driver, once, when
// it is first needed.
func Recorder(target timeline.Target, role string, gpus func() *gpu.Driver) *recorder.Recorder {
	own := &recorder.OwnThreads{}
	machine := host.New(target.PID, host.Options{Role: role, Own: own.Has})
	return recorder.New(recorder.Options{
		Target: target,
		Stacks: &pythonStacks{},
		Collectors: []recorder.Named{
			{Name: "process and machine figures", Collector: hostFigures{machine}},
			{Name: "GPU lanes", Collector: gpuLanes{gpus, machine.PIDs}},
		},
		Own:     own,
		Threads: host.NewThreadLog(target.PID),
		Code:    host.NewCode(target),
		Host:    host.Machine,
	})
}

type hostFigures struct{ *host.Collector }

func (h hostFigures) Collect(ctx context.Context, run recorder.Run) error {
	return h.Collector.Collect(ctx, run.Builder, run.FigureInterval)
}

type gpuLanes struct {
	open func() *gpu.Driver
	pids func() []int
}

func (g gpuLanes) Collect(ctx context.Context, run recorder.Run) error {
	// It leaves its own notes, the one about its error included.
	_ = g.open().Collect(ctx, run.Builder, gpu.Options{Interval: run.FigureInterval, PIDs: g.pids})
	return nil
}

// pythonStacks reads one CPython by package pystack.
type pythonStacks struct {
	mu      sync.Mutex
	process *pystack.Process // nil until attached
}

// stackMethod is how package pystack reads, as it says itself.
const stackMethod = timeline.MethodOutside

func (p *pythonStacks) Attach(pid int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process != nil {
		return nil
	}
	process, err := attach(pid, pystack.Options{})
	if err == nil {
		p.process = process
	}
	return err
}

func (p *pythonStacks) Collect(ctx context.Context, run recorder.Run) error {
	p.mu.Lock()
	process := p.process
	p.mu.Unlock()
	if process == nil {
		return pystack.ErrGone
	}
	// A nested cell may end before the sampler first tells how it reads.
	run.Builder.Describe(func(r *timeline.Recording) { r.Sampling.Method = stackMethod })
	_, err := process.Sample(ctx, run.Builder, pystack.SampleOptions{Interval: run.Interval, Coroutine: run.Coroutine, Leave: run.Own})
	if err != nil { // gone, another program, or no longer permitted: look anew next time
		p.Close()
	}
	if errors.Is(err, pystack.ErrGone) && hasEnded(run.PID) {
		return nil // and so does the recording: nothing is missing
	}
	return err
}

// hasEnded tells whether a process whose memory is gone has ended, which it has a
// moment later.
func hasEnded(pid int) bool {
	const moment, looks = 5 * time.Millisecond, 20
	for range looks {
		if _, alive := host.ProcessStart(pid); !alive {
			return true
		}
		time.Sleep(moment)
	}
	return false
}

func (p *pythonStacks) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process != nil {
		p.process.Close()
		p.process = nil
	}
}
