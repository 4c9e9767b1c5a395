package torchtrace

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// idleCause says why a stream had nothing to do before an event.
type idleCause uint8

const (
	hostWait   idleCause = iota // the host launched the work too late
	kernelWait                  // work was queued; the usual gap between kernels
	otherWait                   // work was queued, yet the gap is long: synchronisation, other streams
	idleCauses
)

func (c idleCause) String() string {
	return [...]string{"host_wait", "kernel_wait", "other"}[c]
}

// gap is the idle time before one event of a stream.
type gap struct {
	stream int64
	start  int64 // ns: end of the stream's work so far
	length int64 // ns; negative only in HTA's modes
	cause  idleCause
	first  bool // before the stream's first event: no gap, but counted as "other"
}

const defaultKernelWait = 30 * time.Microsecond

// gaps lists the gaps of every stream, by stream, then time.
func gaps(v *view, limit time.Duration) []gap {
	if limit <= 0 {
		limit = defaultKernelWait
	}
	byStream := map[int64]int{} // stream → index of its state
	type state struct {
		stream int64
		end    int64
		gaps   []gap
	}
	var streams []*state
	for i := range v.spans {
		s := &v.spans[i]
		if s.row < 0 {
			continue // HTA leaves cuda_sync and operators out here
		}
		at, seen := byStream[s.stream]
		if !seen {
			byStream[s.stream] = len(streams)
			streams = append(streams, &state{s.stream, s.end(), []gap{{stream: s.stream, start: s.start, cause: otherWait, first: true}}})
			continue
		}
		st := streams[at]
		g := gap{stream: s.stream, start: st.end, length: s.start - st.end, cause: otherWait}
		if !v.hta {
			g.length = max(0, g.length)
		}
		switch {
		case s.launch != None && s.launch > st.end:
			g.cause = hostWait
		case g.length < int64(limit):
			g.cause = kernelWait
		}
		st.gaps = append(st.gaps, g)
		if v.hta {
			st.end = s.end() // HTA compares with the event before, not with the latest end
		} else {
			st.end = max(st.end, s.end())
		}
	}
	slices.SortFunc(streams, func(a, b *state) int { return cmp.Compare(a.stream, b.stream) })
	var all []gap
	for _, st := range streams {
		all = append(all, st.gaps...)
	}
	return all
}

// eachCause calls f for every stream and every cause that it has.
func eachCause(all []gap, f func(stream int64, cause idleCause, of []gap, streamTotal int64)) {
	for len(all) > 0 {
		n := 0
		var total int64
		var by [idleCauses][]gap
		for n < len(all) && all[n].stream == all[0].stream {
			g := all[n]
			by[g.cause] = append(by[g.cause], g)
			total += g.length
			n++
		}
		for cause := range idleCauses {
			if len(by[cause]) > 0 {
				f(all[0].stream, cause, by[cause], total)
			}
		}
		all = all[n:]
	}
}

// idleBreakdown sums each stream's gaps by cause.
func idleBreakdown(v *view, all []gap) *Table {
	t := newTable(TableIdle, "Why streams were idle",
		&Column{Name: "rank", Kind: Int},
		&Column{Name: "stream", Kind: Int},
		&Column{Name: "idle_category", Kind: Text},
		&Column{Name: "idle_time_us", HTAName: "idle_time", Kind: Micros},
		&Column{Name: "idle_time_ratio", Kind: Ratio})
	eachCause(all, func(stream int64, cause idleCause, of []gap, total int64) {
		var sum int64
		for _, g := range of {
			sum += g.length
		}
		t.add(v.t.Rank, stream, cause.String(), micros(sum), percent(sum, total)/100)
	})
	return t
}

// idleIntervals describes the lengths of each stream's gaps by cause.
func idleIntervals(v *view, all []gap) *Table {
	t := newTable(TableIdleIntervals, "Idle intervals", append([]*Column{
		{Name: "rank", Kind: Int},
		{Name: "stream", Kind: Int},
		{Name: "idle_category", Kind: Text}},
		summaryColumns("", "_us", Micros)...)...)
	eachCause(all, func(stream int64, cause idleCause, of []gap, _ int64) {
		lengths := make([]float64, 0, len(of))
		for _, g := range of {
			if !g.first {
				lengths = append(lengths, micros(g.length))
			}
		}
		t.add(append([]any{v.t.Rank, stream, cause.String()}, describe(lengths).values()...)...)
	})
	return t
}

// summaryColumns are the columns of a describe(), named as HTA does.
func summaryColumns(htaPrefix, unit string, kind Kind) []*Column {
	columns := []*Column{{Name: "count", HTAName: htaPrefix + "count", Kind: Int}}
	for _, c := range [][2]string{{"mean", "mean"}, {"std", "std"}, {"min", "min"},
		{"p25", "25%"}, {"p50", "50%"}, {"p75", "75%"}, {"max", "max"}} {
		columns = append(columns, &Column{Name: c[0] + unit, HTAName: htaPrefix + c[1], Kind: kind})
	}
	return columns
}

// values are the cells for summaryColumns.
func (s summary) values() []any {
	return []any{s.count, s.mean, s.std, s.min, s.p25, s.p50, s.p75, s.top}
}

// idleBins counts gaps by length and cause, in bins that double from 1 µs.
func idleBins(v *view, all []gap) *Table {
	t := newTable(TableIdleIntervalBins, "Idle intervals by length",
		&Column{Name: "rank", Kind: Int},
		&Column{Name: "idle_category", Kind: Text},
		&Column{Name: "from_us", Kind: Micros},
		&Column{Name: "to_us", Kind: Micros},
		&Column{Name: "count", Kind: Int},
		&Column{Name: "sum_us", Kind: Micros})
	var bins [idleCauses]histogram
	for _, g := range all {
		if !g.first && g.length >= 0 {
			bins[g.cause].add(g.length)
		}
	}
	for cause := range idleCauses {
		bins[cause].each(func(from, to float64, count int, sum int64) {
			t.add(v.t.Rank, cause.String(), from, to, count, micros(sum))
		})
	}
	return t
}

// histogram counts durations in bins [0,1), [1,2), [2,4), [4,8) … µs.
type histogram struct {
	counts [48]int
	sums   [48]int64
}

func (h *histogram) add(ns int64) {
	bin := 0
	for us := ns / 1000; us > 0 && bin < len(h.counts)-1; us >>= 1 {
		bin++
	}
	h.counts[bin]++
	h.sums[bin] += ns
}

// each calls f for every bin up to the last that has something.
func (h *histogram) each(f func(from, to float64, count int, sum int64)) {
	last := len(h.counts) - 1
	for last >= 0 && h.counts[last] == 0 {
		last--
	}
	for bin := 0; bin <= last; bin++ {
		from := 0.0
		if bin > 0 {
			from = math.Ldexp(1, bin-1)
		}
		f(from, math.Ldexp(1, bin), h.counts[bin], h.sums[bin])
	}
}
