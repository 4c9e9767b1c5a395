package report

import (
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/straggler"
	"github.com/omni-perf/omni-perf/sidecar/understand/wording"
)

// Rank is what one process of a distributed run did, by its main thread.
type Rank struct {
	Process     int          `json:"process"`
	Rank        int          `json:"rank"`
	KnownNS     int64        `json:"known_ns"`     // for which its stacks are known
	ComputingNS int64        `json:"computing_ns"` // of that, in Python or native code outside of collectives
	Steps       int          `json:"steps"`
	StepNS      *int64       `json:"step_ns"`     // median
	Collectives []Collective `json:"collectives"` // of KnownNS, the longest first
}

// Collective is the time that a rank was in one kind of collective, by its stack.
type Collective struct {
	ID   string `json:"id"` // ranks.Collective
	NS   int64  `json:"ns"`
	Text string `json:"text"`
}

// RankLine compares the ranks by the time that each spent in one line per step, outside of collectives.
type RankLine struct {
	File     int   `json:"file"`
	Line     int   `json:"line"`
	Ranks    int   `json:"ranks"`     // that were compared
	MedianNS int64 `json:"median_ns"` // per step, of the rank in the middle
	P95NS    int64 `json:"p95_ns"`    // per step; 95 % of the ranks spent no more
	Rank     int   `json:"rank"`      // that spent most …
	MostNS   int64 `json:"most_ns"`   // … so much per step
	Steps    int   `json:"steps"`     // that it had
	// LowNS and HighNS bound by how much it spent more per step than the others on the mean. More: that is beyond
	// chance, and a fiftieth of the median step or more.
	LowNS  int64 `json:"low_ns"`
	HighNS int64 `json:"high_ns"`
	More   bool  `json:"more"`
	Above  int   `json:"above"` // of Steps, in which it spent more than what is halfway from the others' mean to its own
}

// RankLineOf is a row of the table, for a place that the document has in one of its files.
func RankLineOf(t straggler.LineTimes, file int) RankLine {
	return RankLine{
		File: file, Line: t.Place.Line, Ranks: t.Ranks, MedianNS: int64(t.Median), P95NS: int64(t.P95), Rank: t.Rank, MostNS: int64(t.Most),
		Steps: t.Steps, LowNS: int64(t.Low), HighNS: int64(t.High), More: t.More, Above: t.Above,
	}
}

// ranks writes what each rank did.
func (b *builder) ranks(d *diagnose.Diagnosis) {
	for _, r := range d.Ranks {
		if r.Process < 0 || r.Process >= len(b.byPlace) {
			continue
		}
		shown := Rank{
			Process: b.byPlace[r.Process], Rank: r.Number, KnownNS: int64(r.Known), ComputingNS: int64(r.Computing),
			Steps: r.Steps, StepNS: known(int64(r.Step), 0), Collectives: []Collective{},
		}
		for _, part := range r.Collectives {
			shown.Collectives = append(shown.Collectives, Collective{ID: clean(string(part.In)), NS: int64(part.Time), Text: wording.Collective(part.In)})
		}
		b.doc.Ranks = append(b.doc.Ranks, shown)
	}
	for _, t := range d.RankLines {
		b.wanted[activity.Place(t.Place)] = true
		b.doc.RankLines = append(b.doc.RankLines, RankLineOf(t, b.codes.file(t.Place.File)))
	}
}

func (c *checker) ranks() {
	for _, r := range c.d.Ranks {
		c.index("ranks.process", r.Process, len(c.d.Processes))
		c.count("ranks.rank", r.Rank)
		c.count("ranks.steps", r.Steps)
		c.amountOrNull("ranks.step_ns", r.StepNS)
		c.must(r.ComputingNS >= 0 && r.ComputingNS <= r.KnownNS && r.KnownNS <= maxInteger, "a rank computed %d of %d ns", r.ComputingNS, r.KnownNS)
		for _, in := range r.Collectives {
			c.amount("ranks.collectives.ns", in.NS)
		}
	}
	for i := range c.d.RankLines {
		l := &c.d.RankLines[i]
		c.place("rank_lines", &l.File, &l.Line, nil)
		for _, n := range []int{l.Ranks, l.Rank, l.Steps, l.Above} {
			c.count("rank_lines", n)
		}
		for _, v := range []int64{l.MedianNS, l.P95NS, l.MostNS} {
			c.amount("rank_lines", v)
		}
		c.must(l.LowNS <= l.HighNS && l.LowNS >= -maxInteger && l.HighNS <= maxInteger, "rank_lines.low_ns is %d, high_ns %d", l.LowNS, l.HighNS)
		c.must(l.MedianNS <= l.MostNS && l.P95NS <= l.MostNS, "rank_lines.most_ns is less than the median of the ranks")
		c.must(l.Above <= l.Steps, "rank_lines.above counts more steps than there are")
	}
}
