package profiler

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/pystack"
	"github.com/omni-perf/omni-perf/sidecar/measure/recorder"
	"github.com/omni-perf/omni-perf/sidecar/measure/spare"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// pythonStacks reads the CPython of one process by package pystack, and again what the
// process becomes: a launcher turns into Python by exec, a program into another one.
type pythonStacks struct {
	spare   spare.CPUs
	sharing *pystack.Sharing // with its descendants
	mu      sync.Mutex
	process *pystack.Process // nil until attached
}

// stackMethod is how package pystack reads, as it says itself.
const stackMethod = timeline.MethodOutside

// Between two tries to attach to a process that has no stacks to read now.
const (
	retryLeast = time.Millisecond
	retryMost  = 50 * time.Millisecond
)

func (p *pythonStacks) Attach(pid int) error {
	_, err := p.attach(pid)
	return err
}

func (p *pythonStacks) attach(pid int) (*pystack.Process, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process != nil {
		return p.process, nil
	}
	process, err := attach(pid, pystack.Options{})
	if err == nil {
		p.process = process
	}
	return process, err
}

// current is the process that is read; nil while there is none.
func (p *pythonStacks) current() *pystack.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.process
}

func (p *pythonStacks) Collect(ctx context.Context, run recorder.Run) error {
	b := run.Builder
	opts := pystack.SampleOptions{
		Interval: run.Interval, Spare: p.spare, Sharing: p.sharing, Coroutine: run.Coroutine, Leave: run.Own, FromStart: run.Patient,
	}
	opts.Ready = p.current() != nil
	wait, lost := run.Patient, error(nil)
	if wait {
		b.BeginGap(run.PID, 0, timeline.GapStarting)
	}
	for {
		process, refusal, err := p.await(ctx, run.PID, wait)
		if process == nil && lost == nil && wait && errors.Is(refusal, pystack.ErrNotPython) {
			b.CorrectGaps(run.PID, timeline.GapStarting, timeline.GapNoPython)
		}
		if errors.Is(err, pystack.ErrGone) || lost != nil && process == nil && errors.Is(err, pystack.ErrStarting) {
			return nil // the end of a process is no fault, nor is that of its interpreter a moment before
		}
		if process == nil {
			return err
		}
		if errors.Is(lost, pystack.ErrReplaced) {
			b.BeginGap(run.PID, 0, timeline.GapExec)
		}
		// A nested cell may end before the sampler first reports how it reads.
		b.Describe(func(r *timeline.Recording) {
			r.Sampling.Method = stackMethod
			if lost != nil { // it begins with what was asked for, whatever was kept of the program before
				r.Sampling.Keep(b.Since(timeline.Monotonic()), opts.Interval)
			}
		})
		_, err = process.Sample(ctx, b, opts)
		if err == nil {
			return nil
		}
		// It has ended or shut down, runs another program, or may no longer be read:
		// look anew, now and at the next recording.
		p.Close()
		wait, lost, opts.Ready = true, err, false
	}
}

// await attaches, with wait as soon as that is possible. Without a process and an
// error, ctx was done before. refusal is why it was not possible at last, while the process lived.
func (p *pythonStacks) await(ctx context.Context, pid int, wait bool) (_ *pystack.Process, refusal, _ error) {
	pause := retryLeast
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		process, err := p.attach(pid)
		if err == nil || !wait || errors.Is(err, pystack.ErrGone) {
			return process, refusal, err
		}
		refusal = err
		select {
		case <-ctx.Done():
			return nil, refusal, err
		case <-timer.C:
			pause = min(pause*5/4, retryMost)
			timer.Reset(pause)
		}
	}
}

func (p *pythonStacks) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process != nil {
		p.process.Close()
		p.process = nil
	}
}
