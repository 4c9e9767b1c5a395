package chart

import (
	"fmt"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/labels"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

const (
	maxVariables  = 8
	maxAllocators = 8
)

// outOfMemoryTables divide a device's memory as it was when an allocation failed, the last one of the recording.
func outOfMemoryTables(r *report.View) []table {
	if len(r.OutOfMemory) == 0 {
		return nil
	}
	o := &r.OutOfMemory[len(r.OutOfMemory)-1]
	asked := bytesOf(o.RequestedBytes) + " asked for"
	if o.File != nil && o.Line != nil {
		asked += " in " + linePlace(r, *o.File, *o.Line)
	}
	note := labels.Join(asked, fmt.Sprintf("%s free of %s", bytesOf(o.FreeBytes), bytesOf(o.UsableBytes)))
	if n := len(r.OutOfMemory); n > 1 {
		note = labels.Join(fmt.Sprintf("the last of %d failures", n), note)
	}
	d := division{whole: o.UsableBytes}
	d.heading, d.note = fmt.Sprintf("Out of memory: what had the memory of GPU %d", o.Device), note
	named := int64(0)
	for i := range o.Variables {
		v := &o.Variables[i]
		named += v.Bytes
		if i < maxVariables {
			d.add(holder(v), v.Bytes, row{hint: ofTensors(v), place: placeOf(r, v.File, v.Line), code: words.Clean(v.Function, words.MaxName)})
		}
	}
	if left := o.Variables[min(len(o.Variables), maxVariables):]; len(left) > 0 {
		bytes := int64(0)
		for i := range left {
			bytes += left[i].Bytes
		}
		d.add(words.Plural(len(left), "further variable", "further variables"), bytes, row{rest: true})
	}
	if s := o.Reserved; s != nil {
		d.add("in no variable of these functions", s.InUseBytes-named, row{hint: "activations that the backward pass needs, and what other objects have"})
		d.add("of tensors that are gone, on another stream", s.AwaitingFreeBytes, row{})
		d.add("free in what torch has reserved", s.FreeBytes, row{hint: freeHint(o), keeps: true})
		d.add("of other programs and the driver", o.UsableBytes-o.FreeBytes-s.Bytes, row{})
	}
	d.add("free", o.FreeBytes, row{})
	tables := []table{d.table}
	if o.Reserved != nil && len(o.Allocators) > 0 {
		by := division{whole: o.Reserved.InUseBytes}
		by.heading, by.note = "Out of memory: lines that had allocated what was in use", bytesOf(o.Reserved.InUseBytes)+" in all"
		for i := range o.Allocators[:min(len(o.Allocators), maxAllocators)] {
			a := &o.Allocators[i]
			rw := row{hint: words.Plural(a.Blocks, "block", "blocks")}
			name := words.Clean(a.Function, 60)
			if a.File != nil && a.Line != nil {
				name, rw.code = linePlace(r, *a.File, *a.Line), labels.Code(r.Text(*a.File, *a.Line))
			}
			by.add(name, a.Bytes, rw)
		}
		tables = append(tables, by.table)
	}
	return asTheyAre(tables...)
}

// division is a table of bytes that divide a whole.
type division struct {
	table
	whole int64
}

func (d *division) add(name string, bytes int64, rw row) {
	if bytes <= 0 || d.whole <= 0 {
		return
	}
	rw.name, rw.figure, rw.share = name, bytesOf(bytes), min(1, float64(bytes)/float64(d.whole))
	rw.aside = words.Percent(rw.share)
	d.rows = append(d.rows, rw)
}

func bytesOf(n int64) string { return words.Quantity(float64(n), "B") }

// holder names what a variable had.
func holder(v *report.Variable) string {
	name := words.Clean(v.Name, 60)
	switch v.Kind {
	case "parameters":
		return name + ": parameters"
	case "gradients":
		return name + ": gradients"
	case "optimizer":
		return name + ": the optimizer's state"
	}
	return name
}

func ofTensors(v *report.Variable) string {
	if v.Shape != nil {
		return words.Clean(*v.Shape, 60)
	}
	return words.Plural(v.Tensors, "tensor", "tensors")
}

// freeHint says why memory that torch has reserved was not enough.
func freeHint(o *report.OutOfMemory) string {
	hint := fmt.Sprintf("in %s, at most %s in one piece", words.Plural(o.Reserved.Segments, "segment", "segments"), bytesOf(o.Reserved.LargestFreeBytes))
	if o.Reserved.FreeBytes+o.FreeBytes >= o.RequestedBytes {
		hint += ": enough but for its pieces, against which PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True helps"
	}
	return hint
}
