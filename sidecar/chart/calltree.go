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

// functions are those of a report, as the chart shows them.
type functions struct {
	list    []function
	byFrame []int32
}

// function is one as the chart shows it.
type function struct {
	name, file string // clean
	line       int    // first line
	paint      Paint
	selfS      float64 // over all threads of the target, where the report tells
	totalS     float64
}

func functionsOf(r *report.View) *functions {
	f := &functions{list: make([]function, len(r.Functions)), byFrame: make([]int32, len(r.Frames.Function))}
	for i, fn := range r.Functions {
		f.list[i] = function{
			name: functionName(r, i), file: words.Clean(r.FileName(&fn.File), words.MaxName), line: fn.FirstLine, paint: paintOf(fn.Code),
		}
	}
	for i := range f.byFrame {
		f.byFrame[i] = int32(r.FunctionOf(i))
	}
	for _, t := range r.FunctionTimes {
		if t.Process != r.Target().Process {
			continue
		}
		f.list[t.Function].selfS += report.Seconds(t.SelfNS)
		f.list[t.Function].totalS += report.Seconds(t.TotalNS)
	}
	return f
}

func functionName(r *report.View, function int) string {
	return words.Clean(r.FunctionName(function), words.MaxName)
}

// newCallTree merges the given stacks of a report and returns, in their order, the
// nodes that stand for them.
func newCallTree(stacks report.Nodes, fns *functions, leaves []int32) (*callTree, []int32) {
	t := &callTree{nodes: []callNode{{parent: -1}}, keys: make(map[treeKey]int32)}
	used := make([]bool, len(stacks.Parent))
	for _, n := range leaves {
		used[n] = true
	}
	for n := len(used) - 1; n > 0; n-- {
		if used[n] {
			used[stacks.Parent[n]] = true
		}
	}
	merged := make([]mergedStack, len(used))
	for n := 1; n < len(used); n++ {
		if used[n] {
			merged[n] = t.call(merged[stacks.Parent[n]], fns.byFrame[stacks.Frame[n]])
		}
	}
	nodes := make([]int32, len(leaves))
	for i, n := range leaves {
		nodes[i] = merged[n].node
	}
	return t, nodes
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
