package torchtrace

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// ofKind selects the spans of one kind.
func ofKind(kind KernelKind) func(*span) bool {
	return func(s *span) bool { return s.kind == kind }
}

func anyKind(*span) bool { return true }

// temporal tells a rank's device time apart: idle, computing, other work.
func temporal(v *view) *Table {
	t := newTable(TableTemporal, "Where the device time went",
		&Column{Name: "rank", Kind: Int},
		&Column{Name: "idle_time_us", HTAName: "idle_time(us)", Kind: Micros},
		&Column{Name: "compute_time_us", HTAName: "compute_time(us)", Kind: Micros},
		&Column{Name: "non_compute_time_us", HTAName: "non_compute_time(us)", Kind: Micros},
		&Column{Name: "kernel_time_us", HTAName: "kernel_time(us)", Kind: Micros},
		&Column{Name: "idle_time_pctg", Kind: Percent},
		&Column{Name: "compute_time_pctg", Kind: Percent},
		&Column{Name: "non_compute_time_pctg", Kind: Percent})
	busy := union(v.spans, anyKind)
	if len(busy) == 0 {
		t.Note = "no device events"
		return t
	}
	whole := busy[len(busy)-1].end - busy[0].start
	idle := whole - length(busy)
	compute := length(union(v.spans, ofKind(Computation)))
	other := whole - compute - idle
	t.add(v.t.Rank, micros(idle), micros(compute), micros(other), micros(whole),
		percent(idle, whole), percent(compute, whole), percent(other, whole))
	return t
}

// commCompOverlap is the share of communication hidden behind computation.
func commCompOverlap(v *view) *Table {
	t := newTable(TableOverlap, "Communication overlapped by computation",
		&Column{Name: "rank", Kind: Int},
		&Column{Name: "comp_comm_overlap_pctg", Kind: Percent})
	comm := union(v.spans, ofKind(Communication))
	comp := union(v.spans, ofKind(Computation))
	both := layered(1, comm, comp)[1|2]
	t.add(v.t.Rank, percent(both, length(comm)))
	return t
}

// listedKinds are the kinds a kernel breakdown lists, in HTA's bit order.
var listedKinds = []KernelKind{Computation, Communication, MemoryOp}

// kernelStats sums the durations of one kernel name.
type kernelStats struct {
	name     string
	sum      int64
	max, min int64
	count    int
	mean, m2 float64 // Welford's running mean and squared deviation, ns
}

func (k *kernelStats) add(dur int64) {
	if k.count == 0 {
		k.max, k.min = dur, dur
	}
	k.count++
	k.sum += dur
	k.max, k.min = max(k.max, dur), min(k.min, dur)
	delta := float64(dur) - k.mean
	k.mean += delta / float64(k.count)
	k.m2 += delta * (float64(dur) - k.mean)
}

// merge adds another kernel's events (Chan's parallel variance).
func (k *kernelStats) merge(o *kernelStats) {
	if k.count == 0 {
		k.max, k.min = o.max, o.min
	}
	n := k.count + o.count
	delta := o.mean - k.mean
	k.m2 += o.m2 + delta*delta*float64(k.count)*float64(o.count)/float64(n)
	k.mean += delta * float64(o.count) / float64(n)
	k.sum, k.count = k.sum+o.sum, n
	k.max, k.min = max(k.max, o.max), min(k.min, o.min)
}

// std is the sample standard deviation in µs, 0 for one event as in HTA.
func (k *kernelStats) std() float64 {
	if k.count < 2 {
		return 0
	}
	return math.Sqrt(k.m2/float64(k.count-1)) / 1000
}

// kernelsOf groups a kind's spans by name, longest sum first.
func kernelsOf(v *view, kind KernelKind) []*kernelStats {
	byName := map[Sym]*kernelStats{}
	var list []*kernelStats
	for i := range v.spans {
		s := &v.spans[i]
		if s.kind != kind {
			continue
		}
		k := byName[s.name]
		if k == nil {
			k = &kernelStats{name: v.t.Text(s.name)}
			byName[s.name] = k
			list = append(list, k)
		}
		k.add(s.dur)
	}
	// Two raw spellings of one name are one kernel.
	slices.SortStableFunc(list, func(a, b *kernelStats) int { return strings.Compare(a.name, b.name) })
	list = mergeEqual(list)
	slices.SortStableFunc(list, func(a, b *kernelStats) int { return cmp.Compare(b.sum, a.sum) })
	return list
}

// mergeEqual merges neighbours of the same name.
func mergeEqual(list []*kernelStats) []*kernelStats {
	kept := list[:0]
	for _, k := range list {
		if n := len(kept); n > 0 && kept[n-1].name == k.name {
			kept[n-1].merge(k)
		} else {
			kept = append(kept, k)
		}
	}
	return kept
}

func kernelTable(name, title string) *Table {
	return newTable(name, title,
		&Column{Name: "rank", Kind: Int},
		&Column{Name: "kernel_type", Kind: Text},
		&Column{Name: "name", Kind: Text},
		&Column{Name: "sum_us", HTAName: "sum (us)", Kind: Micros},
		&Column{Name: "max_us", HTAName: "max (us)", Kind: Micros},
		&Column{Name: "min_us", HTAName: "min (us)", Kind: Micros},
		&Column{Name: "mean_us", HTAName: "mean (us)", Kind: Micros},
		&Column{Name: "stddev_us", HTAName: "stddev", Kind: Micros},
		&Column{Name: "count", Kind: Int})
}

// addKernel adds a row; the mean is exact, from the sum.
func addKernel(t *Table, rank int, kind KernelKind, k *kernelStats) {
	t.add(rank, kind.String(), k.name, micros(k.sum), micros(k.max), micros(k.min),
		micros(k.sum)/float64(k.count), k.std(), k.count)
}

// kernelBreakdown lists every kernel name of a rank.
func kernelBreakdown(v *view) *Table {
	t := kernelTable(TableKernels, "Kernels by type and name")
	for _, kind := range listedKinds {
		for _, k := range kernelsOf(v, kind) {
			addKernel(t, v.t.Rank, kind, k)
		}
	}
	return t
}

// kernelBreakdownTop names the top kernels of each type and folds the rest
// into "others". HTA's folding is kept in its modes, its fault included: once
// anything is folded, the statistics are those of the sums.
func kernelBreakdownTop(v *view, top int) *Table {
	t := kernelTable(TableKernelsTop, "The longest kernels of each type")
	for _, kind := range listedKinds {
		list := kernelsOf(v, kind)
		named := list
		others := &kernelStats{name: "others"}
		if len(list) > top {
			n := top
			if v.hta {
				n = htaNamed(list, top)
				named = nil
				for _, k := range list[:n] {
					sum := &kernelStats{name: k.name}
					sum.add(k.sum)
					named = append(named, sum)
				}
				for _, k := range list[n:] {
					others.add(k.sum)
				}
			} else {
				named = list[:n]
				for _, k := range list[n:] {
					others.merge(k)
				}
			}
		}
		for _, k := range named {
			addKernel(t, v.t.Rank, kind, k)
		}
		if others.count > 0 {
			addKernel(t, v.t.Rank, kind, others)
		}
	}
	return t
}

// htaNamed is how many kernels HTA keeps by name: at most top, and those within
// the 0.8 quantile of the running sums.
func htaNamed(list []*kernelStats, top int) int {
	running := make([]float64, len(list))
	var sum float64
	for i, k := range list {
		sum += micros(k.sum)
		running[i] = sum
	}
	limit := quantile(running, 0.8)
	n := 0
	for n < top && n < len(list) && running[n] <= limit {
		n++
	}
	return n
}

// kernelTypeTime is the time each combination of kinds ran on one rank, by the
// bits of listedKinds.
func kernelTypeTime(v *view) map[int]int64 {
	layers := make([][]interval, len(listedKinds))
	for i, kind := range listedKinds {
		layers[i] = union(v.spans, ofKind(kind))
	}
	unit := int64(1)
	if v.hta {
		unit = 1000 // HTA cuts every piece down to whole microseconds
	}
	return layered(unit, layers...)
}

// kernelTypes adds the ranks' times up: which kinds ran, alone or overlapping.
func kernelTypes(perRank []map[int]int64) *Table {
	t := newTable(TableKernelTypes, "Time by kernel type, all ranks",
		&Column{Name: "kernel_type", Kind: Text},
		&Column{Name: "sum_us", HTAName: "sum", Kind: Micros},
		&Column{Name: "percentage", Kind: Percent})
	sums := map[string]int64{}
	var whole int64
	for _, times := range perRank {
		for bits, ns := range times {
			var parts []string
			for i, kind := range listedKinds {
				if bits&(1<<i) != 0 {
					parts = append(parts, kind.String())
				}
			}
			if len(parts) > 0 {
				sums[strings.Join(parts, " overlapping ")] += ns
				whole += ns
			}
		}
	}
	names := make([]string, 0, len(sums))
	for name := range sums {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(sums[b], sums[a]), strings.Compare(a, b))
	})
	for _, name := range names {
		t.add(name, micros(sums[name]), percent(sums[name], whole))
	}
	return t
}
