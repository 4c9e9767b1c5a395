package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/omni-perf/omni-perf/bench/sampler/peer"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// rate is what every sampler is asked for, in samples per second.
const rate = 1000

// A bench is one run: what there is to measure with, and what came of it.
type bench struct {
	ctx        context.Context
	plan       Plan
	installed  *peer.Installed
	samplers   []peer.Sampler
	pythons    []truth.Interpreter
	folder     string // for the samplers' output
	results    *Results
	legalCache map[string]*truth.Legal
}

// measure does everything in the plan. An interrupt ends it with what there is.
func measure(ctx context.Context, plan Plan, cache string) (*Results, error) {
	pythons, err := truth.Interpreters()
	if err != nil {
		return nil, err
	}
	say("installing peers into %s", cache)
	installed, err := peer.Install(cache, firstChoices(pythons))
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "omni-perf-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)

	b := &bench{
		ctx: ctx, plan: plan, installed: installed, pythons: pythons, folder: folder,
		legalCache: map[string]*truth.Legal{},
		results:    &Results{Date: time.Now().UTC().Format("2006-01-02"), Rate: rate, Missing: installed.Missing},
	}
	if err := b.chooseSamplers(); err != nil {
		return nil, err
	}
	watch := watchMachine()
	var done []string
	if plan.Axes.MatchString("accuracy") {
		done = append(done, fmt.Sprintf("accuracy: %v, time shares %v", plan.Accuracy, plan.Shares))
		b.measureAccuracy()
	}
	if plan.Axes.MatchString("rate") {
		b.measureMaxRate()
	}
	if plan.Axes.MatchString("turns") {
		done = append(done, fmt.Sprintf("turns: %d pairs of %v", plan.Pairs, plan.Run))
		b.measureTurns()
	}
	if plan.Axes.MatchString("slowdown") {
		done = append(done, fmt.Sprintf("slow-down: %d pairs of %v", plan.Pairs, plan.Run))
		b.measureSlowdown() // the longest, and the one that an interrupt leaves something of
	}
	if ctx.Err() != nil {
		done = append(done, "ended before all of it was done")
	}
	b.results.Plan = strings.Join(done, "; ")
	b.results.Machine = watch.end()
	return b.results, nil
}

// firstChoices is the interpreter of each version that has no particular build.
func firstChoices(pythons []truth.Interpreter) map[string]truth.Interpreter {
	first := map[string]truth.Interpreter{}
	for _, python := range pythons {
		if python.Build == "" {
			first[python.Minor] = python
		}
	}
	return first
}

// chooseSamplers puts ours beside the peers of each version, with the same interpreter as theirs. A version
// without any peer in the plan is left out.
func (b *bench) chooseSamplers() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, minor := range []string{peer.Minor, peer.TachyonMinor} {
		python, found := firstChoices(b.pythons)[minor]
		if !found {
			continue
		}
		compared := false
		var beside []peer.Sampler
		for _, s := range b.installed.Samplers {
			if s.Target.Minor != minor {
				continue
			}
			if s.Inside() {
				python = s.Target // it needs the environment it is installed in
			}
			if s.Name == peer.Floor || b.plan.Samplers.MatchString(s.Name) {
				beside = append(beside, s)
				compared = compared || s.Name != peer.Floor
			}
		}
		if !compared {
			continue
		}
		b.samplers = append(b.samplers, ours(self, python))
		for _, s := range beside {
			s.Target = python
			b.samplers = append(b.samplers, s)
		}
	}
	for _, s := range b.samplers {
		b.results.Samplers = append(b.results.Samplers, SamplerID{
			Name: s.Name, Version: s.Version, Minor: s.Target.Minor, Python: fullVersion(s.Target.Path)})
	}
	return nil
}

// of returns the samplers of targets of one version that satisfy keep.
func (b *bench) of(minor string, keep func(peer.Sampler) bool) []peer.Sampler {
	var found []peer.Sampler
	for _, s := range b.samplers {
		if s.Target.Minor == minor && keep(s) {
			found = append(found, s)
		}
	}
	return found
}

// minors returns the versions that any sampler is measured on.
func (b *bench) minors() []string {
	var found []string
	for _, minor := range truth.Minors {
		if len(b.of(minor, func(peer.Sampler) bool { return true })) > 0 {
			found = append(found, minor)
		}
	}
	return found
}

// legal observes a workload once for each interpreter.
func (b *bench) legal(python string, w truth.Workload) (*truth.Legal, error) {
	key := fmt.Sprint(python, w)
	if legal, known := b.legalCache[key]; known {
		return legal, nil
	}
	legal, err := truth.Observe(python, w)
	if err == nil {
		b.legalCache[key] = legal
	}
	return legal, err
}

// output is a new file for a sampler to write.
func (b *bench) output() string {
	return filepath.Join(b.folder, fmt.Sprintf("out-%d.json", time.Now().UnixNano()))
}

func say(format string, arguments ...any) { fmt.Fprintf(os.Stderr, format+"\n", arguments...) }
