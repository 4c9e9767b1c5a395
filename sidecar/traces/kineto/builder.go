package kineto

import (
	"math"
	"strings"
)

// Builder makes a trace of what another tool recorded. Not safe for concurrent use.
type Builder struct {
	t       *Trace
	pid     int64
	syms    map[string]Sym
	threads map[[2]int64]uint32
}

// DeviceRow is a kernel, copy or fill of a Builder's trace.
type DeviceRow struct {
	Start, End          int64 // ns
	Name                Sym
	Class               DeviceClass
	Device              int32
	Stream, Correlation int64 // None: it has none
	Bytes               int64 // copied or set; 0 if not recorded
}

// HostRow is something that a thread did.
type HostRow struct {
	Start, End  int64 // ns
	Name        Sym
	Thread      uint32
	Correlation int64 // of a runtime call; None if it has none
}

// NewBuilder begins a trace of the process with a number, -1 where it is not known, on a host, "" likewise.
func NewBuilder(file string, opts Options, pid int64, host string) *Builder {
	t := &Trace{File: file, From: FromOther, Names: newSymbols(), Earliest: math.MaxInt64, Collectives: make([]Collective, 1), Meta: Meta{Host: host}}
	if opts.Frame {
		t.Frame = &Frame{}
	}
	return &Builder{t: t, pid: pid, syms: map[string]Sym{"": 0}, threads: map[[2]int64]uint32{}}
}

// Text interns a text.
func (b *Builder) Text(text string) Sym {
	sym, ok := b.syms[text]
	if !ok {
		clean, _ := repairText(text)
		sym = b.t.Names.add(clean)
		b.syms[strings.Clone(text)] = sym
	}
	return sym
}

// Thread is the thread of a process with a number.
func (b *Builder) Thread(pid, tid int64) uint32 {
	key := [2]int64{pid, tid}
	id, ok := b.threads[key]
	if !ok {
		id = uint32(len(b.t.Threads))
		b.threads[key] = id
		b.t.Threads = append(b.t.Threads, Thread{PID: pid, TID: tid})
	}
	return id
}

// NameThread gives a thread its name.
func (b *Builder) NameThread(thread uint32, name string) {
	b.t.Threads[thread].Name, _ = repairText(name)
}

// Meta is what the trace says about itself, to be filled in.
func (b *Builder) Meta() *Meta { return &b.t.Meta }

// Device adds something that ran on a device.
func (b *Builder) Device(r DeviceRow) {
	d := &b.t.Device
	dur, gbps := b.count(r.Start, r.End), math.NaN()
	if r.Class != ClassKernel && r.Bytes > 0 && dur > 0 {
		gbps = float64(r.Bytes) / float64(dur) // bytes a nanosecond, as Kineto has it
	}
	d.Start, d.Dur, d.Name, d.Class = append(d.Start, r.Start), append(d.Dur, dur), append(d.Name, r.Name), append(d.Class, r.Class)
	d.Device, d.Stream, d.Correlation = append(d.Device, r.Device), append(d.Stream, r.Stream), append(d.Correlation, r.Correlation)
	d.External, d.Collective = append(d.External, None), append(d.Collective, 0)
	d.Thread = append(d.Thread, b.Thread(int64(r.Device), r.Stream))
	d.GBps, d.Bytes = append(d.GBps, gbps), append(d.Bytes, r.Bytes)
	b.frame(FrameDevice, d.Len()-1, r.Start, dur, r.Name, r.Stream, r.Correlation)
}

// Call adds a call of the device's runtime.
func (b *Builder) Call(r HostRow) {
	c := &b.t.Calls
	dur := b.count(r.Start, r.End)
	c.Start, c.Dur, c.Name = append(c.Start, r.Start), append(c.Dur, dur), append(c.Name, r.Name)
	c.Correlation, c.External, c.Thread = append(c.Correlation, r.Correlation), append(c.External, None), append(c.Thread, r.Thread)
	b.frame(FrameCall, c.Len()-1, r.Start, dur, r.Name, None, r.Correlation)
}

// Annotation adds a range that the program's author marked.
func (b *Builder) Annotation(r HostRow) {
	o := &b.t.Ops
	o.Start, o.Dur, o.Name = append(o.Start, r.Start), append(o.Dur, b.count(r.Start, r.End)), append(o.Name, r.Name)
	o.Class, o.External, o.Thread = append(o.Class, OpAnnotation), append(o.External, None), append(o.Thread, r.Thread)
	o.Autograd, o.Backward = append(o.Autograd, None), append(o.Backward, false)
}

// Python adds a call of a Python function, whose name is "file(line): function" where it has a file.
func (b *Builder) Python(r HostRow) {
	p := &b.t.Python
	p.Start, p.Dur = append(p.Start, r.Start), append(p.Dur, b.count(r.Start, r.End))
	p.Name, p.Thread = append(p.Name, r.Name), append(p.Thread, r.Thread)
}

// count counts an event and returns its duration, 0 where it would be negative or beyond 64 bits.
func (b *Builder) count(start, end int64) (dur int64) {
	b.t.Records++
	b.t.Earliest = min(b.t.Earliest, start)
	if dur = end - start; end < start || dur < 0 {
		return 0
	}
	return dur
}

// frame notes an event for HolisticTraceAnalysis's rules.
func (b *Builder) frame(kind FrameKind, row int, start, dur int64, name Sym, stream, correlation int64) {
	if b.t.Frame == nil {
		return
	}
	f := FrameRow{Start: start, Dur: dur, Index: uint32(b.t.Records - 1), Name: name, Kind: kind, Row: int32(row), Stream: -1, Correlation: -1}
	if stream != None {
		f.Stream = stream
	}
	if correlation != None {
		f.Correlation = correlation
	}
	b.t.Frame.Rows = append(b.t.Frame.Rows, f)
}

// Done is the trace.
func (b *Builder) Done() *Trace {
	b.t.describe()
	if b.pid >= 0 {
		b.t.Process.PID = b.pid
	}
	return b.t
}
