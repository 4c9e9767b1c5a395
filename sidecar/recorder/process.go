package recorder

import (
	"context"
	"errors"
	"io/fs"
	"sync"

	"github.com/omni-perf/omni-perf/sidecar/gpu"
	"github.com/omni-perf/omni-perf/sidecar/host"
	"github.com/omni-perf/omni-perf/sidecar/proctree"
	"github.com/omni-perf/omni-perf/sidecar/pystack"
	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// ForProcess makes the recorder of a process with all the collectors there are.
// role is the target's in Recording.Processes; gpus opens the driver, once, when
// it is first needed.
func ForProcess(target timeline.Target, role timeline.Role, gpus func() *gpu.Driver) *Recorder {
	own := &OwnThreads{}
	machine := host.New(target.PID, host.Options{Role: role, Own: own.Has})
	stacks := &pythonStacks{}
	return New(Options{
		Target: target,
		Stacks: stacks,
		Tree: func(b *timeline.Builder, children Children) *proctree.Tree {
			return proctree.New(target.PID, b, proctree.Options{Role: role, Alone: children == ChildrenNone, Marks: marksOf(target.PID)})
		},
		Collectors: []Named{
			{"child processes", newDescendants(target.PID, stacks.current)},
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
	return h.Collector.Collect(ctx, run.Builder, run.FigureInterval, run.Tree)
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

// pythonStacks reads one CPython by package pystack.
type pythonStacks struct {
	mu      sync.Mutex
	process *pystack.Process // nil until attached
}

// stackMethod is how package pystack reads, as it says itself.
const stackMethod = "process_vm_readv, read twice"

func (p *pythonStacks) Attach(pid int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process != nil {
		return nil
	}
	process, err := pystack.Attach(pid, pystack.Options{})
	if errors.Is(err, pystack.ErrPermission) {
		return permissionError{err}
	}
	if err == nil {
		p.process = process
	}
	return err
}

// current is the process that is read; nil while there is none.
func (p *pythonStacks) current() *pystack.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.process
}

func (p *pythonStacks) Collect(ctx context.Context, run Run) error {
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
	if _, alive := host.ProcessStart(run.PID); errors.Is(err, pystack.ErrGone) && !alive {
		return nil // it has ended, and so does the recording: nothing is missing
	}
	return err
}

func (p *pythonStacks) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process != nil {
		p.process.Close()
		p.process = nil
	}
}

// permissionError is a refusal that the target may take back.
type permissionError struct{ error }

func (e permissionError) Is(target error) bool { return target == fs.ErrPermission }
func (e permissionError) Unwrap() error        { return e.error }
