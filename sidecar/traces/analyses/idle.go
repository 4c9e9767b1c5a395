package analyses

import (
	"cmp"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// idleCategory says why a stream had nothing to do before an event, as HTA has
// it.
type idleCategory uint8

const (
	hostWait       idleCategory = iota // the runtime call came after the stream had run dry
	kernelWait                         // work was queued; the usual gap between kernels
	otherWait                          // work was queued, yet the gap is long
	idleCategories                     // how many there are
)

func (c idleCategory) String() string {
	return [...]string{"host_wait", "kernel_wait", "other"}[c]
}

// idleCause divides the categories further: where the host was late, it may
// have been inside the very call that launched the work.
type idleCause uint8

const (
	notLaunched idleCause = iota // the runtime call had not begun
	insideCall                   // it had begun and not returned
	queued                       // it had returned, the gap is short: the usual one between kernels
	waited                       // it had returned, the gap is long: synchronisation, other streams
	unknown                      // the trace does not have it, the gap is long
	idleCauses
)

// The causes as TableIdleCauses has them.
const (
	CauseNotLaunched = "not_launched"
	CauseInsideCall  = "inside_launch_call"
	CauseQueued      = "queued"
	CauseWaited      = "waited"
	CauseUnknown     = "unknown"
)

// IdleCauses lists them.
func IdleCauses() []string {
	return []string{CauseNotLaunched, CauseInsideCall, CauseQueued, CauseWaited, CauseUnknown}
}

func (c idleCause) String() string { return IdleCauses()[c] }

// gap is the idle time before one event of a stream.
type gap struct {
	start    int64 // ns: end of the stream's work so far
	length   int64 // ns; negative only in HTA's modes
	category idleCategory
	first    bool // before the stream's first event: no gap, but counted as "other"
	call     int32
	// device is the end of the gap in which nothing ran on the whole device, ns.
	// Which stream's event ends a device's idle time says what that waited for.
	device int64
}

func (g gap) end() int64 { return g.start + g.length }

// streamKey names a stream: its number alone means nothing where there are
// several devices.
type streamKey struct {
	device int32
	stream int64
}

func compareStreams(a, b streamKey) int {
	return cmp.Or(cmp.Compare(a.device, b.device), cmp.Compare(a.stream, b.stream))
}

// streamIdle is the idle time of one stream.
type streamIdle struct {
	streamKey
	category [idleCategories]struct {
		seen    bool
		sum     int64
		lengths []float64 // µs, without the stream's first event
	}
	causes [idleCauses]struct {
		gaps        int
		sum, device int64
	}
}

// idleParts is a recording's idle time by stream and by length.
type idleParts struct {
	streams []*streamIdle
	bins    [idleCategories]histogram
}

func observeIdle(r *recording) idleParts {
	var parts idleParts
	keepLengths := r.opts.wants(TableIdleIntervals)
	keys, gaps := r.streamGaps()
	for i, key := range keys {
		s := &streamIdle{streamKey: key}
		for _, g := range gaps[i] {
			c := &s.category[g.category]
			c.seen = true
			c.sum += g.length
			r.addCauses(s, g)
			if g.first {
				continue
			}
			if g.length >= 0 {
				parts.bins[g.category].add(g.length)
			}
			if keepLengths {
				c.lengths = append(c.lengths, micros(g.length))
			}
		}
		parts.streams = append(parts.streams, s)
	}
	return parts
}

// streamGaps lists the gaps of every stream by time, the streams by device and
// number.
func (r *recording) streamGaps() ([]streamKey, [][]gap) {
	if r.streams == nil {
		r.streams, r.gaps = r.findGaps()
	}
	return r.streams, r.gaps
}

func (r *recording) findGaps() (keys []streamKey, gaps [][]gap) {
	type state struct {
		streamKey
		end  int64
		gaps []gap
	}
	limit := int64(r.opts.KernelWait)
	streams := map[streamKey]*state{}
	worked := map[int32]int64{} // ns: until when each device did
	for i := range r.spans {
		s := &r.spans[i]
		if s.row < 0 {
			continue // HTA leaves cuda_sync and operators out here
		}
		key := streamKey{stream: s.stream}
		if !r.hta {
			key.device = r.of[s.device]
		}
		nothing := int64(0)
		if until, ok := worked[key.device]; ok {
			nothing = max(0, s.start-until)
		}
		worked[key.device] = max(worked[key.device], s.end())
		st := streams[key]
		if st == nil {
			streams[key] = &state{key, s.end(), []gap{{start: s.start, category: otherWait, first: true, call: s.call, device: nothing}}}
			continue
		}
		g := gap{start: st.end, length: s.start - st.end, category: otherWait, call: s.call, device: nothing}
		if !r.hta {
			g.length = max(0, g.length)
		}
		switch {
		case s.launch != kineto.None && s.launch > st.end:
			g.category = hostWait
		case g.length < limit:
			g.category = kernelWait
		}
		st.gaps = append(st.gaps, g)
		if r.hta {
			st.end = s.end() // HTA compares with the event before, not with the latest end
		} else {
			st.end = max(st.end, s.end())
		}
	}
	for key := range streams {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, compareStreams)
	for _, key := range keys {
		gaps = append(gaps, streams[key].gaps)
	}
	return keys, gaps
}

// addCauses divides a gap, and the idle time of the device in it.
func (r *recording) addCauses(s *streamIdle, g gap) {
	for cause, ns := range r.divide(g) {
		if ns > 0 {
			s.causes[cause].gaps++
			s.causes[cause].sum += ns
		}
	}
	g.start, g.length = g.end()-g.device, g.device
	for cause, ns := range r.divide(g) {
		s.causes[cause].device += ns
	}
}

// divide returns what a gap was: until the call that launched the next event
// began, while it ran, and from then on.
func (r *recording) divide(g gap) (parts [idleCauses]int64) {
	if g.length <= 0 {
		return parts
	}
	if g.call >= 0 {
		parts[notLaunched] = max(0, min(r.calls[g.call].start, g.end())-g.start)
		parts[insideCall] = r.inside(g)
	}
	rest := g.length - parts[notLaunched] - parts[insideCall]
	switch {
	case rest < int64(r.opts.KernelWait): // also of work that was launched before the recording began
		parts[queued] = rest
	case g.call < 0:
		parts[unknown] = rest
	default:
		parts[waited] = rest
	}
	return parts
}

// inside is the part of a gap during which the call that launched the next event
// ran.
func (r *recording) inside(g gap) int64 {
	if g.call < 0 {
		return 0
	}
	c := &r.calls[g.call]
	return max(0, min(c.end(), g.end())-max(c.start, g.start))
}

// merge adds another recording's idle time of the same stream.
func (s *streamIdle) merge(o *streamIdle) {
	for i := range s.category {
		c, d := &s.category[i], &o.category[i]
		c.seen = c.seen || d.seen
		c.sum += d.sum
		c.lengths = slices.Concat(c.lengths, d.lengths)
	}
	for i := range s.causes {
		s.causes[i].gaps += o.causes[i].gaps
		s.causes[i].sum += o.causes[i].sum
		s.causes[i].device += o.causes[i].device
	}
}

// joinStreams adds the recordings of a rank up, by device and stream.
func joinStreams(parts []idleParts) []*streamIdle {
	joined := map[streamKey]*streamIdle{}
	for _, part := range parts {
		for _, s := range part.streams {
			if joined[s.streamKey] == nil {
				joined[s.streamKey] = &streamIdle{streamKey: s.streamKey}
			}
			joined[s.streamKey].merge(s)
		}
	}
	var list []*streamIdle
	for _, s := range joined {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *streamIdle) int { return compareStreams(a.streamKey, b.streamKey) })
	return list
}

func answerIdle(a asked[idleParts]) []*table.Table {
	sums := table.New(TableIdle, "Why streams were idle", append(a.streamColumns(),
		&table.Column{Name: "idle_category", Kind: table.Text},
		&table.Column{Name: "idle_time_us", HTAName: "idle_time", Kind: table.Micros},
		&table.Column{Name: "idle_time_ratio", Kind: table.Ratio})...)
	intervals := table.New(TableIdleIntervals, "Idle intervals", append(append(a.streamColumns(),
		&table.Column{Name: "idle_category", Kind: table.Text}), summaryColumns("", "_us", table.Micros)...)...)
	causes := table.New(TableIdleCauses, "What streams waited for", append(a.streamColumns(),
		&table.Column{Name: "cause", Kind: table.Text},
		&table.Column{Name: "gaps", Kind: table.Int},
		&table.Column{Name: "idle_us", Kind: table.Micros},
		&table.Column{Name: "idle_share", Kind: table.Ratio}, // of the stream's idle time
		// What nothing ran on the whole device for until this stream's next event,
		// its first one included.
		&table.Column{Name: "device_idle_us", Kind: table.Micros})...)
	for _, rank := range a.ranks {
		for _, s := range joinStreams(rank.parts) {
			var total int64
			for c := range idleCategories {
				total += s.category[c].sum
			}
			row := func(cells ...any) []any { return append(a.streamCells(rank.rank, s.streamKey), cells...) }
			for c := range idleCategories {
				if of := s.category[c]; of.seen {
					sums.Add(row(c.String(), micros(of.sum), share(of.sum, total))...)
					intervals.Add(append(row(c.String()), describe(of.lengths).values()...)...)
				}
			}
			for c := range idleCauses {
				if of := s.causes[c]; of.gaps > 0 || of.device > 0 {
					causes.Add(row(c.String(), of.gaps, micros(of.sum), share(of.sum, total), micros(of.device))...)
				}
			}
		}
	}
	tables := []*table.Table{sums, intervals, idleBins(a)}
	if !a.opts.AsHTA() { // where a gap may be negative and its call another one
		tables = append(tables, causes)
	}
	return tables
}

// streamColumns and streamCells name a stream; HTA's modes know no devices.
func (a asked[P]) streamColumns() []*table.Column {
	columns := []*table.Column{{Name: "rank", Kind: table.Int}, {Name: "device", Kind: table.Int}, {Name: "stream", Kind: table.Int}}
	if a.opts.AsHTA() {
		return []*table.Column{columns[0], columns[2]}
	}
	return columns
}

func (a asked[P]) streamCells(rank int, key streamKey) []any {
	if a.opts.AsHTA() {
		return []any{rank, key.stream}
	}
	return []any{rank, int64(key.device), key.stream}
}

// idleBins counts gaps by length and category, in bins that double from 1 µs.
func idleBins(a asked[idleParts]) *table.Table {
	t := table.New(TableIdleIntervalBins, "Idle intervals by length",
		&table.Column{Name: "rank", Kind: table.Int},
		&table.Column{Name: "idle_category", Kind: table.Text},
		&table.Column{Name: "from_us", Kind: table.Micros},
		&table.Column{Name: "to_us", Kind: table.Micros},
		&table.Column{Name: "count", Kind: table.Int},
		&table.Column{Name: "sum_us", Kind: table.Micros})
	for _, rank := range a.ranks {
		for category := range idleCategories {
			var bins histogram
			for _, part := range rank.parts {
				bins.merge(&part.bins[category])
			}
			bins.each(func(from, to float64, count int, sum int64) {
				t.Add(rank.rank, category.String(), from, to, count, micros(sum))
			})
		}
	}
	return t
}
