package analyses

import (
	"cmp"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// TableWorkByStep has the own time of operators and the kernels of each step. It is for comparisons and shown nowhere.
const TableWorkByStep = "work_by_step"

// What a row of it is of.
const (
	WorkOperator = "operator" // on the device, on the CPU where nothing ran on one
	WorkKernel   = "kernel"
)

// workKey names a row.
type workKey struct {
	step     int
	kind     string
	name     string
	shapes   string // of an operator, if operators are split by them
	operator string // that launched a kernel, "" if none did
	does     string // of a kernel: COMPUTATION, …
	position int    // of a kernel among those of its kind that that call of the operator launched
}

// mostPositions bounds how many kernels of an operator's call are told apart.
const mostPositions = 64

// observeByStep sums up what was launched in each of the chosen steps.
func observeByStep(r *recording) map[workKey]int64 {
	type symKey struct {
		step, position         int32
		name, shapes, operator kineto.Sym
		kernel                 bool
		does                   KernelKind
	}
	steps := hostSteps(r.steps)
	stepAt := func(at int64) int32 {
		i, _ := slices.BinarySearchFunc(steps, at, func(s step, at int64) int { return cmp.Compare(s.start, at+1) })
		if i == 0 || at >= steps[i-1].end {
			return -1
		}
		return int32(i - 1)
	}
	o, tree := &r.t.Ops, r.operators()
	sums := map[symKey]int64{}
	operator := func(step int32, row uint32, ns int64) {
		k := symKey{step: step, name: o.Name[row]}
		if r.opts.GroupByShape {
			k.shapes = inputsOf(o, row).Dims
		}
		sums[k] += ns
	}
	launched := make([][anyOfThem]int32, len(tree.rows)) // by operator: how many kernels of each kind so far
	for i, op := range r.launchers() {
		_, at, known := r.origin(i)
		step := stepAt(at)
		if !known || step < 0 {
			continue
		}
		s := &r.spans[i]
		k := symKey{step: step, name: s.name, kernel: true, does: s.kind}
		if op >= 0 {
			operator(step, tree.rows[op], max(0, s.dur))
			k.operator, k.position = o.Name[tree.rows[op]], min(launched[op][s.kind], mostPositions)
			launched[op][s.kind]++
		}
		sums[k] += max(0, s.dur)
	}
	if len(r.spans) == 0 {
		for i, ns := range tree.self() {
			if step := stepAt(tree.start[tree.rows[i]]); step >= 0 {
				operator(step, tree.rows[i], ns)
			}
		}
	}
	named := make(map[workKey]int64, len(sums))
	for k, ns := range sums {
		w := workKey{
			step: steps[k.step].number, kind: WorkOperator, name: r.t.Text(k.name), shapes: r.t.Text(k.shapes),
			operator: r.t.Text(k.operator), position: int(k.position),
		}
		if k.kernel {
			w.kind, w.does = WorkKernel, k.does.String()
		}
		named[w] += ns
	}
	return named
}

// answerByStep lists them in any order but always the same.
func answerByStep(a asked[map[workKey]int64]) []*table.Table {
	t := table.New(TableWorkByStep, "Work by step",
		&table.Column{Name: "rank", Kind: table.Int},
		&table.Column{Name: "step", Kind: table.Int},
		&table.Column{Name: "kind", Kind: table.Text},
		&table.Column{Name: "name", Kind: table.Text},
		&table.Column{Name: "input_shapes", Kind: table.Text, Optional: true},
		&table.Column{Name: "operator", Kind: table.Text, Optional: true},
		&table.Column{Name: "kernel_type", Kind: table.Text, Optional: true},
		&table.Column{Name: "position", Kind: table.Int},
		&table.Column{Name: "us", Kind: table.Micros})
	for _, rank := range a.ranks {
		for _, part := range rank.parts {
			keys := make([]workKey, 0, len(part))
			for k := range part {
				keys = append(keys, k)
			}
			slices.SortFunc(keys, func(x, y workKey) int {
				return cmp.Or(cmp.Compare(x.step, y.step), cmp.Compare(x.kind, y.kind), cmp.Compare(x.name, y.name),
					cmp.Compare(x.shapes, y.shapes), cmp.Compare(x.operator, y.operator), cmp.Compare(x.does, y.does), cmp.Compare(x.position, y.position))
			})
			for _, k := range keys {
				t.Add(rank.rank, k.step, k.kind, k.name, k.shapes, k.operator, k.does, k.position, micros(part[k]))
			}
		}
	}
	return []*table.Table{t}
}
