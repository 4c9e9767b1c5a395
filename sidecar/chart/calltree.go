package chart

import (
	"github.com/omni-perf/omni-perf/sidecar/report"
	"github.com/omni-perf/omni-perf/sidecar/words"
)

// maxDepth bounds the rows of a flame chart; deeper callees are told by number.
const maxDepth = 24

// callTree merges stacks by function: lines do not matter, and a
// function that calls itself directly counts once. Node 0 is the empty stack, a
// parent precedes its children.
type callTree struct {
	nodes []callNode
	keys  map[treeKey]int32
}

type treeKey struct{ parent, fn int32 }

type callNode struct {
	parent int32
	fn     int32 // index into functions.list
	depth  int32 // 0 for the root
	repeat int32 // calls of itself directly below itself, at most
	cut    int32 // callees left out below, at most
}

// functions numbers the functions of a report.
type functions struct {
	list    []function
	byFrame []int32
}

// function is one as the chart shows it.
type function struct {
	name, file string // clean
	line       int    // first line
	paint      Paint
	selfS      float64 // over all threads, where the report tells
	totalS     float64
}

type functionKey struct {
	name, file string
	line       int
}

func functionsOf(r *report.Report) *functions {
	f := &functions{byFrame: make([]int32, len(r.Stacks.Frames))}
	byKey := make(map[functionKey]int32)
	for i, fr := range r.Stacks.Frames {
		key := functionKey{fr.Function, fr.File, fr.FirstLine}
		id, ok := byKey[key]
		if !ok {
			id = int32(len(f.list))
			byKey[key] = id
			f.list = append(f.list, function{
				name: functionName(fr.Function, fr.File), file: words.Clean(fr.File, words.MaxName),
				line: fr.FirstLine, paint: paintOf(fr.Kind),
			})
		}
		f.byFrame[i] = id
	}
	for _, fn := range r.Functions {
		if id, ok := byKey[functionKey{fn.Function, fn.File, fn.Line}]; ok {
			f.list[id].selfS, f.list[id].totalS = finite(fn.SelfS), finite(fn.TotalS)
		}
	}
	return f
}

// functionName is a function's name as a user would say it: a module's own code
// goes by its file.
func functionName(name, file string) string {
	if name == "<module>" || name == "" {
		if name = words.ShortFile(file); name == "" || name == "." {
			return "<module>"
		}
		return name
	}
	return words.Clean(name, words.MaxName)
}

// newCallTree merges the given stacks and returns, in their order, the nodes
// that stand for them.
func newCallTree(stacks []report.Node, fns *functions, leaves []int32) (*callTree, []int32) {
	t := &callTree{nodes: []callNode{{parent: -1}}, keys: make(map[treeKey]int32)}
	used := make([]bool, len(stacks))
	for _, n := range leaves {
		used[n] = true
	}
	for n := len(stacks) - 1; n > 0; n-- {
		if used[n] {
			used[callerOf(stacks, n)] = true
		}
	}
	merged := make([]mergedStack, len(stacks))
	for n := 1; n < len(stacks); n++ {
		if !used[n] {
			continue
		}
		merged[n] = merged[callerOf(stacks, n)]
		if f := stacks[n].Frame; f >= 0 && f < len(fns.byFrame) {
			merged[n] = t.call(merged[n], fns.byFrame[f])
		}
	}
	nodes := make([]int32, len(leaves))
	for i, n := range leaves {
		nodes[i] = merged[n].node
	}
	return t, nodes
}

// callerOf returns a node's parent; one that makes no sense stands on the root.
func callerOf(stacks []report.Node, n int) int {
	if p := stacks[n].Parent; p >= 0 && p < n {
		return p
	}
	return 0
}

// mergedStack is a stack of the report in the tree: its node there, and the
// calls since that have no node of their own.
type mergedStack struct{ node, repeats, cuts int32 }

func (t *callTree) call(s mergedStack, fn int32) mergedStack {
	at := &t.nodes[s.node]
	switch {
	case s.cuts == 0 && s.node != 0 && at.fn == fn:
		s.repeats++
		at.repeat = max(at.repeat, s.repeats)
		return s
	case s.cuts > 0 || at.depth >= maxDepth:
		s.cuts++
		at.cut = max(at.cut, s.cuts)
		return s
	}
	key := treeKey{s.node, fn}
	child, ok := t.keys[key]
	if !ok {
		child = int32(len(t.nodes))
		t.keys[key] = child
		t.nodes = append(t.nodes, callNode{parent: s.node, fn: fn, depth: at.depth + 1})
	}
	return mergedStack{node: child}
}
