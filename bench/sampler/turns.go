package main

import (
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/omni-perf/omni-perf/bench/sampler/peer"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// settled is from when on a sampler that was stopped, or goes on, makes no difference any more.
const settled = 50 * time.Millisecond

// A turn is a stretch of one run of a program in which the sampler samples, or stands still.
type turn struct {
	from, to int64 // CLOCK_MONOTONIC
	samples  bool
}

// measureTurns slows each program down in turns: in one run, so that neither the memory that a process
// happens to get nor the hour of the day is measured. Only samplers that never stop their target can be
// stopped; of those it is ours that has goals.
func (b *bench) measureTurns() {
	for _, minor := range b.minors() {
		for _, s := range b.of(minor, func(s peer.Sampler) bool { return s.Name == Ours }) {
			for _, p := range b.programs(minor) {
				if b.ctx.Err() != nil {
					return
				}
				if p.missing != "" {
					continue // the slow-down by runs says so
				}
				say("slow-down in turns: %s on %s", p.name, minor)
				row := Turns{Program: p.name, Minor: minor}
				ratios, works, err := b.turns(&s, p)
				switch {
				case err != nil:
					row.Error = err.Error()
				case len(ratios) < 2:
					row.Error = "fewer than two pairs"
				default:
					row.Pairs, row.Ratio, row.Work = len(ratios), ratioOf(ratios), ratioOf(works)
				}
				b.results.Turns = append(b.results.Turns, row)
			}
		}
	}
}

// turns runs a program once, and returns for each pair of turns its time for a round and its CPU time
// while it is sampled, to those while it is not.
func (b *bench) turns(s *peer.Sampler, p program) (ratios, works []float64, err error) {
	target, err := truth.Launch(s.Target.Path, p.workload.Paced(), truth.Settings{Held: true})
	if err != nil {
		return nil, nil, err
	}
	defer target.Kill()
	job := peer.Job{Rate: rate, Out: b.output(), Pid: target.Pid}
	defer os.Remove(job.Out)
	sampler, err := startProcess(s.Command(job))
	if err != nil {
		return nil, nil, err
	}
	defer sampler.stop()
	defer sampler.command.Process.Signal(syscall.SIGCONT)
	sampler.settle(s)
	target.Go()
	time.Sleep(settled)
	var all []turn
	for i := 0; i < b.plan.Pairs && b.ctx.Err() == nil; i++ {
		for _, samples := range []bool{i%2 == 0, i%2 != 0} { // what becomes slower all the time does so to both
			signal := syscall.SIGSTOP
			if samples {
				signal = syscall.SIGCONT
			}
			if err := sampler.command.Process.Signal(signal); err != nil {
				return nil, nil, fmt.Errorf("it ended before its target: %w", err)
			}
			time.Sleep(settled)
			from := timeline.Monotonic()
			time.Sleep(b.plan.Run)
			all = append(all, turn{from, timeline.Monotonic(), samples})
		}
	}
	if err := sampler.command.Process.Signal(syscall.SIGCONT); err != nil || !sampler.running() {
		return nil, nil, fmt.Errorf("it ended before its target: %s", sampler.lastWords())
	}
	m, err := target.Stop()
	if err != nil {
		return nil, nil, err
	}
	ratios, works = inTurns(all, m.Paces)
	return ratios, works, nil
}

// inTurns compares the turns of each pair by what the program noted within them. A pair in which it did
// not note enough is left out.
func inTurns(all []turn, paces []truth.Pace) (ratios, works []float64) {
	for pair := range slices.Chunk(all, 2) {
		if len(pair) < 2 {
			break
		}
		var time, cpu [2]float64 // a round, standing still and sampling
		for _, t := range pair {
			i := 0
			if t.samples {
				i = 1
			}
			time[i], cpu[i] = t.round(paces)
		}
		if time[0] > 0 && time[1] > 0 && cpu[0] > 0 && cpu[1] > 0 {
			ratios, works = append(ratios, time[1]/time[0]), append(works, cpu[1]/cpu[0])
		}
	}
	return ratios, works
}

// round is the time and the CPU time of a round within a turn, in nanoseconds; 0 if too few were noted.
func (t turn) round(paces []truth.Pace) (time, cpu float64) {
	first := slices.IndexFunc(paces, func(p truth.Pace) bool { return p.AtNs >= t.from })
	if first < 0 {
		return 0, 0
	}
	last := first
	for last+1 < len(paces) && paces[last+1].AtNs <= t.to {
		last++
	}
	a, z := paces[first], paces[last]
	rounds := float64(z.Rounds - a.Rounds)
	if rounds == 0 {
		return 0, 0
	}
	return float64(z.AtNs-a.AtNs) / rounds, float64(z.CPUNs-a.CPUNs) / rounds
}
