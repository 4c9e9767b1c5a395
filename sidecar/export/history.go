// Package export writes a report in the formats of other people's viewers:
// speedscope, Chrome's and Perfetto's trace events, pprof and collapsed stacks.
//
// In flows a *report.Report, out flow a file's bytes. What a format cannot hold
// is left out: only the trace has tracks and steps beside the stacks. A report
// may come from a file; what makes no sense in it is passed over.
package export

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/omni-perf/omni-perf/sidecar/report"
)

// maxDepth bounds stacks for viewers; frames further from the root are left out.
const maxDepth = 1000

// span is a stretch of one thread's history, in whole nanoseconds: end > start.
type span struct {
	start, end int64
	node       int // of history.stacks, sound
	state      string
}

// history is a report's stacks with everything checked.
type history struct {
	frames  []report.Frame
	nodes   []report.Node // parents precede children, frames are sound
	threads []report.Thread
	spans   [][]span // by thread, in order, without overlap
}

func historyOf(r *report.Report) *history {
	h := &history{
		frames:  append(slices.Clone(r.Stacks.Frames), report.Frame{Function: "?"}),
		nodes:   slices.Clone(r.Stacks.Nodes),
		threads: r.Threads,
		spans:   make([][]span, len(r.Threads)),
	}
	if len(h.nodes) == 0 {
		h.nodes = []report.Node{{}}
	}
	for i := range h.nodes {
		n := &h.nodes[i]
		if n.Parent < 0 || n.Parent >= i {
			n.Parent = 0
		}
		if n.Frame < 0 || n.Frame >= len(r.Stacks.Frames) {
			n.Frame = len(r.Stacks.Frames) // "?"
		}
	}
	sp := &r.Stacks.Spans
	for i := range min(len(sp.Thread), len(sp.StartS), len(sp.EndS), len(sp.Node), len(sp.State)) {
		t, node := sp.Thread[i], sp.Node[i]
		s := span{nanos(sp.StartS[i]), nanos(sp.EndS[i]), node, sp.State[i]}
		if t < 0 || t >= len(h.spans) || node < 0 || node >= len(h.nodes) || s.start >= s.end {
			continue
		}
		h.spans[t] = append(h.spans[t], s)
	}
	for t := range h.spans {
		h.spans[t] = inOrder(h.spans[t])
	}
	return h
}

// inOrder sorts spans by start and cuts what overlaps the span before.
func inOrder(spans []span) []span {
	slices.SortStableFunc(spans, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	kept, end := spans[:0], int64(0)
	for _, s := range spans {
		if s.start = max(s.start, end); s.start < s.end {
			kept = append(kept, s)
			end = s.end
		}
	}
	return kept
}

// nanos converts seconds since the start; what is no time is 0.
func nanos(s float64) int64 {
	if !(s > 0) || s > 1e9 { // 30 years
		return 0
	}
	return int64(math.Round(s * 1e9))
}

// stack returns a node's frames, root first, as indices into h.frames.
func (h *history) stack(node int) []int {
	var frames []int
	for ; node > 0; node = h.nodes[node].Parent {
		frames = append(frames, h.nodes[node].Frame)
	}
	slices.Reverse(frames)
	return frames[:min(len(frames), maxDepth)]
}

// computes tells the states in which a thread had a CPU.
func computes(state string) bool { return state == "python" || state == "native" }

// threadName tells threads apart by more than a name.
func (h *history) threadName(r *report.Report, t int) string {
	th := &h.threads[t]
	name := clean(th.Name)
	if name == "" {
		name = "thread"
	}
	if th.PID != 0 && th.PID != r.Target.PID {
		return fmt.Sprintf("%s (pid %d, thread %d)", name, th.PID, th.NativeID)
	}
	return fmt.Sprintf("%s (%d)", name, th.NativeID)
}

// title names what was recorded.
func title(r *report.Report) string {
	if r.Name != "" {
		return clean(r.Name)
	}
	if c := r.Target.Cell; c != nil {
		return fmt.Sprintf("Cell [%d]", c.ExecutionCount)
	}
	for _, arg := range r.Target.Argv {
		if strings.HasSuffix(arg, ".py") {
			return clean(path.Base(arg))
		}
	}
	return fmt.Sprintf("process %d", r.Target.PID)
}

// clean makes text valid UTF-8 of one line.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(s, string(unicode.ReplacementChar)))
}
