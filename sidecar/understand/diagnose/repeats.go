package diagnose

import (
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// entries is how often a line's stacks were seen to come to a function with a meaning anew: a
// lower bound of how often the line asked, also where the thread never leaves it.
func (e *evidence) entries(at Place, means origin.Meanings) int {
	return e.changes(at, func(stack []timeline.FrameID, _ int) string {
		for _, id := range stack {
			if e.stacks.facts[id].means&means != 0 {
				return e.rec.Frames[id].Function
			}
		}
		return ""
	})
}

// calls is how often a line was seen to call another function than before: it comes back
// in between, so that many mean a loop. That it calls the same one again is not seen.
func (e *evidence) calls(at Place) int {
	return e.changes(at, func(stack []timeline.FrameID, caller int) string {
		if caller == 0 {
			return ""
		}
		f := e.rec.Frames[stack[caller-1]]
		return f.File + " " + f.Function
	})
}

// changes counts how often what a line's stacks say became something else; an empty text
// says nothing, and what does not have the line on the stack does not either. caller is
// the outermost frame of the line.
func (e *evidence) changes(at Place, says func(stack []timeline.FrameID, caller int) string) (count int) {
	if e.thread == nil || at == (Place{}) {
		return 0
	}
	known := make(map[timeline.NodeID]string)
	last := ""
	for _, span := range e.thread.Spans {
		now, asked := known[span.Node]
		if !asked {
			stack := e.stacks.stack(span.Node)
			for i := len(stack) - 1; i >= 0; i-- {
				if f := e.rec.Frames[stack[i]]; e.stacks.facts[stack[i]].own && (Place{f.File, f.Line}) == at {
					now = says(stack, i)
					break
				}
			}
			known[span.Node] = now
		}
		if now != "" && now != last {
			count++
		}
		last = now
	}
	return count
}
