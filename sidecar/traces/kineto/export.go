package kineto

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
)

// EachRaw visits the events of a trace that another tool recorded as torch.profiler would have written them.
func (t *Trace) EachRaw(ctx context.Context, visit func(RawEvent) error) error {
	from, to := io.Pipe()
	go func() { to.CloseWithError(t.write(to)) }()
	err := eachRaw(ctx, from, t.File, visit)
	from.Close() // ends the writer where a visit failed
	return err
}

// deviceCategories are those of device events, by class.
var deviceCategories = [...]string{ClassKernel: "kernel", ClassMemcpy: "gpu_memcpy", ClassMemset: "gpu_memset", ClassMTIA: "mtia_ccp_events"}

// write writes the events in the trace event format. A device is a process of its own, by a text, for its number may be that
// of a host's process.
func (t *Trace) write(to io.Writer) error {
	w := &eventWriter{Writer: bufio.NewWriterSize(to, 64<<10), t: t}
	w.WriteString(`{"traceEvents": [`)
	devices := map[int32]bool{}
	for row := range t.Device.Len() {
		d := &t.Device
		w.event("X", deviceCategories[d.Class[row]], t.Text(d.Name[row]), fmt.Sprintf(`"device %d"`, d.Device[row]), d.Stream[row], d.Start[row], d.Dur[row])
		fmt.Fprintf(w, `, "args": {"device": %d, "stream": %d`, d.Device[row], d.Stream[row])
		w.number("correlation", d.Correlation[row])
		if d.Bytes[row] > 0 {
			w.number("bytes", d.Bytes[row])
		}
		w.WriteString("}}")
		devices[d.Device[row]] = true
	}
	for device := range devices {
		w.label("process_labels", fmt.Sprintf(`"device %d"`, device), 0, "labels", fmt.Sprintf("GPU %d", device))
	}
	for i, thread := range t.Threads {
		if thread.Name != "" {
			w.label("thread_name", fmt.Sprint(thread.PID), t.Threads[i].TID, "name", thread.Name)
		}
	}
	for row := range t.Calls.Len() {
		c := &t.Calls
		w.host("cuda_runtime", c.Name[row], c.Thread[row], c.Start[row], c.Dur[row])
		w.WriteString(`, "args": {"cbid": 0`)
		w.number("correlation", c.Correlation[row])
		w.WriteString("}}")
	}
	for row := range t.Ops.Len() {
		w.host("user_annotation", t.Ops.Name[row], t.Ops.Thread[row], t.Ops.Start[row], t.Ops.Dur[row])
		w.WriteString("}")
	}
	for row := range t.Python.Len() {
		w.host("python_function", t.Python.Name[row], t.Python.Thread[row], t.Python.Start[row], t.Python.Dur[row])
		w.WriteString("}")
	}
	w.WriteString("\n]}\n")
	return w.Flush()
}

// eventWriter keeps the first error in its buffer until Flush.
type eventWriter struct {
	*bufio.Writer
	t      *Trace
	events int
}

// event begins an event, whose args and end follow.
func (w *eventWriter) event(phase, category, name, pid string, tid, start, dur int64) {
	if w.events++; w.events > 1 {
		w.WriteByte(',')
	}
	text, err := json.Marshal(name)
	if err != nil { // a string always marshals
		text = []byte(`""`)
	}
	fmt.Fprintf(w, "\n"+`{"ph": %q, "cat": %q, "name": %s, "pid": %s, "tid": %d, "ts": %s, "dur": %s`,
		phase, category, text, pid, tid, AppendMicros(nil, start), AppendMicros(nil, dur))
}

func (w *eventWriter) host(category string, name Sym, thread uint32, start, dur int64) {
	of := w.t.Threads[thread]
	w.event("X", category, w.t.Text(name), fmt.Sprint(of.PID), of.TID, start, dur)
}

// number writes a further member of args, unless there is none.
func (w *eventWriter) number(key string, value int64) {
	if value != None {
		fmt.Fprintf(w, `, %q: %d`, key, value)
	}
}

// label writes metadata.
func (w *eventWriter) label(kind, pid string, tid int64, key, value string) {
	if w.events++; w.events > 1 {
		w.WriteByte(',')
	}
	text, err := json.Marshal(map[string]string{key: value})
	if err != nil { // texts always marshal
		return
	}
	fmt.Fprintf(w, "\n"+`{"ph": "M", "name": %q, "pid": %s, "tid": %d, "args": %s}`, kind, pid, tid, text)
}
