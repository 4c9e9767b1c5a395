package activity

import (
	"cmp"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

const (
	// worthModule is the share of all import time from which on a module is named.
	worthModule = 0.10
	maxModules  = 3
	// passesOn is the share of a module's time from which on it is another module's:
	// a package that only imports its one part is not what took the time.
	passesOn = 0.80
)

// ModuleTime is the time that importing a module took, what it imports included.
type ModuleTime struct {
	Module string // "scipy.stats"
	Nanos  timeline.Nanos
	Inside bool // of the first module in the list
}

// moduleTree is what importing took by module, what each imports included.
type moduleTree struct {
	name  string
	nanos timeline.Nanos
	asked timeline.Nanos // of it, for which the user's own code asked for this very module
	parts map[string]*moduleTree
}

func (m *moduleTree) part(name string) *moduleTree {
	p := m.parts[name]
	if p == nil {
		p = &moduleTree{name: name, parts: make(map[string]*moduleTree)}
		if m.parts == nil {
			m.parts = make(map[string]*moduleTree)
		}
		m.parts[name] = p
	}
	return p
}

func (m *moduleTree) isMostOf(whole *moduleTree) bool {
	return float64(m.nanos) >= passesOn*float64(whole.nanos)
}

// largest are the module's parts, most first.
func (m *moduleTree) largest() []*moduleTree {
	list := make([]*moduleTree, 0, len(m.parts))
	for _, p := range m.parts {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b *moduleTree) int {
		return cmp.Or(cmp.Compare(b.nanos, a.nanos), strings.Compare(a.name, b.name))
	})
	return list
}

// importTree sums up a thread's time in imports by what the user's code imports,
// what that imports, and so on.
func (t *Reading) importTree() *moduleTree {
	root := &moduleTree{}
	chains := make(map[timeline.NodeID][]string)
	prepended := make(map[timeline.NodeID]bool)
	for _, span := range t.Spans {
		chain, known := chains[span.Node]
		if !known {
			if stack := t.stacks.Stack(span.Node); t.stacks.importing(stack) {
				chain, prepended[span.Node] = t.stacks.importChain(stack)
			}
			chains[span.Node] = chain
		}
		if len(chain) == 0 {
			continue
		}
		length := span.End - span.Start
		root.nanos += length
		at := root
		for i, name := range chain {
			at = at.part(name)
			at.nanos += length
			if (i == 1) == prepended[span.Node] && i < 2 {
				at.asked += length
			}
		}
	}
	return root
}

// importChain are the modules being imported below the innermost line of the
// user's own, outermost first. A module is named once however often it comes. It
// begins with a whole package: "import a.b" imports a first, then a.b; prepended
// reports that it is the second that runs.
func (s *Stacks) importChain(stack []timeline.FrameID) (chain []string, prepended bool) {
	first := s.ownest(stack)
	if first < 0 {
		first = len(stack)
	}
	for i := first - 1; i >= 0; i-- {
		f := s.Rec.Frames[stack[i]]
		if f.Function != "<module>" || s.facts[stack[i]].means&origin.Imports != 0 {
			continue
		}
		name := shortModule(s.Files.Module(f.File))
		if name == "" || slices.Contains(chain, name) {
			continue
		}
		if parent, _, inside := strings.Cut(name, "."); inside && len(chain) == 0 {
			chain, prepended = append(chain, parent), true
		}
		chain = append(chain, name)
	}
	return chain, prepended
}

// servants are packages that are imported for another, which is the one that people know: "%matplotlib inline" imports
// matplotlib by the first of these.
var servants = map[string]string{"matplotlib_inline": "matplotlib"}

// shortModule cuts a module's name to two levels: "scipy.stats".
func shortModule(name string) string {
	parts := strings.SplitN(name, ".", 3)
	if master := servants[parts[0]]; master != "" {
		return master
	}
	return strings.Join(parts[:min(len(parts), 2)], ".")
}

// Modules are what took the time of imports: what the user's code imports, and
// of a single module its costly parts.
func (t *Reading) Modules() []ModuleTime {
	tree := t.importTree()
	var list []ModuleTime
	add := func(m *moduleTree, inside bool) {
		list = append(list, ModuleTime{Module: m.name, Nanos: m.nanos, Inside: inside})
	}
	worth := func(m *moduleTree) bool { return float64(m.nanos) >= worthModule*float64(tree.nanos) }
	top := tree.largest()
	if len(top) == 0 {
		return nil
	}
	if !top[0].isMostOf(tree) { // several imports
		for _, m := range top[:min(len(top), maxModules)] {
			if worth(m) {
				add(m, false)
			}
		}
		return list
	}
	at := top[0]
	for parts := at.largest(); len(parts) > 0 && float64(parts[0].asked) >= passesOn*float64(at.nanos); parts = at.largest() {
		at = parts[0]
	}
	add(at, false)
	for parts := at.largest(); len(parts) > 0; parts = at.largest() {
		if !parts[0].isMostOf(at) {
			for _, m := range parts[:min(len(parts), maxModules)] {
				if worth(m) {
					add(m, true)
				}
			}
			break
		}
		at = parts[0]
	}
	return list
}
