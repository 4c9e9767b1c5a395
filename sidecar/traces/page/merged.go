package page

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/show/output"
	"github.com/omni-perf/omni-perf/sidecar/traces"
	"github.com/omni-perf/omni-perf/sidecar/traces/formats"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
)

// Clock says how to bring a rank's times to the common clock, the lowest rank's.
type Clock struct {
	Rank    int   `json:"rank"`
	Offset  int64 `json:"offset_ns"` // to add to the rank's own time since the epoch
	Matched bool  `json:"matched"`   // by collectives shared with other ranks; else Offset is 0
}

// AlignClocks compares when the same collectives ended: a collective ends on
// all ranks at nearly the same time, whenever each began.
func AlignClocks(a *traces.Analysis) []Clock {
	ahead := a.ClockOffsets()
	clocks := make([]Clock, len(a.Ranks))
	for i, rank := range a.Ranks {
		offset, ok := ahead[rank]
		clocks[i] = Clock{Rank: rank, Offset: -offset, Matched: ok}
	}
	return clocks
}

// WriteMergedFile writes one Chrome trace of all ranks; a name that ends in .gz
// is compressed.
func WriteMergedFile(ctx context.Context, path string, a *traces.Analysis) ([]Clock, error) {
	var clocks []Clock
	err := output.Write(path, func(w io.Writer) (err error) {
		if !strings.HasSuffix(path, ".gz") {
			clocks, err = WriteMerged(ctx, w, a)
			return err
		}
		z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // a valid level
		clocks, err = WriteMerged(ctx, z, a)
		if e := z.Close(); err == nil {
			err = e
		}
		return err
	})
	return clocks, err
}

// WriteMerged writes the events of all files in one Chrome trace on one clock,
// which starts at the first event. The files are read again and copied: of an
// event only process, time and flow number change, since several ranks have the
// same.
func WriteMerged(ctx context.Context, w io.Writer, a *traces.Analysis) ([]Clock, error) {
	clocks := AlignClocks(a)
	m := &mergedWriter{out: bufio.NewWriterSize(w, 1<<16), pids: map[string]*mergedProcess{}}
	offset := func(rank int) int64 { return clocks[slices.Index(a.Ranks, rank)].Offset }
	m.zero = math.MaxInt64
	for _, r := range a.Recordings {
		if r.First != math.MaxInt64 {
			m.zero = min(m.zero, r.First+offset(r.Rank))
		}
	}
	if m.zero == math.MaxInt64 {
		m.zero = 0 // no file has an event
	}
	header, err := json.Marshal(clocks)
	if err != nil {
		return nil, fmt.Errorf("writing the merged trace: %w", err)
	}
	fmt.Fprintf(m.out, `{"displayTimeUnit": "ms", "baseTimeNanoseconds": %d, "omni_perf_clocks": %s, "traceEvents": [`, m.zero, header)
	for i, r := range a.Recordings {
		m.rank, m.flows, m.shift = r.Rank, int64(i)<<32, r.Base+offset(r.Rank)-m.zero
		m.odd = map[string]int64{}
		if err := eachEvent(ctx, r, m.event); err != nil {
			return clocks, fmt.Errorf("writing the merged trace: %w", err)
		}
		if i+1 == len(a.Recordings) || a.Recordings[i+1].Rank != r.Rank {
			m.finishRank()
		}
	}
	m.out.WriteString("\n]}\n")
	if err := m.out.Flush(); err != nil {
		return clocks, fmt.Errorf("writing the merged trace: %w", err)
	}
	return clocks, nil
}

// eachEvent visits a recording's events: as the file has them where that is in the trace event format.
func eachEvent(ctx context.Context, r traces.Recording, visit func(kineto.RawEvent) error) error {
	if r.From != kineto.FromOther {
		return kineto.EachRaw(ctx, r.File, visit)
	}
	return formats.EachRaw(ctx, r.File, r.PID, visit)
}

// mergedWriter keeps the first write error in its buffer until Flush.
type mergedWriter struct {
	out    *bufio.Writer
	zero   int64 // ns since the epoch
	events int
	buf    []byte

	rank  int
	shift int64            // from the file's clock to that of the merged trace
	flows int64            // what the file's flow numbers count from
	odd   map[string]int64 // those of its flow numbers that are none
	// pids are the rank's processes by their raw JSON in the files; processes of
	// the whole trace so far.
	pids      map[string]*mergedProcess
	processes int64
}

// mergedProcess is a host process or a device of one rank.
type mergedProcess struct {
	id          int64 // in the merged trace
	used        bool  // by an event other than metadata
	name, label string
	order       string            // as the file has it
	threads     map[string][]byte // its metadata, by kind and thread
}

// event copies one event.
func (m *mergedWriter) event(e kineto.RawEvent) error {
	if e.Phase == 'M' {
		m.metadata(e)
		return nil
	}
	p := m.process(e.Member("pid"))
	p.used = true
	m.begin()
	m.buf = e.Append(m.buf, func(key string, value []byte) []byte {
		switch key {
		case "pid":
			return strconv.AppendInt(nil, p.id, 10)
		case "ts":
			if !e.HasStart {
				return nil
			}
			return kineto.AppendMicros(nil, e.Start+m.shift)
		case "id", "bind_id":
			return m.flow(value)
		}
		return value
	})
	if _, err := m.out.Write(m.buf); err != nil {
		return err // bufio has kept it
	}
	if e.Memory != nil && e.Memory.DeviceType > 0 && e.Memory.Allocated != kineto.None && e.HasStart {
		m.memory(p, e)
	}
	return nil
}

func (m *mergedWriter) begin() {
	m.buf = m.buf[:0]
	if m.events > 0 {
		m.buf = append(m.buf, ',')
	}
	m.events++
	m.buf = append(m.buf, '\n')
}

// process is that of a raw pid of the rank.
func (m *mergedWriter) process(pid []byte) *mergedProcess {
	p := m.pids[string(pid)]
	if p == nil {
		m.processes++
		p = &mergedProcess{id: m.processes, threads: map[string][]byte{}}
		m.pids[string(pid)] = p
	}
	return p
}

// flow gives each file flow numbers of its own: the profiler counts from the
// same in every file.
func (m *mergedWriter) flow(value []byte) []byte {
	id, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || id < 0 || id >= 1<<31 {
		known, ok := m.odd[string(value)]
		if !ok {
			known = 1<<31 + int64(len(m.odd))
			m.odd[string(value)] = known
		}
		id = known
	}
	return strconv.AppendInt(nil, m.flows+id, 10)
}

// metadata notes the names of processes and threads; those that have events are
// written when the rank is at its end.
func (m *mergedWriter) metadata(e kineto.RawEvent) {
	p := m.process(e.Member("pid"))
	var args struct {
		Name   any `json:"name"`
		Labels any `json:"labels"`
		Order  any `json:"sort_index"`
	}
	_ = json.Unmarshal(e.Member("args"), &args) // what is damaged has no name
	switch string(e.Name) {
	case "process_name":
		p.name, _ = args.Name.(string)
	case "process_labels":
		p.label, _ = args.Labels.(string)
	case "process_sort_index":
		p.order = fmt.Sprint(args.Order)
	case "thread_name", "thread_sort_index":
		text := e.Append(nil, func(key string, value []byte) []byte {
			switch key {
			case "pid":
				return strconv.AppendInt(nil, p.id, 10)
			case "ts":
				return nil
			}
			return value
		})
		p.threads[string(e.Name)+string(e.Member("tid"))] = text
	}
}

// memory writes the allocator's totals as a counter, which a viewer draws.
func (m *mergedWriter) memory(p *mergedProcess, e kineto.RawEvent) {
	m.begin()
	b := fmt.Appendf(m.buf, `{"ph": "C", "name": "memory of device %d", "pid": %d, "ts": `, e.Memory.DeviceID, p.id)
	b = kineto.AppendMicros(b, e.Start+m.shift)
	b = fmt.Appendf(b, `, "args": {"allocated": %d, "reserved": %d}}`, e.Memory.Allocated, max(0, e.Memory.Reserved))
	m.out.Write(b)
	m.buf = b
}

// finishRank names the rank's processes: host first, as in the files.
func (m *mergedWriter) finishRank() {
	var used []*mergedProcess
	for _, p := range m.pids {
		if p.used {
			used = append(used, p)
		}
	}
	slices.SortFunc(used, func(a, b *mergedProcess) int { return int(a.id - b.id) })
	for i, p := range used {
		name := fmt.Sprintf("rank %d", m.rank)
		if isGPU := strings.HasPrefix(p.label, "GPU"); p.label != "" && isGPU {
			name += " " + p.label
		} else if p.name != "" {
			name += " " + p.name
		}
		m.label("process_name", p.id, "name", name)
		m.label("process_sort_index", p.id, "sort_index", m.rank*1000+i)
		for _, key := range sortedKeys(p.threads) {
			m.begin()
			m.out.Write(append(m.buf, bytes.TrimSpace(p.threads[key])...))
		}
	}
	clear(m.pids)
}

func (m *mergedWriter) label(kind string, pid int64, key string, value any) {
	text, err := json.Marshal(map[string]any{key: value})
	if err != nil {
		return // text and numbers always marshal
	}
	m.begin()
	m.out.Write(fmt.Appendf(m.buf, `{"ph": "M", "name": %q, "pid": %d, "tid": 0, "args": %s}`, kind, pid, text))
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// ClockSentence says how far the ranks' clocks are aligned.
func ClockSentence(clocks []Clock) string {
	matched := 0
	for _, c := range clocks {
		if c.Matched {
			matched++
		}
	}
	switch {
	case len(clocks) == 1:
		return "One rank: its clock is the trace's."
	case matched == len(clocks):
		return fmt.Sprintf("The clocks of all %d ranks are aligned by their collectives.", matched)
	}
	return fmt.Sprintf("The clocks of %d of %d ranks are aligned by their collectives; the others keep their own.", matched, len(clocks))
}
