package analyses

import (
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// Phase is the part of a training step that work belongs to, as TablePhases has it.
type Phase uint8

// The phases, in their order of a step.
const (
	Forward Phase = iota
	Backward
	Optimizer
	OtherPhase // none of them, or not known
	phaseCount
)

func (p Phase) String() string {
	return [...]string{"forward", "backward", "optimizer", "other"}[p]
}

// Names that torch gives what it calls.
const (
	autogradPrefix  = "autograd::engine::evaluate_function"
	optimizerPrefix = "Optimizer."
)

// phases say of each operator of the tree which phase it is of, and which operator of the forward pass
// an operator of the backward pass belongs to.
type phases struct {
	of []Phase
	// backward is the outermost operator of the backward pass around each operator, the operator itself included; -1: none.
	backward []int32
	// forward operators by autograd's number, by start.
	numbered map[int64][]int32
	known    bool // some operator has a phase
}

// phases of the recording's operators. Backward is what autograd calls, optimizer what torch's own annotation
// of one encloses, forward what is in a module or what autograd differentiates.
func (r *recording) phases() *phases {
	if r.phaseTree != nil {
		return r.phaseTree
	}
	tree := r.operators()
	o := &r.t.Ops
	p := &phases{of: make([]Phase, len(tree.rows)), backward: make([]int32, len(tree.rows)), numbered: map[int64][]int32{}}
	differentiated := tree.differentiated()
	modules := r.modules()
	for i, row := range tree.rows { // parents come before their children
		p.of[i], p.backward[i] = OtherPhase, -1
		if up := tree.parent[i]; up >= 0 {
			p.of[i], p.backward[i] = p.of[up], p.backward[up]
		}
		number := o.Autograd[row]
		p.of[i] = phaseOf(p.of[i], r.t.Text(o.Name[row]), o.Backward[row],
			func() bool { return differentiated[number] || modules.at(tree.thread[row], tree.start[row]) >= 0 })
		if p.of[i] == Backward && p.backward[i] < 0 {
			p.backward[i] = int32(i)
		}
		if number != kineto.None && differentiated[number] && !o.Backward[row] {
			p.numbered[number] = append(p.numbered[number], int32(i))
		}
		p.known = p.known || p.of[i] != OtherPhase
	}
	for i := len(tree.rows) - 1; i >= 0; i-- { // an operator is of the forward pass if one that it calls is
		if up := tree.parent[i]; up >= 0 && p.of[i] == Forward && p.of[up] == OtherPhase && o.Class[tree.rows[up]] == kineto.OpCPU {
			p.of[up] = Forward
		}
	}
	r.phaseTree = p
	return p
}

// differentiated are autograd's numbers of what the backward pass has operators of.
func (tree *opTree) differentiated() map[int64]bool {
	o := &tree.t.Ops
	numbers := map[int64]bool{}
	for _, row := range tree.rows {
		if o.Backward[row] && o.Autograd[row] != kineto.None {
			numbers[o.Autograd[row]] = true
		}
	}
	return numbers
}

// phaseOf is the phase of an operator that is called in another one, or in none of them.
func phaseOf(caller Phase, name string, backward bool, isForward func() bool) Phase {
	switch {
	case strings.HasPrefix(name, optimizerPrefix) && caller != Backward:
		return Optimizer
	case backward || strings.HasPrefix(name, autogradPrefix):
		return Backward
	case caller == OtherPhase && isForward():
		return Forward
	}
	return caller
}

// forwardOf is the operator of the forward pass that one of the backward pass is of; -1 where it is not known. Of several
// with the number the last one made autograd's node. Where they are of several threads, which count each for
// themselves, none can be chosen.
func (p *phases) forwardOf(tree *opTree, at int32) int32 {
	o := &tree.t.Ops
	found := int32(-1)
	for up := at; up >= 0; up = tree.parent[up] {
		row := tree.rows[up]
		if !o.Backward[row] {
			continue
		}
		for _, candidate := range p.numbered[o.Autograd[row]] {
			c := tree.rows[candidate]
			if o.Start[c] > o.Start[row] {
				continue
			}
			if found >= 0 && o.Thread[tree.rows[found]] != o.Thread[c] {
				return -1
			}
			found = candidate
		}
		if found >= 0 {
			return found
		}
	}
	return -1
}

// phaseTime is what a phase took.
type phaseTime struct{ host, device int64 } // ns

// phaseTimes are a recording's; nil where no phase is known.
type phaseTimes []phaseTime

func observePhases(r *recording) phaseTimes {
	tree, p, modules := r.operators(), r.phases(), r.modules()
	if !p.known && len(modules.rows) == 0 {
		return nil
	}
	times := make(phaseTimes, phaseCount)
	host := make([][]interval, phaseCount)
	for i, row := range tree.rows {
		if up := tree.parent[i]; p.of[i] != OtherPhase && (up < 0 || p.of[up] != p.of[i]) {
			host[p.of[i]] = append(host[p.of[i]], between(tree.start[row], tree.end(row)))
		}
	}
	for i, row := range modules.rows {
		if modules.parent[i] < 0 && !r.inBackward(modules.thread[row], modules.start[row]) {
			host[Forward] = append(host[Forward], between(modules.start[row], modules.end(row)))
		}
	}
	for phase := range host {
		times[phase].host = timeline.Total(timeline.Joined(host[phase]))
	}
	for i := range r.spans {
		times[r.phaseOf(i)].device += max(0, r.spans[i].dur)
	}
	return times
}

// inBackward reports whether autograd was calling at a time, as it does of what activation checkpoints recompute.
func (r *recording) inBackward(thread uint32, at int64) bool {
	op := r.operators().innermost(thread, at)
	return op >= 0 && r.phases().of[op] == Backward
}

// phaseOf is the phase of a span.
func (r *recording) phaseOf(span int) Phase {
	if op := r.launchers()[span]; op >= 0 && r.phases().of[op] != OtherPhase {
		return r.phases().of[op]
	}
	if thread, at, ok := r.origin(span); ok && r.modules().at(thread, at) >= 0 {
		return Forward
	}
	return OtherPhase
}

// origin is when and on which thread a span was launched.
func (r *recording) origin(span int) (thread uint32, at int64, ok bool) {
	s := &r.spans[span]
	if s.call >= 0 && r.calls[s.call].row >= 0 {
		return r.t.Calls.Thread[r.calls[s.call].row], s.launch, true
	}
	if op := r.launchers()[span]; op >= 0 {
		row := r.operators().rows[op]
		return r.t.Ops.Thread[row], r.t.Ops.Start[row], true
	}
	return 0, 0, false
}

func answerPhases(a asked[phaseTimes]) []*table.Table {
	columns := []*table.Column{
		{Name: "rank", Kind: table.Int},
		{Name: "phase", Kind: table.Text},    // forward, backward, optimizer, other
		{Name: "cpu_us", Kind: table.Micros}, // in which the host was in it; not known of other
	}
	if a.about.device {
		columns = append(columns,
			&table.Column{Name: "device_us", Kind: table.Micros}, // what it launched, summed
			&table.Column{Name: "device_share", Kind: table.Ratio})
	}
	t := table.New(TablePhases, "Forward, backward, optimizer", columns...)
	var why notes
	for _, rank := range a.ranks {
		sums, whole := make(phaseTimes, phaseCount), int64(0)
		known := false
		for _, part := range rank.parts {
			known = known || part != nil
			for phase, time := range part {
				sums[phase].host += time.host
				sums[phase].device += time.device
				whole += time.device
			}
		}
		if !known {
			why.add(rank.rank, "neither modules, a backward pass nor an optimizer were recorded")
			continue
		}
		why.add(rank.rank, "")
		for phase, time := range sums {
			if time == (phaseTime{}) {
				continue
			}
			cells := []any{rank.rank, Phase(phase).String(), orNone(micros(time.host))}
			if a.about.device {
				cells = append(cells, micros(time.device), share(time.device, whole))
			}
			t.Add(cells...)
		}
	}
	t.Note = why.String()
	return []*table.Table{t}
}
