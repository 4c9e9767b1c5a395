package synth

import (
	"fmt"
	"io"
	"strconv"
)

// traceWriter writes one rank's JSON. Times come in on the common clock and
// are written on the rank's own, as decimal microseconds since the base time.
type traceWriter struct {
	w      io.Writer
	err    error
	buf    []byte
	done   int64 // bytes handed to w
	events int64
	pid    int64
	gpu    int64 // device id
	ranks  int
	skew   int64
}

const flushAt = 1 << 18

func newTraceWriter(w io.Writer, cfg Config, rank int, skew int64) *traceWriter {
	t := &traceWriter{w: w, pid: 41000 + int64(rank)*10, gpu: int64(rank % 8), ranks: cfg.Ranks, skew: skew, buf: make([]byte, 0, flushAt+1<<16)}
	t.text(`{"schemaVersion": 1, "deviceProperties": [`)
	for i := range int64(cfg.Devices) {
		if i > 0 {
			t.text(", ")
		}
		t.buf = fmt.Appendf(t.buf, `{"id": %d, "name": "Simulated GPU", "totalGlobalMem": 85899345920, "numSms": 108}`, t.gpu+i)
	}
	t.text("]")
	t.buf = fmt.Appendf(t.buf, `, "distributedInfo": {"backend": "nccl", "rank": %d, "world_size": %d}`, rank, cfg.Ranks)
	t.buf = fmt.Appendf(t.buf, `, "with_stack": %d, "profile_memory": %d, "displayTimeUnit": "ms", "baseTimeNanoseconds": %d, "traceEvents": [`, flag(cfg.Stacks), flag(cfg.Memory), epoch)
	t.metadata("process_name", t.pid, 0, "python train.py")
	t.metadata("thread_name", t.pid, t.pid, "thread (MainThread)")
	t.metadata("thread_name", t.pid, t.pid+1, "thread (pt_autograd_0)")
	for gpu := t.gpu; gpu < t.gpu+int64(cfg.Devices); gpu++ {
		t.metadata("process_name", gpu, 0, "GPU "+strconv.FormatInt(gpu, 10))
		t.metadata("thread_name", gpu, computeStream, "stream 7")
		t.metadata("thread_name", gpu, commStream, "stream 20")
	}
	return t
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (t *traceWriter) written() int64 { return t.done + int64(len(t.buf)) }

// onFileClock moves a step to the rank's own clock.
func (t *traceWriter) onFileClock(s Step) Step {
	s.Start, s.End = s.Start+t.skew, s.End+t.skew
	s.FirstWork, s.LastWork = s.FirstWork+t.skew, s.LastWork+t.skew
	return s
}

func (t *traceWriter) flush() {
	if t.err == nil {
		_, t.err = t.w.Write(t.buf)
	}
	t.done += int64(len(t.buf))
	t.buf = t.buf[:0]
}

func (t *traceWriter) close() error {
	t.buf = append(t.buf, "\n]}\n"...)
	t.flush()
	return t.err
}

// The writers below append without reflection: a trace of gigabytes is written
// at the disk's speed.

func (t *traceWriter) text(s string) { t.buf = append(t.buf, s...) }

func (t *traceWriter) int(v int64) { t.buf = strconv.AppendInt(t.buf, v, 10) }

func (t *traceWriter) micros(ns int64) {
	t.buf = strconv.AppendInt(t.buf, ns/1000, 10)
	rest := ns % 1000
	t.buf = append(t.buf, '.', byte('0'+rest/100), byte('0'+rest/10%10), byte('0'+rest%10))
}

// begin starts an event; names of this package need no escapes.
func (t *traceWriter) begin(phase, category, name string, pid, tid, at int64) {
	if len(t.buf) >= flushAt {
		t.flush()
	}
	if t.events > 0 {
		t.buf = append(t.buf, ',')
	}
	t.events++
	t.text("\n{\"ph\": \"")
	t.text(phase)
	t.text(`", "cat": "`)
	t.text(category)
	t.text(`", "name": "`)
	t.text(name)
	t.text(`", "pid": `)
	t.int(pid)
	t.text(`, "tid": `)
	t.int(tid)
	t.text(`, "ts": `)
	t.micros(at + t.skew)
}

func (t *traceWriter) complete(category, name string, pid, tid int64, at interval) {
	t.begin("X", category, name, pid, tid, at.start)
	t.text(`, "dur": `)
	t.micros(at.end - at.start)
	t.text(`, "args": {`)
}

func (t *traceWriter) metadata(kind string, pid, tid int64, name string) {
	if t.events > 0 {
		t.buf = append(t.buf, ',')
	}
	t.events++
	t.buf = fmt.Appendf(t.buf, "\n"+`{"ph": "M", "name": %q, "ts": 0, "pid": %d, "tid": %d, "args": {"name": %q}}`, kind, pid, tid, name)
}

func (t *traceWriter) op(name string, tid, begin, end, external int64) {
	t.complete("cpu_op", name, t.pid, tid, interval{begin, end})
	t.text(`"External id": `)
	t.int(external)
	t.text(`, "Input Dims": [[64, 1024], [1024, 1024]]}}`)
}

func (t *traceWriter) annotation(name string, tid, begin, end int64) {
	t.complete("user_annotation", name, t.pid, tid, interval{begin, end})
	t.text(`"External id": 0}}`)
}

func (t *traceWriter) runtime(name string, tid, begin, end, correlation, external int64) {
	t.complete("cuda_runtime", name, t.pid, tid, interval{begin, end})
	t.text(`"External id": `)
	t.int(external)
	t.text(`, "cbid": 211, "correlation": `)
	t.int(correlation)
	t.text("}}")
	t.begin("s", "ac2g", "ac2g", t.pid, tid, begin)
	t.text(`, "id": `)
	t.int(correlation)
	t.text("}")
}

func (t *traceWriter) device(k kernel, on streamName, at interval, l launch, bytes int64) {
	t.complete(k.category, k.name, on.device, on.stream, at)
	t.text(`"External id": `)
	t.int(l.external)
	t.text(`, "device": `)
	t.int(on.device)
	t.text(`, "context": 1, "stream": `)
	t.int(on.stream)
	t.text(`, "correlation": `)
	t.int(l.correlation)
	switch {
	case bytes > 0:
		t.text(`, "bytes": `)
		t.int(bytes)
		t.text(`, "memory bandwidth (GB/s)": `)
		t.buf = strconv.AppendFloat(t.buf, float64(bytes)/float64(at.end-at.start), 'f', 6, 64)
	case l.elements > 0:
		t.collective(l.elements)
	default:
		t.text(`, "registers per thread": 64, "shared memory": 16384, "grid": [512, 1, 1], "block": [256, 1, 1], "est. achieved occupancy %": 50`)
	}
	t.text("}}")
	t.begin("f", "ac2g", "ac2g", on.device, on.stream, at.start)
	t.text(`, "id": `)
	t.int(l.correlation)
	t.text(`, "bp": "e"}`)
}

func (t *traceWriter) collective(elements int64) {
	t.text(`, "Collective name": "allreduce", "In msg nelems": `)
	t.int(elements)
	t.text(`, "Out msg nelems": `)
	t.int(elements)
	t.text(`, "Group size": `)
	t.int(int64(t.ranks))
	t.text(`, "dtype": "Float", "Process Group Name": "0", "Process Group Description": "default_pg", "Process Group Ranks": "[`)
	for i := range t.ranks {
		if i > 0 {
			t.text(", ")
		}
		t.int(int64(i))
	}
	t.text(`]"`)
}

func (t *traceWriter) memory(tid, at, address, change, allocated, reserved int64) {
	t.begin("i", "cpu_instant_event", "[memory]", t.pid, tid, at)
	t.text(`, "s": "t", "args": {"Device Type": 1, "Device Id": `)
	t.int(t.gpu)
	t.text(`, "Addr": `)
	t.int(address)
	t.text(`, "Bytes": `)
	t.int(change)
	t.text(`, "Total Allocated": `)
	t.int(allocated)
	t.text(`, "Total Reserved": `)
	t.int(reserved)
	t.text("}}")
}

func (t *traceWriter) python(f pythonFrame, tid, end int64) {
	t.complete("python_function", f.name, t.pid, tid, interval{f.start, end})
	t.text(`"Python id": `)
	t.int(f.id)
	t.text(`, "Python parent id": `)
	if f.parent == 0 {
		t.text("null}}")
		return
	}
	t.int(f.parent)
	t.text("}}")
}
