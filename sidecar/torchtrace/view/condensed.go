package view

import (
	"cmp"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/torchtrace/analyses"
	"github.com/omni-perf/omni-perf/sidecar/torchtrace/table"
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
		return condensedKernels(rowsOf{t})
	case analyses.TablePythonIdle:
		return condensedPython(rowsOf{t})
	case analyses.TableOperators:
		return condensedOperators(rowsOf{t})
	case analyses.TableIdle:
		return condensedIdle(rowsOf{t})
	}
	return t
}

func condensedKernels(t rowsOf) *table.Table {
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

func condensedPython(t rowsOf) *table.Table {
	place := &table.Column{Name: "python", Kind: table.Text}
	idle := &table.Column{Name: "device_idle", Kind: table.Micros}
	share := &table.Column{Name: "share", Kind: table.Percent}
	lines, all := pythonLines(t)
	for _, l := range lines {
		place.Text = append(place.Text, l.name)
		idle.Floats = append(idle.Floats, l.us)
		share.Floats = append(share.Floats, 100*l.us/all)
	}
	return condensed(t.Name, "What Python did while the device was idle, all ranks", idle, share, place)
}

func condensedOperators(t rowsOf) *table.Table {
	type operator struct {
		name, shapes         string
		calls                int64
		selfCPU, cpu, device float64
	}
	names, groups := byKey(t, func(r int) string { return t.text("name", r) + "\x00" + t.text("input_shapes", r) })
	var list []operator
	for _, n := range names {
		var o operator
		for _, r := range groups[n] {
			o.name, o.shapes = t.text("name", r), t.text("input_shapes", r)
			o.calls += t.int("calls", r)
			o.selfCPU += t.float("self_cpu_us", r)
			o.cpu += t.float("total_cpu_us", r)
			o.device += t.float("self_device_us", r)
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
	name := &table.Column{Name: "operator", Kind: table.Text}
	for _, o := range list {
		calls.Ints = append(calls.Ints, o.calls)
		device.Floats = append(device.Floats, o.device)
		selfCPU.Floats = append(selfCPU.Floats, o.selfCPU)
		cpu.Floats = append(cpu.Floats, o.cpu)
		if o.shapes != "" {
			o.name += " " + o.shapes
		}
		name.Text = append(name.Text, o.name)
	}
	return condensed(t.Name, "Operators by device time, all ranks", device, selfCPU, cpu, calls, name)
}

// condensedIdle has one row per stream, a column per cause.
func condensedIdle(t rowsOf) *table.Table {
	type key struct{ rank, stream int64 }
	rank := &table.Column{Name: "rank", Kind: table.Int}
	stream := &table.Column{Name: "stream", Kind: table.Int}
	columns := map[string]*table.Column{}
	all := []*table.Column{rank, stream}
	for _, c := range causes {
		columns[c.name] = &table.Column{Name: c.text, Kind: table.Micros}
		all = append(all, columns[c.name])
	}
	rows := map[key]int{}
	for r := range t.Len() {
		k := key{t.int("rank", r), t.int("stream", r)}
		if _, ok := rows[k]; !ok {
			rows[k] = len(rank.Ints)
			rank.Ints, stream.Ints = append(rank.Ints, k.rank), append(stream.Ints, k.stream)
			for _, c := range columns {
				c.Floats = append(c.Floats, 0)
			}
		}
		if c := columns[t.text("idle_category", r)]; c != nil {
			c.Floats[rows[k]] += t.float("idle_time_us", r)
		}
	}
	return condensed(t.Name, t.Title, all...)
}
