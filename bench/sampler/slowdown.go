package main

import (
	_ "embed"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/omni-perf/omni-perf/bench/sampler/peer"
	"github.com/omni-perf/omni-perf/sidecar/pystack/truth"
)

//go:embed programs/pyperformance.py
var pyperformanceSource string

//go:embed programs/arrays.py
var arraysSource string

//go:embed programs/server.py
var serverSource string

// A program is something to slow down.
type program struct {
	name     string
	workload truth.Workload
	missing  string // why it cannot be run; empty if it can
}

// programs are those of one version.
func (b *bench) programs(minor string) []program {
	var all []program
	for _, name := range []string{"richards", "deltablue", "raytrace", "json_loads"} {
		p := program{name: name, workload: truth.Workload{Name: "benchmark", Source: pyperformanceSource}}
		if b.installed.Benchmarks == "" {
			p.missing = "pyperformance is not installed"
		} else {
			path := filepath.Join(b.installed.Benchmarks, "bm_"+name, "run_benchmark.py")
			p.workload.Env = []string{"OMNI_PERF_BENCHMARK=" + path}
		}
		all = append(all, p)
	}
	numpy := program{name: "numpy", workload: truth.Workload{Name: "arrays", Source: arraysSource}}
	if libraries, ok := b.installed.Libraries[minor]; ok {
		numpy.workload.Env = []string{"OMNI_PERF_LIBRARIES=" + libraries}
	} else {
		numpy.missing = "numpy is not installed for " + minor
	}
	all = append(all,
		program{name: "160 threads", workload: truth.Threads(160)},
		numpy,
		program{name: "generators", workload: truth.Generators(20 * time.Microsecond)},
		program{name: "asyncio server", workload: truth.Workload{Name: "server", Source: serverSource}},
	)
	var chosen []program
	for _, p := range all {
		if b.plan.Programs.MatchString(p.name) {
			chosen = append(chosen, p)
		}
	}
	return chosen
}

func (b *bench) measureSlowdown() {
	for _, minor := range b.minors() {
		samplers := b.of(minor, func(peer.Sampler) bool { return true })
		for _, p := range b.programs(minor) {
			if b.ctx.Err() != nil {
				return
			}
			if p.missing != "" {
				b.results.Missing = append(b.results.Missing, peer.Missing{Name: p.name + " on " + minor, Reason: p.missing})
				continue
			}
			say("slow-down: %s on %s, %d pairs for each of %d samplers", p.name, minor, b.plan.Pairs, len(samplers))
			rows, err := b.slowdown(p, minor, samplers)
			if err != nil {
				b.results.Missing = append(b.results.Missing, peer.Missing{Name: p.name + " on " + minor, Reason: err.Error()})
				continue
			}
			b.results.Slowdown = append(b.results.Slowdown, rows...)
		}
	}
}

// slowdown runs blocks: the program alone and under each sampler, in random order. What disturbs the
// machine for longer than a block disturbs all of them.
func (b *bench) slowdown(p program, minor string, samplers []peer.Sampler) ([]Slowdown, error) {
	python := samplers[0].Target.Path
	rounds, err := roundsIn(b.plan.Run, python, p.workload)
	if err != nil {
		return nil, err
	}
	type series struct {
		ratios, cpus, ofFloor []float64
		err                   error
	}
	measured := make([]series, len(samplers))
	for range b.plan.Pairs {
		block := make([]pace, len(samplers)+1) // the last is without any
		for _, i := range rand.Perm(len(block)) {
			if b.ctx.Err() != nil {
				break
			}
			if i == len(samplers) {
				block[i], err = pacedRun(nil, python, p.workload, peer.Job{}, rounds)
				if err != nil {
					return nil, err
				}
				continue
			}
			if measured[i].err != nil {
				continue
			}
			job := peer.Job{Rate: rate, Out: b.output()}
			block[i], measured[i].err = pacedRun(&samplers[i], python, p.workload, job, rounds)
			os.Remove(job.Out)
		}
		if b.ctx.Err() != nil {
			break // the block is not whole
		}
		floor := 0.0
		for i, s := range samplers {
			if s.Name == peer.Floor {
				floor = block[i].cpu
			}
		}
		for i := range samplers {
			m := &measured[i]
			if m.err != nil {
				continue
			}
			m.ratios = append(m.ratios, block[i].round.Seconds()/block[len(samplers)].round.Seconds())
			m.cpus = append(m.cpus, block[i].cpu)
			if floor > 0 && block[i].cpu > 0 {
				m.ofFloor = append(m.ofFloor, block[i].cpu/floor)
			}
		}
	}
	var rows []Slowdown
	for i, m := range measured {
		row := Slowdown{Program: p.name, Minor: minor, Sampler: samplers[i].Name, Pairs: len(m.ratios)}
		if m.err != nil {
			row.Error = m.err.Error()
		} else if len(m.ratios) > 1 {
			row.Ratio = ratioOf(m.ratios)
			if !samplers[i].Inside() {
				row.CPU = meanOf(m.cpus)
				if len(m.ofFloor) > 1 {
					row.OfFloor = ratioOf(m.ofFloor)
				}
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// roundsIn finds how many rounds of a workload take about that long here.
func roundsIn(length time.Duration, python string, w truth.Workload) (int, error) {
	target, err := truth.Launch(python, w, truth.Settings{Time: length})
	if err != nil {
		return 0, err
	}
	m, err := target.Wait()
	if err != nil {
		return 0, err
	}
	if m.Rounds == 0 {
		return 0, fmt.Errorf("%s did not do one round in %v", w.Name, length)
	}
	return max(1, int(float64(m.Rounds)*float64(length)/float64(m.WallNs))), nil
}
