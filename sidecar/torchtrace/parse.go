package torchtrace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
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
	p.t.decimals = p.s.decimals
	p.s.faults[faultDuplicate] = faultCount{n: dropDuplicates(p.t), byte: -1}
	p.faults()
	p.rows.trim()
	return nil
}

func (p *parser) warn(at int64, what, lost string) {
	p.warnings = append(p.warnings, Warning{File: p.t.File, Byte: at, What: what, Lost: lost})
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

// cutShort warns of a scan that failed at the current position.
func (p *parser) cutShort(verdict int, where, lost string) {
	what := "the file ends " + where
	if verdict == bad {
		what = "damaged JSON " + where
	}
	p.warn(p.w.offset(), what, lost+" was not read")
}

// toEvents moves on to the key traceEvents after damage before it.
func (p *parser) toEvents() bool {
	if p.found {
		return false
	}
	for {
		if n := bytes.Index(p.w.buf[p.w.pos:], []byte(`"traceEvents"`)); n >= 0 {
			p.w.pos += n
			return true
		}
		p.w.pos = max(p.w.pos, len(p.w.buf)-16)
		if !p.w.more() {
			return false
		}
	}
}

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

// placesTold is how many damaged places of a file get a warning of their own.
const placesTold = 10

// scanEvent scans the object at the current position and moves behind it.
func (p *parser) scanEvent() int { return p.scan(p.s.event) }

// scan runs a scan at the current position. Faults of an attempt that fails
// are forgotten: it will be scanned again, or skipped and reported.
func (p *parser) scan(scan func(b []byte, i int) int) int {
	_, next := p.w.try(func(b []byte, i int) int {
		before := p.s.faults
		p.s.base = p.w.base
		next := scan(b, i)
		if next < 0 {
			p.s.faults = before
		}
		return next
	})
	return next
}

// foreign skips an element that is no object: null, a number.
func (p *parser) foreign() int {
	_, next := p.w.try(func(b []byte, i int) int {
		if c := b[i]; c == '"' || c == '[' || c == 'n' || c == '-' || c-'0' <= 9 {
			return skipValue(b, i)
		}
		return bad
	})
	if next >= 0 {
		p.rows.lost["elements of traceEvents that are no objects"]++
	}
	return next
}

// resync moves to the next thing that scans as an event, or to the end of the
// list if that comes first in a form that can be told. Every event has "ph".
func (p *parser) resync() bool {
	p.w.pos++
	for {
		n := bytes.Index(p.w.buf[p.w.pos:], []byte(`"ph"`))
		if n < 0 {
			p.w.pos = max(p.w.pos, len(p.w.buf)-64)
			if !p.w.more() {
				p.w.pos = len(p.w.buf)
				return false
			}
			continue
		}
		key := p.w.pos + n
		brace := bytes.LastIndexByte(p.w.buf[p.w.pos:key], '{')
		if brace >= 0 {
			p.w.pos += brace
			mark := p.w.offset()
			next := p.scanEvent()
			if next >= 0 {
				p.w.pos = int(mark - p.w.base) // events reads it again
				return true
			}
			if next == short && p.w.err != nil {
				return false
			}
			key = int(mark-p.w.base) + n - brace
		}
		p.w.pos = key + 4
	}
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
	case "baseTimeNanoseconds":
		m.BaseTime = number(value, 0)
	case "traceName":
		m.TraceName = text(value)
	case "with_stack":
		m.WithStack = number(value, 0) != 0
	case "profile_memory":
		m.WithMemory = number(value, 0) != 0
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

// ending warns when the compressed data ended badly.
func (p *parser) ending() {
	for p.w.err == nil { // the JSON is over; is the file?
		p.w.pos = len(p.w.buf)
		p.w.more()
	}
	if !p.w.truncated() {
		return
	}
	at := p.w.base + int64(len(p.w.buf))
	var corrupt flate.CorruptInputError
	switch err := p.w.err; {
	case errors.Is(err, errTrailing):
		p.warn(at, err.Error(), "those bytes were ignored")
	case errors.Is(err, io.ErrUnexpectedEOF):
		p.warn(at, "the gzip data is cut off", "what followed is not there")
	case errors.Is(err, gzip.ErrChecksum):
		p.warn(at, "the gzip checksum is wrong", "some of the data read may be damaged")
	case errors.Is(err, gzip.ErrHeader), errors.As(err, &corrupt):
		p.warn(at, "the gzip data is damaged", "what followed was not read")
	default:
		p.warn(at, "reading failed: "+err.Error(), "what followed was not read")
	}
}

// faultText says what a fault is, and what it cost.
var faultText = [faults][2]string{
	faultTrailingComma: {"a comma before a closing bracket", "nothing lost"},
	faultMissingComma:  {"a missing comma", "nothing lost"},
	faultQuotes:        {"quotes inside a text that are not escaped", "the text was kept with its quotes"},
	faultControl:       {"control characters inside a text", "the text was kept as it is"},
	faultUTF8:          {"a text that is not UTF-8", "the broken bytes are shown as U+FFFD"},
	faultEscape:        {"a backslash that escapes nothing, or half a surrogate pair", "the text was kept, the half shown as U+FFFD"},
	faultBigInteger:    {"an identifier beyond 64 bits", "that event counts as having none"},
	faultTime:          {"a time that is no number", "those times count as missing"},
	faultNoTime:        {"events without start or duration", "those events were left out"},
	faultNegative:      {"events with a negative duration", "they count as lasting no time"},
	faultPhase:         {"events without ph", "those events were left out"},
	faultDuplicate:     {"device events or runtime calls recorded twice", "each of these was counted once; operators and Python frames may count twice"},
}

// faults turns what the scanner read over into warnings.
func (p *parser) faults() {
	for f, c := range p.s.faults {
		if c.n == 0 {
			continue
		}
		what := faultText[f][0]
		switch {
		case c.n > 1 && c.byte >= 0:
			what = fmt.Sprintf("%s (%d times, first here)", what, c.n)
		case c.n > 1:
			what = fmt.Sprintf("%s (%d records)", what, c.n)
		}
		p.warn(c.byte, what, faultText[f][1])
	}
	if n := p.places - placesTold; n > 0 && p.untold > 0 {
		p.warn(-1, fmt.Sprintf("damaged JSON in %d places more", n), fmt.Sprintf("%d bytes were skipped", p.untold))
	}
	for _, reason := range sortedKeys(p.rows.lost) {
		p.warn(-1, reason, fmt.Sprintf("%d records were left out", p.rows.lost[reason]))
	}
}

// isTraceName reports whether a folder's file may be a trace.
func isTraceName(name string) bool {
	name = strings.ToLower(name)
	return strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".json.gz")
}
