package analyses

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// ofKind selects the spans of one kind.
func ofKind(kind KernelKind) func(*span) bool {
	return func(s *span) bool { return s.kind == kind }
}

func anyKind(*span) bool { return true }

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

// kernelLists are the kernels by listedKinds, longest sum first.
type kernelLists [][]*kernelStats

// observeKernels groups the spans of each kind by name.
func observeKernels(r *recording) kernelLists {
	type key struct {
		kind KernelKind
		name kineto.Sym
	}
	byName := map[key]*kernelStats{}
	lists := make(kernelLists, len(listedKinds))
	for i := range r.spans {
		s := &r.spans[i]
		at := slices.Index(listedKinds, s.kind)
		if at < 0 {
			continue
		}
		k := byName[key{s.kind, s.name}]
		if k == nil {
			k = &kernelStats{name: r.t.Text(s.name)}
			byName[key{s.kind, s.name}] = k
			lists[at] = append(lists[at], k)
		}
		k.add(s.dur)
	}
	for i := range lists {
		lists[i] = longestFirst(lists[i])
	}
	return lists
}

// longestFirst joins kernels of one name (two raw spellings of one name are one
// kernel, and cycles have the same ones) and sorts by sum.
func longestFirst(list []*kernelStats) []*kernelStats {
	slices.SortStableFunc(list, func(a, b *kernelStats) int { return strings.Compare(a.name, b.name) })
	kept := list[:0]
	for _, k := range list {
		if n := len(kept); n > 0 && kept[n-1].name == k.name {
			kept[n-1].merge(k)
		} else {
			kept = append(kept, k)
		}
	}
	slices.SortStableFunc(kept, func(a, b *kernelStats) int { return cmp.Compare(b.sum, a.sum) })
	return kept
}

func answerKernels(a asked[kernelLists]) []*table.Table {
	all := kernelTable(TableKernels, "Kernels by type and name")
	top := kernelTable(TableKernelsTop, "The longest kernels of each type")
	perRank := make([]kernelLists, len(a.ranks))
	for i, rank := range a.ranks {
		perRank[i] = make(kernelLists, len(listedKinds))
		for k, kind := range listedKinds {
			list := rank.parts[0][k]
			if len(rank.parts) > 1 {
				list = longestFirst(copies(rank.parts, k))
			}
			perRank[i][k] = list
			for _, kernel := range list {
				addKernel(all, rank.rank, kind, kernel)
			}
			for _, kernel := range topKernels(list, a.opts) {
				addKernel(top, rank.rank, kind, kernel)
			}
		}
	}
	return []*table.Table{all, top, kernelsTogether(a, perRank)}
}

// copies are the kernels of one kind of several recordings.
func copies(parts []kernelLists, kind int) (list []*kernelStats) {
	for _, part := range parts {
		for _, k := range part[kind] {
			own := *k
			list = append(list, &own)
		}
	}
	return list
}

func kernelTable(name, title string) *table.Table {
	return table.New(name, title,
		&table.Column{Name: "rank", Kind: table.Int},
		&table.Column{Name: "kernel_type", Kind: table.Text},
		&table.Column{Name: "name", Kind: table.Text},
		&table.Column{Name: "sum_us", HTAName: "sum (us)", Kind: table.Micros},
		&table.Column{Name: "max_us", HTAName: "max (us)", Kind: table.Micros},
		&table.Column{Name: "min_us", HTAName: "min (us)", Kind: table.Micros},
		&table.Column{Name: "mean_us", HTAName: "mean (us)", Kind: table.Micros},
		&table.Column{Name: "stddev_us", HTAName: "stddev", Kind: table.Micros},
		&table.Column{Name: "count", Kind: table.Int})
}

// addKernel adds a row; the mean is exact, from the sum.
func addKernel(t *table.Table, rank int, kind KernelKind, k *kernelStats) {
	t.Add(rank, kind.String(), k.name, micros(k.sum), micros(k.max), micros(k.min),
		micros(k.sum)/float64(k.count), k.std(), k.count)
}

// topKernels names the longest kernels of a type and folds the rest into
// "others". HTA's folding is kept in its modes, its fault included: once
// anything is folded, the statistics are those of the sums.
func topKernels(list []*kernelStats, opts *Options) []*kernelStats {
	if len(list) <= opts.TopKernels {
		return list
	}
	others := &kernelStats{name: "others"}
	if !opts.AsHTA() {
		for _, k := range list[opts.TopKernels:] {
			others.merge(k)
		}
		return append(slices.Clone(list[:opts.TopKernels]), others)
	}
	var named []*kernelStats
	n := htaNamed(list, opts.TopKernels)
	for _, k := range list[:n] {
		sum := &kernelStats{name: k.name}
		sum.add(k.sum)
		named = append(named, sum)
	}
	for _, k := range list[n:] {
		others.add(k.sum)
	}
	if others.count == 0 {
		return named
	}
	return append(named, others)
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
	limit := pandasQuantile(running, 0.8)
	n := 0
	for n < top && n < len(list) && running[n] <= limit {
		n++
	}
	return n
}

// kernelsTogether adds the ranks' kernels up by name, and names the rank on
// which each takes longest.
func kernelsTogether(a asked[kernelLists], perRank []kernelLists) *table.Table {
	t := table.New(TableKernelsTogether, "Kernels, all ranks",
		&table.Column{Name: "kernel_type", Kind: table.Text},
		&table.Column{Name: "name", Kind: table.Text},
		&table.Column{Name: "ranks", Kind: table.Int},
		&table.Column{Name: "count", Kind: table.Int},
		&table.Column{Name: "sum_us", HTAName: "sum (us)", Kind: table.Micros},
		&table.Column{Name: "mean_us", HTAName: "mean (us)", Kind: table.Micros},
		&table.Column{Name: "min_us", HTAName: "min (us)", Kind: table.Micros},
		&table.Column{Name: "max_us", HTAName: "max (us)", Kind: table.Micros},
		&table.Column{Name: "slowest_rank", Kind: table.Int}, // by its mean
		&table.Column{Name: "slowest_mean_us", Kind: table.Micros})
	type total struct {
		kernelStats
		ranks, slowest int
		slowestMean    float64
	}
	for i, kind := range listedKinds {
		byName := map[string]*total{}
		for n, lists := range perRank {
			for _, k := range lists[i] {
				s := byName[k.name]
				if s == nil {
					s = &total{kernelStats: kernelStats{name: k.name}, slowest: a.ranks[n].rank}
					byName[k.name] = s
				}
				s.merge(k)
				s.ranks++
				if mean := micros(k.sum) / float64(k.count); mean > s.slowestMean {
					s.slowest, s.slowestMean = a.ranks[n].rank, mean
				}
			}
		}
		list := make([]*total, 0, len(byName))
		for _, s := range byName {
			list = append(list, s)
		}
		slices.SortFunc(list, func(a, b *total) int {
			return cmp.Or(cmp.Compare(b.sum, a.sum), strings.Compare(a.name, b.name))
		})
		for _, s := range list {
			t.Add(kind.String(), s.name, s.ranks, s.count, micros(s.sum), micros(s.sum)/float64(s.count),
				micros(s.min), micros(s.max), s.slowest, s.slowestMean)
		}
	}
	return t
}

// answerKernelTypes adds everything up: which kinds ran, alone or overlapping.
func answerKernelTypes(a asked[map[int]int64]) []*table.Table {
	t := table.New(TableKernelTypes, "Time by kernel type, all ranks",
		&table.Column{Name: "kernel_type", Kind: table.Text},
		&table.Column{Name: "sum_us", HTAName: "sum", Kind: table.Micros},
		&table.Column{Name: "percentage", Kind: table.Percent})
	sums := map[string]int64{}
	var whole int64
	for _, rank := range a.ranks {
		for _, times := range rank.parts {
			for bits, ns := range times {
				if name := kindsOfBits(bits); name != "" {
					sums[name] += ns
					whole += ns
				}
			}
		}
	}
	names := sortedKeys(sums)
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(sums[b], sums[a]) })
	for _, name := range names {
		t.Add(name, micros(sums[name]), percent(sums[name], whole))
	}
	return []*table.Table{t}
}

// kindsOfBits names a combination of listedKinds as HTA does.
func kindsOfBits(bits int) string {
	var parts []string
	for i, kind := range listedKinds {
		if bits&(1<<i) != 0 {
			parts = append(parts, kind.String())
		}
	}
	return strings.Join(parts, " overlapping ")
}
