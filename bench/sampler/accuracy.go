package main

import (
	"os"
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/bench/sampler/peer"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// A judged workload has known edges, and some have more.
type judged struct {
	name     string
	workload truth.Workload
	threads  int
	whole    bool   // its own time shares are the truth
	computes string // the function that computes, while the others wait: its own CPU clock is the truth
}

var judgedWorkloads = []judged{
	{name: "work", workload: truth.Work, threads: 1},
	{name: "flat", workload: truth.Flat, threads: 1},
	{name: "deep", workload: truth.Deep, threads: 1},
	{name: "generators", workload: truth.Generators(0), threads: 1},
	{name: "generators 20 µs", workload: truth.Generators(20 * time.Microsecond), threads: 1},
	{name: "generators 100 µs", workload: truth.Generators(100 * time.Microsecond), threads: 1},
	{name: "tasks 100 µs", workload: truth.Tasks(100 * time.Microsecond), threads: 1},
	{name: "event loops", workload: truth.EventLoops(), threads: 1},
	{name: "160 threads", workload: truth.Threads(160), threads: 160},
	{name: "4 busy threads", workload: truth.Handover, threads: 4},
	{name: "lines", workload: truth.Lines, threads: 1},
	{name: "native", workload: truth.Native, threads: 1, whole: true},
	{name: "parts", workload: truth.Parts, threads: 1, whole: true},
	{name: "naps", workload: truth.Naps(time.Millisecond, 80*time.Microsecond), threads: 1, whole: true, computes: "compute"},
}

func (b *bench) measureAccuracy() {
	for _, j := range judgedWorkloads {
		if !b.plan.Programs.MatchString(j.name) {
			continue
		}
		say("accuracy: %s", j.name)
		for _, s := range b.samplers {
			if b.ctx.Err() != nil {
				return
			}
			if s.Read != nil {
				b.results.Accuracy = append(b.results.Accuracy, b.accuracy(j, s, b.plan.Accuracy))
			}
		}
	}
	if b.plan.Versions {
		b.accuracyByVersion()
	}
}

// accuracyByVersion is omni-perf's on the interpreters that have not had their turn.
func (b *bench) accuracyByVersion() {
	self, err := os.Executable()
	if err != nil {
		return
	}
	for _, python := range b.pythons {
		if python.Build == "" && slices.Contains(b.minors(), python.Minor) {
			continue
		}
		say("accuracy: omni-perf on %s", python)
		for _, j := range judgedWorkloads {
			if b.ctx.Err() != nil {
				return
			}
			if !j.whole && b.plan.Programs.MatchString(j.name) {
				b.results.Accuracy = append(b.results.Accuracy, b.accuracy(j, ours(self, python), b.plan.Accuracy))
			}
		}
	}
}

// accuracy runs one workload under one sampler and judges what it recorded.
func (b *bench) accuracy(j judged, s peer.Sampler, length time.Duration) Accuracy {
	a := Accuracy{Workload: j.name, Minor: s.Target.Minor, Build: s.Target.Build, Sampler: s.Name}
	legal, err := b.legal(s.Target.Path, j.workload)
	if err != nil {
		a.Error = err.Error()
		return a
	}
	var r peer.Recording
	var m truth.Measured
	if j.name == "parts" {
		length = b.plan.Shares
	}
	err = b.patiently(s, func(s peer.Sampler) (err error) {
		job := peer.Job{Rate: rate, Out: b.output(), ByState: j.computes != ""}
		defer os.Remove(job.Out)
		if j.whole {
			r, m, err = recordWhole(&s, s.Target.Path, j.workload, job, length)
		} else {
			r, err = recordRunning(&s, s.Target.Path, j.workload, job, length)
		}
		return err
	})
	if err != nil {
		a.Error = err.Error()
		return a
	}

	if s.Inside() {
		r.Samples = truth.DuringRounds(r.Samples)
	}
	v := legal.Judge(r.Samples)
	tried := float64(v.Samples + r.Failed)
	a.Samples = v.Samples
	a.PerSecond = perSecond(r, j.threads)
	a.Impossible = v.Share(v.Impossible)
	a.Lost = float64(v.Lost+r.Failed) / max(tried, 1)
	a.Truncated = v.Share(v.Truncated)
	a.WrongCallLines = v.Share(v.WrongLines)
	if len(v.Examples) > 0 {
		a.Example = v.Examples[0]
	}
	if j.workload.Name == truth.Lines.Name {
		b.judgeLeaves(&a, s, r.Samples)
	}
	if j.computes != "" {
		computing := computingRatio(r.Samples, m, j.computes)
		a.Computing = &computing
	} else if j.whole {
		names := make([]string, 0, len(m.SpentNs))
		for name := range m.SpentNs {
			names = append(names, name)
		}
		distance := truth.Distance(truth.Shares(r.Samples, names), m.SpentNs)
		a.Distance = &distance
	}
	return a
}

// computingRatio is the time that samples give a function, to what the program's own CPU clock gives it. All
// of the program's functions together have the time of its rounds.
func computingRatio(samples []truth.Sample, m truth.Measured, function string) float64 {
	names := make([]string, 0, len(m.SpentNs))
	for name := range m.SpentNs {
		names = append(names, name)
	}
	all, shares := 0.0, truth.Shares(samples, names)
	for _, share := range shares {
		all += share
	}
	return shares[function] / max(all, 1) * float64(m.WallNs) / m.SpentNs[function]
}

// patiently tries a second time with more time for the sampler's start, which a busy machine may need.
func (b *bench) patiently(s peer.Sampler, record func(peer.Sampler) error) error {
	err := record(s)
	if err != nil && b.ctx.Err() == nil {
		s.Settle += 5 * time.Second
		err = record(s)
	}
	return err
}

// perSecond is the rate that was achieved for each thread.
func perSecond(r peer.Recording, threads int) float64 {
	ticks := float64(r.Ticks)
	if ticks == 0 {
		ticks = float64(len(r.Samples)+r.Failed) / float64(threads)
	}
	return ticks / r.Time.Seconds()
}

// judgeLeaves compares the leaves' lines with those that the workload names for itself.
func (b *bench) judgeLeaves(a *Accuracy, s peer.Sampler, samples []truth.Sample) {
	target, err := truth.Launch(s.Target.Path, truth.Lines, truth.Settings{Rounds: 1})
	if err != nil {
		a.Error = err.Error()
		return
	}
	m, err := target.Wait()
	if err != nil {
		a.Error = err.Error()
		return
	}
	wrong, leaves := truth.LeafLines(samples, m.Hot)
	a.Leaves = leaves
	if leaves > 0 {
		a.HotLeaf = float64(wrong) / float64(leaves)
	}
}

// measureMaxRate asks every sampler to be as fast as it can, on one thread 12 calls deep. Those inside
// the target are left out: they would stop it altogether.
func (b *bench) measureMaxRate() {
	const length = 3 * time.Second
	for _, s := range b.samplers {
		if b.ctx.Err() != nil {
			return
		}
		if s.Read == nil || s.Inside() {
			continue
		}
		say("maximum rate: %s on %s", s.Name, s.Target.Minor)
		m := MaxRate{Minor: s.Target.Minor, Sampler: s.Name}
		legal, err := b.legal(s.Target.Path, truth.Work)
		if err == nil {
			err = b.patiently(s, func(s peer.Sampler) error {
				job := peer.Job{Out: b.output()}
				defer os.Remove(job.Out)
				r, err := recordRunning(&s, s.Target.Path, truth.Work, job, length)
				if err != nil {
					return err
				}
				v := legal.Judge(r.Samples)
				m.PerSecond, m.Impossible = perSecond(r, 1), v.Share(v.Impossible)
				return nil
			})
		}
		if err != nil {
			m.Error = err.Error()
		}
		b.results.MaxRate = append(b.results.MaxRate, m)
	}
}
