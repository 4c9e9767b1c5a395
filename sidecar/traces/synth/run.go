package synth

import (
	"io"
	"math/rand/v2"
	"time"
)

const (
	us = int64(time.Microsecond)
	ms = int64(time.Millisecond)

	// epoch is the base time of the files; start is when rank 0 begins, since
	// the epoch. Both are like a real file's.
	epoch = int64(1_700_000_000) * int64(time.Second)
	start = int64(1_234_567) * int64(time.Second)
	// betweenCycles is the time from the beginning of a cycle to the next.
	betweenCycles = int64(60) * int64(time.Second)
)

// run advances all ranks in lock step from collective to collective, since a
// collective ends for all when the last rank has joined.
type run struct {
	cfg         Config
	ranks       []*rank
	steps       int
	collectives []Collective
	random      *rand.Rand // of what all ranks share
}

func newRun(cfg Config, out []io.Writer) *run {
	g := &run{cfg: cfg, random: rand.New(rand.NewPCG(cfg.Seed, 1<<32))}
	for i, w := range out {
		g.ranks = append(g.ranks, newRank(cfg, i, w))
	}
	return g
}

func (g *run) done() bool {
	if g.steps < g.cfg.Steps {
		return false
	}
	for _, r := range g.ranks {
		if r.out.written() < g.cfg.Bytes && r.out.err == nil {
			return false
		}
	}
	return true
}

// step simulates one training step: wait for data, forward, backward with two
// gradient buckets, optimizer, and loss.item() that waits for the device.
func (g *run) step() {
	number := g.cfg.FirstStep() + g.steps
	g.steps++
	half := g.cfg.Layers
	for _, r := range g.ranks {
		r.beginStep(number)
		r.loadBatch()
		r.forward(g.cfg.Layers)
		r.beginBackward()
		r.backward(half)
	}
	// The first bucket travels while the backward pass goes on, the second is
	// what the optimizer waits for.
	g.allReduce(number, 0, 4<<20)
	for _, r := range g.ranks {
		r.backward(2*g.cfg.Layers - half)
		r.endBackward()
	}
	g.allReduce(number, 1, 1<<20)
	for _, r := range g.ranks {
		r.optimizer(max(1, g.cfg.Layers/2))
		r.endStep()
	}
}

// allReduce lets every rank launch its part and ends them together.
func (g *run) allReduce(step, bucket int, elements int64) {
	if len(g.ranks) == 1 {
		return
	}
	c := Collective{Step: step, Bucket: bucket, Elements: elements, Start: make([]int64, len(g.ranks))}
	for i, r := range g.ranks {
		c.Start[i] = r.launchCollective(elements)
		if c.Start[i] > c.Start[c.Last] {
			c.Last = i
		}
	}
	transfer := elements/16 + g.random.Int64N(40*us) // about 64 GB/s
	c.End = c.Start[c.Last] + transfer
	for i, r := range g.ranks {
		r.endCollective(c.Start[i], c.End)
	}
	g.collectives = append(g.collectives, c)
}

func (g *run) finish() (*Answers, error) {
	answers := &Answers{Collectives: g.collectives}
	for _, r := range g.ranks {
		a, err := r.finish()
		if err != nil {
			return nil, err
		}
		answers.Ranks = append(answers.Ranks, a)
	}
	return answers, nil
}
