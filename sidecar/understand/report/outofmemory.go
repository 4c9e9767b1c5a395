package report

import (
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

// OutOfMemory is an allocation on a device that failed, and what had the device's memory then.
type OutOfMemory struct {
	Process        int         `json:"process"`
	AtNS           int64       `json:"at_ns"`
	Device         int         `json:"device"` // the program's number of it, as in "cuda:0"
	RequestedBytes int64       `json:"requested_bytes"`
	UsableBytes    int64       `json:"usable_bytes"` // of the device, that the program may use
	FreeBytes      int64       `json:"free_bytes"`   // of them, that nobody had
	File           *int        `json:"file"`         // of the innermost line of the user's own that asked for it; null: not known
	Line           *int        `json:"line"`
	Reserved       *Reserved   `json:"reserved"`   // null: not known
	Variables      []Variable  `json:"variables"`  // most bytes first
	All            bool        `json:"all"`        // Variables are all that the functions on the stack had
	Allocators     []Allocator `json:"allocators"` // likewise; empty where no history of allocations was recorded
}

// Reserved is the memory of the device that torch's allocator had. InUse, AwaitingFree and Free add up to Bytes.
type Reserved struct {
	Bytes             int64 `json:"bytes"`
	Segments          int   `json:"segments"`
	InUseBytes        int64 `json:"in_use_bytes"`
	AwaitingFreeBytes int64 `json:"awaiting_free_bytes"` // their tensors are gone; another stream may still use them
	FreeBytes         int64 `json:"free_bytes"`
	LargestFreeBytes  int64 `json:"largest_free_bytes"` // in one piece
	ReleasableBytes   int64 `json:"releasable_bytes"`   // of Free, what empty_cache() gives back
}

// Variable is what one variable of a function on the stack had. No storage is counted twice.
type Variable struct {
	Name     string  `json:"name"`
	Kind     string  `json:"kind"` // "tensor", "parameters", "gradients", "optimizer" or "tensors"
	Function string  `json:"function"`
	File     *int    `json:"file"` // and line, at which the function was
	Line     *int    `json:"line"`
	Bytes    int64   `json:"bytes"`
	Tensors  int     `json:"tensors"`
	Shape    *string `json:"shape"` // of a single tensor
}

// Allocator is a line and what it had allocated that was in use.
type Allocator struct {
	Function string `json:"function"`
	File     *int   `json:"file"`
	Line     *int   `json:"line"`
	Bytes    int64  `json:"bytes"`
	Blocks   int    `json:"blocks"`
}

// places visits all that refers to code, in lists of its own.
func (o *OutOfMemory) places(visit func(file, line **int)) {
	visit(&o.File, &o.Line)
	o.Variables, o.Allocators = slices.Clone(o.Variables), slices.Clone(o.Allocators)
	for i := range o.Variables {
		visit(&o.Variables[i].File, &o.Variables[i].Line)
	}
	for i := range o.Allocators {
		visit(&o.Allocators[i].File, &o.Allocators[i].Line)
	}
}

// InFiles is the same of a document in which file gives the files' indices.
func (o OutOfMemory) InFiles(file func(*int) *int) OutOfMemory {
	o.places(func(f, _ **int) { *f = file(*f) })
	return o
}

// Failure is an OutOfMemory before its places are those of a document: Variables and Allocators have the places of the
// same index.
type Failure struct {
	OutOfMemory
	At                          int64            // CLOCK_MONOTONIC
	Stack                       []activity.Place // innermost first
	VariablePlaces, AllocatedAt []activity.Place
}

// Files are those of its places.
func (f *Failure) Files() (files []string) {
	for _, list := range [][]activity.Place{f.Stack, f.VariablePlaces, f.AllocatedAt} {
		for _, at := range list {
			if !slices.Contains(files, at.File) {
				files = append(files, at.File)
			}
		}
	}
	return files
}

func (b *builder) outOfMemory(failures []Failure) {
	process := b.doc.Targets[0].Process
	for i := range failures {
		f := failures[i].OutOfMemory
		f.Process, f.AtNS = process, min(max(failures[i].At-b.rec.Origin, 0), b.doc.DurationNS)
		for _, at := range failures[i].Stack {
			if b.names.origins.Own(at.File) {
				f.File, f.Line = b.placeOf(at)
				break
			}
		}
		for n := range f.Variables {
			v := &f.Variables[n]
			v.Name, v.Function = clean(v.Name), clean(v.Function)
			if v.Shape != nil {
				v.Shape = pointer(clean(*v.Shape))
			}
			v.File, v.Line = b.placeOf(failures[i].VariablePlaces[n])
		}
		for n := range f.Allocators {
			a := &f.Allocators[n]
			a.Function = clean(a.Function)
			a.File, a.Line = b.placeOf(failures[i].AllocatedAt[n])
		}
		b.doc.OutOfMemory = append(b.doc.OutOfMemory, f)
	}
}

// placeOf is a line in the document; nil and nil of what is none.
func (b *builder) placeOf(at activity.Place) (file, line *int) {
	if at.File == "" || at.Line <= 0 || at.Line > math.MaxInt32 {
		return nil, nil
	}
	b.wanted[at] = true
	return pointer(b.codes.file(at.File)), pointer(at.Line)
}

func (c *checker) outOfMemory() {
	for i := range c.d.OutOfMemory {
		f := &c.d.OutOfMemory[i]
		c.index("out_of_memory.process", f.Process, len(c.d.Processes))
		c.instant("out_of_memory.at_ns", f.AtNS)
		c.count("out_of_memory.device", f.Device)
		c.place("out_of_memory", f.File, f.Line, nil)
		for _, v := range []int64{f.RequestedBytes, f.UsableBytes, f.FreeBytes} {
			c.amount("out_of_memory", v)
		}
		if r := f.Reserved; r != nil {
			c.count("out_of_memory.reserved.segments", r.Segments)
			for _, v := range []int64{r.Bytes, r.InUseBytes, r.AwaitingFreeBytes, r.FreeBytes, r.LargestFreeBytes, r.ReleasableBytes} {
				c.amount("out_of_memory.reserved", v)
			}
		}
		for n := range f.Variables {
			v := &f.Variables[n]
			c.place("out_of_memory.variables", v.File, v.Line, nil)
			c.amount("out_of_memory.variables.bytes", v.Bytes)
			c.count("out_of_memory.variables.tensors", v.Tensors)
		}
		for n := range f.Allocators {
			a := &f.Allocators[n]
			c.place("out_of_memory.allocators", a.File, a.Line, nil)
			c.amount("out_of_memory.allocators.bytes", a.Bytes)
			c.count("out_of_memory.allocators.blocks", a.Blocks)
		}
	}
}
