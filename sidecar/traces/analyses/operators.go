package analyses

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// opTree nests the operators and annotations of the chosen steps.
type opTree struct {
	*nesting
	t *kineto.Trace
}

// operators is the recording's tree.
func (r *recording) operators() *opTree {
	if r.tree == nil {
		o := &r.t.Ops
		keep := func(row int) bool { return o.Class[row] <= kineto.OpAnnotation && r.keeps(o.Start[row]) }
		r.tree = &opTree{nest(o.Start, o.Dur, o.Thread, keep), r.t}
	}
	return r.tree
}

// hasOperators reports whether ranges are listed among operators, as torch does. Other tools record ranges alone, which are
// no operators then.
func (r *recording) hasOperators() bool {
	return r.t.From == kineto.FromTorch || slices.Contains(r.t.Ops.Class, kineto.OpCPU)
}

// outermost is the name of the outermost operator around a call of the tree,
// annotations aside: aten::item, not what that calls. "" if there is none.
func (tree *opTree) outermost(at int32) string {
	name := ""
	for ; at >= 0; at = tree.parent[at] {
		if row := tree.rows[at]; tree.t.Ops.Class[row] == kineto.OpCPU && !IsAnnotation(tree.t.Text(tree.t.Ops.Name[row])) {
			name = tree.t.Text(tree.t.Ops.Name[row])
		}
	}
	return name
}

// IsAnnotation recognises the names of record_function, which stand among the
// operators: an operator's begins with its namespace (aten::mm, gloo:all_reduce).
func IsAnnotation(name string) bool {
	return strings.HasPrefix(name, "ProfilerStep") || !strings.Contains(name, ":") || strings.Contains(name, " ")
}

// opCosts are what each operator of a tree caused itself.
type opCosts struct {
	device                 []int64 // ns of device time of its kernels
	hostBytes, deviceBytes []int64 // allocated less freed
}

// costs charges kernels and allocations to the innermost operator: kernels as
// launcher has it.
func (tree *opTree) costs(r *recording) opCosts {
	t := tree.t
	n := len(tree.rows)
	c := opCosts{make([]int64, n), make([]int64, n), make([]int64, n)}
	if len(r.spans) > 0 {
		tree.kernels(r, c.device)
	}
	m := &t.Memory
	for i, at := range m.Time {
		op := tree.innermost(m.Thread[i], at)
		switch {
		case op < 0:
		case m.DeviceType[i] == 0:
			c.hostBytes[op] += m.Bytes[i]
		default:
			c.deviceBytes[op] += m.Bytes[i]
		}
	}
	return c
}

// kernels charges device time to the operators that launched it.
func (tree *opTree) kernels(r *recording, device []int64) {
	for i, op := range r.launchers() {
		if op >= 0 {
			device[op] += r.spans[i].dur
		}
	}
}

// launchers are the operators that device events belong to, by span; -1 where there is none.
func (r *recording) launchers() []int32 {
	if r.launcherOf != nil {
		return r.launcherOf
	}
	tree := r.operators()
	r.launcherOf = make([]int32, len(r.spans))
	numbered := tree.numbered()
	callOf := map[int64]int32{}
	for i := range r.calls {
		if c := &r.calls[i]; c.row >= 0 && c.correlation != kineto.None {
			callOf[c.correlation] = c.row
		}
	}
	for i := range r.spans {
		s := &r.spans[i]
		r.launcherOf[i] = -1
		if s.row < 0 {
			continue
		}
		call, launched := callOf[s.correlation]
		if !launched {
			call = -1
		}
		named, known := numbered[tree.t.Device.External[s.row]]
		if !known {
			named = -1
		}
		r.launcherOf[i] = tree.launcher(s, call, named)
	}
	return r.launcherOf
}

// numbered finds the operators by their External id.
func (tree *opTree) numbered() map[int64]int32 {
	ops := make(map[int64]int32, len(tree.rows))
	for i, row := range tree.rows {
		if id := tree.t.Ops.External[row]; id != kineto.None && id != 0 {
			ops[id] = int32(i) // the innermost of equal ids comes last
		}
	}
	return ops
}

// launcher is the operator that a device event belongs to, given the row of its runtime call and
// the operator that its External id names; -1 where either is not known, and as the answer.
//
// The id decides only where that operator was open when the call was made, on the call's thread or,
// if that has none open, on another one: Kineto of 2022 to 2024 wrote the correlation there
// (pytorch/kineto #843), which is the number of any operator by chance. Else the call decides. Of an event
// without a recorded call the id is believed, unless it is the correlation.
func (tree *opTree) launcher(s *span, call, named int32) int32 {
	copied := named >= 0 && tree.t.Device.External[s.row] == s.correlation
	if call < 0 {
		if copied {
			return -1
		}
		return named
	}
	calls := &tree.t.Calls
	thread, at := calls.Thread[call], calls.Start[call]
	around := tree.operator(tree.innermost(thread, at))
	if named < 0 || named == around {
		return around
	}
	row := tree.rows[named]
	open := tree.start[row] <= at && at < tree.start[row]+max(1, tree.dur[row])
	if open && (tree.thread[row] == thread || around < 0 && !copied) {
		return named
	}
	return around
}

// operator is the innermost operator around a call of the tree, or the call itself where there is
// none but annotations: what NCCL names its kernels by is inside the operator that launches them.
func (tree *opTree) operator(at int32) int32 {
	for up := at; up >= 0; up = tree.parent[up] {
		if tree.t.Ops.Class[tree.rows[up]] == kineto.OpCPU {
			return up
		}
	}
	return at
}

// addUp gives every operator what those it calls have.
func (tree *opTree) addUp(own []int64) []int64 {
	total := slices.Clone(own)
	for i := len(tree.rows) - 1; i >= 0; i-- { // children come after their parents
		if up := tree.parent[i]; up >= 0 {
			total[up] += total[i]
		}
	}
	return total
}

// again returns operators that are nothing but the only call of one of the same
// name, as aten::mul with a number is: torch counts them once.
func (tree *opTree) again() []bool {
	calls := make([]int32, len(tree.rows))
	for _, up := range tree.parent {
		if up >= 0 {
			calls[up]++
		}
	}
	again := make([]bool, len(tree.rows))
	names := tree.t.Ops.Name
	for i, up := range tree.parent {
		again[i] = up >= 0 && calls[up] == 1 && names[tree.rows[i]] == names[tree.rows[up]]
	}
	return again
}

// opKey names a row of the operator table.
type opKey struct{ name, shapes string }

// opSums are the figures of one row.
type opSums struct {
	calls                                  int64
	selfHost, totalHost, selfDev, totalDev int64 // ns
	hostBytes, totalHostBytes              int64
	deviceBytes, totalDeviceBytes          int64
	flops                                  float64 // with those of the operators it calls
}

func (s *opSums) plus(o *opSums) {
	s.calls += o.calls
	s.selfHost, s.totalHost = s.selfHost+o.selfHost, s.totalHost+o.totalHost
	s.selfDev, s.totalDev = s.selfDev+o.selfDev, s.totalDev+o.totalDev
	s.hostBytes, s.totalHostBytes = s.hostBytes+o.hostBytes, s.totalHostBytes+o.totalHostBytes
	s.deviceBytes, s.totalDeviceBytes = s.deviceBytes+o.deviceBytes, s.totalDeviceBytes+o.totalDeviceBytes
	s.flops += o.flops
}

// observeOperators groups the operators by name, or by name and input shapes.
// The steps are one operator, as in torch's key_averages.
func observeOperators(r *recording) map[opKey]*opSums {
	if !r.hasOperators() {
		return nil
	}
	o := &r.t.Ops
	tree := r.operators()
	self, own := tree.self(), tree.costs(r)
	totalDev, totalHost, totalDevice := tree.addUp(own.device), tree.addUp(own.hostBytes), tree.addUp(own.deviceBytes)
	flops, again := tree.flops(), tree.again()
	type key struct{ name, shapes kineto.Sym }
	bySym := map[key]*opSums{}
	for i, row := range tree.rows {
		k := key{name: o.Name[row]}
		if r.opts.GroupByShape {
			k.shapes = inputsOf(o, row).Dims
		}
		s := bySym[k]
		if s == nil {
			s = &opSums{}
			bySym[k] = s
		}
		s.plus(&opSums{selfHost: self[i], selfDev: own.device[i], hostBytes: own.hostBytes[i], deviceBytes: own.deviceBytes[i]})
		if !again[i] {
			s.plus(&opSums{
				calls: 1, totalHost: max(0, o.Dur[row]), totalDev: totalDev[i],
				totalHostBytes: totalHost[i], totalDeviceBytes: totalDevice[i], flops: flops[i],
			})
		}
	}
	sums := make(map[opKey]*opSums, len(bySym))
	for k, s := range bySym {
		name := opKey{r.t.Text(k.name), r.t.Text(k.shapes)}
		if _, isStep := stepNumber(name.name); isStep {
			name.name = "ProfilerStep*"
		}
		if sums[name] == nil {
			sums[name] = &opSums{}
		}
		sums[name].plus(s)
	}
	return sums
}

// answerOperators is torch's key_averages, most device time first, then host
// time. Columns that nothing was recorded for are left out.
func answerOperators(a asked[map[opKey]*opSums]) []*table.Table {
	perRank := make([]map[opKey]*opSums, len(a.ranks))
	withFlops := false
	for i, rank := range a.ranks {
		perRank[i] = map[opKey]*opSums{}
		for _, part := range rank.parts {
			for key, s := range part {
				if perRank[i][key] == nil {
					perRank[i][key] = &opSums{}
				}
				perRank[i][key].plus(s)
				withFlops = withFlops || s.flops > 0
			}
		}
	}
	columns := a.operatorColumns(withFlops)
	t := table.New(TableOperators, "Operators")
	for _, c := range columns {
		t.Columns = append(t.Columns, &table.Column{Name: c.name, HTAName: c.name, Kind: c.kind})
	}
	for i, rank := range a.ranks {
		for _, key := range byCost(perRank[i]) {
			cells := make([]any, len(columns))
			for c := range columns {
				cells[c] = columns[c].cell(rank.rank, key, perRank[i][key])
			}
			t.Add(cells...)
		}
	}
	return []*table.Table{t}
}

// byCost lists the operators, most device time first, then host time.
func byCost(sums map[opKey]*opSums) []opKey {
	type operator struct {
		opKey
		*opSums
	}
	operators := make([]operator, 0, len(sums))
	for key, s := range sums {
		operators = append(operators, operator{key, s})
	}
	slices.SortFunc(operators, func(a, b operator) int {
		if c := cmp.Or(cmp.Compare(b.selfDev, a.selfDev), cmp.Compare(b.selfHost, a.selfHost)); c != 0 {
			return c
		}
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.shapes, b.shapes))
	})
	keys := make([]opKey, len(operators))
	for i, o := range operators {
		keys[i] = o.opKey
	}
	return keys
}

// opColumn is a column of the operator table.
type opColumn struct {
	name string
	kind table.Kind
	cell func(rank int, key opKey, s *opSums) any
}

func (a asked[P]) operatorColumns(withFlops bool) []opColumn {
	us := func(name string, of func(*opSums) int64) opColumn {
		return opColumn{name, table.Micros, func(_ int, _ opKey, s *opSums) any { return micros(of(s)) }}
	}
	bytes := func(name string, of func(*opSums) int64) opColumn {
		return opColumn{name, table.Bytes, func(_ int, _ opKey, s *opSums) any { return of(s) }}
	}
	columns := []opColumn{
		{"rank", table.Int, func(rank int, _ opKey, _ *opSums) any { return rank }},
		{"name", table.Text, func(_ int, key opKey, _ *opSums) any { return key.name }},
	}
	if a.opts.GroupByShape {
		columns = append(columns, opColumn{"input_shapes", table.Text, func(_ int, key opKey, _ *opSums) any { return key.shapes }})
	}
	columns = append(columns,
		opColumn{"calls", table.Int, func(_ int, _ opKey, s *opSums) any { return s.calls }},
		us("self_cpu_us", func(s *opSums) int64 { return s.selfHost }),
		us("total_cpu_us", func(s *opSums) int64 { return s.totalHost }))
	if a.about.device {
		columns = append(columns,
			us("self_device_us", func(s *opSums) int64 { return s.selfDev }),
			us("total_device_us", func(s *opSums) int64 { return s.totalDev }))
	}
	if a.about.memory {
		columns = append(columns,
			bytes("self_cpu_bytes", func(s *opSums) int64 { return s.hostBytes }),
			bytes("total_cpu_bytes", func(s *opSums) int64 { return s.totalHostBytes }))
	}
	if a.about.memory && a.about.device {
		columns = append(columns,
			bytes("self_device_bytes", func(s *opSums) int64 { return s.deviceBytes }),
			bytes("total_device_bytes", func(s *opSums) int64 { return s.totalDeviceBytes }))
	}
	if withFlops {
		columns = append(columns,
			opColumn{"flops", table.Flop, func(_ int, _ opKey, s *opSums) any { return orNone(s.flops) }},
			opColumn{"flops_per_s", table.FlopPerS, func(_ int, _ opKey, s *opSums) any { return s.rate(a.about) }})
	}
	return columns
}

// rate is floating-point operations per second of the time on the device, of a
// trace without one on the host; unless the host may only have launched them.
func (s *opSums) rate(in setFacts) float64 {
	ns := s.totalHost
	if in.device {
		ns = s.totalDev
	}
	if ns <= 0 || !in.device && in.unseen {
		return math.NaN()
	}
	return orNone(s.flops / float64(ns) * 1e9)
}

// orNone is a figure that is not there when it is zero.
func orNone(v float64) float64 {
	if v == 0 {
		return math.NaN()
	}
	return v
}
