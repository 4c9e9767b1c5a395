package main

import (
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/bench/sampler/peer"
)

// Ours is the name of omni-perf's own sampler in the tables.
const Ours = "omni-perf"

// Results is everything a run has measured; the page is made of nothing else.
type Results struct {
	Date     string
	Command  string
	Machine  Machine
	Rate     float64 // samples per second that were asked for
	Plan     string
	Samplers []SamplerID
	Missing  []peer.Missing
	Slowdown []Slowdown
	Turns    []Turns
	Accuracy []Accuracy
	MaxRate  []MaxRate
}

// Machine is where it was measured.
type Machine struct {
	CPU    string
	Cores  int
	Kernel string
	// Others is the share of all cores that other processes used in the second before or after, Stolen
	// what the hypervisor withheld all along.
	Others, Stolen float64
}

// SamplerID names one sampler with what it samples. Targets of different versions are not compared.
type SamplerID struct{ Name, Version, Minor, Python string }

// Slowdown is one program under one sampler.
type Slowdown struct {
	Program, Minor, Sampler string
	Pairs                   int
	// Ratio is the program's time with the sampler to that without, in the same block of runs.
	Ratio Interval
	// Work is the CPU time that the program itself took for the same work, likewise.
	Work Interval
	// CPU is the sampler's own, in cores; OfFloor is that to the bare C loop's in the same block. Zero
	// for a sampler inside the target.
	CPU, OfFloor Interval
	Error        string
}

// Turns is one program under our sampler, which is stopped and goes on in turn.
type Turns struct {
	Program, Minor string
	Pairs          int
	Ratio, Work    Interval // as of Slowdown
	Error          string
}

// Accuracy is one workload of known truth under one sampler.
type Accuracy struct {
	Workload, Minor, Build, Sampler string
	Samples                         int
	PerSecond                       float64 // of one thread
	// Shares of the samples. Lost includes the attempts that failed by the sampler's own word.
	Impossible, Lost, Truncated, WrongCallLines float64
	// HotLeaf is the share of leaves in functions with one hot line that name another, of Leaves.
	HotLeaf float64
	Leaves  int
	// Distance is the total variation distance from the known time shares; nil if there are none.
	Distance *float64
	// Computing is the time of the function that computes between sleeps to that by its own CPU clock; nil for
	// other workloads.
	Computing *float64
	Example   string
	Error     string
}

// MaxRate is how often a sampler that is asked to hurry reads one thread, 12 calls deep.
type MaxRate struct {
	Minor, Sampler string
	PerSecond      float64
	Impossible     float64
	Error          string
}

// joined are the results of several runs on one machine, the first of which shows what it is. What others
// kept of it is the worst of them.
func joined(all []*Results) *Results {
	one := *all[0]
	commands, plans := []string{one.Command}, []string{one.Plan}
	for _, r := range all[1:] {
		commands, plans = append(commands, r.Command), append(plans, r.Plan)
		one.Date = max(one.Date, r.Date)
		one.Machine.Others = max(one.Machine.Others, r.Machine.Others)
		one.Machine.Stolen = max(one.Machine.Stolen, r.Machine.Stolen)
		one.Samplers = union(one.Samplers, r.Samplers)
		one.Missing = union(one.Missing, r.Missing)
		one.Slowdown = append(one.Slowdown, r.Slowdown...)
		one.Turns = append(one.Turns, r.Turns...)
		one.Accuracy = append(one.Accuracy, r.Accuracy...)
		one.MaxRate = append(one.MaxRate, r.MaxRate...)
	}
	one.Command, one.Plan = strings.Join(commands, "; "), strings.Join(plans, "; ")
	return &one
}

// union is a and what else is in b.
func union[T comparable](a, b []T) []T {
	for _, value := range b {
		if !slices.Contains(a, value) {
			a = append(a, value)
		}
	}
	return a
}
