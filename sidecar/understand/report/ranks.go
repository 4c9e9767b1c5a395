package report

import (
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
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
}
