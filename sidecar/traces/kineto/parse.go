package kineto

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
)

// parser reads one file into a Trace.
type parser struct {
	ctx      context.Context
	w        *window
	s        scanner
	rows     *rows
	t        *Trace
	found    bool  // a list of trace events was there
	over     bool  // nothing more can be read
	places   int   // damaged places in the events
	untold   int64 // bytes skipped at those beyond placesTold
	rank     int64
	warnings []Warning
	progress func(events int64) // called now and then
	// raw, when set, gets the events' texts instead of the tables.
	raw  func(text []byte)
	text []byte // what was scanned last
}

// parse reads a whole file. What could not be read is in p.warnings; the error
// is non-nil only when ctx ended.
func (p *parser) parse() error {
	c, ok := p.w.space()
	if ok && bytes.HasPrefix(p.w.buf[p.w.pos:], []byte("\xef\xbb\xbf")) {
		p.w.pos += 3 // byte order mark
		c, ok = p.w.space()
	}
	var err error
	switch {
	case !ok:
		if !p.w.truncated() {
			p.warn(-1, "the file is empty", "nothing could be read")
		}
	case c == '{':
		err = p.object()
	case c == '[':
		p.found = true
		err = p.events()
	default:
		p.warn(p.w.offset(), "the file is no JSON", "nothing could be read")
	}
	if err != nil {
		return err
	}
	if ok && !p.found && !p.w.truncated() {
		p.warn(-1, "the file has no traceEvents", "no events")
	}
	if p.found && p.t.Records == 0 && len(p.warnings) == 0 {
		p.warn(-1, "traceEvents is empty", "no events")
	}
	p.ending()
	if p.t.Frame != nil {
		p.t.Frame.Decimals = p.s.decimals
	}
	p.rows.settleDevices()
	p.s.faults[faultDuplicate] = faultCount{n: dropDuplicates(p.t), byte: -1}
	p.faults()
	p.rows.trim()
	p.t.describe()
	return nil
}

// object reads the top-level object.
func (p *parser) object() error {
	p.w.pos++
	first := true
	for {
		var key string
		next := p.scan(func(b []byte, i int) int {
			k, at := p.s.member(b, i, first)
			key = string(k)
			if k == nil && at >= 0 {
				key = "}"
			}
			return at
		})
		first = false
		if next < 0 {
			p.cutShort(next, "outside the events", "what follows")
			return nil
		}
		if key == "}" {
			return nil
		}
		if key == "traceEvents" && p.w.buf[p.w.pos] == '[' {
			p.found = true
			if err := p.events(); err != nil || p.over {
				return err
			}
			continue
		}
		value, next := p.w.try(skipValue)
		if next < 0 {
			p.cutShort(next, fmt.Sprintf("in the value of %q", key), "what follows")
			if next == bad && p.toEvents() {
				continue
			}
			return nil
		}
		if len(value) <= largestChecked && !json.Valid(value) {
			p.warn(p.w.offset()-int64(len(value)), fmt.Sprintf("the value of %q is no valid JSON", key), "it was read as far as possible")
		}
		p.meta(key, value)
	}
}

// largestChecked bounds the metadata that is checked for strict JSON.
const largestChecked = 1 << 20

// events reads the list at the current position.
func (p *parser) events() error {
	p.w.pos++
	comma := int64(-1) // a comma not yet followed by an event
	for n := 0; ; n++ {
		if n%4096 == 0 {
			if err := p.ctx.Err(); err != nil {
				return err
			}
			p.progress(p.t.Records)
		}
		c, ok := p.w.space()
		if !ok {
			p.over = true
			p.warn(p.w.offset(), "the file ends inside traceEvents", "what followed is not there")
			return nil
		}
		switch c {
		case ',':
			comma = p.w.offset()
			p.w.pos++
			continue
		case ']':
			if comma >= 0 {
				p.s.base = comma
				p.s.fault(faultTrailingComma, 0)
			}
			p.w.pos++
			return nil
		}
		comma = -1
		if !p.event() {
			p.over = true
			return nil
		}
	}
}

// event reads one element of the list; damaged ones are skipped. It reports
// false when there is no more to read.
func (p *parser) event() bool {
	next := bad
	if p.w.buf[p.w.pos] == '{' {
		next = p.scanEvent()
	} else if n := p.foreign(); n >= 0 {
		return true
	}
	if next >= 0 && p.raw != nil {
		p.raw(p.text)
		return !p.over
	}
	if next >= 0 {
		p.rows.add(&p.s)
		return true
	}
	start := p.w.offset()
	if next == short && p.w.err != nil {
		p.warn(start, "the file ends inside an event", "that event and what followed are not there")
		return false
	}
	found := p.resync()
	p.places++
	switch skipped := p.w.offset() - start; {
	case !found:
		p.warn(start, "damaged JSON in an event", "the rest of the file was skipped")
	case p.places <= placesTold:
		p.warn(start, "damaged JSON in an event", fmt.Sprintf("%d bytes, at least one event, were skipped", skipped))
	default:
		p.untold += skipped
	}
	return found
}

// scanEvent scans the object at the current position and moves behind it.
func (p *parser) scanEvent() int { return p.scan(p.s.event) }

// scan runs a scan at the current position. Faults of an attempt that fails
// are forgotten: it will be scanned again, or skipped and reported.
func (p *parser) scan(scan func(b []byte, i int) int) int {
	text, next := p.w.try(func(b []byte, i int) int {
		before := p.s.faults
		p.s.base = p.w.base
		next := scan(b, i)
		if next < 0 {
			p.s.faults = before
		}
		return next
	})
	p.text = text
	return next
}

// foreign skips an element that is no object: null, a number.
func (p *parser) foreign() int {
	at := p.w.offset()
	_, next := p.w.try(func(b []byte, i int) int {
		if c := b[i]; c == '"' || c == '[' || c == 'n' || c == '-' || c-'0' <= 9 {
			return skipValue(b, i)
		}
		return bad
	})
	if next >= 0 {
		p.s.base = at
		p.s.fault(faultForeign, 0)
	}
	return next
}

// meta keeps what the analyses want of a top-level member.
func (p *parser) meta(key string, value []byte) {
	m := &p.t.Meta
	switch key {
	case "distributedInfo":
		walkObject(value, func(key, value []byte) {
			switch string(key) {
			case "rank":
				p.rank = number(value, None)
			case "world_size":
				m.WorldSize = int(number(value, 0))
			case "backend":
				m.Backend = text(value)
			}
		})
	case "host_name":
		m.Host = text(value)
	case "baseTimeNanoseconds":
		m.BaseTime = number(value, 0)
	case "deviceProperties":
		for i := 0; i >= 0 && i < len(value); {
			brace := bytes.IndexByte(value[i:], '{')
			if brace < 0 {
				break
			}
			i += brace
			walkObject(value[i:], func(key, value []byte) {
				if string(key) == "name" {
					m.Devices = append(m.Devices, text(value))
				}
			})
			i = skipNested(value, i)
		}
	}
}

// text decodes a JSON string outside the events.
func text(value []byte) string {
	s, _ := unescape(string(unquote(value)))
	s, _ = repairText(s)
	return s
}
