package kineto

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/omni-perf/omni-perf/sidecar/understand/jsonstream"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// parser reads one file into a Trace.
type parser struct {
	ctx      context.Context
	w        *jsonstream.Window
	s        scanner
	rows     *rows
	t        *Trace
	found    bool  // a list of trace events was there
	over     bool  // nothing more can be read
	enough   bool  // a limit was reached: the rest of the file is not looked at
	larger   int   // things larger than maxRecord in the events
	places   int   // damaged places in the events
	unwarned int64 // bytes skipped at those beyond placesWarned
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
	c, ok := p.begin()
	if ok && bytes.HasPrefix(p.w.Buf[p.w.Pos:], []byte("\xef\xbb\xbf")) {
		p.w.Pos += 3 // byte order mark
		c, ok = p.w.Space()
	}
	var err error
	switch {
	case !ok:
		if !p.enough && !p.w.Truncated() {
			p.warn(-1, "the file is empty", "nothing could be read")
		}
	case c == '{':
		err = p.object()
	case c == '[':
		p.found = true
		err = p.events()
	default:
		p.warn(p.w.Offset(), "the file is no JSON", "nothing could be read")
	}
	if err != nil {
		return err
	}
	p.noteNoEvents(ok)
	p.ending()
	p.settle()
	return nil
}

// settle completes the tables when all events are read.
func (p *parser) settle() {
	if p.t.Frame != nil {
		p.t.Frame.Decimals = p.s.decimals
	}
	p.rows.settlePairs(&p.s)
	p.rows.settleDevices()
	p.noteTool()
	p.s.faults[faultDuplicate] = faultCount{n: dropDuplicates(p.t), byte: -1}
	p.faults()
	endOptimizers(p.t)
	p.rows.trim()
	p.t.describe()
}

// object reads the top-level object.
func (p *parser) object() error {
	p.w.Pos++
	first := true
	for {
		key, next := p.key(first)
		first = false
		if next < 0 {
			p.cutShort(next, "outside the events", "what follows")
			return nil
		}
		if key == "}" {
			return nil
		}
		if key == "traceEvents" && p.w.Buf[p.w.Pos] == '[' {
			p.found = true
			if err := p.events(); err != nil || p.over {
				return err
			}
			continue
		}
		value, next := p.w.Try(skipValue)
		if next == short && p.w.Full() {
			if p.large(key) {
				continue
			}
			return nil
		}
		if next < 0 {
			p.cutShort(next, fmt.Sprintf("in the value of %q", key), "what follows")
			if next == bad && p.toEvents() {
				continue
			}
			return nil
		}
		if len(value) <= largestChecked && !json.Valid(value) {
			p.warn(p.w.Offset()-int64(len(value)), fmt.Sprintf("the value of %q is no valid JSON", key), "it was read as far as possible")
		}
		p.meta(key, value)
	}
}

// key moves behind a key of the top-level object; "}" is the object's end. A negative next is short or bad.
func (p *parser) key(first bool) (key string, next int) {
	next = p.scan(func(b []byte, i int) int {
		k, at := p.s.member(b, i, first)
		key = string(k)
		if k == nil && at >= 0 {
			key = "}"
		}
		return at
	})
	return key, next
}

// noteNoEvents warns of a file that could be read and has no events; anything: there is JSON in it.
func (p *parser) noteNoEvents(anything bool) {
	if anything && !p.found && !p.enough && !p.w.Truncated() {
		p.note("the file has no traceEvents", "")
	}
	if p.found && p.t.Records == 0 && len(p.warnings) == 0 {
		p.warn(-1, "traceEvents is empty", "")
	}
}

// begin skips what is before the JSON.
func (p *parser) begin() (c byte, ok bool) {
	for p.w.Offset() <= maxBlanks {
		if p.w.Pos < len(p.w.Buf) {
			if c = p.w.Buf[p.w.Pos]; c > ' ' {
				return c, true
			}
			p.w.Pos++
		} else if !p.w.More() {
			return 0, false
		}
	}
	p.stop("the file begins with more than %s blanks", maxBlanks, "nothing was read")
	return 0, false
}

// stop warns that a limit was reached.
func (p *parser) stop(what string, limit int, lost string) {
	p.over, p.enough = true, true
	p.warn(p.w.Offset(), fmt.Sprintf(what, words.Count(int64(limit))), lost)
}

// large skips the value of a top-level key that is larger than a window.
func (p *parser) large(key string) (ok bool) {
	at := p.w.Offset()
	if !p.w.Skip() {
		p.cutShort(short, fmt.Sprintf("in the value of %q", key), "what follows")
		return false
	}
	if metaKeys[key] {
		p.warn(at, fmt.Sprintf("the value of %q has more than %s bytes", key, words.Count(maxRecord)), "it was not read")
	}
	return true
}

// metaKeys are the top-level members that meta reads.
var metaKeys = map[string]bool{"distributedInfo": true, "host_name": true, "baseTimeNanoseconds": true, "deviceProperties": true}

// largestChecked bounds the metadata that is checked for strict JSON.
const largestChecked = 1 << 20

// events reads the list at the current position.
func (p *parser) events() error {
	p.w.Pos++
	comma := int64(-1) // a comma not yet followed by an event
	for n := 0; ; n++ {
		if n%4096 == 0 {
			if err := p.ctx.Err(); err != nil {
				return err
			}
			p.progress(p.t.Records)
		}
		if p.s.faults[faultForeign].n+p.s.faults[faultPhase].n > maxForeign {
			p.stop("more than %s elements of traceEvents are no events", maxForeign, "the rest of the file was not read: record the trace again")
			return nil
		}
		c, ok := p.w.Space()
		if !ok {
			p.over = true
			p.warn(p.w.Offset(), "the file ends inside traceEvents", "what followed is not there")
			return nil
		}
		switch c {
		case ',':
			comma = p.w.Offset()
			p.w.Pos++
			continue
		case ']':
			if comma >= 0 {
				p.s.base = comma
				p.s.fault(faultTrailingComma, 0)
			}
			p.w.Pos++
			return nil
		}
		comma = -1
		if p.t.Records >= maxEvents {
			p.stop("the file has more than %s events", maxEvents, "the rest of it was not read")
			return nil
		}
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
	if p.w.Buf[p.w.Pos] == '{' {
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
	start := p.w.Offset()
	if next == short && p.w.Err != nil {
		p.warn(start, "the file ends inside an event", "that event and what followed are not there")
		return false
	}
	what := "damaged JSON in an event"
	if next == short {
		what = fmt.Sprintf("an event of more than %s bytes, or damaged JSON", words.Count(maxRecord))
	}
	found := p.resync()
	p.places++
	switch skipped := p.w.Offset() - start; {
	case !found:
		p.warn(start, what, "the rest of the file was skipped")
	case p.places <= placesWarned:
		p.warn(start, what, fmt.Sprintf("%d bytes, at least one event, were skipped", skipped))
	default:
		p.unwarned += skipped
	}
	return found
}

// scanEvent scans the object at the current position and moves behind it.
func (p *parser) scanEvent() int { return p.scan(p.s.event) }

// scan runs a scan at the current position. Faults of an attempt that fails
// are forgotten: it will be scanned again, or skipped and reported.
func (p *parser) scan(scan func(b []byte, i int) int) int {
	text, next := p.w.Try(func(b []byte, i int) int {
		before := p.s.faults
		p.s.base = p.w.Base
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
	at := p.w.Offset()
	_, next := p.w.Try(func(b []byte, i int) int {
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
