package specimen

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// SummaryFile is the name of the summary beside a recording.
func SummaryFile(recording string) string {
	return strings.TrimSuffix(recording, ".json.gz") + ".txt"
}

// Summary says in some lines what a packed recording holds, so that a new recording of a program shows as a
// difference that can be read: processes, threads with their spans and states, the lines with the most time, tracks.
// It is of what was measured alone. The headline, which later stages make of it, is in programs/*.txt and
// trainings/*.txt.
func Summary(packed []byte) (string, error) {
	d, err := unpack(packed)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("%s, sampled each %v; %d frames, %d stacks, %d gaps, %d marks", length(d.Duration), d.Sampling.Interval.Round(10*time.Microsecond),
		len(d.Frames), len(d.Nodes), len(d.Gaps), len(d.Marks))
	for i, p := range d.Processes {
		line("process %d: %s", i, strings.TrimSpace(string(p.Role)+" "+p.Command))
	}
	for _, t := range d.Threads {
		line("thread %s of process %d: %d spans%s", t.Name, t.Process, len(t.Spans.Start), states(t))
	}
	computes, waits := d.lines()
	for _, list := range []struct {
		does string
		top  []lineTime
	}{{"computes", computes}, {"waits", waits}} {
		for _, l := range list.top[:min(5, len(list.top))] {
			line("%s %s in %s", list.does, length(l.time), l.place)
		}
	}
	for _, t := range d.Tracks {
		line("track %s: %d points", t.ID, len(t.At))
	}
	return b.String(), nil
}

// states is how long a thread was in each state.
func states(t thread) string {
	var sums [timeline.StateUnknown + 1]timeline.Nanos
	for i := range min(len(t.Spans.Length), len(t.Spans.State)) {
		if state := t.Spans.State[i]; state >= 0 && state < len(sums) {
			sums[state] += t.Spans.Length[i]
		}
	}
	var b strings.Builder
	for state, sum := range sums {
		if sum > 0 {
			fmt.Fprintf(&b, ", %v %s", timeline.State(state), length(sum))
		}
	}
	return b.String()
}

type lineTime struct {
	place string
	time  timeline.Nanos
}

// lines are those that were at the top of a stack, the longest first: while their thread computed, and while it waited.
func (d *document) lines() (computes, waits []lineTime) {
	sums := map[bool]map[string]timeline.Nanos{true: {}, false: {}}
	for _, t := range d.Threads {
		for i := range min(len(t.Spans.Length), len(t.Spans.Node), len(t.Spans.State)) {
			node, state := int(t.Spans.Node[i]), timeline.State(t.Spans.State[i])
			if node == 0 || node > len(d.Nodes) || state == timeline.StateUnknown {
				continue
			}
			f := d.Frames[d.Nodes[node-1][1]]
			sums[state.Computes()][fmt.Sprintf("%s:%d %s", path.Base(d.Files[f.File]), f.Line, f.Function)] += t.Spans.Length[i]
		}
	}
	longest := func(sums map[string]timeline.Nanos) (list []lineTime) {
		for place, sum := range sums {
			list = append(list, lineTime{place, sum})
		}
		slices.SortFunc(list, func(a, b lineTime) int {
			return cmp.Or(cmp.Compare(b.time, a.time), cmp.Compare(a.place, b.place))
		})
		return list
	}
	return longest(sums[true]), longest(sums[false])
}

func length(n timeline.Nanos) string { return fmt.Sprintf("%.3f s", time.Duration(n).Seconds()) }
