package analyses

import (
	"cmp"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// Bounds of a tree of scopes: a file can have a scope of its own in every event. What is beyond them counts
// where it would be a child.
const (
	maxScopeDepth = 48
	maxScopes     = 20000
	maxScopeName  = 200 // bytes
)

// scope is a module or an annotation by the scopes around it.
type scope struct {
	parent    int32 // -1 at the top
	depth     int
	name      string
	calls     int64
	instances int64             // of a class: modules
	host      int64             // ns in all its calls
	self      int64             // of it outside the scopes in it
	backward  int64             // ns of the host in its backward pass
	device    [phaseCount]int64 // ns that it launched itself
}

// deviceSelf is what it launched itself in all phases.
func (s *scope) deviceSelf() (sum int64) {
	for _, ns := range s.device {
		sum += ns
	}
	return sum
}

func (s *scope) plus(o *scope) {
	s.calls, s.host, s.self, s.backward = s.calls+o.calls, s.host+o.host, s.self+o.self, s.backward+o.backward
	for phase, ns := range o.device {
		s.device[phase] += ns
	}
}

// scopeKey is what a scope is known by.
type scopeKey struct {
	parent int32
	name   string
}

// scopes is a tree of them; parents come before their children.
type scopes struct {
	nodes []scope
	index map[scopeKey]int32
	full  bool // some scopes count in their parents
}

func newScopes() *scopes { return &scopes{index: map[scopeKey]int32{}} }

// child returns a scope in another one, -1 for the top. Beyond the bounds it is the other one itself.
func (t *scopes) child(parent int32, name string) int32 {
	if len(name) > maxScopeName {
		name = strings.ToValidUTF8(name[:maxScopeName], "")
	}
	key := scopeKey{parent, name}
	if at, known := t.index[key]; known {
		return at
	}
	depth := 0
	if parent >= 0 {
		depth = t.nodes[parent].depth + 1
	}
	if depth > maxScopeDepth || len(t.nodes) >= maxScopes {
		t.full = true
		return parent
	}
	at := int32(len(t.nodes))
	t.index[key] = at
	t.nodes = append(t.nodes, scope{parent: parent, depth: depth, name: name})
	return at
}

// merge adds another tree, its scopes renamed. Scopes that get one name and parent become one.
func (t *scopes) merge(o *scopes, rename func(name string) string) {
	to := make([]int32, len(o.nodes))
	t.full = t.full || o.full
	for i := range o.nodes {
		n := &o.nodes[i]
		parent := int32(-1)
		if n.parent >= 0 {
			parent = to[n.parent]
		}
		if to[i] = t.child(parent, rename(n.name)); to[i] < 0 {
			continue
		}
		sum := &t.nodes[to[i]]
		sum.plus(n)
		sum.instances += max(1, n.instances)
	}
}

// summed are a recording's parts together.
func summed(parts []*scopes) *scopes {
	all := newScopes()
	for _, part := range parts {
		if part != nil {
			all.merge(part, func(name string) string { return name })
		}
	}
	return all
}

// totals are the scopes with what is in them, by scope.
func (t *scopes) totals() []scope {
	total := slices.Clone(t.nodes)
	for i := len(total) - 1; i >= 0; i-- {
		if up := total[i].parent; up >= 0 {
			total[up].backward += total[i].backward
			for phase, ns := range total[i].device {
				total[up].device[phase] += ns
			}
		}
	}
	return total
}

// ordered are the scopes in the order of reading: each before those in it, which follow by device time, then host time.
func (t *scopes) ordered(total []scope) []int32 {
	children := make([][]int32, len(t.nodes)+1)
	for i := range t.nodes {
		up := t.nodes[i].parent + 1
		children[up] = append(children[up], int32(i))
	}
	for _, list := range children {
		slices.SortFunc(list, func(a, b int32) int {
			return cmp.Or(cmp.Compare(total[b].deviceSelf(), total[a].deviceSelf()),
				cmp.Compare(total[b].host+total[b].backward, total[a].host+total[a].backward), strings.Compare(t.nodes[a].name, t.nodes[b].name))
		})
	}
	order := make([]int32, 0, len(t.nodes))
	open := slices.Clone(children[0])
	slices.Reverse(open)
	for len(open) > 0 {
		at := open[len(open)-1]
		open = open[:len(open)-1]
		order = append(order, at)
		for _, child := range slices.Backward(children[at+1]) {
			open = append(open, child)
		}
	}
	return order
}

// path names a scope by those around it.
func (t *scopes) path(at int32) string {
	var names []string
	for ; at >= 0; at = t.nodes[at].parent {
		names = append(names, t.nodes[at].name)
	}
	slices.Reverse(names)
	return strings.Join(names, "/")
}

// addTo adds a row per scope: rank, path, name, depth, then what cells makes of it.
func (t *scopes) addTo(to *table.Table, rank int, cells func(own, total *scope) []any) {
	total := t.totals()
	for _, at := range t.ordered(total) {
		own := &t.nodes[at]
		to.Add(append([]any{rank, t.path(at), own.name, own.depth}, cells(own, &total[at])...)...)
	}
}
