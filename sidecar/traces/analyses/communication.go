package analyses

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// What a collective moves, as NCCL's own tests define it (nccl-tests, doc/PERFORMANCE.md): the algorithm's bandwidth is the size by
// the time, that of the bus is what each link must carry, which can be compared with the hardware whatever the number of ranks.

// collectiveKind is how the size of a collective is counted: by what goes in or comes out, whichever is all of it, and what
// part of it crosses a rank's link.
type collectiveKind struct {
	out    bool // the size is what comes out
	factor func(n float64) float64
}

func ringPart(n float64) float64  { return (n - 1) / n }
func ringTwice(n float64) float64 { return 2 * (n - 1) / n }
func allOfIt(float64) float64     { return 1 }

var collectiveKinds = map[string]collectiveKind{
	"allreduce": {false, ringTwice}, "all_reduce": {false, ringTwice}, "allreduce_coalesced": {false, ringTwice},
	"allgather": {true, ringPart}, "_allgather_base": {true, ringPart}, "all_gather": {true, ringPart}, "allgather_into_tensor_coalesced": {true, ringPart},
	"reduce_scatter": {false, ringPart}, "_reduce_scatter_base": {false, ringPart}, "reduce_scatter_tensor_coalesced": {false, ringPart},
	"broadcast": {false, allOfIt}, "_broadcast_oop": {false, allOfIt}, "reduce": {false, allOfIt}, "_reduce_oop": {false, allOfIt},
	"all_to_all": {false, ringPart}, "alltoall": {false, ringPart}, "all_to_allv": {false, ringPart}, "alltoallv": {false, ringPart}, "alltoall_base": {false, ringPart},
}

// dtypeSizes are NCCL's names of types in a trace.
var dtypeSizes = map[string]float64{
	"Float": 4, "Double": 8, "Half": 2, "BFloat16": 2, "Int": 4, "Long": 8, "Short": 2, "Char": 1, "Byte": 1, "Bool": 1,
	"Float8_e4m3fn": 1, "Float8_e5m2": 1, "Float8_e4m3fnuz": 1, "Float8_e5m2fnuz": 1,
}

// commSize names a row of the table.
type commSize struct {
	collective, group, dtype string
	ranks                    int64
	bytes                    float64
}

// size of a collective in bytes; 0 if it is not known.
func (r *commRun) size() float64 {
	kind, known := collectiveKinds[r.name]
	elements := r.elements
	if kind.out {
		elements = r.outElements
	}
	if !known || elements <= 0 || r.groupSize <= 0 {
		return 0
	}
	return float64(elements) * dtypeSizes[r.dtype]
}

// answerBandwidths has a row per collective, group, type and size, over all ranks. Where the ranks' kernels can be matched the time is the
// shortest of them, as the last rank to come waits for nobody; else each rank's own, waiting included.
func answerBandwidths(a asked[commRuns]) *table.Table {
	t := table.New(TableCommunication, "Bandwidth of collectives",
		&table.Column{Name: "collective", Kind: table.Text},
		&table.Column{Name: "group", Kind: table.Text, Optional: true},
		&table.Column{Name: "group_size", Kind: table.Int},
		&table.Column{Name: "dtype", Kind: table.Text, Optional: true},
		&table.Column{Name: "size_bytes", Kind: table.Bytes},
		&table.Column{Name: "count", Kind: table.Int},
		&table.Column{Name: "waiting", Kind: table.Text}, // excluded or included
		&table.Column{Name: "total_us", Kind: table.Micros},
		&table.Column{Name: "median_us", Kind: table.Micros},
		&table.Column{Name: "algorithm_gbps", Kind: table.GBps}, // in the median time
		&table.Column{Name: "bus_gbps", Kind: table.GBps},
		&table.Column{Name: "best_bus_gbps", Kind: table.GBps}) // in the shortest time
	perRank, _ := joinRuns(a.ranks)
	times := map[commSize][]int64{}
	waiting := "excluded"
	matched, left := pairUp(perRank)
	if len(matched) == 0 || left > 0 {
		waiting = "included"
		for _, runs := range perRank {
			for i := range runs {
				addSize(times, &runs[i], runs[i].end-runs[i].start)
			}
		}
	} else {
		for i := range matched {
			_, ns := matched[i].transfer()
			addSize(times, &matched[i].runs[0], ns)
		}
	}
	keys := make([]commSize, 0, len(times))
	total := map[commSize]int64{}
	for key, list := range times {
		keys = append(keys, key)
		slices.Sort(list)
		for _, ns := range list {
			total[key] += ns
		}
	}
	slices.SortFunc(keys, func(a, b commSize) int {
		return cmp.Or(cmp.Compare(total[b], total[a]), strings.Compare(a.collective, b.collective), strings.Compare(a.group, b.group),
			strings.Compare(a.dtype, b.dtype), cmp.Compare(a.ranks, b.ranks), cmp.Compare(a.bytes, b.bytes))
	})
	for _, key := range keys {
		list := times[key]
		median, shortest := list[len(list)/2], list[0]
		factor := collectiveKinds[key.collective].factor(float64(key.ranks))
		t.Add(key.collective, key.group, key.ranks, key.dtype, int64(key.bytes), len(list), waiting, micros(total[key]), micros(median),
			perNanosecond(key.bytes, median), perNanosecond(key.bytes*factor, median), perNanosecond(key.bytes*factor, shortest))
	}
	if len(keys) == 0 {
		t.Note = "no collectives with their size: traces of torch 2.3 and later have it"
	}
	return t
}

func addSize(times map[commSize][]int64, run *commRun, ns int64) {
	bytes := run.size()
	if bytes <= 0 || bytes > math.MaxInt64/2 {
		return
	}
	key := commSize{run.name, run.group, run.dtype, run.groupSize, bytes}
	times[key] = append(times[key], ns)
}

// perNanosecond is GB/s; none of no time.
func perNanosecond(bytes float64, ns int64) float64 {
	if ns <= 0 || bytes <= 0 {
		return math.NaN()
	}
	return bytes / float64(ns)
}

// about is what a kernel says about its collective.
func (r *commRun) about(t *kineto.Trace, c *kineto.Collective) {
	r.group, r.groupSize, r.outElements = t.Text(c.Group), c.GroupSize, c.OutNelems
}
