package export

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// Collapsed writes the stacks as flamegraph.pl and its successors read them: a
// line per stack, "thread;caller;callee 1234", the figure in microseconds of
// wall time. Stacks of less are left out.
func Collapsed(r *report.View) ([]byte, error) {
	frames := framesOf(r)
	names := make([]string, len(frames))
	for i, f := range frames {
		names[i] = collapsedName(f)
	}
	total := make(map[string]int64) // nanoseconds
	for t := range r.Threads {
		byNode := make(map[int32]int64)
		for _, s := range r.History(t) {
			byNode[s.Node] += s.End - s.Start
		}
		thread := separators.Replace(threadName(r, t))
		for node, ns := range byNode {
			if node == 0 {
				continue // no Python code ran
			}
			line := []string{thread}
			for _, f := range r.Stack(node, maxDepth) {
				line = append(line, names[f])
			}
			total[strings.Join(line, ";")] += ns
		}
	}
	lines := make([]string, 0, len(total))
	for stack, ns := range total {
		if us := (ns + 500) / 1000; us > 0 {
			lines = append(lines, fmt.Sprintf("%s %d\n", stack, us))
		}
	}
	slices.Sort(lines)
	var b bytes.Buffer
	for _, l := range lines {
		b.WriteString(l)
	}
	return b.Bytes(), nil
}

// separators are what a name must not hold.
var separators = strings.NewReplacer(";", ",", "\n", " ")

func collapsedName(f frame) string {
	name := f.function
	if f.file != "" && f.file != f.function {
		name = fmt.Sprintf("%s (%s:%d)", name, f.file, f.firstLine)
	}
	return separators.Replace(name)
}
