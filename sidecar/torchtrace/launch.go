package torchtrace

import (
	"cmp"
	"fmt"
	"slices"
)

// launched is one pair of a runtime call and a device event it started.
type launched struct {
	call  *call
	span  *span
	delay int64 // ns from the end of the call to the start of the event, at least 0
}

// launches pairs every runtime call with every device event of its
// correlation: a graph launch has one pair per kernel.
func launches(v *view) []launched {
	if v.hta {
		counted := htaLaunched(v)
		return pairs(v, func(c *call) bool { return counted(c.correlation) })
	}
	return pairs(v, func(*call) bool { return true })
}

// pairs joins the calls that keep selects with the spans of their correlation.
func pairs(v *view, keep func(*call) bool) []launched {
	spans := make([]*span, 0, len(v.spans))
	for i := range v.spans {
		if v.spans[i].correlation != None {
			spans = append(spans, &v.spans[i])
		}
	}
	slices.SortStableFunc(spans, func(a, b *span) int { return cmp.Compare(a.correlation, b.correlation) })
	joined := make([]launched, 0, len(spans))
	for i := range v.calls {
		c := &v.calls[i]
		if c.correlation == None || !keep(c) {
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

// launchStats has one row per pair.
func launchStats(v *view, joined []launched) *Table {
	n := len(joined)
	rank := &Column{Name: "rank", Kind: Int, Ints: make([]int64, n)}
	correlation := &Column{Name: "correlation", Kind: Int, Ints: make([]int64, n)}
	cpu := &Column{Name: "cpu_duration_us", HTAName: "cpu_duration", Kind: Micros, Floats: make([]float64, n)}
	gpu := &Column{Name: "gpu_duration_us", HTAName: "gpu_duration", Kind: Micros, Floats: make([]float64, n)}
	delay := &Column{Name: "launch_delay_us", HTAName: "launch_delay", Kind: Micros, Floats: make([]float64, n)}
	for i, p := range joined {
		rank.Ints[i], correlation.Ints[i] = int64(v.t.Rank), p.call.correlation
		cpu.Floats[i], gpu.Floats[i] = micros(p.call.dur), micros(p.span.dur)
		delay.Floats[i] = micros(p.delay)
	}
	t := newTable(TableLaunch, "Launches: host call, device event and the delay between", rank, correlation, cpu, gpu, delay)
	orphans := 0
	for i := range v.spans {
		orphans += b2i(v.spans[i].launch == None && v.spans[i].row >= 0)
	}
	if orphans > 0 && !v.hta {
		t.Note = fmt.Sprintf("%d of %d device events have no runtime call in the trace", orphans, len(v.spans))
	}
	return t
}

// Outliers are what HTA's charts mark: calls over 50 µs and delays over 100 µs;
// and device events shorter than the call that launched them.
const (
	slowCall  = 50_000  // ns
	longDelay = 100_000 // ns
)

// launchDelays summarises the delays per kind of call.
func launchDelays(v *view, joined []launched) *Table {
	t := newTable(TableLaunchDelay, "Launch delay by call",
		&Column{Name: "rank", Kind: Int},
		&Column{Name: "call", Kind: Text},
		&Column{Name: "count", Kind: Int},
		&Column{Name: "mean_us", Kind: Micros},
		&Column{Name: "p50_us", Kind: Micros},
		&Column{Name: "p90_us", Kind: Micros},
		&Column{Name: "p95_us", Kind: Micros},
		&Column{Name: "p99_us", Kind: Micros},
		&Column{Name: "max_us", Kind: Micros},
		&Column{Name: "long_delays", Kind: Int},   // delay over 100 µs
		&Column{Name: "slow_calls", Kind: Int},    // host call over 50 µs
		&Column{Name: "short_kernels", Kind: Int}) // device event shorter than its call
	byCall := map[Sym][]launched{}
	for _, p := range joined {
		byCall[p.call.name] = append(byCall[p.call.name], p)
	}
	for _, name := range sortedKeys(byCall) {
		list := byCall[name]
		delays := make([]float64, len(list))
		var sum int64
		var long, slow, brief int
		for i, p := range list {
			delays[i] = micros(p.delay)
			sum += p.delay
			long += b2i(p.delay > longDelay)
			slow += b2i(p.call.dur > slowCall)
			brief += b2i(p.span.dur < p.call.dur)
		}
		slices.Sort(delays)
		t.add(v.t.Rank, v.t.Text(name), len(list), micros(sum)/float64(len(list)),
			quantile(delays, .5), quantile(delays, .9), quantile(delays, .95), quantile(delays, .99),
			delays[len(delays)-1], long, slow, brief)
	}
	return t
}

// launchBins counts the delays, in bins that double from 1 µs.
func launchBins(v *view, joined []launched) *Table {
	t := newTable(TableLaunchDelayBins, "Launch delays by length",
		&Column{Name: "rank", Kind: Int},
		&Column{Name: "from_us", Kind: Micros},
		&Column{Name: "to_us", Kind: Micros},
		&Column{Name: "count", Kind: Int})
	var h histogram
	for _, p := range joined {
		h.add(p.delay)
	}
	h.each(func(from, to float64, count int, _ int64) { t.add(v.t.Rank, from, to, count) })
	return t
}

// sortedKeys lists a map's keys, ascending.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
