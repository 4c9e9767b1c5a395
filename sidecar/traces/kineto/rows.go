package kineto

import (
	"math"
	"slices"
	"strconv"
)

// rows files records into the tables of a trace.
type rows struct {
	t       *Trace
	names   *Symbols
	opts    *Options
	classes []class // by Sym of the category; classUnknown: not looked up yet
	threads map[[2]int64]uint32
	last    [2]int64 // pid and tid of the last record, and its thread
	lastID  uint32
	// expected returns how many rows a table would have in the end, given
	// how many it has now, if the file went on as before.
	expected func(now int) int
	// Devices that events name, and the events that name none.
	named   map[int32]bool
	unnamed []uint32
	// inputs says which operators' inputs are kept, by Sym of the name:
	// 0 not asked yet, 1 no, 2 yes.
	inputs []uint8
	spaced []byte // for the next list
	pairs  pairs
	// Of files of other tools.
	ended      bool // an empty object, with which TensorFlow ends its list, was there
	torch      bool // some event has a category of torch.profiler
	slices     []slice
	devicePIDs map[int64]bool
	functions  map[Sym]Sym // VizTracer's names → torch.profiler's
}

// class of a category.
type class uint8

const (
	classUnknown class = iota
	classIgnored
	classUnnamed // no category
	classFunction
	classKernel
	classMemcpy
	classMemset
	classMTIA
	classCall
	classOp
	classAnnotation
	classGPUAnnotation
	classSync
	classPython
	classOther
)

var classOf = map[string]class{
	"kernel": classKernel, "Kernel": classKernel,
	"gpu_memcpy": classMemcpy, "Memcpy": classMemcpy,
	"gpu_memset": classMemset, "Memset": classMemset,
	"mtia_ccp_events": classMTIA,
	"cuda_runtime":    classCall, "mtia_runtime": classCall,
	"cuda_driver": classCall, "hip_runtime": classCall, "Runtime": classCall,
	"xpu_runtime": classCall, "privateuse1_runtime": classCall, "privateuse1_driver": classCall,
	"cpu_op": classOp, "Operator": classOp,
	"user_annotation":     classAnnotation,
	"gpu_user_annotation": classGPUAnnotation,
	"cuda_sync":           classSync,
	"python_function":     classPython,
	"Trace":               classIgnored,
}

func newRows(t *Trace, opts *Options, expected func(int) int) *rows {
	t.Names = newSymbols()
	t.Earliest = math.MaxInt64
	t.Collectives = make([]Collective, 1)
	if opts.Frame {
		t.Frame = &Frame{}
	}
	return &rows{
		t: t, names: t.Names, opts: opts, expected: expected,
		threads: map[[2]int64]uint32{}, last: [2]int64{None, None},
		named: map[int32]bool{},
	}
}

// add files the scanner's record; s takes the faults of its values.
func (w *rows) add(s *scanner) {
	r := &s.rec
	index := uint32(w.t.Records)
	w.t.Records++
	if r.hasStart && r.phase != 'M' && r.start < w.t.Earliest {
		w.t.Earliest = r.start
	}
	switch r.phase {
	case 'X':
		w.complete(s, index)
	case 'i', 'I', 'n':
		if r.args.hasBytes && string(r.name) == "[memory]" {
			w.memory(r)
		}
	case 'M':
		w.metadata(r)
	case 'B':
		if !w.pairs.begin(s, w.thread(r), index) {
			s.fault(faultPair, s.at)
		}
	case 'E':
		w.end(s)
	case 0:
		if w.ended || !r.isEmpty() { // some tools end the list with an empty element
			s.fault(faultPhase, s.at)
			break
		}
		w.ended = true
	}
}

// isEmpty reports whether an element has nothing of an event.
func (r *record) isEmpty() bool { return len(r.name) == 0 && len(r.cat) == 0 && !r.hasStart }

func (w *rows) sym(s *scanner, raw []byte) Sym {
	sym, damage := w.names.intern(raw)
	if damage != "" {
		f := faultEscape
		if damage == damageUTF8 {
			f = faultUTF8
		} else if damage == damageControl {
			f = faultControl
		}
		s.fault(f, s.where(raw))
	}
	return sym
}

// class looks a category up once per distinct text.
func (w *rows) class(s *scanner, cat []byte) class {
	sym := int(w.sym(s, cat))
	if sym < len(w.classes) && w.classes[sym] != classUnknown {
		return w.classes[sym]
	}
	if grow := sym + 1 - len(w.classes); grow > 0 {
		w.classes = append(w.classes, make([]class, grow)...)
	}
	c, known := classOf[w.names.Text(Sym(sym))]
	switch {
	case sym == 0:
		c = classUnnamed
	case known:
		w.torch = true
	case vizTracer[w.names.Text(Sym(sym))]:
		c = classFunction
	default:
		c = classOther
	}
	w.classes[sym] = c
	return c
}

func (w *rows) thread(r *record) uint32 {
	key := [2]int64{r.pid, r.tid}
	if key == w.last {
		return w.lastID
	}
	id, ok := w.threads[key]
	if !ok {
		id = uint32(len(w.t.Threads))
		w.threads[key] = id
		w.t.Threads = append(w.t.Threads, Thread{PID: r.pid, TID: r.tid})
	}
	w.last, w.lastID = key, id
	return id
}

func (w *rows) metadata(r *record) {
	w.noteDevice(r)
	if string(r.name) == "thread_name" && len(r.args.label) > 0 {
		label, _ := unescape(string(r.args.label))
		label, _ = repairText(label)
		w.t.Threads[w.thread(r)].Name = label
	}
}

// complete files an event with start and duration.
func (w *rows) complete(s *scanner, index uint32) {
	r := &s.rec
	c := w.class(s, r.cat)
	if c == classIgnored || (c == classPython || c == classFunction) && w.opts.SkipPython {
		return
	}
	if c == classUnnamed {
		w.hold(s)
		return
	}
	if !r.hasStart || !r.hasDur {
		s.fault(faultNoTime, s.at)
		return
	}
	if r.dur < 0 {
		s.fault(faultNegative, s.at)
	}
	name := w.sym(s, r.name)
	switch c {
	case classKernel, classMemcpy, classMemset, classMTIA:
		w.device(s, DeviceClass(c-classKernel), name)
	case classCall:
		w.call(r, name)
	case classPython:
		w.python(r, name)
	case classFunction:
		w.python(r, w.functionOf(name))
	default:
		w.op(s, c, name)
	}
	if w.t.Frame != nil {
		w.t.Frame.add(w.t, r, c, name, index)
	}
}

func (w *rows) device(s *scanner, c DeviceClass, name Sym) {
	r, d := &s.rec, &w.t.Device
	a := &r.args
	if n := w.growth(len(d.Start), cap(d.Start)); n > 0 {
		d.Start, d.Dur = slices.Grow(d.Start, n), slices.Grow(d.Dur, n)
		d.Name, d.Class = slices.Grow(d.Name, n), slices.Grow(d.Class, n)
		d.Stream, d.Correlation = slices.Grow(d.Stream, n), slices.Grow(d.Correlation, n)
		d.External, d.Thread = slices.Grow(d.External, n), slices.Grow(d.Thread, n)
		d.Collective, d.GBps = slices.Grow(d.Collective, n), slices.Grow(d.GBps, n)
		d.Bytes, d.Device = slices.Grow(d.Bytes, n), slices.Grow(d.Device, n)
	}
	d.Start, d.Dur = append(d.Start, r.start), append(d.Dur, r.dur)
	d.Name, d.Class = append(d.Name, name), append(d.Class, c)
	stream := a.stream
	if stream == None {
		stream = r.tid
	}
	d.Stream = append(d.Stream, stream)
	d.Device = append(d.Device, w.deviceOf(r, len(d.Device)))
	d.Correlation, d.External = append(d.Correlation, a.correlation), append(d.External, a.external)
	d.Thread = append(d.Thread, w.thread(r))
	d.Collective = append(d.Collective, w.collective(s))
	gbps := math.NaN()
	if a.gbps != nil {
		if v, err := strconv.ParseFloat(string(unquote(a.gbps)), 64); err == nil {
			gbps = v
		}
	}
	d.GBps, d.Bytes = append(d.GBps, gbps), append(d.Bytes, a.bytes)
}

// deviceOf is the device a record names; else its process number, which Kineto
// sets to the device's.
func (w *rows) deviceOf(r *record, row int) int32 {
	if r.args.device == None {
		w.unnamed = append(w.unnamed, uint32(row))
		return int32(r.pid)
	}
	device := int32(r.args.device)
	if !w.named[device] {
		w.named[device] = true
	}
	return device
}

// settleDevices gives events that name no device the file's only one, if there
// is one.
func (w *rows) settleDevices() {
	if len(w.named) != 1 {
		return
	}
	for only := range w.named {
		for _, row := range w.unnamed {
			w.t.Device.Device[row] = only
		}
	}
}

func (w *rows) collective(s *scanner) uint32 {
	a := &s.rec.args
	if a.collective == nil && a.group == nil {
		return 0
	}
	w.t.Collectives = append(w.t.Collectives, Collective{
		Name: w.sym(s, a.collective), Dtype: w.sym(s, a.dtype),
		Group: w.sym(s, a.group), GroupRanks: w.sym(s, a.groupRanks),
		GroupSize: a.groupSize, InNelems: a.inMsg, OutNelems: a.outMsg, SequenceNum: a.sequence,
	})
	return uint32(len(w.t.Collectives) - 1)
}

func (w *rows) call(r *record, name Sym) {
	c := &w.t.Calls
	if n := w.growth(len(c.Start), cap(c.Start)); n > 0 {
		c.Start, c.Dur = slices.Grow(c.Start, n), slices.Grow(c.Dur, n)
		c.Name, c.Correlation = slices.Grow(c.Name, n), slices.Grow(c.Correlation, n)
		c.External, c.Thread = slices.Grow(c.External, n), slices.Grow(c.Thread, n)
	}
	c.Start, c.Dur = append(c.Start, r.start), append(c.Dur, r.dur)
	c.Name, c.Correlation = append(c.Name, name), append(c.Correlation, r.args.correlation)
	c.External, c.Thread = append(c.External, r.args.external), append(c.Thread, w.thread(r))
}

func (w *rows) python(r *record, name Sym) {
	p := &w.t.Python
	if n := w.growth(len(p.Start), cap(p.Start)); n > 0 {
		p.Start, p.Dur = slices.Grow(p.Start, n), slices.Grow(p.Dur, n)
		p.Name, p.Thread = slices.Grow(p.Name, n), slices.Grow(p.Thread, n)
	}
	p.Start, p.Dur = append(p.Start, r.start), append(p.Dur, r.dur)
	p.Name, p.Thread = append(p.Name, name), append(p.Thread, w.thread(r))
}

var opClassOf = [...]OpClass{
	classOp: OpCPU, classAnnotation: OpAnnotation, classGPUAnnotation: OpGPUAnnotation,
	classSync: OpSync, classOther: OpOther,
}

func (w *rows) op(s *scanner, c class, name Sym) {
	r, o := &s.rec, &w.t.Ops
	a := &r.args
	if n := w.growth(len(o.Start), cap(o.Start)); n > 0 {
		o.Start, o.Dur = slices.Grow(o.Start, n), slices.Grow(o.Dur, n)
		o.Name, o.Class = slices.Grow(o.Name, n), slices.Grow(o.Class, n)
		o.External, o.Thread = slices.Grow(o.External, n), slices.Grow(o.Thread, n)
		o.Autograd, o.Backward = slices.Grow(o.Autograd, n), slices.Grow(o.Backward, n)
	}
	row := uint32(len(o.Start))
	o.Start, o.Dur = append(o.Start, r.start), append(o.Dur, r.dur)
	o.Name, o.Class = append(o.Name, name), append(o.Class, opClassOf[c])
	o.External, o.Thread = append(o.External, a.external), append(o.Thread, w.thread(r))
	o.Autograd, o.Backward = append(o.Autograd, a.autograd), append(o.Backward, a.forward > 0)
	if a.dims != nil && w.keepsInputs(name) {
		o.Inputs = append(o.Inputs, OpInputs{row, w.list(s, a.dims), w.list(s, a.concrete), w.list(s, a.types)})
	}
	if len(a.hierarchy) > 0 {
		if o.Hierarchy == nil {
			o.Hierarchy = map[uint32]Sym{}
		}
		o.Hierarchy[row] = w.sym(s, a.hierarchy)
	}
	if len(a.stack) > 0 {
		if o.Stacks == nil {
			o.Stacks = map[uint32]Sym{}
		}
		o.Stacks[row] = w.sym(s, a.stack)
	}
	if a.flops != nil {
		if v, err := strconv.ParseFloat(string(unquote(a.flops)), 64); err == nil {
			if o.Flops == nil {
				o.Flops = map[uint32]float64{}
			}
			o.Flops[row] = v
		}
	}
}

// list is the text of a JSON list as torch writes it, however the file was indented since: equal lists
// are one Sym.
func (w *rows) list(s *scanner, raw []byte) Sym {
	w.spaced = spaced(w.spaced[:0], raw)
	return w.sym(s, w.spaced)
}

// spaced appends a JSON text with a blank after each comma and no other white space outside strings.
func spaced(to, raw []byte) []byte {
	inString, escaped := false, false
	for _, c := range raw {
		switch {
		case inString:
			to = append(to, c)
			inString = escaped || c != '"'
			escaped = !escaped && c == '\\'
		case c == ' ', c == '\n', c == '\r', c == '\t':
		case c == ',':
			to = append(to, ',', ' ')
		default:
			to = append(to, c)
			inString = c == '"'
		}
	}
	return to
}

// keepsInputs asks Options.Inputs once per operator's name.
func (w *rows) keepsInputs(name Sym) bool {
	if w.opts.Inputs == nil {
		return false
	}
	if grow := int(name) + 1 - len(w.inputs); grow > 0 {
		w.inputs = append(w.inputs, make([]uint8, grow)...)
	}
	if w.inputs[name] == 0 {
		w.inputs[name] = 1
		if w.opts.Inputs(w.names.Text(name)) {
			w.inputs[name] = 2
		}
	}
	return w.inputs[name] == 2
}

func (w *rows) memory(r *record) {
	m, a := &w.t.Memory, &r.args
	if !r.hasStart {
		return
	}
	if n := w.growth(len(m.Time), cap(m.Time)); n > 0 {
		m.Time, m.Bytes = slices.Grow(m.Time, n), slices.Grow(m.Bytes, n)
		m.Allocated, m.Reserved = slices.Grow(m.Allocated, n), slices.Grow(m.Reserved, n)
		m.Addr, m.Thread = slices.Grow(m.Addr, n), slices.Grow(m.Thread, n)
		m.DeviceType, m.DeviceID = slices.Grow(m.DeviceType, n), slices.Grow(m.DeviceID, n)
	}
	m.Time, m.Bytes = append(m.Time, r.start), append(m.Bytes, a.memoryDelta)
	m.Allocated, m.Reserved = append(m.Allocated, a.allocated), append(m.Reserved, a.reserved)
	m.Addr, m.Thread = append(m.Addr, a.addr), append(m.Thread, w.thread(r))
	m.DeviceType, m.DeviceID = append(m.DeviceType, int8(a.deviceType)), append(m.DeviceID, int16(a.deviceID))
}

// growth is by how many rows a full table should grow; 0 if it is not full.
// Files list one kind of record after the other, so the share of the file read
// so far only bounds the estimate.
func (w *rows) growth(length, capacity int) int {
	if length < capacity {
		return 0
	}
	return max(256, min(length/2, w.expected(length)-length))
}

// trim gives back what the tables reserved in vain.
func (w *rows) trim() {
	d, c, o, p, m := &w.t.Device, &w.t.Calls, &w.t.Ops, &w.t.Python, &w.t.Memory
	trim(&d.Start, &d.Dur, &d.Stream, &d.Correlation, &d.External, &d.Bytes)
	trim(&c.Start, &c.Dur, &c.Correlation, &c.External)
	trim(&o.Start, &o.Dur, &o.External, &o.Autograd)
	trim(&o.Backward)
	trim(&p.Start, &p.Dur)
	trim(&m.Time, &m.Bytes, &m.Allocated, &m.Reserved, &m.Addr)
	trim(&d.Name, &c.Name, &o.Name, &p.Name)
	trim(&d.Thread, &d.Collective, &c.Thread, &o.Thread, &p.Thread, &m.Thread)
	trim(&d.GBps)
	trim(&d.Device)
	trim(&o.Inputs)
}

func trim[T any](columns ...*[]T) {
	for _, column := range columns {
		if s := *column; cap(s)-len(s) > len(s)/8 {
			*column = append(make([]T, 0, len(s)), s...)
		}
	}
}
