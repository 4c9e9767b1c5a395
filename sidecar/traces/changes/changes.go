// Package changes sets the tables of two runs side by side.
//
// In flow the tables of a run and of the one it is compared with, out flows one table: each figure
// before and after, what it changed by, and whether that is more than noise: more than steps and ranks differ among themselves.
// Figures are those of one step of one rank where both runs have steps, else of one rank. Kernels that have another name
// in the other run are paired by the operator that launched them and their place among its kernels. The package knows no trace.
package changes

import (
	"cmp"
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
	"github.com/omni-perf/omni-perf/sidecar/understand/significance"
)

// TableName is the table's name.
const TableName = "changes"

// The kinds of figures, as the table has them, in its order.
const (
	Step          = "step"          // what a step took
	Device        = "device"        // what the devices' time went into
	IdleCause     = "idle_cause"    // why they were idle
	Host          = "host"          // what the host did while they were
	Communication = "communication" // collectives: transfer, and waiting for other ranks
	Collective    = "collective"    // one collective of a size, type and group
	Phase         = "phase"         // forward, backward, optimizer
	Module        = "module"        // the own time of the modules of a class and place
	Operator      = "operator"      // an operator's own time on the device, on the CPU where nothing ran on one
	Kernel        = "kernel"
	Memory        = "memory" // the highest of a rank
)

var kinds = []string{Step, Device, IdleCause, Host, Communication, Collective, Phase, Module, Operator, Kernel, Memory}

// Two of the figures of Device: each is a sum, of kernels and of causes.
const (
	Computing = "computing"
	Idle      = "idle"
)

// What figures are of, as the table has it.
const (
	PerStep = "step" // of one rank
	PerRank = "rank"
	PerCall = "call" // of one collective
)

// level is the probability that the interval of a change has the true one.
const level = 0.95

// least is what a change must be of all time to have a row, if the figure is not of the whole: less is no answer.
const least = 0.001

// Tables are a run's tables.
type Tables []*table.Table

func (t Tables) get(name string) *table.Table {
	if at := slices.IndexFunc(t, func(t *table.Table) bool { return t.Name == name }); at >= 0 {
		return t[at]
	}
	return &table.Table{}
}

// Needed are the analyses that a comparison is made of.
func Needed() []string {
	return []string{analyses.TableSteps, analyses.TableTemporal, analyses.TableTemporalByDevice, analyses.TableIdleCauses,
		analyses.TableHostIdle, analyses.TablePhases, analyses.TableModuleClasses, analyses.TableOperators, analyses.TableKernels,
		analyses.TableStragglers, analyses.TableCommunication, analyses.TableMemoryPeaks, analyses.TableWorkByStep}
}

// key names a figure.
type key struct{ kind, name string }

// New is the empty table.
func New() *table.Table {
	return table.New(TableName, "This run against another",
		&table.Column{Name: "run", Kind: table.Text},  // the other one
		&table.Column{Name: "kind", Kind: table.Text}, // step, device, idle_cause, host, communication, collective, phase, module, operator, kernel, memory
		&table.Column{Name: "name", Kind: table.Text},
		&table.Column{Name: "was", Kind: table.Text, Optional: true}, // the name of a kernel in the other run, if it is another one
		&table.Column{Name: "per", Kind: table.Text},                 // step, rank or call
		&table.Column{Name: "before_us", Kind: table.Micros},         // in the other run
		&table.Column{Name: "after_us", Kind: table.Micros},          // in this one
		&table.Column{Name: "change_us", Kind: table.Micros},
		&table.Column{Name: "low_us", Kind: table.Micros}, // the change is between these
		&table.Column{Name: "high_us", Kind: table.Micros},
		&table.Column{Name: "before_bytes", Kind: table.Bytes}, // of memory, in place of times
		&table.Column{Name: "after_bytes", Kind: table.Bytes},
		&table.Column{Name: "change_bytes", Kind: table.Bytes},
		&table.Column{Name: "verdict", Kind: table.Text, Optional: true}) // less, more, new, gone; none: within noise
}

// row is one of the table.
type row struct {
	key
	was string
	significance.Difference
}

// Add adds what changed from another run to this one: the whole first, then each kind by the size of the change.
func Add(to *table.Table, run string, before, after Tables) {
	per, nBefore, nAfter := units(before, after)
	old, now := figures(before, nBefore, per), figures(after, nAfter, per)
	whole := max(reference(old), reference(now))
	var rows []row
	add := func(k key, was string, before, after significance.Reading) {
		d := significance.Of([]significance.Reading{before}, []significance.Reading{after}, level)
		if k.kind == Step || k.kind == Device || k.kind == Memory || math.Abs(d.Change()) >= least*whole {
			rows = append(rows, row{k, was, d})
		}
	}
	for _, p := range renamed(before, after, old, now) {
		add(p.now, p.was.name, old[p.was], now[p.now])
		delete(old, p.was)
		delete(now, p.now)
	}
	for k := range union(old, now) {
		if (k.kind == Step || k.kind == Memory || k.kind == Collective) && (reading(old, k).Absent || reading(now, k).Absent) {
			continue // a run without steps has not become faster or slower by a step
		}
		add(k, "", reading(old, k), reading(now, k))
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(slices.Index(kinds, a.kind), slices.Index(kinds, b.kind)),
			cmp.Compare(math.Abs(b.Change()), math.Abs(a.Change())), cmp.Compare(a.name, b.name))
	})
	for _, r := range rows {
		r.add(to, run, per)
	}
}

func (r *row) add(to *table.Table, run, per string) {
	if r.kind == Collective {
		per = PerCall
	}
	none := math.NaN()
	if r.kind == Memory {
		to.Add(run, r.kind, r.name, r.was, PerRank, none, none, none, none, none, int64(r.Before), int64(r.After), int64(r.Change()), string(r.Verdict))
		return
	}
	to.Add(run, r.kind, r.name, r.was, per, r.Before, r.After, r.Change(), r.Low, r.High, int64(table.None), int64(table.None), int64(table.None), string(r.Verdict))
}

// units are what figures are divided by: steps of all ranks where both runs have some, else ranks.
func units(before, after Tables) (per string, nBefore, nAfter float64) {
	if b, a := float64(len(steps(before))), float64(len(steps(after))); b > 0 && a > 0 {
		return PerStep, b, a
	}
	return PerRank, ranks(before), ranks(after)
}

// steps are the lengths of the counted steps of all ranks, µs.
func steps(t Tables) (lengths []float64) {
	s := t.get(analyses.TableSteps)
	for r := range s.Len() {
		if us := s.FloatAt("duration_us", r); s.TextAt("counted", r) == "yes" && !math.IsNaN(us) {
			lengths = append(lengths, us)
		}
	}
	return lengths
}

func ranks(t Tables) float64 {
	of := t.get(analyses.TableTemporal)
	if of.Len() == 0 {
		of = t.get(analyses.TableOperators)
	}
	seen := map[int64]bool{}
	for r := range of.Len() {
		seen[of.IntAt("rank", r)] = true
	}
	return max(1, float64(len(seen)))
}

// meanOf is the mean and its standard error.
func meanOf(values []float64) (mean, noise float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	if len(values) < 2 {
		return mean, 0
	}
	for _, v := range values {
		noise += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(noise / float64(len(values)-1) / float64(len(values)))
}

// reading is a run's figure; absent where it has none.
func reading(of map[key]significance.Reading, k key) significance.Reading {
	r, ok := of[k]
	r.Absent = !ok
	return r
}

// reference is what changes are small against: a step, else the devices' time, else the operators'.
func reference(of map[key]significance.Reading) float64 {
	if step, ok := of[key{Step, "a step"}]; ok {
		return step.Value
	}
	sums := map[string]float64{}
	for k, r := range of {
		sums[k.kind] += r.Value
	}
	return cmp.Or(sums[Device], sums[Operator])
}

func union(a, b map[key]significance.Reading) map[key]bool {
	all := map[key]bool{}
	for k := range a {
		all[k] = true
	}
	for k := range b {
		all[k] = true
	}
	return all
}
