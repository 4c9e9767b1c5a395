package kineto

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
)

// RawEvent is one element of traceEvents as the file has it, with what was read
// of it. It is valid until the next is read.
type RawEvent struct {
	Phase    byte
	Name     []byte // raw text between the quotes
	Start    int64  // ns; 0 where HasStart is false
	HasStart bool
	Memory   *MemoryTotals // of a [memory] instant; else nil
	text     []byte
	s        *scanner
}

// MemoryTotals are what a [memory] instant says.
type MemoryTotals struct{ Allocated, Reserved, DeviceType, DeviceID int64 }

// EachRaw reads a file's events one by one, in its order. Damage is read over as
// Load does. The error is that of visit, of ctx, or of opening the file.
func EachRaw(ctx context.Context, path string, visit func(RawEvent) error) error {
	src, err := openSource(path)
	if err != nil {
		return err
	}
	defer src.Close()
	return eachRaw(ctx, src, path, visit)
}

func eachRaw(ctx context.Context, src io.Reader, path string, visit func(RawEvent) error) error {
	p := newParser(ctx, src, path, &Options{})
	var failed error
	p.raw = func(text []byte) {
		if failed == nil {
			failed = visit(p.s.raw(text))
		}
		if failed != nil {
			p.over = true
		}
	}
	if err := p.parse(); err != nil {
		return fmt.Errorf("reading the events of %s: %w", path, err)
	}
	return failed
}

// raw is the record just scanned.
func (s *scanner) raw(text []byte) RawEvent {
	r := &s.rec
	e := RawEvent{Phase: r.phase, Name: r.name, text: text, s: s}
	if r.hasStart {
		e.Start, e.HasStart = r.start, true
	}
	if r.args.hasBytes && string(r.name) == "[memory]" {
		e.Memory = &MemoryTotals{r.args.allocated, r.args.reserved, r.args.deviceType, r.args.deviceID}
	}
	return e
}

// Member returns the raw JSON of a member, nil if there is none.
func (e RawEvent) Member(key string) (value []byte) {
	e.eachMember(func(k, v []byte) {
		if string(k) == key {
			value = v
		}
	})
	return value
}

// Text is the text of a raw JSON string, or the raw JSON of anything else.
func Text(value []byte) string { return text(value) }

func (e RawEvent) eachMember(visit func(key, value []byte)) {
	quiet := scanner{} // the faults were counted when the event was read
	quiet.members(e.text, visit)
}

// members visits the members of the object at the start of b, as tolerant as
// event.
func (s *scanner) members(b []byte, visit func(key, value []byte)) {
	i, first := 1, true
	for {
		key, at := s.member(b, i, first)
		if key == nil {
			return
		}
		first = false
		next := 0
		if b[at] == '"' {
			next, _ = skipQuoted(b, at)
		} else {
			next = skipValue(b, at)
		}
		if next < 0 {
			return
		}
		visit(key, b[at:next])
		i = next
	}
}

// Append writes the event as strict JSON, each member passed through replace: nil
// leaves it out, the value itself keeps it. What is no strict JSON in the file
// is repaired, or null where there is nothing to repair.
func (e RawEvent) Append(dst []byte, replace func(key string, value []byte) []byte) []byte {
	dst = append(dst, '{')
	n := 0
	e.eachMember(func(key, value []byte) {
		value = replace(string(key), value)
		if value == nil {
			return
		}
		if n > 0 {
			dst = append(dst, ", "...)
		}
		n++
		dst = appendText(dst, key)
		dst = append(dst, ": "...)
		dst = e.s.appendStrict(dst, value)
	})
	return append(dst, '}')
}

// appendText writes a raw string as strict JSON.
func appendText(dst, raw []byte) []byte {
	quoted := append(append([]byte{'"'}, raw...), '"')
	if json.Valid(quoted) {
		return append(dst, quoted...)
	}
	clean, err := json.Marshal(text(quoted))
	if err != nil { // a string always marshals
		return append(dst, `""`...)
	}
	return append(dst, clean...)
}

// appendStrict writes a value as strict JSON.
func (s *scanner) appendStrict(dst, value []byte) []byte {
	if json.Valid(value) {
		return append(dst, value...)
	}
	switch {
	case len(value) >= 2 && value[0] == '"':
		return appendText(dst, value[1:len(value)-1])
	case len(value) >= 2 && value[0] == '{':
		quiet := scanner{}
		dst = append(dst, '{')
		n := 0
		quiet.members(value, func(key, value []byte) {
			if n > 0 {
				dst = append(dst, ", "...)
			}
			n++
			dst = appendText(dst, key)
			dst = append(dst, ": "...)
			dst = quiet.appendStrict(dst, value)
		})
		return append(dst, '}')
	}
	return append(dst, "null"...) // NaN, a damaged list
}

// AppendMicros writes nanoseconds as decimal microseconds, exactly.
func AppendMicros(b []byte, ns int64) []byte {
	if ns < 0 {
		b, ns = append(b, '-'), -ns
	}
	b = strconv.AppendInt(b, ns/1000, 10)
	rest := ns % 1000
	return append(b, '.', byte('0'+rest/100), byte('0'+rest/10%10), byte('0'+rest%10))
}
