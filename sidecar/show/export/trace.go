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
	"strings"

	"github.com/klauspost/compress/gzip"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// Thread ids of rows that are no threads; Linux gives out none so large.
const (
	stepsRow   = 1 << 30
	gpuIdleRow = stepsRow + 1 // plus the device
)

// ChromeTrace writes trace events for Perfetto and chrome://tracing, gzipped:
// the stacks as slices of their threads, waiting as slices below the function
// that waits, tracks as counters, steps and GPU idle time as rows of their own.
func ChromeTrace(r *report.View) ([]byte, error) {
	var out bytes.Buffer
	zip, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		return nil, fmt.Errorf("write the trace: %w", err)
	}
	t := &traceWriter{w: zip, pid: r.Processes[r.Target().Process].PID}
	t.raw(`{"displayTimeUnit":"ms","otherData":` + jsonOf(map[string]string{
		"generator": generator(r), "name": title(r), "python": clean(r.Target().PythonVersion), "sampling": clean(r.Target().Sampling.Text),
	}) + `,"traceEvents":[`)
	t.header(r)
	frames := framesOf(r)
	for i := range r.Threads {
		t.thread(r, frames, i)
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
func (t *traceWriter) header(r *report.View) {
	meta := func(what string, pid, tid int, key string, value any) {
		t.event('M', jsonOf(what), pid, tid, 0, -1, `,"args":`+jsonOf(map[string]any{key: value}))
	}
	for i, p := range r.Processes {
		role := clean(p.Text)
		if i == r.Target().Process {
			role = title(r)
		}
		meta("process_name", p.PID, 0, "name", role)
	}
	for i, th := range r.Threads {
		meta("thread_name", r.Processes[th.Process].PID, th.NativeID, "name", clean(th.Name))
		meta("thread_sort_index", r.Processes[th.Process].PID, th.NativeID, "sort_index", i)
	}
}

// thread writes a history as nested slices: what two neighbouring stacks have in
// common goes on, the rest ends and begins.
func (t *traceWriter) thread(r *report.View, frames []frame, i int) {
	type slice struct {
		frame int
		start int64
	}
	pid, tid := r.Processes[r.Threads[i].Process].PID, r.Threads[i].NativeID
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
	for _, s := range r.History(i) {
		if s.Start > end {
			closeTo(0)
		}
		stack := r.Stack(s.Node, maxDepth)
		same := 0
		for same < len(open) && same < len(stack) && r.FunctionOf(open[same].frame) == r.FunctionOf(stack[same]) {
			same++
		}
		closeTo(same)
		for _, f := range stack[same:] {
			if _, ok := names[f]; !ok {
				fr := &frames[f]
				names[f] = jsonOf(fr.function)
				places[f] = `,"cat":"python","args":` + jsonOf(map[string]any{"file": fr.file, "line": fr.firstLine})
			}
			open = append(open, slice{f, s.Start})
		}
		if !s.State.Computes() {
			t.event('X', jsonOf(s.State.String()), pid, tid, s.Start, s.End-s.Start, `,"cat":"state"`)
		}
		end = s.End
	}
	closeTo(0)
}

// rows writes steps and GPU idle time.
func (t *traceWriter) rows(r *report.View) {
	row := func(pid, tid int, name string) {
		t.event('M', `"thread_name"`, pid, tid, 0, -1, `,"args":`+jsonOf(map[string]string{"name": name}))
	}
	steps := slices.Clone(r.Steps)
	slices.SortStableFunc(steps, func(a, b report.Step) int {
		return cmp.Or(cmp.Compare(a.Process, b.Process), cmp.Compare(a.StartNS, b.StartNS))
	})
	process, count, end := -1, 0, int64(0)
	for _, s := range steps {
		pid := r.Processes[s.Process].PID
		if s.Process != process {
			process, count, end = s.Process, 0, 0
			row(pid, stepsRow, "steps")
		}
		name := fmt.Sprintf("step %d", count)
		count++
		from, to := max(s.StartNS, end), s.EndNS
		if from >= to {
			continue
		}
		end = to
		if s.Name != "" {
			name = clean(s.Name)
		}
		t.event('X', jsonOf(name), pid, stepsRow, from, to-from,
			`,"cat":"step","args":`+jsonOf(map[string]int64{"data_wait_ns": s.DataWaitNS}))
	}
	if r.Idle == nil {
		return
	}
	for _, d := range r.Idle.Devices {
		tid := gpuIdleRow + d.Device
		row(t.pid, tid, fmt.Sprintf("GPU %d idle", r.Devices[d.Device].Number))
		for _, iv := range d.Intervals {
			if iv[0] < iv[1] {
				t.event('X', `"idle"`, t.pid, tid, iv[0], iv[1]-iv[0], `,"cat":"gpu"`)
			}
		}
	}
}

// counters writes the tracks. A counter holds from its time on: a rate, known
// for the window before its point, is written at that window's beginning.
func (t *traceWriter) counters(r *report.View) {
	for _, tr := range r.Tracks {
		name, unit := jsonOf(clean(trackName(r, &tr))), clean(tr.Unit)
		if unit == "" {
			unit = "value"
		}
		last := int64(0)
		for i, us := range tr.AtUS {
			at, v := us*1000, tr.Value[i]
			if math.IsNaN(v) {
				last = at
				continue
			}
			from := at
			if tr.Kind != report.Gauge {
				from = last
			}
			t.event('C', name, t.pid, 0, from, -1, `,"args":`+jsonOf(map[string]float64{unit: v}))
			last = at
		}
	}
}

// trackName distinguishes devices and threads.
func trackName(r *report.View, t *report.Track) string {
	switch {
	case t.Device != nil:
		return fmt.Sprintf("gpu%d.%s", r.Devices[*t.Device].Number, strings.TrimPrefix(t.ID, "gpu."))
	case t.Thread != nil:
		return fmt.Sprintf("thread.%d.%s", r.Threads[*t.Thread].NativeID, strings.TrimPrefix(t.ID, "thread."))
	}
	return t.ID
}
