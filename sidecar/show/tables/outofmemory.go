package tables

import "github.com/omni-perf/omni-perf/sidecar/understand/report"

func (m *maker) outOfMemory() Table {
	t := Table{Name: "out_of_memory", About: "allocations on devices that failed, and how the device's memory was divided then", Columns: []Column{
		{"at_s", "when"}, {"device", "the program's number of it"}, {"requested_bytes", "what was asked for"}, {"usable_bytes", "of the device, that the program may use"},
		{"free_bytes", "of them, that nobody had"}, {"reserved_bytes", "that torch's allocator had"}, {"segments", "in so many pieces"}, {"in_use_bytes", "of that, of tensors"},
		{"awaiting_free_bytes", "of that, of tensors that are gone, which another stream may still use"}, {"reserved_free_bytes", "of that, of nobody"},
		{"largest_free_bytes", "the largest piece of that"}, {"releasable_bytes", "what empty_cache() would have given back"},
		{"file", "of the innermost line of your own that asked for it"}, {"line", "its number"}, textColumn, {"process", "whose allocation it was"}}}
	for i := range m.OutOfMemory {
		o := &m.OutOfMemory[i]
		row := []any{report.Seconds(o.AtNS), o.Device, int(o.RequestedBytes), int(o.UsableBytes), int(o.FreeBytes)}
		if r := o.Reserved; r != nil {
			row = append(row, int(r.Bytes), r.Segments, int(r.InUseBytes), int(r.AwaitingFreeBytes), int(r.FreeBytes), int(r.LargestFreeBytes), int(r.ReleasableBytes))
		} else {
			row = append(row, nil, nil, nil, nil, nil, nil, nil)
		}
		t.Rows = append(t.Rows, concat(row, m.place(o.File, o.Line, nil)[:2], []any{m.text(o.File, o.Line), m.process(o.Process)}))
	}
	return t
}

func (m *maker) deviceMemory() Table {
	t := Table{Name: "device_memory", About: "what had a device's memory when an allocation failed: variables of the functions on the stack, and lines that had allocated it", Columns: concat([]Column{
		{"failure", "row of out_of_memory, from 0"}, {"by", "variable or line: each adds up what was in use, as far as it is known"}, {"name", "of the variable"},
		{"kind", "tensor, parameters, gradients, optimizer or tensors"}, {"bytes", "that it had"}, {"tensors", "in how many tensors, or blocks of memory"}, {"shape", "of a single tensor"}},
		[]Column{placeColumns[0], placeColumns[1], {"function", "that has the variable, or is at the line"}, textColumn})}
	for i := range m.OutOfMemory {
		o := &m.OutOfMemory[i]
		for _, v := range o.Variables {
			t.Rows = append(t.Rows, concat([]any{i, "variable", v.Name, v.Kind, int(v.Bytes), v.Tensors, optional(v.Shape)}, m.place(v.File, v.Line, nil)[:2], []any{v.Function, m.text(v.File, v.Line)}))
		}
		for _, a := range o.Allocators {
			t.Rows = append(t.Rows, concat([]any{i, "line", nil, nil, int(a.Bytes), a.Blocks, nil}, m.place(a.File, a.Line, nil)[:2], []any{a.Function, m.text(a.File, a.Line)}))
		}
	}
	return t
}
