package kineto

import (
	"bytes"
	"strconv"
	"strings"
)

// What other tools write in the trace event format: VizTracer's calls of Python functions, and the slices of
// whoever marks what a program does (Perfetto, Chrome, Triton's Proton). A file is torch.profiler's if some event
// has one of its categories; then events without a category are its own notes. Else all complete events are ranges
// that somebody marked.

// slice is a complete event without a category.
type slice struct {
	start, dur int64
	name       Sym
	thread     uint32
}

// hold keeps the scanner's record, which has no category, until it is known what the file is.
func (w *rows) hold(s *scanner) {
	if r := &s.rec; r.hasStart && r.hasDur {
		w.slices = append(w.slices, slice{r.start, r.dur, w.sym(s, r.name), w.thread(r)})
	}
}

// settleSlices makes ranges of the slices of a file that is not torch.profiler's, and gives back how many of them
// lie on lanes of devices, which are not read: JAX's copy for a viewer has neither their streams nor their launches.
func (w *rows) settleSlices() (onDevices int) {
	held := w.slices
	w.slices = nil
	if w.torch {
		return 0
	}
	o := &w.t.Ops
	for row, class := range o.Class {
		if class == OpOther {
			o.Class[row] = OpAnnotation
		}
	}
	for _, e := range held {
		if w.devicePIDs[w.t.Threads[e.thread].PID] {
			onDevices++
			continue
		}
		o.Start, o.Dur, o.Name = append(o.Start, e.start), append(o.Dur, e.dur), append(o.Name, e.name)
		o.Class, o.External, o.Thread = append(o.Class, OpAnnotation), append(o.External, None), append(o.Thread, e.thread)
		o.Autograd, o.Backward = append(o.Autograd, None), append(o.Backward, false)
	}
	return onDevices
}

// devicePrefix is how JAX and TensorFlow call the process that stands for a device.
const devicePrefix = "/device:"

// noteDevice notes a process that stands for a device.
func (w *rows) noteDevice(r *record) {
	if string(r.name) == "process_name" && bytes.HasPrefix(r.args.label, []byte(devicePrefix)) {
		if w.devicePIDs == nil {
			w.devicePIDs = map[int64]bool{}
		}
		w.devicePIDs[r.pid] = true
	}
}

// vizTracer is the category of VizTracer's calls of functions: function entry and exit.
var vizTracer = map[string]bool{"fee": true, "FEE": true}

// functionOf is VizTracer's "function (file:line)" as torch.profiler has it, "file(line): function".
func (w *rows) functionOf(name Sym) Sym {
	if known, ok := w.functions[name]; ok {
		return known
	}
	sym := name
	if text, ok := placeOf(w.names.Text(name)); ok {
		sym = w.names.add(text)
	}
	if w.functions == nil {
		w.functions = map[Sym]Sym{}
	}
	w.functions[name] = sym
	return sym
}

// placeOf turns VizTracer's text round; ok is false for what has no file, as built-in functions.
func placeOf(text string) (place string, ok bool) {
	open := strings.Index(text, " (") // no name of a function has one
	if open < 0 || !strings.HasSuffix(text, ")") {
		return "", false
	}
	file, line, ok := cutLast(text[open+2:len(text)-1], ":")
	if _, err := strconv.ParseUint(line, 10, 31); !ok || err != nil {
		return "", false
	}
	return file + "(" + line + "): " + text[:open], true
}

// cutLast cuts a text at the last separator.
func cutLast(text, separator string) (before, after string, found bool) {
	if at := strings.LastIndex(text, separator); at >= 0 {
		return text[:at], text[at+len(separator):], true
	}
	return text, "", false
}

// noteTool says what a file is that is not torch.profiler's, and what it lacks.
func (p *parser) noteTool() {
	onDevices := p.rows.settleSlices()
	if !p.rows.torch && p.t.Ops.Len()+p.t.Python.Len() > 0 {
		p.t.From = FromSlices
	}
	switch t := p.t; {
	case onDevices > 0:
		p.warn(-1, "a copy for a viewer, of JAX or TensorFlow: its lanes of devices were not read",
			"analyse the .xplane.pb that was written beside it")
	case p.rows.torch || p.raw != nil:
	case t.Python.Len() > 0:
		p.note("a recording of VizTracer: it has calls of Python functions", "nothing is known of devices")
	case t.Ops.Len() > 0:
		p.note("no event is of torch.profiler: the slices were read as ranges of the threads", "nothing is known of devices")
	}
}

func (p *parser) note(what, lost string) {
	p.warnings = append(p.warnings, Warning{File: p.t.File, Byte: -1, What: what, Lost: lost, Note: true})
}
