package kineto

import (
	"slices"
	"strings"
)

// What torch's names of the ranges of its optimizers and of its profiler's steps begin with.
const (
	optimizerPrefix = "Optimizer.step#"
	StepPrefix      = "ProfilerStep#"
)

// endOptimizers ends the range of an optimizer's step where the profiler's step ends in it: who calls the profiler's step() in a
// hook of the optimizer, which is inside of that range, would have the whole next step in it, or what it takes to stop the
// profiler.
func endOptimizers(t *Trace) {
	optimizers := make(map[Sym]bool)
	steps := make(map[Sym]bool)
	for s := range Sym(t.Names.Len()) {
		name := t.Names.Text(s)
		if strings.HasPrefix(name, optimizerPrefix) {
			optimizers[s] = true
		} else if strings.HasPrefix(name, StepPrefix) {
			steps[s] = true
		}
	}
	if len(optimizers) == 0 || len(steps) == 0 {
		return
	}
	o := &t.Ops
	ends := make(map[uint32][]int64) // of the profiler's steps, by thread
	for row, name := range o.Name {
		if steps[name] && o.Class[row] == OpAnnotation {
			ends[o.Thread[row]] = append(ends[o.Thread[row]], o.Start[row]+o.Dur[row])
		}
	}
	for _, list := range ends {
		slices.Sort(list)
	}
	for row, name := range o.Name {
		if !optimizers[name] || o.Class[row] > OpAnnotation {
			continue
		}
		list, start := ends[o.Thread[row]], o.Start[row]
		next, _ := slices.BinarySearch(list, start)
		if next < len(list) && list[next] < start+o.Dur[row] {
			o.Dur[row] = list[next] - start
		}
	}
}
