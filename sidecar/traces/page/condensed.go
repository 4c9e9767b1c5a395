package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/changes"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// The tables below sum over ranks what a terminal has no room to list rank by
// rank. They are for reading; files have the whole tables.

// condensed makes a table for display from columns already filled.
func condensed(name, title string, columns ...*table.Column) *table.Table {
	return &table.Table{Name: name, Title: title, Columns: columns}
}

func condense(t *table.Table) *table.Table {
	switch t.Name {
	case analyses.TableKernels:
		return condensedKernels(t)
	case changes.TableName:
		return condensedChanges(t)
	case analyses.TableCriticalPath:
		return condensedPath(t)
	case analyses.TablePythonIdle:
		return condensedPython(t)
	case analyses.TableHostIdle:
		return condensedHost(t)
	case analyses.TableModuleClasses:
		return condensedScopes(t, "Modules, all ranks", "module")
	case analyses.TableAnnotations:
		return condensedScopes(t, "Annotations, all ranks", "annotation")
	case analyses.TableOperators:
		return condensedOperators(t)
	case analyses.TablePythonFunctions:
		return condensedFunctions(t)
	case analyses.TableIdleCauses:
		return condensedIdle(t)
	case analyses.TableCalls:
		return condensedCalls(t)
	}
	return t
}

// condensedChanges are the largest changes of all kinds, the whole first; what is within noise comes last.
func condensedChanges(t *table.Table) *table.Table {
	rows := make([]int, t.Len())
	for r := range rows {
		rows[r] = r
	}
	rank := func(r int) int {
		switch {
		case t.TextAt("kind", r) == changes.Step:
			return 0
		case t.TextAt("verdict", r) == "":
			return 3
		case t.TextAt("kind", r) == changes.Kernel: // whose names are a device's and a version's own
			return 2
		}
		return 1
	}
	slices.SortStableFunc(rows, func(a, b int) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(math.Abs(t.FloatAt("change_us", b)), math.Abs(t.FloatAt("change_us", a))))
	})
	per := "of one rank"
	if t.Len() > 0 && t.TextAt("per", 0) == changes.PerStep {
		per = "per step"
	}
	sorted := t.Rows(rows)
	sorted.Title += ", " + per
	for r := range sorted.Len() {
		name := sorted.Column("name")
		if sorted.TextAt("kind", r) == changes.Memory {
			name.Text[r] += ": " + bytesOf(sorted.FloatAt("after_bytes", r)) + ", before " + bytesOf(sorted.FloatAt("before_bytes", r))
		} else if was := sorted.TextAt("was", r); was != "" {
			name.Text[r] = fmt.Sprintf("%s (was %s)", kernelLabel(name.Text[r]), kernelLabel(was))
		}
	}
	return sorted
}

func condensedKernels(t *table.Table) *table.Table {
	kind := &table.Column{Name: "kernel_type", Kind: table.Text}
	name := &table.Column{Name: "name", Kind: table.Text}
	sum := &table.Column{Name: "device_time", Kind: table.Micros}
	share := &table.Column{Name: "share", Kind: table.Percent}
	kernels, all := kernelTimes(t)
	for _, k := range kernels {
		kind.Text = append(kind.Text, k.kind)
		name.Text = append(name.Text, kernelLabel(k.name))
		sum.Floats = append(sum.Floats, k.us)
		share.Floats = append(share.Floats, 100*k.us/all)
	}
	return condensed(t.Name, "Kernels by device time, all ranks", sum, share, kind, name)
}

func condensedPython(t *table.Table) *table.Table {
	lines, all := pythonLines(t)
	return condensedIdleOf(t, "What Python did while the device was idle, all ranks", "python", lines, all)
}

func condensedHost(t *table.Table) *table.Table {
	list, all := hostActivities(t)
	return condensedIdleOf(t, "What the host did while the device was idle, all ranks", "host", list, all)
}

// condensedIdleOf lists idle time by what had it.
func condensedIdleOf(t *table.Table, title, what string, list []placeTime, all float64) *table.Table {
	place := &table.Column{Name: what, Kind: table.Text}
	idle := &table.Column{Name: "device_idle", Kind: table.Micros}
	share := &table.Column{Name: "share", Kind: table.Percent}
	for _, l := range list {
		place.Text = append(place.Text, l.name)
		idle.Floats = append(idle.Floats, l.us)
		share.Floats = append(share.Floats, 100*l.us/all)
	}
	return condensed(t.Name, title, idle, share, place)
}

func condensedOperators(t *table.Table) *table.Table {
	type operator struct {
		name                 string
		calls                int64
		selfCPU, cpu, device float64
		flops, rated         float64 // rated: the time that flops are of
	}
	names, groups := byKey(t, func(r int) string { return strings.TrimSpace(t.TextAt("name", r) + " " + t.TextAt("input_shapes", r)) })
	hasDevice, hasFlops := t.Column("self_device_us") != nil, t.Column("flops") != nil
	var list []operator
	for _, n := range names {
		o := operator{name: n}
		for _, r := range groups[n] {
			o.calls += t.IntAt("calls", r)
			o.selfCPU += t.FloatAt("self_cpu_us", r)
			o.cpu += t.FloatAt("total_cpu_us", r)
			o.device += t.FloatAt("self_device_us", r)
			if flops, rate := t.FloatAt("flops", r), t.FloatAt("flops_per_s", r); hasFlops && rate > 0 {
				o.flops += flops
				o.rated += flops / rate
			}
		}
		list = append(list, o)
	}
	slices.SortStableFunc(list, func(a, b operator) int {
		return cmp.Or(cmp.Compare(b.device, a.device), cmp.Compare(b.selfCPU, a.selfCPU))
	})
	calls := &table.Column{Name: "calls", Kind: table.Int}
	device := &table.Column{Name: "self_device", Kind: table.Micros}
	selfCPU := &table.Column{Name: "self_cpu", Kind: table.Micros}
	cpu := &table.Column{Name: "total_cpu", Kind: table.Micros}
	rate := &table.Column{Name: "flops_per_s", Kind: table.FlopPerS}
	name := &table.Column{Name: "operator", Kind: table.Text}
	for _, o := range list {
		calls.Ints = append(calls.Ints, o.calls)
		device.Floats = append(device.Floats, o.device)
		selfCPU.Floats = append(selfCPU.Floats, o.selfCPU)
		cpu.Floats = append(cpu.Floats, o.cpu)
		perSecond := math.NaN()
		if o.rated > 0 {
			perSecond = o.flops / o.rated
		}
		rate.Floats = append(rate.Floats, perSecond)
		name.Text = append(name.Text, o.name)
	}
	columns := []*table.Column{selfCPU, cpu, calls}
	title := "Operators by CPU time, all ranks"
	if hasDevice {
		columns = append([]*table.Column{device}, columns...)
		title = "Operators by device time, all ranks"
	}
	if hasFlops {
		columns = append(columns, rate)
	}
	return condensed(t.Name, title, append(columns, name)...)
}

// condensedFunctions are the functions by the time that is the user's to change.
func condensedFunctions(t *table.Table) *table.Table {
	type sums struct {
		calls            int64
		own, self, total float64
	}
	names, groups := byKey(t, func(r int) string { return functionText(t, r) })
	by := map[string]sums{}
	for _, n := range names {
		var s sums
		for _, r := range groups[n] {
			s.calls += t.IntAt("calls", r)
			s.own += t.FloatAt("own_us", r)
			s.self += t.FloatAt("self_us", r)
			s.total += t.FloatAt("total_us", r)
		}
		by[n] = s
	}
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(by[b].own, by[a].own), cmp.Compare(by[b].self, by[a].self))
	})
	own := &table.Column{Name: "with_library", Kind: table.Micros}
	self := &table.Column{Name: "self", Kind: table.Micros}
	total := &table.Column{Name: "total", Kind: table.Micros}
	calls := &table.Column{Name: "calls", Kind: table.Int}
	name := &table.Column{Name: "function", Kind: table.Text, Text: names}
	for _, n := range names {
		s := by[n]
		own.Floats, self.Floats = append(own.Floats, s.own), append(self.Floats, s.self)
		total.Floats, calls.Ints = append(total.Floats, s.total), append(calls.Ints, s.calls)
	}
	return condensed(t.Name, "Python functions of the main thread, all ranks", own, self, total, calls, name)
}

// condensedIdle has one row per device, a column per cause that there is.
func condensedIdle(t *table.Table) *table.Table {
	type key struct{ rank, device int64 }
	rank := &table.Column{Name: "rank", Kind: table.Int}
	device := &table.Column{Name: "device", Kind: table.Int}
	columns := map[string]*table.Column{}
	all := []*table.Column{rank, device}
	for _, c := range causes {
		columns[c.name] = &table.Column{Name: c.text, Kind: table.Micros}
		all = append(all, columns[c.name])
	}
	rows := map[key]int{}
	for r := range t.Len() {
		k := key{t.IntAt("rank", r), t.IntAt("device", r)}
		if _, ok := rows[k]; !ok {
			rows[k] = len(rank.Ints)
			rank.Ints, device.Ints = append(rank.Ints, k.rank), append(device.Ints, k.device)
			for _, c := range columns {
				c.Floats = append(c.Floats, 0)
			}
		}
		if c := columns[t.TextAt("cause", r)]; c != nil {
			c.Floats[rows[k]] += t.FloatAt("device_idle_us", r)
		}
	}
	all = slices.DeleteFunc(all, func(c *table.Column) bool { // as the chart's legend does
		return c.Kind == table.Micros && !slices.ContainsFunc(c.Floats, func(us float64) bool { return us > 0 })
	})
	return condensed(t.Name, "Why devices were idle", all...)
}

// condensedCalls are the runtime's calls by host time; operator and caller are
// those of the rank in which a call took longest.
func condensedCalls(t *table.Table) *table.Table {
	names, groups := byKey(t, func(r int) string { return t.TextAt("call", r) })
	sum := func(name, column string) (all float64) {
		for _, r := range groups[name] {
			all += t.FloatAt(column, r)
		}
		return all
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(sum(b, "total_us"), sum(a, "total_us")) })
	total := &table.Column{Name: "total", Kind: table.Micros}
	mean := &table.Column{Name: "mean", Kind: table.Micros}
	longest := &table.Column{Name: "max", Kind: table.Micros}
	drained := &table.Column{Name: "idle_after", Kind: table.Micros}
	count := &table.Column{Name: "count", Kind: table.Int}
	call := &table.Column{Name: "call", Kind: table.Text, Text: names}
	operator := &table.Column{Name: "operator", Kind: table.Text}
	caller := &table.Column{Name: "caller", Kind: table.Text}
	for _, n := range names {
		top, most := groups[n][0], 0.0
		for _, r := range groups[n] {
			most = max(most, t.FloatAt("max_us", r))
			if t.FloatAt("total_us", r) > t.FloatAt("total_us", top) {
				top = r
			}
		}
		total.Floats = append(total.Floats, sum(n, "total_us"))
		mean.Floats = append(mean.Floats, sum(n, "total_us")/sum(n, "count"))
		longest.Floats = append(longest.Floats, most)
		drained.Floats = append(drained.Floats, sum(n, "drained_us"))
		count.Ints = append(count.Ints, int64(sum(n, "count")))
		operator.Text = append(operator.Text, t.TextAt("operator", top))
		caller.Text = append(caller.Text, t.TextAt("caller", top))
	}
	columns := []*table.Column{count, total, mean, longest, drained, call, operator, caller}
	if !slices.ContainsFunc(drained.Floats, func(us float64) bool { return us > 0 }) {
		columns = slices.Delete(columns, 4, 5)
	}
	return condensed(t.Name, "Runtime calls of the host, all ranks", columns...)
}
