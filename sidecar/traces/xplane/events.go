package xplane

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
)

// sinceEpoch tells apart lines that count from the epoch from those that count from the profiler's start: no
// profile lasts three years.
const sinceEpoch = 100_000_000_000_000_000 // ns

// environment reads when the profiler started.
func (r *reader) environment(p *plane) {
	p.each(planeStats, func(message []byte) {
		if name, number, _ := p.statOf(message); name == "profile_start_time" && number > 0 {
			r.begin = number
		}
	})
}

// each visits the events of a line.
func (r *reader) each(p *plane, l *line, visit func(event)) {
	fields(l.message, func(number protowire.Number, v value) {
		if number != lineEvents || r.ctx.Err() != nil || !r.events.Next() {
			return
		}
		if e := p.event(l, v.bytes); e.known {
			visit(e)
		}
	})
}

// line reads a line of the plane; what counts from the epoch has no other base.
func (r *reader) line(p *plane, message []byte) *line {
	l := p.line(message)
	r.absolute = r.absolute || l.start >= sinceEpoch
	return &l
}

// stream is how lines that are a GPU's streams are called: "Stream #13(Compute)". Other lines are made from these.
var stream = regexp.MustCompile(`^Stream #(\d{1,18})`)

// xlaOps is the line of a TPU that has what its core ran. Other lines are its modules, steps, and copies beside it.
const xlaOps = "XLA Ops"

// device reads a device's plane.
func (r *reader) device(p *plane, device int32, isTPU bool) {
	p.each(planeLines, func(message []byte) {
		l := r.line(p, message)
		number := int64(0)
		if m := stream.FindStringSubmatch(l.name); !isTPU && m != nil {
			number, _ = strconv.ParseInt(m[1], 10, 64) // 18 digits fit
		} else if !isTPU || l.name != xlaOps {
			return
		}
		if !isTPU {
			r.each(p, l, func(e event) { r.ran(e, device, number) })
			return
		}
		var ran []event
		r.each(p, l, func(e event) { ran = append(ran, e) })
		for _, e := range flat(ran) {
			r.ran(e, device, number)
		}
	})
}

// copies are XLA's names of copies by the names that Kineto gives them.
var copies = map[string]string{
	"MemcpyH2D": "Memcpy HtoD", "MemcpyD2H": "Memcpy DtoH", "MemcpyD2D": "Memcpy DtoD", "MemcpyP2P": "Memcpy PtoP",
	"CopyHostToDevice": "Memcpy HtoD", "CopyDeviceToHost": "Memcpy DtoH", "CopyDeviceToDevice": "Memcpy DtoD",
}

// sizeOf is the size in the details of a copy or a fill: "kind_src:pinned kind_dst:device size:4096 dest:0 async:1".
var sizeOf = regexp.MustCompile(`\b(?:size|num_bytes):(\d{1,18})\b`)

func (r *reader) ran(e event, device int32, number int64) {
	name, class := strings.TrimSuffix(e.name, ".kd"), kineto.ClassKernel // kernel descriptor
	known, isCopy := copies[e.name]
	switch {
	case isCopy:
		name, class = known, kineto.ClassMemcpy
	case e.copied:
		class = kineto.ClassMemcpy
	case e.filled:
		class = kineto.ClassMemset
	}
	row := kineto.DeviceRow{Start: e.start, End: e.end, Name: r.b.Text(name), Class: class, Device: device, Stream: number, Correlation: kineto.None}
	if e.correlated && e.correlation != 0 {
		row.Correlation = e.correlation
	}
	if m := sizeOf.FindStringSubmatch(e.details); m != nil {
		row.Bytes, _ = strconv.ParseInt(m[1], 10, 64) // 18 digits fit
	}
	r.b.Device(row)
}

// flat makes of operations that contain others, as a loop contains what it runs, what they did outside these, so that
// no time counts twice.
func flat(nested []event) (pieces []event) {
	slices.SortStableFunc(nested, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
	var open []event // with start as the begin of what is not given yet
	give := func(e event, until int64) {
		if e.end = min(e.end, until); e.end > e.start {
			pieces = append(pieces, e)
		}
	}
	closeUntil := func(at int64) {
		for len(open) > 0 && open[len(open)-1].end <= at {
			top := open[len(open)-1]
			give(top, top.end)
			if open = open[:len(open)-1]; len(open) > 0 {
				open[len(open)-1].start = max(open[len(open)-1].start, top.end)
			}
		}
	}
	for _, e := range nested {
		closeUntil(e.start)
		if len(open) > 0 {
			top := &open[len(open)-1]
			give(*top, e.start)
			top.start, e.end = e.start, min(e.end, top.end)
		}
		open = append(open, e)
	}
	closeUntil(1<<63 - 1)
	return pieces
}

// hostProcess stands for the process of a host, whose number the file does not have.
const hostProcess = -1

// host reads the threads of a host. What has no length is a mark.
func (r *reader) host(p *plane) {
	p.each(planeLines, func(message []byte) {
		l := r.line(p, message)
		thread := r.b.Thread(hostProcess, l.id)
		r.b.NameThread(thread, l.name)
		r.each(p, l, func(e event) {
			row := kineto.HostRow{Start: e.start, End: e.end, Thread: thread, Correlation: kineto.None}
			python, isPython := strings.CutPrefix(e.name, "$")
			switch {
			case e.end == e.start:
			case isPython:
				row.Name = r.b.Text(functionOf(python))
				r.b.Python(row)
			case e.isStep:
				row.Name = r.b.Text("ProfilerStep#" + strconv.FormatInt(e.step, 10)) // as torch.profiler calls steps
				r.b.Annotation(row)
			case e.correlated && e.correlation != 0:
				row.Name, row.Correlation = r.b.Text(e.name), e.correlation
				r.b.Call(row)
			default:
				row.Name = r.b.Text(e.name)
				r.b.Annotation(row)
			}
		})
	})
}

// pythonCall is how JAX calls a function's frame, behind a dollar: "train.py:42 step".
var pythonCall = regexp.MustCompile(`^(.+):(\d+) (.+)$`)

// functionOf is such a text as torch.profiler has it, "train.py(42): step". A built-in function has its module in place of
// a file, "time sleep", where that is known.
func functionOf(text string) string {
	if m := pythonCall.FindStringSubmatch(text); m != nil {
		return m[1] + "(" + m[2] + "): " + m[3]
	}
	if module, name, ok := strings.Cut(text, " "); ok && module == "<unknown>" {
		return name
	} else if ok && !strings.Contains(name, " ") {
		return module + "." + name
	}
	return text
}
