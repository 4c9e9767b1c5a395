package export

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/klauspost/compress/gzip"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/omni-perf/omni-perf/sidecar/report"
)

// Field numbers of github.com/google/pprof/proto/profile.proto.
const (
	profileSampleType    = 1
	profileSample        = 2
	profileLocation      = 4
	profileFunction      = 5
	profileStrings       = 6
	profileTime          = 9
	profileDuration      = 10
	profilePeriodType    = 11
	profilePeriod        = 12
	profileComment       = 13
	profileDefaultSample = 14

	sampleLocation, sampleValue, sampleLabel     = 1, 2, 3
	labelKey, labelText, labelNumber             = 1, 2, 3
	locationID, locationLine                     = 1, 4
	lineFunction, lineNumber                     = 1, 2
	functionID, functionName, functionSystemName = 1, 2, 3
	functionFile, functionStart                  = 4, 5
	valueType, valueUnit                         = 1, 2
)

// Pprof writes the stacks for go tool pprof, gzipped: wall time and time on a
// CPU, labelled by thread and state.
func Pprof(r *report.View) ([]byte, error) {
	p := &pprofWriter{strings: map[string]int64{"": 0}, table: []string{""}, functions: make(map[pprofFunction]uint64)}
	frames := framesOf(r)
	for _, name := range []string{"wall", "cpu"} {
		p.message(profileSampleType, p.pair(valueType, p.text(name), valueUnit, p.text("nanoseconds")))
	}
	for t := range r.Threads {
		p.samples(r, t)
	}
	for i, f := range frames {
		p.location(uint64(i+1), f)
	}
	p.number(profileTime, r.StartedAt.UnixNano())
	p.number(profileDuration, r.DurationNS)
	p.message(profilePeriodType, p.pair(valueType, p.text("wall"), valueUnit, p.text("nanoseconds")))
	p.number(profilePeriod, r.Target().Sampling.Interval(r.DurationNS))
	for _, s := range []string{title(r), clean(r.Headline.Text)} {
		if s != "" {
			p.number(profileComment, p.text(s))
		}
	}
	p.number(profileDefaultSample, p.text("wall"))
	for _, s := range p.table {
		p.out = protowire.AppendTag(p.out, profileStrings, protowire.BytesType)
		p.out = protowire.AppendString(p.out, s)
	}
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	if _, err := zip.Write(p.out); err != nil {
		return nil, fmt.Errorf("write the pprof profile: %w", err)
	}
	if err := zip.Close(); err != nil {
		return nil, fmt.Errorf("write the pprof profile: %w", err)
	}
	return b.Bytes(), nil
}

type pprofFunction struct {
	name, file string
	line       int
}

// pprofWriter appends a Profile's fields to out.
type pprofWriter struct {
	out       []byte
	table     []string
	strings   map[string]int64
	functions map[pprofFunction]uint64
}

// text interns a string.
func (p *pprofWriter) text(s string) int64 {
	id, ok := p.strings[s]
	if !ok {
		id = int64(len(p.table))
		p.strings[s] = id
		p.table = append(p.table, s)
	}
	return id
}

func appendNumber(b []byte, field protowire.Number, v int64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), uint64(v))
}

func appendMessage(b []byte, field protowire.Number, m []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), m)
}

func (p *pprofWriter) number(field protowire.Number, v int64) { p.out = appendNumber(p.out, field, v) }
func (p *pprofWriter) message(field protowire.Number, m []byte) {
	p.out = appendMessage(p.out, field, m)
}

// pair is a message of two numbers.
func (p *pprofWriter) pair(a protowire.Number, x int64, b protowire.Number, y int64) []byte {
	return appendNumber(appendNumber(nil, a, x), b, y)
}

// samples adds up a thread's time by stack and state.
func (p *pprofWriter) samples(r *report.View, t int) {
	type key struct {
		node  int32
		state report.State
	}
	total := make(map[key]int64)
	var order []key
	for _, s := range r.History(t) {
		k := key{s.Node, s.State}
		if total[k] == 0 {
			order = append(order, k)
		}
		total[k] += s.End - s.Start
	}
	thread := p.text(threadName(r, t))
	for _, k := range order {
		if k.node == 0 {
			continue // no Python code ran
		}
		var locations, values []byte
		stack := r.Stack(k.node, maxDepth)
		slices.Reverse(stack) // leaf first
		for _, f := range stack {
			locations = protowire.AppendVarint(locations, uint64(f+1))
		}
		cpu := int64(0)
		if k.state.Computes() {
			cpu = total[k]
		}
		values = protowire.AppendVarint(protowire.AppendVarint(nil, uint64(total[k])), uint64(cpu))
		m := appendMessage(appendMessage(nil, sampleLocation, locations), sampleValue, values)
		m = appendMessage(m, sampleLabel, p.pair(labelKey, p.text("thread"), labelText, thread))
		m = appendMessage(m, sampleLabel, p.pair(labelKey, p.text("state"), labelText, p.text(k.state.String())))
		m = appendMessage(m, sampleLabel, p.pair(labelKey, p.text("thread_id"), labelNumber, int64(r.Threads[t].NativeID)))
		p.message(profileSample, m)
	}
}

// location is a frame: a function at a line.
func (p *pprofWriter) location(id uint64, f frame) {
	key := pprofFunction{f.function, f.file, f.firstLine}
	function, ok := p.functions[key]
	if !ok {
		function = uint64(len(p.functions) + 1)
		p.functions[key] = function
		m := p.pair(functionID, int64(function), functionName, p.text(key.name))
		m = appendNumber(m, functionSystemName, p.text(key.name))
		m = appendNumber(m, functionFile, p.text(key.file))
		p.message(profileFunction, appendNumber(m, functionStart, int64(key.line)))
	}
	line := p.pair(lineFunction, int64(function), lineNumber, int64(f.line))
	p.message(profileLocation, appendMessage(appendNumber(nil, locationID, int64(id)), locationLine, line))
}
