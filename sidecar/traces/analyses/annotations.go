package analyses

import (
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// observeAnnotations charges device time to the annotations (record_function ranges) that it was launched in. What autograd's own
// threads launch is of the annotation in which the thread that waits for them is. Steps are no annotations here.
func observeAnnotations(r *recording) *scopes {
	o := &r.t.Ops
	all := newScopes()
	ranges := nest(o.Start, o.Dur, o.Thread, func(row int) bool {
		return o.Class[row] == kineto.OpAnnotation && r.keeps(o.Start[row]) && r.isAnnotation(o.Name[row])
	})
	if len(ranges.rows) == 0 {
		return nil
	}
	node := make([]int32, len(ranges.rows))
	self := ranges.self()
	perThread := map[uint32]int{}
	for i, row := range ranges.rows {
		parent := int32(-1)
		if up := ranges.parent[i]; up >= 0 {
			parent = node[up]
		}
		perThread[ranges.thread[row]]++
		node[i] = all.child(parent, r.t.Text(o.Name[row]))
		if node[i] < 0 {
			continue
		}
		of := &all.nodes[node[i]]
		of.self += self[i]
		if node[i] != parent {
			of.calls++
			of.host += ranges.end(row) - ranges.start[row]
		}
	}
	main := busiest(perThread)
	for i := range r.spans {
		thread, at, ok := r.origin(i)
		if !ok {
			continue
		}
		call := ranges.innermost(thread, at)
		if call < 0 && r.phaseOf(i) == Backward {
			call = ranges.innermost(main, at)
		}
		if call >= 0 && node[call] >= 0 {
			all.nodes[node[call]].device[OtherPhase] += max(0, r.spans[i].dur)
		}
	}
	return all
}

// busiest is the thread with the most of something, of several the first.
func busiest(perThread map[uint32]int) (main uint32) {
	most := 0
	for thread, n := range perThread {
		if n > most || n == most && thread < main {
			main, most = thread, n
		}
	}
	return main
}

// isAnnotation distinguishes annotations from steps, which have a table, and from modules, which have one, too.
func (r *recording) isAnnotation(name kineto.Sym) bool {
	text := r.t.Text(name)
	_, step := stepNumber(text)
	return !step && !strings.HasPrefix(text, modulePrefix)
}

func answerAnnotations(a asked[*scopes]) []*table.Table {
	columns := []*table.Column{
		{Name: "rank", Kind: table.Int},
		{Name: "path", Kind: table.Text}, // the annotations around it and itself
		{Name: "name", Kind: table.Text},
		{Name: "depth", Kind: table.Int},
		{Name: "calls", Kind: table.Int},
		{Name: "total_cpu_us", Kind: table.Micros},
		{Name: "self_cpu_us", Kind: table.Micros}, // outside the annotations in it
	}
	if a.about.device {
		columns = append(columns,
			&table.Column{Name: "total_device_us", Kind: table.Micros}, // what was launched in it, summed
			&table.Column{Name: "self_device_us", Kind: table.Micros})
	}
	t := table.New(TableAnnotations, "Annotations", columns...)
	for _, rank := range a.ranks {
		summed(rank.parts).addTo(t, rank.rank, func(own, total *scope) []any {
			cells := []any{own.calls, micros(own.host), micros(own.self)}
			if a.about.device {
				cells = append(cells, micros(total.deviceSelf()), micros(own.deviceSelf()))
			}
			return cells
		})
	}
	return []*table.Table{t}
}
