package main

import (
	_ "embed"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/omni-perf/omni-perf/bench/sampler/peer"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
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

// A contest is one program with everything that samples it.
type contest struct {
	program  program
	minor    string
	python   string
	rounds   int
	samplers []peer.Sampler
	series   []series // of each sampler
}

// series is what one sampler's runs have shown, a value for each block.
type series struct {
	ratios, works, cpus, ofFloor []float64
	err                          error // the first failure ends it
}

// measureSlowdown goes through all programs again and again, one block of each at a time, so that an
// interrupt leaves something of every program, and no hour of the day is one program's.
func (b *bench) measureSlowdown() {
	contests := b.contests()
	for i := range b.plan.Pairs {
		if b.ctx.Err() != nil {
			break
		}
		say("slow-down: pair %d of %d of %d programs", i+1, b.plan.Pairs, len(contests))
		for _, c := range contests {
			if b.ctx.Err() == nil {
				b.block(c)
			}
		}
	}
	for _, c := range contests {
		b.results.Slowdown = append(b.results.Slowdown, c.rows()...)
	}
}

func (b *bench) contests() []*contest {
	var all []*contest
	for _, minor := range b.minors() {
		samplers := b.of(minor, func(peer.Sampler) bool { return true })
		for _, p := range b.programs(minor) {
			c := &contest{program: p, minor: minor, python: samplers[0].Target.Path, samplers: samplers,
				series: make([]series, len(samplers))}
			if p.missing == "" {
				var err error
				if c.rounds, err = roundsIn(b.plan.Run, c.python, p.workload); err != nil {
					p.missing = err.Error()
				}
			}
			if p.missing != "" {
				b.results.Missing = append(b.results.Missing, peer.Missing{Name: p.name + " on " + minor, Reason: p.missing})
				continue
			}
			all = append(all, c)
		}
	}
	return all
}

// block runs the program alone and under each sampler, in random order. What disturbs the machine for
// longer than a block disturbs all of them.
func (b *bench) block(c *contest) {
	alone := len(c.samplers)
	paces := make([]pace, alone+1)
	for _, i := range rand.Perm(len(paces)) {
		if b.ctx.Err() != nil {
			return // the block is not whole
		}
		var err error
		if i == alone {
			if paces[i], err = pacedRun(nil, c.python, c.program.workload, peer.Job{}, c.rounds); err != nil {
				say("%s on %s: %v", c.program.name, c.minor, err)
				return
			}
			continue
		}
		if c.series[i].err != nil {
			continue
		}
		job := peer.Job{Rate: rate, Out: b.output()}
		paces[i], c.series[i].err = pacedRun(&c.samplers[i], c.python, c.program.workload, job, c.rounds)
		os.Remove(job.Out)
	}
	floor := 0.0
	for i, s := range c.samplers {
		if s.Name == peer.Floor {
			floor = paces[i].cpu
		}
	}
	for i := range c.samplers {
		s := &c.series[i]
		if s.err != nil {
			continue
		}
		s.ratios = append(s.ratios, paces[i].round.Seconds()/paces[alone].round.Seconds())
		if paces[alone].work > 0 && paces[i].work > 0 {
			s.works = append(s.works, paces[i].work.Seconds()/paces[alone].work.Seconds())
		}
		s.cpus = append(s.cpus, paces[i].cpu)
		if floor > 0 && paces[i].cpu > 0 {
			s.ofFloor = append(s.ofFloor, paces[i].cpu/floor)
		}
	}
}

func (c *contest) rows() []Slowdown {
	var rows []Slowdown
	for i, s := range c.series {
		row := Slowdown{Program: c.program.name, Minor: c.minor, Sampler: c.samplers[i].Name, Pairs: len(s.ratios)}
		switch {
		case s.err != nil:
			row.Error = s.err.Error()
		case len(s.ratios) < 2:
			row.Error = "fewer than two pairs"
		default:
			row.Ratio = ratioOf(s.ratios)
			if len(s.works) > 1 {
				row.Work = ratioOf(s.works)
			}
			if !c.samplers[i].Inside() {
				row.CPU = meanOf(s.cpus)
			}
			if len(s.ofFloor) > 1 {
				row.OfFloor = ratioOf(s.ofFloor)
			}
		}
		rows = append(rows, row)
	}
	return rows
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
