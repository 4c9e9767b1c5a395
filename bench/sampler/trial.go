package main

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/bench/sampler/peer"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// A process is a sampler that runs beside its target.
type process struct {
	command *exec.Cmd
	log     bytes.Buffer
	end     chan struct{} // closed when it has ended
	err     error         // after end
}

func startProcess(command *exec.Cmd) (*process, error) {
	p := &process{command: command, end: make(chan struct{})}
	command.Stdout, command.Stderr = &p.log, &p.log
	if err := command.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = command.Wait()
		close(p.end)
	}()
	return p, nil
}

// running is true until the process ends.
func (p *process) running() bool {
	select {
	case <-p.end:
		return false
	default:
		return true
	}
}

// waitUntil returns at that time, or when the process has ended.
func (p *process) waitUntil(deadline time.Time) {
	select {
	case <-p.end:
	case <-time.After(time.Until(deadline)):
	}
}

// settle returns when the sampler samples, and from when it has done so at most.
func (p *process) settle(s *peer.Sampler) (start time.Time) {
	start = time.Now()
	for deadline := start.Add(10 * time.Second); s.Ready != nil && !s.Ready(p.command.Process.Pid) && time.Now().Before(deadline); {
		p.waitUntil(time.Now().Add(20 * time.Millisecond))
		start = time.Now()
	}
	p.waitUntil(start.Add(s.Settle))
	return start
}

// stop interrupts the process, gives it time to write its output, and then kills it.
func (p *process) stop() error {
	p.command.Process.Signal(syscall.SIGINT)
	p.waitUntil(time.Now().Add(30 * time.Second))
	p.command.Process.Kill()
	<-p.end
	return p.err
}

// cpu is the processor time that the process has used so far.
func (p *process) cpu() (time.Duration, error) {
	// The clock of another process's CPU time, as clock_getcpuclockid(3) makes it.
	const cpuclockSched = 2
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^p.command.Process.Pid<<3|cpuclockSched), &t); err != nil {
		return 0, err
	}
	return time.Duration(t.Nano()), nil
}

// lastWords is the end of what the process printed, once it has ended, for an error.
func (p *process) lastWords() string {
	lines := strings.Split(strings.TrimSpace(p.log.String()), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// A pace is what one run of a fixed number of rounds has shown.
type pace struct {
	round time.Duration // one round of the target
	work  time.Duration // CPU time of the target in one round
	cpu   float64       // of the sampler, in cores; 0 if it runs inside
}

// pacedRun has a target do some rounds, sampled from before the first to after the last by s; nil is no
// sampler. The sampler's start and end are not part of the time.
func pacedRun(s *peer.Sampler, python string, w truth.Workload, job peer.Job, rounds int) (pace, error) {
	settings := truth.Settings{Rounds: rounds, Time: time.Minute, Held: true}
	if s != nil && s.Inside() {
		settings.Wrap = s.Wrap(job)
	}
	target, err := truth.Launch(python, w, settings)
	if err != nil {
		return pace{}, err
	}
	defer target.Kill()
	if s == nil || s.Inside() {
		target.Go()
		m, err := target.Done()
		return paceOf(m), err
	}

	job.Pid = target.Pid
	sampler, err := startProcess(s.Command(job))
	if err != nil {
		return pace{}, err
	}
	defer sampler.stop()
	sampler.settle(s)
	before, err := sampler.cpu()
	if err != nil {
		return pace{}, fmt.Errorf("its CPU time: %w", err)
	}
	target.Go()
	start := time.Now()
	m, err := target.Done()
	if err != nil {
		return pace{}, err
	}
	wall := time.Since(start)
	after, err := sampler.cpu()
	if err != nil || !sampler.running() {
		sampler.stop()
		return pace{}, fmt.Errorf("it ended before its target: %s", sampler.lastWords())
	}
	p := paceOf(m)
	p.cpu = (after - before).Seconds() / wall.Seconds()
	return p, nil
}

// paceOf is what the target says of itself.
func paceOf(m truth.Measured) pace {
	rounds := int64(max(m.Rounds, 1))
	return pace{round: time.Duration(m.WallNs / rounds), work: time.Duration(m.CPUNs / rounds)}
}

// recordRunning has a sampler record a workload that runs before and after, and reads what it wrote. The
// recording's time is filled in.
func recordRunning(s *peer.Sampler, python string, w truth.Workload, job peer.Job, length time.Duration) (peer.Recording, error) {
	if s.Inside() {
		r, _, err := recordWhole(s, python, w, job, length)
		return r, err
	}
	target, err := truth.Launch(python, w, truth.Settings{})
	if err != nil {
		return peer.Recording{}, err
	}
	defer target.Kill()
	job.Pid = target.Pid
	sampler, err := startProcess(s.Command(job))
	if err != nil {
		return peer.Recording{}, err
	}
	start := sampler.settle(s)
	sampler.waitUntil(start.Add(length))
	r, err := sampler.recording(s, job, time.Since(start))
	if _, died := target.Stop(); died != nil {
		return r, fmt.Errorf("the target did not survive it: %w", died)
	}
	return r, err
}

// recordWhole has a sampler record a workload from before its first round to after its last, so that
// what the workload measures of itself is about the same time.
func recordWhole(s *peer.Sampler, python string, w truth.Workload, job peer.Job, length time.Duration) (peer.Recording, truth.Measured, error) {
	settings := truth.Settings{Time: length, Held: true}
	if s.Inside() {
		settings.Wrap = s.Wrap(job)
	}
	target, err := truth.Launch(python, w, settings)
	if err != nil {
		return peer.Recording{}, truth.Measured{}, err
	}
	defer target.Kill()
	if s.Inside() {
		target.Go()
		m, err := target.Wait()
		if err != nil {
			return peer.Recording{}, m, err
		}
		r, err := s.Read(job.Out, "")
		r.Time = time.Duration(m.WallNs)
		return r, m, err
	}

	job.Pid = target.Pid
	sampler, err := startProcess(s.Command(job))
	if err != nil {
		return peer.Recording{}, truth.Measured{}, err
	}
	start := sampler.settle(s)
	target.Go()
	m, err := target.Done()
	if err != nil {
		sampler.stop()
		return peer.Recording{}, m, err
	}
	r, err := sampler.recording(s, job, time.Since(start))
	return r, m, err
}

// recording stops a sampler and reads its output. It has run for that long, if it does not know better.
// Its exit code is no matter if there is an output: some have one of their own for an interrupt.
func (p *process) recording(s *peer.Sampler, job peer.Job, ran time.Duration) (peer.Recording, error) {
	ended := p.stop()
	r, err := s.Read(job.Out, p.log.String())
	if err == nil && len(r.Samples) == 0 {
		err = errors.New("it took no sample")
	}
	if err != nil {
		return r, fmt.Errorf("%w (%v: %s)", err, ended, p.lastWords())
	}
	if r.Time == 0 {
		r.Time = ran
	}
	return r, nil
}
