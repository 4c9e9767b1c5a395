package diagnose

import (
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// unit is a library's function that runs once for each request or query.
type unit struct{ file, function string }

var (
	requestUnits = []unit{{"/http/client.py", "HTTPResponse.begin"}, {"/httpcore/", "_receive_response_headers"}}
	queryUnits   = []unit{{"/sqlalchemy/engine/default.py", "do_execute"}}
)

// entries is how often a line's stacks were seen to come to one of some functions anew: a
// lower bound of how often the line asked, also where the thread never leaves it.
func (e *evidence) entries(at Place, units []unit) int {
	return e.changes(at, func(stack []timeline.FrameID, _ int) string {
		for _, id := range stack {
			f := e.rec.Frames[id]
			for _, u := range units {
				if strings.Contains(f.File, u.file) && strings.HasSuffix(f.Function, u.function) {
					return u.function
				}
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
