package export

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/klauspost/compress/gzip"

	"github.com/omni-perf/omni-perf/sidecar/report"
)

// Thread ids of rows that are no threads; Linux gives out none so large.
const (
	stepsRow   = 1 << 30
	gpuIdleRow = stepsRow + 1 // plus the device
)

// ChromeTrace writes trace events for Perfetto and chrome://tracing, gzipped:
// the stacks as slices of their threads, waiting as slices below the function
// that waits, tracks as counters, steps and GPU idle time as rows of their own.
func ChromeTrace(r *report.Report) ([]byte, error) {
	var out bytes.Buffer
	zip, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		return nil, fmt.Errorf("write the trace: %w", err)
	}
	t := &traceWriter{w: zip, pid: r.Target.PID}
	t.raw(`{"displayTimeUnit":"ms","otherData":` + jsonOf(map[string]string{
		"generator": clean(r.Generator), "name": title(r), "python": clean(r.Target.PythonVersion), "sampling": clean(r.Sampling.Method),
	}) + `,"traceEvents":[`)
	t.header(r)
	h := historyOf(r)
	for i := range h.spans {
		t.thread(h, i)
	}
	t.rows(r)
	t.counters(r)
	t.raw("\n]}\n")
	if t.err == nil {
		t.err = zip.Close()
	}
	if t.err != nil {
		return nil, fmt.Errorf("write the trace: %w", t.err)
	}
	return out.Bytes(), nil
}

// traceWriter writes events one by one; it keeps the first error.
type traceWriter struct {
	w     io.Writer
	pid   int
	begun bool
	buf   []byte
	err   error
}

func (t *traceWriter) raw(s string) {
	if t.err == nil {
		_, t.err = io.WriteString(t.w, s)
	}
}

func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil { // strings and finite numbers only
		return "null"
	}
	return string(b)
}

// event writes one; ts and dur are nanoseconds, dur < 0 means none. rest is more
// members, with their commas.
func (t *traceWriter) event(phase byte, name string, pid, tid int, ts, dur int64, rest string) {
	b := t.buf[:0]
	if t.begun {
		b = append(b, ',')
	}
	t.begun = true
	b = append(b, "\n{\"ph\":\""...)
	b = append(b, phase)
	b = append(b, `","name":`...)
	b = append(b, name...)
	b = append(b, `,"pid":`...)
	b = strconv.AppendInt(b, int64(pid), 10)
	b = append(b, `,"tid":`...)
	b = strconv.AppendInt(b, int64(tid), 10)
	b = append(b, `,"ts":`...)
	b = micros(b, ts)
	if dur >= 0 {
		b = append(b, `,"dur":`...)
		b = micros(b, dur)
	}
	b = append(b, rest...)
	t.buf = append(b, '}')
	if t.err == nil {
		_, t.err = t.w.Write(t.buf)
	}
}

func micros(b []byte, ns int64) []byte {
	b = strconv.AppendInt(b, ns/1000, 10)
	if rest := ns % 1000; rest != 0 {
		b = append(b, '.', byte('0'+rest/100), byte('0'+rest/10%10), byte('0'+rest%10))
	}
	return b
}

// header names processes and threads.
func (t *traceWriter) header(r *report.Report) {
	meta := func(what string, pid, tid int, key string, value any) {
		t.event('M', jsonOf(what), pid, tid, 0, -1, `,"args":`+jsonOf(map[string]any{key: value}))
	}
	named := map[int]bool{}
	for _, p := range r.Processes {
		named[p.PID] = true
		role := clean(p.Role)
		if p.PID == t.pid {
			role = title(r)
		}
		meta("process_name", p.PID, 0, "name", role)
	}
	if !named[t.pid] {
		meta("process_name", t.pid, 0, "name", title(r))
	}
	for i, th := range r.Threads {
		meta("thread_name", pidOf(th, t.pid), th.NativeID, "name", clean(th.Name))
		meta("thread_sort_index", pidOf(th, t.pid), th.NativeID, "sort_index", i)
	}
}

func pidOf(th report.Thread, target int) int {
	if th.PID != 0 {
		return th.PID
	}
	return target
}

// thread writes a history as nested slices: what two neighbouring stacks have in
// common goes on, the rest ends and begins.
func (t *traceWriter) thread(h *history, i int) {
	type slice struct {
		frame int
		start int64
	}
	pid, tid := pidOf(h.threads[i], t.pid), h.threads[i].NativeID
	names := make(map[int]string)
	places := make(map[int]string)
	var open []slice
	end := int64(0)
	closeTo := func(depth int) {
		for len(open) > depth {
			s := open[len(open)-1]
			open = open[:len(open)-1]
			t.event('X', names[s.frame], pid, tid, s.start, end-s.start, places[s.frame])
		}
	}
	for _, s := range h.spans[i] {
		if s.start > end {
			closeTo(0)
		}
		stack := h.stack(s.node)
		same := 0
		for same < len(open) && same < len(stack) && h.sameFunction(open[same].frame, stack[same]) {
			same++
		}
		closeTo(same)
		for _, f := range stack[same:] {
			if _, ok := names[f]; !ok {
				fr := &h.frames[f]
				names[f] = jsonOf(clean(fr.Function))
				places[f] = `,"cat":"python","args":` + jsonOf(map[string]any{"file": clean(fr.File), "line": fr.FirstLine})
			}
			open = append(open, slice{f, s.start})
		}
		if !computes(s.state) {
			t.event('X', jsonOf(clean(s.state)), pid, tid, s.start, s.end-s.start, `,"cat":"state"`)
		}
		end = s.end
	}
	closeTo(0)
}

func (h *history) sameFunction(a, b int) bool {
	x, y := &h.frames[a], &h.frames[b]
	return a == b || x.Function == y.Function && x.File == y.File && x.FirstLine == y.FirstLine
}

// rows writes steps and GPU idle time.
func (t *traceWriter) rows(r *report.Report) {
	row := func(tid int, name string) {
		t.event('M', `"thread_name"`, t.pid, tid, 0, -1, `,"args":`+jsonOf(map[string]string{"name": name}))
	}
	if len(r.Steps) > 0 {
		row(stepsRow, "steps")
	}
	end := int64(0)
	steps := slices.Clone(r.Steps)
	slices.SortStableFunc(steps, func(a, b report.Step) int { return cmp.Compare(a.StartS, b.StartS) })
	for i, s := range steps {
		from, to := max(nanos(s.StartS), end), nanos(s.EndS)
		if from >= to {
			continue
		}
		end = to
		name := fmt.Sprintf("step %d", i)
		if s.Name != "" {
			name = clean(s.Name)
		}
		t.event('X', jsonOf(name), t.pid, stepsRow, from, to-from,
			`,"cat":"step","args":`+jsonOf(map[string]int64{"data_wait_ns": nanos(s.DataWaitS)}))
	}
	if r.Idle == nil {
		return
	}
	for _, d := range r.Idle.Devices {
		tid := gpuIdleRow + d.Device
		row(tid, fmt.Sprintf("GPU %d idle", d.Device))
		end := int64(0)
		for _, iv := range d.Intervals {
			if from, to := max(nanos(iv[0]), end), nanos(iv[1]); from < to {
				t.event('X', `"idle"`, t.pid, tid, from, to-from, `,"cat":"gpu"`)
				end = to
			}
		}
	}
}

// counters writes the tracks. A counter holds from its time on: a rate, known
// for the window before its point, is written at that window's beginning.
func (t *traceWriter) counters(r *report.Report) {
	for _, tr := range r.Tracks {
		name, unit := jsonOf(clean(tr.ID)), clean(tr.Unit)
		if unit == "" {
			unit = "value"
		}
		last := int64(0)
		for i := range min(len(tr.T), len(tr.Value)) {
			at, v := nanos(tr.T[i]), float64(tr.Value[i])
			if math.IsNaN(v) || math.IsInf(v, 0) || at < last {
				last = max(last, at)
				continue
			}
			from := at
			if tr.Kind != "gauge" {
				from = last
			}
			t.event('C', name, t.pid, 0, from, -1, `,"args":`+jsonOf(map[string]float64{unit: v}))
			last = at
		}
	}
}
