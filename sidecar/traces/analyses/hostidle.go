package analyses

import (
	"cmp"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// What the host did while a device was idle, as TableHostIdle has it.
const (
	HostOperator   = "operator"
	HostAnnotation = "annotation" // a record_function range with no operator in it
	HostCall       = "call"       // a call of the runtime outside operators
	HostUnrecorded = "unrecorded" // none of these: Python, or what is not recorded
	HostPython     = "python"     // a line of Python, of the critical path
	HostLaunched   = "launched"   // nothing for the device: the next work had been launched
)

// hostActivity is one of them, by name.
type hostActivity struct{ kind, name string }

// activityIdle is the idle time that an activity had.
type activityIdle struct {
	ns    int64
	gaps  int
	calls map[string]int64 // ns of it in runtime calls, by name

	gap int // the last one that counted, from 1
}

// add charges a part of a gap.
func (a *activityIdle) add(gap int, ns int64) {
	a.ns += ns
	if a.gap != gap {
		a.gaps, a.gap = a.gaps+1, gap
	}
}

func (a *activityIdle) plus(o *activityIdle) {
	a.ns, a.gaps = a.ns+o.ns, a.gaps+o.gaps
	for name, ns := range o.calls {
		a.calls[name] += ns
	}
}

// hostIdle is a recording's idle time by activity.
type hostIdle struct {
	by    map[hostActivity]*activityIdle
	whole int64 // ns of all gaps
}

func (h *hostIdle) of(a hostActivity) *activityIdle {
	if h.by[a] == nil {
		h.by[a] = &activityIdle{calls: map[string]int64{}}
	}
	return h.by[a]
}

// hostTimeline answers what each thread did at a time.
type hostTimeline struct {
	r          *recording
	ops, calls *nesting
	opLeaves   map[uint32][]leaf
	callLeaves map[uint32][]leaf
	main       uint32
}

// observeHostIdle divides the devices' idle time by what the thread that launched the next
// work did until the launch returned; while that did nothing recorded (autograd's, before its first
// operator), by what the main thread did.
func observeHostIdle(r *recording) hostIdle {
	list := deviceGaps(r)
	idle := hostIdle{by: map[hostActivity]*activityIdle{}}
	for _, g := range list {
		idle.whole += g.End - g.Start
	}
	if len(list) == 0 || r.t.Ops.Len()+r.t.Calls.Len() == 0 {
		return idle
	}
	host := r.hostTimeline(together(list))
	for i, g := range list {
		gap := i + 1
		until := g.End
		thread := host.main
		if g.next.call >= 0 {
			call := &r.calls[g.next.call]
			until = min(g.End, max(g.Start, call.end()))
			if call.row >= 0 {
				thread = r.t.Calls.Thread[call.row]
			}
		}
		if until < g.End {
			idle.of(hostActivity{kind: HostLaunched}).add(gap, g.End-until)
		}
		if until == g.Start {
			continue
		}
		bare := []interval{between(g.Start, until)}
		for _, of := range slices.Compact([]uint32{thread, host.main}) {
			left := bare
			bare = nil
			for _, b := range left {
				bare = append(bare, host.charge(&idle, gap, of, b)...)
			}
		}
		for _, b := range bare {
			idle.of(hostActivity{kind: HostUnrecorded}).add(gap, b.End-b.Start)
		}
	}
	return idle
}

// hostTimeline nests what the threads did in some times.
func (r *recording) hostTimeline(times []interval) *hostTimeline {
	c := &r.t.Calls
	h := &hostTimeline{r: r, ops: r.operators().nesting, calls: nest(c.Start, c.Dur, c.Thread, func(int) bool { return true })}
	h.opLeaves, h.callLeaves = h.ops.leavesOver(times), h.calls.leavesOver(times)
	weight := map[uint32]int{}
	for _, row := range h.ops.rows {
		weight[h.ops.thread[row]]++
	}
	for _, row := range h.calls.rows {
		weight[c.Thread[row]]++
	}
	most := 0
	for thread, n := range weight {
		if n > most || n == most && thread < h.main {
			h.main, most = thread, n
		}
	}
	return h
}

// charge adds a stretch of a gap to what a thread did in it and returns the parts in which it did nothing recorded.
func (h *hostTimeline) charge(idle *hostIdle, gap int, thread uint32, in interval) (bare []interval) {
	for _, l := range pieces(h.opLeaves[thread], in) {
		activity := hostActivity{}
		if l.call >= 0 {
			activity = h.activity(l.call)
		}
		for _, c := range pieces(h.callLeaves[thread], between(l.start, l.end)) {
			call := ""
			if c.call >= 0 {
				call = h.r.t.Text(h.r.t.Calls.Name[h.calls.rows[c.call]])
			}
			of := activity
			if of.kind == "" && call != "" {
				of = hostActivity{HostCall, call}
			}
			if of.kind == "" {
				bare = append(bare, between(c.start, c.end))
				continue
			}
			sum := idle.of(of)
			sum.add(gap, c.end-c.start)
			if call != "" {
				sum.calls[call] += c.end - c.start
			}
		}
	}
	return bare
}

// activity is what a row of the tree is part of: its outermost operator, else its innermost
// annotation that is no step; none inside nothing but a step.
func (h *hostTimeline) activity(at int32) hostActivity {
	tree := h.r.operators()
	annotation := ""
	for up := at; up >= 0 && annotation == ""; up = tree.parent[up] {
		name := tree.t.Text(tree.t.Ops.Name[tree.rows[up]])
		if _, step := stepNumber(name); !step && (tree.t.Ops.Class[tree.rows[up]] == kineto.OpAnnotation || IsAnnotation(name)) {
			annotation = name
		}
	}
	switch operator := tree.outermost(at); {
	case operator != "":
		return hostActivity{HostOperator, operator}
	case annotation != "":
		return hostActivity{HostAnnotation, annotation}
	}
	return hostActivity{}
}

// pieces divides a stretch by a thread's leaves; those of no leaf have call -1.
func pieces(leaves []leaf, gap interval) (list []leaf) {
	at, _ := slices.BinarySearchFunc(leaves, gap.Start, func(l leaf, at int64) int { return cmp.Compare(l.end, at+1) })
	from := gap.Start
	for ; at < len(leaves) && leaves[at].start < gap.End; at++ {
		l := leaves[at]
		if l.start > from {
			list = append(list, leaf{from, l.start, -1})
		}
		list = append(list, leaf{max(l.start, gap.Start), min(l.end, gap.End), l.call})
		from = l.end
	}
	if from < gap.End {
		list = append(list, leaf{from, gap.End, -1})
	}
	return list
}

// answerHostIdle lists the activities of a rank, the longest first, and what is none last.
func answerHostIdle(a asked[hostIdle]) []*table.Table {
	t := table.New(TableHostIdle, "What the host did while the device was idle",
		&table.Column{Name: "rank", Kind: table.Int},
		&table.Column{Name: "kind", Kind: table.Text}, // operator, annotation, call, unrecorded, launched
		&table.Column{Name: "name", Kind: table.Text, Optional: true},
		&table.Column{Name: "call", Kind: table.Text, Optional: true}, // the runtime call that most of it was in
		&table.Column{Name: "call_us", Kind: table.Micros},            // so long
		&table.Column{Name: "gaps", Kind: table.Int},
		&table.Column{Name: "idle_us", Kind: table.Micros},
		&table.Column{Name: "idle_share", Kind: table.Ratio}) // of the rank's idle time
	for _, rank := range a.ranks {
		all := hostIdle{by: map[hostActivity]*activityIdle{}}
		for _, part := range rank.parts {
			all.whole += part.whole
			for activity, sum := range part.by {
				all.of(activity).plus(sum)
			}
		}
		activities := make([]hostActivity, 0, len(all.by))
		for activity := range all.by {
			activities = append(activities, activity)
		}
		slices.SortFunc(activities, func(a, b hostActivity) int {
			return cmp.Or(count(a.name == "")-count(b.name == ""), cmp.Compare(all.by[b].ns, all.by[a].ns),
				strings.Compare(a.kind+a.name, b.kind+b.name))
		})
		for _, activity := range activities {
			sum := all.by[activity]
			call, _ := most(sum.calls)
			t.Add(rank.rank, activity.kind, activity.name, call, micros(sum.calls[call]), sum.gaps, micros(sum.ns), share(sum.ns, all.whole))
		}
	}
	return []*table.Table{t}
}
