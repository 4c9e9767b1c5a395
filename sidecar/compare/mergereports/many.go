package mergereports

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/straggler"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// many is from how many reports on they are not all kept whole: some thousand would not fit into memory, nor into a page.
const many = 24

// atOnce is how many reports are read at a time, at most: a whole one takes some twelve times its size.
const atOnce = 8

// Read merges reports that a function reads, which is called by several goroutines, and twice those that are kept whole: of many, those of the
// rank that computed longest, of the one in the middle and of the one that computed shortest, and those of no rank. Of the others
// it keeps an outline. names are what to call them in errors.
//
// What cannot be read is left out, unless fewer than two are left, and unread says why. What is ErrNotMeant is left out, too, and nothing is said.
func Read(names []string, choice Choice, read func(at int) (*report.View, error)) (merged *report.View, unread, err error) {
	var reports []*report.View
	var readable []int // of each report, which one it is
	var failed []error
	runs := make(map[string]int) // how many reports are of each
	reduced := len(names) > many
	if reduced {
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(memoryLimit))
	}
	for i, one := range each(len(names), func(i int) (*report.View, error) {
		r, err := read(i)
		if err == nil && reduced {
			r, err = outline(r)
		}
		return r, err
	}) {
		if errors.Is(one.err, ErrNotMeant) {
			continue
		}
		if one.err != nil {
			failed = append(failed, one.err)
			continue
		}
		if run := runOf(one.report); run != "" {
			runs[run]++
		}
		if choice.takes(one.report) {
			reports, readable = append(reports, one.report), append(readable, i)
		}
	}
	if len(failed) > 0 && len(reports) < 2 {
		return nil, nil, failed[0]
	}
	if len(reports) == 0 && choice.Run != "" {
		return nil, nil, choice.missing(runs)
	}
	readNames := make([]string, len(readable))
	for i, at := range readable {
		readNames[i] = names[at]
	}
	whole := 0
	if reduced {
		for _, i := range distinct(reports) {
			if reports[i], err = read(readable[i]); err != nil {
				return nil, nil, err
			}
			whole++
		}
	}
	count := len(reports) // they are let go of one by one
	if merged, err = merge(reports, readNames, choice); err != nil {
		return nil, nil, err
	}
	if reduced {
		merged.Notes = append(merged.Notes, report.Note{ID: "outlines", Args: map[string]any{"whole": whole, "reports": count},
			Text: fmt.Sprintf("of %d reports %d are whole; of the others it has in which collectives their main threads were, the line between them that took longest, their figures, and of their tables of lines and functions the first rows", count, whole)})
	}
	if len(failed) > 0 {
		unread = fmt.Errorf("%s: %w",
			words.Plural(len(failed), "report could not be read and was left out", "reports could not be read and were left out"), errors.Join(failed...))
	}
	return merged, unread, nil
}

// ErrNotMeant is of a file that nobody has named, and that is no report of one process.
var ErrNotMeant = errors.New("is no report of one process")

// memoryLimit is from how much memory on the garbage of reports is collected at once.
const memoryLimit = 384 << 20

// readReport is what became of the reading of a report.
type readReport struct {
	report *report.View
	err    error
}

// each reads n reports, as many at a time as there are CPUs, and returns them in order.
func each(n int, read func(at int) (*report.View, error)) []readReport {
	all := make([]readReport, n)
	var next atomic.Int64
	var readers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), atOnce, n) {
		readers.Go(func() {
			for at := int(next.Add(1)) - 1; at < n; at = int(next.Add(1)) - 1 {
				all[at].report, all[at].err = read(at)
			}
		})
	}
	readers.Wait()
	return all
}

// outline is a report with what is kept of it where there are many: of its target's main thread.
func outline(r *report.View) (*report.View, error) {
	at := longestMain(r, r.Target().Process)
	if at < 0 {
		return r.Outline(nil, nil)
	}
	return r.Outline([]int{at}, [][]report.Span{betweenCollectives(r, r.History(at))})
}

// betweenCollectives makes one span of what a thread did between two collectives: where and in which state it was longest.
// A stack is cut down to the collective, or to its innermost own line.
func betweenCollectives(r *report.View, history []report.Span) (list []report.Span) {
	facts := factsOf(r)
	as := make([]int32, len(facts))
	for n := 1; n < len(facts); n++ {
		as[n] = int32(n)
		if up := r.Parent(int32(n)); up != 0 && facts[n] == facts[up] {
			as[n] = as[up]
		}
	}
	type what struct {
		node  int32
		state report.State
	}
	took := make(map[what]int64) // of the last span of list
	for _, s := range history {
		s.Node, s.Incomplete = as[s.Node], false
		if n := len(list) - 1; n >= 0 && list[n].End == s.Start && oneStretch(facts, list[n].Node, s.Node) {
			list[n].End = s.End
		} else {
			list = append(list, s)
			clear(took)
		}
		is := what{s.Node, s.State}
		took[is] += s.End - s.Start
		if last := &list[len(list)-1]; took[is] > took[what{last.Node, last.State}] {
			last.Node, last.State = is.node, is.state
		}
	}
	return list
}

// oneStretch reports whether two stacks are of one stretch: of one collective, or of none while the program ran.
func oneStretch(facts []stackFacts, a, b int32) bool {
	return facts[a].in == facts[b].in && (facts[a].in == straggler.None && a != 0 && b != 0 || a == b)
}

// distinct are the reports that are kept whole of many: that of the rank that computed longest, of the one
// in the middle and of the one that computed shortest, or of an engine's workers; and launchers', if they are few.
func distinct(reports []*report.View) (list []int) {
	var numbered []int
	for i, r := range reports {
		if min(rankOf(r), numberOf(r)) < unnumbered {
			numbered = append(numbered, i)
		} else {
			list = append(list, i)
		}
	}
	if len(list) > many {
		list = nil
	}
	slices.SortStableFunc(numbered, func(a, b int) int { return cmp.Compare(computing(reports[a]), computing(reports[b])) })
	if n := len(numbered); n > 0 {
		list = append(list, numbered[0], numbered[n/2], numbered[n-1])
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// computing is for how long a report's main thread computed, outside of collectives.
func computing(r *report.View) (ns int64) {
	target := r.Target().Process
	for _, k := range r.Ranks {
		if k.Process == target {
			return k.ComputingNS
		}
	}
	if at := longestMain(r, target); at >= 0 {
		for _, s := range r.History(at) {
			if s.State.Computes() {
				ns += s.End - s.Start
			}
		}
	}
	return ns
}
