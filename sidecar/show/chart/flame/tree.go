// Package flame merges stacks into calls and says what each row of a flame chart shows.
//
// In flow stacks and functions, as columns; out flows a Tree, and by pixel columns
// the boxes of each row. It knows no report, no colours and no words. The viewer has
// the same rules (viewer/src/tree.ts, viewer/src/grid.ts), held to the same numbers by
// viewer/testdata/geometry.json.
package flame

// Function is a function as a tree sees it.
type Function struct {
	Package string // that its file belongs to, of a library or the standard library; else empty
	Own     bool   // written by the user
}

// Program is what ran. Node 0 of the stacks is the empty one, a caller's precedes its
// callees'.
type Program struct {
	Parent    []int32 // by node
	Function  []int32 // by node
	Functions []Function
}

// Tree merges stacks by function: lines do not matter, and a function that calls
// itself directly counts once. Folded, a call into a library stands for all it calls
// within its package, until other code is called: an import of it for the modules that
// it is made of.
type Tree struct {
	Calls  []Call  // 0 is the empty stack, a caller precedes its callees
	Of     []int32 // by the program's node: what it is merged into
	Folded bool
}

// Call is a function below its callers.
type Call struct {
	Above    int32 // the caller; -1 of the empty stack
	Function int32
	Depth    int32 // 0 of the empty stack
	Repeats  int32 // calls of itself directly below itself, at most; 0: none
	Callees  bool  // it stands for calls within its package, too
}

// New merges the stacks at the given nodes, or all where that is nil.
func New(p Program, nodes []int32, folded bool) *Tree {
	t := &Tree{Calls: []Call{{Above: -1, Function: -1}}, Of: make([]int32, len(p.Parent)), Folded: folded}
	children := make(map[callKey]int32)
	used := usedNodes(p.Parent, nodes)
	again := make([]int32, len(p.Parent)) // direct repetitions so far
	for n := 1; n < len(p.Parent); n++ {
		if !used[n] {
			continue
		}
		above, f := p.Parent[n], p.Function[n]
		at := t.Of[above]
		switch {
		case folded && at > 0 && inside(&p.Functions[t.Calls[at].Function], &p.Functions[f]):
			t.Of[n] = at
			if t.Calls[at].Function != f {
				t.Calls[at].Callees = true
			}
		case t.Calls[at].Function == f:
			t.Of[n] = at
			again[n] = again[above] + 1
			t.Calls[at].Repeats = max(t.Calls[at].Repeats, again[n])
		default:
			key := callKey{at, f}
			child, ok := children[key]
			if !ok {
				child = int32(len(t.Calls))
				children[key] = child
				t.Calls = append(t.Calls, Call{Above: at, Function: f, Depth: t.Calls[at].Depth + 1})
			}
			t.Of[n] = child
		}
	}
	return t
}

// usedNodes returns the given nodes and their callers; all where that is nil.
func usedNodes(parent, nodes []int32) []bool {
	used := make([]bool, len(parent))
	for n := range used {
		used[n] = nodes == nil
	}
	for _, n := range nodes {
		used[n] = true
	}
	for n := len(used) - 1; n > 0; n-- {
		if used[n] {
			used[parent[n]] = true
		}
	}
	return used
}

type callKey struct{ above, function int32 }

// inside reports whether a call stays within its caller's package; the user's own code
// does not fold.
func inside(caller, f *Function) bool {
	return f.Package != "" && !f.Own && f.Package == caller.Package
}
