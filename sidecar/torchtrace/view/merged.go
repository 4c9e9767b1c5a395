package view

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/omni-perf/omni-perf/sidecar/output"
	"github.com/omni-perf/omni-perf/sidecar/torchtrace"
)

// WriteMergedFile writes one Chrome trace of all ranks; a name that ends in .gz
// is compressed.
func WriteMergedFile(path string, set *torchtrace.TraceSet) ([]Clock, error) {
	var clocks []Clock
	err := output.Write(path, func(w io.Writer) (err error) {
		if !strings.HasSuffix(path, ".gz") {
			clocks, err = WriteMerged(w, set)
			return err
		}
		z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // a valid level
		clocks, err = WriteMerged(z, set)
		if e := z.Close(); err == nil {
			err = e
		}
		return err
	})
	return clocks, err
}

// A rank has two processes in the merged trace: its host and its device.
const pidsPerRank = 2

// WriteMerged writes the ranks' events in one Chrome trace on one clock, which
// starts at the first event.
func WriteMerged(w io.Writer, set *torchtrace.TraceSet) ([]Clock, error) {
	clocks := AlignClocks(set)
	m := &mergedWriter{out: bufio.NewWriterSize(w, 1<<16), zero: firstEvent(set, clocks)}
	m.out.WriteString(`{"displayTimeUnit": "ms", "omni_perf_clocks": [`)
	for i, c := range clocks {
		if i > 0 {
			m.out.WriteString(", ")
		}
		fmt.Fprintf(m.out, `{"rank": %d, "offset_ns": %d, "matched": %t}`, c.Rank, c.Offset, c.Matched)
	}
	m.out.WriteString(`], "traceEvents": [`)
	for i, t := range set.Traces {
		m.rank(t, clocks[i])
	}
	m.out.WriteString("\n]}\n")
	if err := m.out.Flush(); err != nil {
		return clocks, fmt.Errorf("writing the merged trace: %w", err)
	}
	return clocks, nil
}

// firstEvent is the earliest start on the common clock.
func firstEvent(set *torchtrace.TraceSet, clocks []Clock) int64 {
	first, any := int64(0), false
	for i, t := range set.Traces {
		for _, starts := range [][]int64{t.Device.Start, t.Calls.Start, t.Ops.Start, t.Python.Start, t.Memory.Time} {
			for _, s := range starts {
				if at := t.UnixNs(s) + clocks[i].Offset; !any || at < first {
					first, any = at, true
				}
			}
		}
	}
	return first
}

// mergedWriter keeps the first write error in its buffer until Flush.
type mergedWriter struct {
	out    *bufio.Writer
	zero   int64
	events int
	buf    []byte
}

func (m *mergedWriter) rank(t *torchtrace.Trace, clock Clock) {
	host := int64(t.Rank) * pidsPerRank
	device := host + 1
	at := func(start int64) int64 { return t.UnixNs(start) + clock.Offset - m.zero }
	m.label("process_name", host, 0, fmt.Sprintf("rank %d host", t.Rank))
	m.label("process_name", device, 0, fmt.Sprintf("rank %d device", t.Rank))
	m.order(host, 2*t.Rank)
	m.order(device, 2*t.Rank+1)
	thread := func(index uint32) int64 {
		if int(index) < len(t.Threads) {
			return int64(index)
		}
		return 0
	}
	for i, th := range t.Threads {
		if th.Name != "" {
			m.label("thread_name", host, int64(i), th.Name)
		}
	}
	d := &t.Device
	streams := map[int64]bool{}
	for row := range d.Len() {
		if s := d.Stream[row]; !streams[s] {
			streams[s] = true
			m.label("thread_name", device, s, fmt.Sprintf("stream %d", s))
		}
		m.complete([...]string{"kernel", "gpu_memcpy", "gpu_memset", "kernel"}[min(3, d.Class[row])], t.Text(d.Name[row]), device, d.Stream[row], at(d.Start[row]), d.Dur[row], d.Correlation[row])
	}
	c := &t.Calls
	for row := range c.Len() {
		m.complete("cuda_runtime", t.Text(c.Name[row]), host, thread(c.Thread[row]), at(c.Start[row]), c.Dur[row], c.Correlation[row])
	}
	o := &t.Ops
	for row := range o.Len() {
		switch o.Class[row] {
		case torchtrace.OpCPU:
			m.complete("cpu_op", t.Text(o.Name[row]), host, thread(o.Thread[row]), at(o.Start[row]), o.Dur[row], torchtrace.None)
		case torchtrace.OpAnnotation:
			m.complete("user_annotation", t.Text(o.Name[row]), host, thread(o.Thread[row]), at(o.Start[row]), o.Dur[row], torchtrace.None)
		}
	}
	p := &t.Python
	for row := range p.Len() {
		m.complete("python_function", t.Text(p.Name[row]), host, thread(p.Thread[row]), at(p.Start[row]), p.Dur[row], torchtrace.None)
	}
	for row := range t.Memory.Len() {
		m.memory(&t.Memory, row, device, at(t.Memory.Time[row]))
	}
}

func (m *mergedWriter) begin() {
	m.buf = m.buf[:0]
	if m.events > 0 {
		m.buf = append(m.buf, ',')
	}
	m.events++
	m.buf = append(m.buf, '\n')
}

func (m *mergedWriter) complete(category, name string, pid, tid, start, dur, correlation int64) {
	m.begin()
	b := append(m.buf, `{"ph": "X", "cat": "`...)
	b = append(b, category...)
	b = append(b, `", "name": `...)
	b = appendJSONText(b, name)
	b = append(b, `, "pid": `...)
	b = strconv.AppendInt(b, pid, 10)
	b = append(b, `, "tid": `...)
	b = strconv.AppendInt(b, tid, 10)
	b = append(b, `, "ts": `...)
	b = appendMicros(b, start)
	b = append(b, `, "dur": `...)
	b = appendMicros(b, max(0, dur))
	if correlation != torchtrace.None {
		b = append(b, `, "args": {"correlation": `...)
		b = strconv.AppendInt(b, correlation, 10)
		b = append(b, '}')
	}
	m.buf = append(b, '}')
	m.out.Write(m.buf)
}

func (m *mergedWriter) label(kind string, pid, tid int64, name string) {
	m.begin()
	b := fmt.Appendf(m.buf, `{"ph": "M", "name": "%s", "pid": %d, "tid": %d, "args": {"name": `, kind, pid, tid)
	m.out.Write(append(appendJSONText(b, name), "}}"...))
}

func (m *mergedWriter) order(pid int64, index int) {
	m.begin()
	m.out.Write(fmt.Appendf(m.buf, `{"ph": "M", "name": "process_sort_index", "pid": %d, "args": {"sort_index": %d}}`, pid, index))
}

// memory writes a counter per device of the rank; type 0 is the CPU.
func (m *mergedWriter) memory(c *torchtrace.MemoryChanges, row int, pid, at int64) {
	if c.DeviceType[row] == 0 {
		return
	}
	m.begin()
	b := append(m.buf, `{"ph": "C", "name": "memory", "pid": `...)
	b = strconv.AppendInt(b, pid, 10)
	b = append(b, `, "ts": `...)
	b = appendMicros(b, at)
	b = fmt.Appendf(b, `, "args": {"allocated": %d, "reserved": %d}}`, c.Allocated[row], c.Reserved[row])
	m.out.Write(b)
}

// appendMicros writes nanoseconds as decimal microseconds, exactly.
func appendMicros(b []byte, ns int64) []byte {
	if ns < 0 {
		b, ns = append(b, '-'), -ns
	}
	b = strconv.AppendInt(b, ns/1000, 10)
	rest := ns % 1000
	return append(b, '.', byte('0'+rest/100), byte('0'+rest/10%10), byte('0'+rest%10))
}

// appendJSONText quotes a string for JSON; control characters are escaped.
func appendJSONText(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < 0x20 || r == 0x2028 || r == 0x2029:
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}
