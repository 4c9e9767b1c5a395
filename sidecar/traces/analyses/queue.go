package analyses

import (
	"cmp"
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// queueChange is a change of the number of outstanding operations of a stream:
// up when a runtime call enqueues one, down when it starts to run.
type queueChange struct {
	streamKey
	at     int64 // ns since the epoch
	delta  int32
	length int32 // after the change
	cycle  int32 // of the rank, from 1 on; set when it is known
}

func (c *queueChange) setCycle(n int) { c.cycle = int32(n) }

// observeQueue lists them by stream, then time.
func observeQueue(r *recording) series[queueChange] {
	keep := func(*call) bool { return true }
	if r.hta {
		names := symSet(r.t, htaQueued)
		keep = func(c *call) bool { return c.row >= 0 && names[c.name] }
	}
	joined := pairs(r, keep)
	if r.hta { // index_correlation > 0: HTA overlooks what links to row 0
		joined = slices.DeleteFunc(joined, func(p launched) bool { return p.span.row >= 0 && r.isRowZero(p.span) })
	}
	changes := make([]queueChange, 0, 2*len(joined))
	add := func(p launched, at int64, delta int32) {
		c := queueChange{streamKey: streamKey{stream: p.span.stream}, at: r.t.UnixNs(at), delta: delta, length: int32(len(changes))}
		if !r.hta {
			c.device = r.of[p.span.device]
		}
		changes = append(changes, c)
	}
	for _, p := range joined {
		add(p, p.call.start, 1)
	}
	for _, p := range joined {
		add(p, p.span.start, -1)
	}
	slices.SortFunc(changes, func(a, b queueChange) int {
		if a.at != b.at && a.streamKey == b.streamKey {
			return cmp.Compare(a.at, b.at)
		}
		return cmp.Or(compareStreams(a.streamKey, b.streamKey), cmp.Compare(a.at, b.at), cmp.Compare(a.length, b.length))
	})
	for i := range changes {
		c := &changes[i]
		c.length = c.delta
		if i > 0 && changes[i-1].streamKey == c.streamKey {
			c.length += changes[i-1].length
		}
	}
	return series[queueChange]{changes, r.zero()}
}

// series are the changes of something over time. Those of several recordings
// follow one another; zero is the time that the first's count from.
type series[C any] struct {
	changes []C
	zero    int64 // ns since the epoch
}

// zero is the recording's first call or span.
func (r *recording) zero() int64 {
	zero := int64(math.MaxInt64)
	if len(r.spans) > 0 {
		zero = r.spans[0].start
	}
	for i := range r.calls {
		zero = min(zero, r.calls[i].start)
	}
	return r.t.UnixNs(zero)
}

// cycled is a change that knows its recording.
type cycled[C any] interface {
	*C
	setCycle(int)
}

// joinSeries puts a rank's recordings one after the other, by key, then time.
func joinSeries[C any, P cycled[C]](parts []series[C], key func(a, b C) int) (changes []C, zero int64) {
	for i, part := range parts {
		if i == 0 {
			zero = part.zero
		}
		for _, c := range part.changes {
			P(&c).setCycle(i + 1)
			changes = append(changes, c)
		}
	}
	if len(parts) > 1 {
		slices.SortStableFunc(changes, key)
	}
	return changes, zero
}

// runsOf visits the changes of each key.
func runsOf[C any](changes []C, same func(a, b C) bool, visit func([]C)) {
	for len(changes) > 0 {
		n := 1
		for n < len(changes) && same(changes[0], changes[n]) {
			n++
		}
		visit(changes[:n])
		changes = changes[n:]
	}
}

// answerQueue describes the queue length per stream, over its changes.
func answerQueue(a asked[series[queueChange]]) []*table.Table {
	summary := table.New(TableQueueLength, "Queue length by stream",
		append(a.streamColumns(), summaryColumns("queue_length_", "", table.Float)...)...)
	over := table.New(TableQueueSeries, "Queue length over time", append(a.seriesColumns(a.streamColumns()),
		&table.Column{Name: "ts_us", HTAName: "ts", Kind: table.Micros},
		&table.Column{Name: "queue_length", Kind: table.Int})...)
	for _, rank := range a.ranks {
		changes, zero := joinSeries(rank.parts, func(a, b queueChange) int { return compareStreams(a.streamKey, b.streamKey) })
		same := func(a, b queueChange) bool { return a.streamKey == b.streamKey }
		runsOf(changes, same, func(run []queueChange) {
			lengths := make([]float64, len(run))
			for i, c := range run {
				lengths[i] = float64(c.length)
			}
			summary.Add(append(a.streamCells(rank.rank, run[0].streamKey), describe(lengths).values()...)...)
		})
		if a.opts.wants(TableQueueSeries) {
			for _, c := range changes {
				over.Add(append(a.seriesCells(a.streamCells(rank.rank, c.streamKey), c.cycle), micros(c.at-zero), int(c.length))...)
			}
		}
	}
	return []*table.Table{summary, over}
}

// seriesColumns and seriesCells add the cycle of a rank, which HTA's modes do not
// know.
func (a asked[P]) seriesColumns(columns []*table.Column) []*table.Column {
	if a.opts.AsHTA() {
		return columns
	}
	return append(columns, &table.Column{Name: "cycle", Kind: table.Int})
}

func (a asked[P]) seriesCells(cells []any, cycle int32) []any {
	if a.opts.AsHTA() {
		return cells
	}
	return append(cells, int(cycle))
}
