package view

import (
	"cmp"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/torchtrace"
)

// The tables below sum over ranks what a terminal has no room to list rank by
// rank. They are for reading; files have the whole tables.

// condensed makes a table for display from columns already filled.
func condensed(name, title string, columns ...*torchtrace.Column) *torchtrace.Table {
	return &torchtrace.Table{Name: name, Title: title, Columns: columns}
}

func condense(t *torchtrace.Table) *torchtrace.Table {
	switch t.Name {
	case torchtrace.TableKernels:
		return condensedKernels(rowsOf{t})
	case torchtrace.TablePythonIdle:
		return condensedPython(rowsOf{t})
	case torchtrace.TableOperators:
		return condensedOperators(rowsOf{t})
	case torchtrace.TableIdle:
		return condensedIdle(rowsOf{t})
	}
	return t
}

func condensedKernels(t rowsOf) *torchtrace.Table {
	kind := &torchtrace.Column{Name: "kernel_type", Kind: torchtrace.Text}
	name := &torchtrace.Column{Name: "name", Kind: torchtrace.Text}
	sum := &torchtrace.Column{Name: "device_time", Kind: torchtrace.Micros}
	share := &torchtrace.Column{Name: "share", Kind: torchtrace.Percent}
	kernels, all := kernelTimes(t)
	for _, k := range kernels {
		kind.Text = append(kind.Text, k.kind)
		name.Text = append(name.Text, kernelLabel(k.name))
		sum.Floats = append(sum.Floats, k.us)
		share.Floats = append(share.Floats, 100*k.us/all)
	}
	return condensed(t.Name, "Kernels by device time, all ranks", sum, share, kind, name)
}

func condensedPython(t rowsOf) *torchtrace.Table {
	place := &torchtrace.Column{Name: "python", Kind: torchtrace.Text}
	idle := &torchtrace.Column{Name: "device_idle", Kind: torchtrace.Micros}
	share := &torchtrace.Column{Name: "share", Kind: torchtrace.Percent}
	lines, all := pythonLines(t)
	for _, l := range lines {
		place.Text = append(place.Text, l.name)
		idle.Floats = append(idle.Floats, l.us)
		share.Floats = append(share.Floats, 100*l.us/all)
	}
	return condensed(t.Name, "What Python did while the device was idle, all ranks", idle, share, place)
}

func condensedOperators(t rowsOf) *torchtrace.Table {
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
	calls := &torchtrace.Column{Name: "calls", Kind: torchtrace.Int}
	device := &torchtrace.Column{Name: "self_device", Kind: torchtrace.Micros}
	selfCPU := &torchtrace.Column{Name: "self_cpu", Kind: torchtrace.Micros}
	cpu := &torchtrace.Column{Name: "total_cpu", Kind: torchtrace.Micros}
	name := &torchtrace.Column{Name: "operator", Kind: torchtrace.Text}
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
func condensedIdle(t rowsOf) *torchtrace.Table {
	type key struct{ rank, stream int64 }
	rank := &torchtrace.Column{Name: "rank", Kind: torchtrace.Int}
	stream := &torchtrace.Column{Name: "stream", Kind: torchtrace.Int}
	columns := map[string]*torchtrace.Column{}
	all := []*torchtrace.Column{rank, stream}
	for _, c := range causes {
		columns[c.name] = &torchtrace.Column{Name: c.text, Kind: torchtrace.Micros}
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
