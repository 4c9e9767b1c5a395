package analyses

import (
	"regexp"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// modulePrefix begins the record of a module's call: of the Python tracer, or an annotation by hand.
const modulePrefix = "nn.Module: "

// moduleCalls are the recorded calls of modules, nested.
type moduleCalls struct {
	*nesting
	names []string // by row: Linear_3
	tree  *scopes
	node  []int32 // by index of nesting.rows: the scope in tree; -1 for none
}

// modules are the recording's calls of modules in the chosen steps.
func (r *recording) modules() *moduleCalls {
	if r.moduleCalls != nil {
		return r.moduleCalls
	}
	m := &moduleCalls{tree: newScopes()}
	isModule := map[kineto.Sym]string{}
	for s := range r.t.Names.Len() {
		if name, is := strings.CutPrefix(r.t.Names.Text(kineto.Sym(s)), modulePrefix); is {
			isModule[kineto.Sym(s)] = name
		}
	}
	var start, dur []int64
	var thread []uint32
	take := func(name kineto.Sym, at, length int64, of uint32) {
		if text, is := isModule[name]; is && r.keeps(at) {
			start, dur, thread, m.names = append(start, at), append(dur, length), append(thread, of), append(m.names, text)
		}
	}
	if p, o := &r.t.Python, &r.t.Ops; len(isModule) > 0 {
		for row, name := range p.Name {
			take(name, p.Start[row], p.Dur[row], p.Thread[row])
		}
		for row, name := range o.Name {
			if o.Class[row] <= kineto.OpAnnotation {
				take(name, o.Start[row], o.Dur[row], o.Thread[row])
			}
		}
	}
	m.nesting = nest(start, dur, thread, func(int) bool { return true })
	m.node = make([]int32, len(m.rows))
	self := m.self()
	for i, row := range m.rows {
		parent := int32(-1)
		if up := m.parent[i]; up >= 0 {
			parent = m.node[up]
		}
		m.node[i] = m.tree.child(parent, m.names[row])
		if m.node[i] < 0 {
			continue
		}
		of := &m.tree.nodes[m.node[i]]
		of.self += self[i]
		if m.node[i] != parent {
			of.calls++
			of.host += m.end(row) - m.start[row]
		}
	}
	r.moduleCalls = m
	return m
}

// at is the scope of the innermost module that a thread was in; -1 for none.
func (m *moduleCalls) at(thread uint32, at int64) int32 {
	if call := m.innermost(thread, at); call >= 0 {
		return m.node[call]
	}
	return -1
}

// observeModules charges device time, and the host's time of the backward pass, to the modules: what was launched inside a
// module's call to the innermost one, what autograd launched to the module of the operator that it differentiates.
func observeModules(r *recording) *scopes {
	m, tree, phases := r.modules(), r.operators(), r.phases()
	hierarchy := hierarchies{t: r.t, known: map[kineto.Sym]int32{}}
	if len(m.rows) == 0 && len(r.t.Ops.Hierarchy) == 0 {
		return nil
	}
	for i := range r.spans {
		if node := r.moduleOf(i, &hierarchy); node >= 0 {
			m.tree.nodes[node].device[r.phaseOf(i)] += max(0, r.spans[i].dur)
		}
	}
	for i, row := range tree.rows {
		if phases.backward[i] == int32(i) {
			if node := r.moduleOfForward(int32(i), &hierarchy); node >= 0 {
				m.tree.nodes[node].backward += tree.end(row) - tree.start[row]
			}
		}
	}
	return m.tree
}

// moduleOf is the scope of the module that launched a span, or whose gradient it is of; -1 if there is none.
func (r *recording) moduleOf(span int, hierarchy *hierarchies) int32 {
	m, op := r.modules(), r.launchers()[span]
	thread, at, known := r.origin(span)
	call := int32(-1)
	if known {
		call = m.innermost(thread, at)
	}
	if op >= 0 && r.phases().of[op] == Backward {
		backward := r.phases().backward[op]
		// A module that autograd called is one that an activation checkpoint runs again.
		if call >= 0 && backward >= 0 && m.start[m.rows[call]] >= r.operators().start[r.operators().rows[backward]] {
			return m.node[call]
		}
		if node := r.moduleOfForward(op, hierarchy); node >= 0 {
			return node
		}
	}
	if call >= 0 {
		return m.node[call]
	}
	if op >= 0 {
		return hierarchy.of(r, op)
	}
	return -1
}

// moduleOfForward is the module of the operator that one of the backward pass differentiates.
func (r *recording) moduleOfForward(backward int32, hierarchy *hierarchies) int32 {
	tree := r.operators()
	forward := r.phases().forwardOf(tree, backward)
	if forward < 0 {
		return -1
	}
	row := tree.rows[forward]
	if node := r.modules().at(tree.thread[row], tree.start[row]); node >= 0 {
		return node
	}
	return hierarchy.of(r, forward)
}

// hierarchies are the modules of TorchScript that operators were in, as with_modules=True recorded them.
type hierarchies struct {
	t     *kineto.Trace
	known map[kineto.Sym]int32
}

// inHierarchy finds the instances and classes of TOP(Net)::forward.conv1(Conv2d)::forward: SELF is the module that was named before.
var inHierarchy = regexp.MustCompile(`([^.()]*)\(([^()]*)\)::[^.]*`)

// of is the scope of the module around an operator; -1 for none.
func (h *hierarchies) of(r *recording, op int32) int32 {
	tree := r.operators()
	for ; op >= 0; op = tree.parent[op] {
		sym, is := r.t.Ops.Hierarchy[tree.rows[op]]
		if !is {
			continue
		}
		node, known := h.known[sym]
		if !known {
			node = -1
			for _, part := range inHierarchy.FindAllStringSubmatch(r.t.Text(sym), maxScopeDepth) {
				if part[1] != "SELF" && part[2] != "" {
					node = r.modules().tree.child(node, part[2]+" "+part[1])
				}
			}
			h.known[sym] = node
		}
		return node
	}
	return -1
}

// moduleNumber is what the profiler adds to a class to tell its modules apart.
var moduleNumber = regexp.MustCompile(`_\d+$`)

// moduleClass is the class of a module by its name in the tree.
func moduleClass(name string) string {
	if class, _, instance := strings.Cut(name, " "); instance {
		return class
	}
	return moduleNumber.ReplaceAllString(name, "")
}

func answerModules(a asked[*scopes]) []*table.Table {
	modules := table.New(TableModules, "Modules", a.moduleColumns(false)...)
	classes := table.New(TableModuleClasses, "Modules by class", a.moduleColumns(true)...)
	var why notes
	for _, rank := range a.ranks {
		all := summed(rank.parts)
		byClass := newScopes()
		byClass.merge(all, moduleClass)
		why.add(rank.rank, moduleNote(all))
		for _, made := range []struct {
			to *table.Table
			of *scopes
		}{{modules, all}, {classes, byClass}} {
			made.of.addTo(made.to, rank.rank, func(own, total *scope) []any {
				cells := []any{moduleClass(own.name)}
				if made.to == classes {
					cells = []any{own.instances}
				}
				cells = append(cells, known(own.calls, own.calls > 0), orNone(micros(own.host)), orNone(micros(own.self)), orNone(micros(total.backward)))
				if a.about.device {
					whole := total.deviceSelf()
					cells = append(cells, micros(whole), micros(own.deviceSelf()), micros(whole-total.device[Backward]), micros(total.device[Backward]))
				}
				return cells
			})
		}
	}
	modules.Note, classes.Note = why.String(), why.String()
	return []*table.Table{modules, classes}
}

func moduleNote(all *scopes) string {
	switch {
	case len(all.nodes) == 0:
		return "no modules: profile with with_stack=True or with_modules=True"
	case all.full:
		return "modules beyond the first 20,000, or 48 levels deep, count in those around them"
	}
	return ""
}

func (a asked[P]) moduleColumns(classes bool) []*table.Column {
	columns := []*table.Column{
		{Name: "rank", Kind: table.Int},
		{Name: "path", Kind: table.Text}, // the modules around it and itself
		{Name: "name", Kind: table.Text},
		{Name: "depth", Kind: table.Int},
	}
	if classes {
		columns = append(columns, &table.Column{Name: "instances", Kind: table.Int})
	} else {
		columns = append(columns, &table.Column{Name: "class", Kind: table.Text})
	}
	columns = append(columns,
		&table.Column{Name: "calls", Kind: table.Int},              // none where only operators know their module
		&table.Column{Name: "total_cpu_us", Kind: table.Micros},    // of its calls
		&table.Column{Name: "self_cpu_us", Kind: table.Micros},     // outside the modules that it calls
		&table.Column{Name: "backward_cpu_us", Kind: table.Micros}) // of autograd's operators for it and the modules that it calls
	if a.about.device {
		columns = append(columns,
			&table.Column{Name: "total_device_us", Kind: table.Micros},
			&table.Column{Name: "self_device_us", Kind: table.Micros},
			&table.Column{Name: "forward_device_us", Kind: table.Micros}, // of the total
			&table.Column{Name: "backward_device_us", Kind: table.Micros})
	}
	return columns
}
