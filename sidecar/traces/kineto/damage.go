package kineto

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
)

// What the parser does about damage: it goes on behind it and says what was
// lost.

// placesWarned is how many damaged places of a file get a warning of their own.
const placesWarned = 10

func (p *parser) warn(at int64, what, lost string) {
	p.warnings = append(p.warnings, Warning{File: p.t.File, Byte: at, What: what, Lost: lost})
}

// cutShort warns of a scan that failed at the current position.
func (p *parser) cutShort(verdict int, where, lost string) {
	what := "the file ends " + where
	if verdict == bad {
		what = "damaged JSON " + where
	}
	p.warn(p.w.Offset(), what, lost+" was not read")
}

// toEvents moves on to the key traceEvents after damage before it.
func (p *parser) toEvents() bool {
	if p.found {
		return false
	}
	for {
		if n := bytes.Index(p.w.Buf[p.w.Pos:], []byte(`"traceEvents"`)); n >= 0 {
			p.w.Pos += n
			return true
		}
		p.w.Pos = max(p.w.Pos, len(p.w.Buf)-16)
		if !p.w.More() {
			return false
		}
	}
}

// longestBeforePhase bounds how far before its "ph" an event is looked for, so that it does
// not depend on how much of the file the window has.
const longestBeforePhase = 4 << 10

// resync moves to the next thing that scans as an event, or to the end of the
// list if that comes first in a form that can be recognised. Every event has "ph".
func (p *parser) resync() bool {
	p.w.Pos++
	for {
		n := bytes.Index(p.w.Buf[p.w.Pos:], []byte(`"ph"`))
		if n < 0 {
			p.w.Pos = max(p.w.Pos, len(p.w.Buf)-longestBeforePhase-len(`"ph"`))
			if !p.w.More() {
				p.w.Pos = len(p.w.Buf)
				return false
			}
			continue
		}
		key := p.w.Pos + n
		p.w.Pos = max(p.w.Pos, key-longestBeforePhase)
		n = key - p.w.Pos
		brace := bytes.LastIndexByte(p.w.Buf[p.w.Pos:key], '{')
		if brace >= 0 {
			p.w.Pos += brace
			mark := p.w.Offset()
			next := p.scanEvent()
			if next >= 0 {
				p.w.Pos = int(mark - p.w.Base) // events reads it again
				return true
			}
			if next == short {
				if p.larger++; p.w.Err != nil || p.larger > maxLarger {
					return false
				}
			}
			key = int(mark-p.w.Base) + n - brace
		}
		p.w.Pos = key + 4
	}
}

// ending warns when the compressed data ended badly.
func (p *parser) ending() {
	for p.w.Err == nil && !p.enough { // the JSON is over; is the file?
		p.w.Pos = len(p.w.Buf)
		p.w.More()
	}
	if !p.w.Truncated() {
		return
	}
	what, lost := Ending(p.w.Err)
	p.warn(p.w.Base+int64(len(p.w.Buf)), what, lost)
}

// Ending says why a text ended otherwise than by its own end, and what that cost.
func Ending(err error) (what, lost string) {
	var corrupt flate.CorruptInputError
	switch {
	case errors.Is(err, errTrailing):
		return err.Error(), "those bytes were ignored"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "the gzip data is cut off", "what followed is not there"
	case errors.Is(err, gzip.ErrChecksum):
		return "the gzip checksum is wrong", "some of the data read may be damaged"
	case errors.Is(err, gzip.ErrHeader), errors.As(err, &corrupt):
		return "the gzip data is damaged", "what followed was not read"
	}
	return "reading failed: " + err.Error(), "what followed was not read"
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
	faultPair:          {"events that begin and do not end, or end and did not begin (ph B, E)", "those events were left out"},
	faultForeign:       {"elements of traceEvents that are no objects", "those elements were left out"},
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
		if fault(f) == faultControl {
			p.warnings[len(p.warnings)-1].Note = true
		}
	}
	if n := p.places - placesWarned; n > 0 && p.unwarned > 0 {
		p.warn(-1, fmt.Sprintf("damaged JSON in %d places more", n), fmt.Sprintf("%d bytes were skipped", p.unwarned))
	}
}
