package activity

import (
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// Entries is how often a line's stacks were seen to come to a function with a meaning anew: a
// lower bound of how often the line asked, also where the thread never leaves it.
func (t *Reading) Entries(at Place, means origin.Meanings) int {
	return t.changes(at, func(stack []timeline.FrameID, _ int) string {
		for _, id := range stack {
			if t.stacks.facts[id].means&means != 0 {
				return t.stacks.Rec.Frames[id].Function
			}
		}
		return ""
	})
}

// Calls is how often a line was seen to call another function than before: it comes back
// in between, so that many mean a loop. That it calls the same one again is not seen.
func (t *Reading) Calls(at Place) int {
	return t.changes(at, func(stack []timeline.FrameID, caller int) string {
		if caller == 0 {
			return ""
		}
		f := t.stacks.Rec.Frames[stack[caller-1]]
		return f.File + " " + f.Function
	})
}

// changes counts how often what a line's stacks say became something else; an empty text
// says nothing, and what does not have the line on the stack does not either. caller is
// the outermost frame of the line.
func (t *Reading) changes(at Place, says func(stack []timeline.FrameID, caller int) string) (count int) {
	if t.Thread == nil || at == (Place{}) {
		return 0
	}
	known := make(map[timeline.NodeID]string)
	last := ""
	for _, span := range t.Spans {
		now, asked := known[span.Node]
		if !asked {
			stack := t.stacks.Stack(span.Node)
			for i := len(stack) - 1; i >= 0; i-- {
				if f := t.stacks.Rec.Frames[stack[i]]; t.stacks.facts[stack[i]].own && (Place{f.File, f.Line}) == at {
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
