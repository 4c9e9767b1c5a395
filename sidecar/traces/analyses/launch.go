package analyses

import (
	"cmp"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// launched is one pair of a runtime call and a device event it started.
type launched struct {
	call  *call
	span  *span
	delay int64 // ns from the end of the call to the start of the event, at least 0
}

// launches pairs every runtime call with every device event of its
// correlation: a graph launch has one pair per kernel.
func launches(r *recording) []launched {
	if r.hta {
		counted := htaLaunched(r)
		return pairs(r, func(c *call) bool { return counted(c.correlation) })
	}
	return pairs(r, func(*call) bool { return true })
}

// pairs joins the calls that keep selects with the spans of their correlation.
func pairs(r *recording, keep func(*call) bool) []launched {
	spans := make([]*span, 0, len(r.spans))
	for i := range r.spans {
		if r.spans[i].correlation != kineto.None {
			spans = append(spans, &r.spans[i])
		}
	}
	slices.SortStableFunc(spans, func(a, b *span) int { return cmp.Compare(a.correlation, b.correlation) })
	joined := make([]launched, 0, len(spans))
	for i := range r.calls {
		c := &r.calls[i]
		if c.correlation == kineto.None || !keep(c) {
			continue
		}
		at, _ := slices.BinarySearchFunc(spans, c.correlation, func(s *span, id int64) int {
			return cmp.Compare(s.correlation, id)
		})
		for ; at < len(spans) && spans[at].correlation == c.correlation; at++ {
			s := spans[at]
			joined = append(joined, launched{c, s, max(0, s.start-c.start-c.dur)})
		}
	}
	return joined
}

// launchParts are a recording's pairs in columns, and their delays.
type launchParts struct {
	correlation     []int64
	cpu, gpu, delay []float64
	byCall          map[string]*callDelays
	bins            histogram
	events, orphans int // device events; those without a runtime call
}

// callDelays are the delays of the launches of one kind of call.
type callDelays struct {
	delays            []float64 // µs
	sum               int64
	long, slow, brief int
}

// Outliers are what HTA's charts mark: calls over 50 µs and delays over 100 µs;
// and device events shorter than the call that launched them.
const (
	slowCall  = 50_000  // ns
	longDelay = 100_000 // ns
)

func observeLaunches(r *recording) *launchParts {
	joined := launches(r)
	n := len(joined)
	p := &launchParts{events: len(r.spans)}
	if r.opts.wants(TableLaunch) {
		p.correlation = make([]int64, n)
		p.cpu, p.gpu, p.delay = make([]float64, n), make([]float64, n), make([]float64, n)
		for i, l := range joined {
			p.correlation[i] = l.call.correlation
			p.cpu[i], p.gpu[i], p.delay[i] = micros(l.call.dur), micros(l.span.dur), micros(l.delay)
		}
	}
	for i := range r.spans {
		if r.spans[i].launch == kineto.None && r.spans[i].row >= 0 {
			p.orphans++
		}
	}
	if r.opts.wants(TableLaunchDelay, TableLaunchDelayBins) {
		p.count(r, joined)
	}
	return p
}

// count sums the delays up per kind of call.
func (p *launchParts) count(r *recording, joined []launched) {
	bySym := map[kineto.Sym]*callDelays{}
	for _, l := range joined {
		p.bins.add(l.delay)
		c := bySym[l.call.name]
		if c == nil {
			c = &callDelays{}
			bySym[l.call.name] = c
		}
		c.delays = append(c.delays, micros(l.delay))
		c.sum += l.delay
		c.long += count(l.delay > longDelay)
		c.slow += count(l.call.dur > slowCall)
		c.brief += count(l.span.dur < l.call.dur)
	}
	p.byCall = map[string]*callDelays{}
	for name, c := range bySym {
		p.byCall[r.t.Text(name)] = c
	}
}

func answerLaunches(a asked[*launchParts]) []*table.Table {
	return []*table.Table{launchStats(a), launchDelays(a), launchBins(a)}
}

// launchStats has one row per pair.
func launchStats(a asked[*launchParts]) *table.Table {
	rank := &table.Column{Name: "rank", Kind: table.Int}
	correlation := &table.Column{Name: "correlation", Kind: table.Int}
	cpu := &table.Column{Name: "cpu_duration_us", HTAName: "cpu_duration", Kind: table.Micros}
	gpu := &table.Column{Name: "gpu_duration_us", HTAName: "gpu_duration", Kind: table.Micros}
	delay := &table.Column{Name: "launch_delay_us", HTAName: "launch_delay", Kind: table.Micros}
	total := 0
	for _, r := range a.ranks {
		for _, p := range r.parts {
			total += len(p.correlation)
		}
	}
	rank.Ints, correlation.Ints = make([]int64, 0, total), make([]int64, 0, total)
	cpu.Floats, gpu.Floats, delay.Floats = make([]float64, 0, total), make([]float64, 0, total), make([]float64, 0, total)
	var why notes
	for _, r := range a.ranks {
		events, orphans := 0, 0
		for _, p := range r.parts {
			for range p.correlation {
				rank.Ints = append(rank.Ints, int64(r.rank))
			}
			correlation.Ints = append(correlation.Ints, p.correlation...)
			cpu.Floats, gpu.Floats, delay.Floats = append(cpu.Floats, p.cpu...), append(gpu.Floats, p.gpu...), append(delay.Floats, p.delay...)
			events, orphans = events+p.events, orphans+p.orphans
		}
		note := ""
		if orphans > 0 && !a.opts.AsHTA() {
			note = fmt.Sprintf("%d of %d device events have no runtime call in the trace", orphans, events)
		}
		why.add(r.rank, note)
	}
	t := table.New(TableLaunch, "Launches: host call, device event and the delay between", rank, correlation, cpu, gpu, delay)
	t.Note = why.String()
	return t
}

// launchDelays summarises the delays per kind of call, the most frequent first.
func launchDelays(a asked[*launchParts]) *table.Table {
	t := table.New(TableLaunchDelay, "Launch delay by call",
		&table.Column{Name: "rank", Kind: table.Int},
		&table.Column{Name: "call", Kind: table.Text},
		&table.Column{Name: "count", Kind: table.Int},
		&table.Column{Name: "mean_us", Kind: table.Micros},
		&table.Column{Name: "p50_us", Kind: table.Micros},
		&table.Column{Name: "p90_us", Kind: table.Micros},
		&table.Column{Name: "p95_us", Kind: table.Micros},
		&table.Column{Name: "p99_us", Kind: table.Micros},
		&table.Column{Name: "max_us", Kind: table.Micros},
		&table.Column{Name: "long_delays", Kind: table.Int},   // delay over 100 µs
		&table.Column{Name: "slow_calls", Kind: table.Int},    // host call over 50 µs
		&table.Column{Name: "short_kernels", Kind: table.Int}) // device event shorter than its call
	for _, r := range a.ranks {
		byCall := map[string]callDelays{}
		for _, p := range r.parts {
			for name, c := range p.byCall {
				o := byCall[name]
				byCall[name] = callDelays{slices.Concat(o.delays, c.delays), o.sum + c.sum, o.long + c.long, o.slow + c.slow, o.brief + c.brief}
			}
		}
		names := sortedKeys(byCall)
		slices.SortStableFunc(names, func(x, y string) int { return cmp.Compare(len(byCall[y].delays), len(byCall[x].delays)) })
		for _, name := range names {
			c := byCall[name]
			slices.Sort(c.delays)
			n := len(c.delays)
			at := func(p float64) float64 { return stat.Quantile(p, stat.Empirical, c.delays, nil) }
			t.Add(r.rank, name, n, micros(c.sum)/float64(n),
				at(0.5), at(0.9), at(0.95), at(0.99),
				c.delays[n-1], c.long, c.slow, c.brief)
		}
	}
	return t
}

// launchBins counts the delays, in bins that double from 1 µs.
func launchBins(a asked[*launchParts]) *table.Table {
	t := table.New(TableLaunchDelayBins, "Launch delays by length",
		&table.Column{Name: "rank", Kind: table.Int},
		&table.Column{Name: "from_us", Kind: table.Micros},
		&table.Column{Name: "to_us", Kind: table.Micros},
		&table.Column{Name: "count", Kind: table.Int})
	for _, r := range a.ranks {
		var bins histogram
		for _, p := range r.parts {
			bins.merge(&p.bins)
		}
		bins.each(func(from, to float64, count int, _ int64) { t.Add(r.rank, from, to, count) })
	}
	return t
}
