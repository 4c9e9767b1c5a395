package kineto

import "bytes"

// record is one trace event as scanned. Byte slices point into the window and
// are valid until the next record is scanned.
type record struct {
	phase            byte
	name, cat        []byte
	hasStart, hasDur bool
	nullDur          bool // dur is there but has no value
	start, dur       int64
	pid, tid         int64
	args             arguments
}

// arguments are the members of args that some analysis reads.
type arguments struct {
	label                    []byte // "name" of a metadata event
	streamHex                bool   // stream is a text that is no decimal number
	stream                   int64
	correlation, external    int64
	bytes                    int64
	gbps                     []byte
	allocated, reserved      int64
	addr                     int64
	hasBytes                 bool
	memoryDelta              int64
	device                   int64 // that a kernel ran on
	deviceType, deviceID     int64 // of memory
	dims, concrete, types    []byte
	hierarchy                []byte
	autograd, forward        int64 // its place among autograd's operators; the thread of the forward pass
	stack, flops             []byte
	collective, dtype        []byte
	group, groupRanks        []byte
	groupSize, inMsg, outMsg int64
	sequence                 int64
}

var noArguments = arguments{
	stream: None, correlation: None, external: None, device: None,
	allocated: None, reserved: None, autograd: None,
	sequence: None, deviceType: -1, deviceID: -1,
}

// scanner reads records and counts the faults it read over.
type scanner struct {
	rec    record
	faults [faults]faultCount
	base   int64 // offset in the file of b[0] of the running call
	at     int   // position in b of the record being scanned
	room   int   // cap(b), by which a subslice's position is known
	owned  bool  // rec's texts are not of b
	// decimals: some ts is written with a decimal point.
	decimals bool
}

// faultCount is how often a fault occurred, and where first.
type faultCount struct {
	n    int
	byte int64
}

func (s *scanner) fault(f fault, at int) {
	if s.faults[f].n == 0 {
		s.faults[f].byte = s.base + int64(at)
	}
	s.faults[f].n++
}

// where is the position in b of a part of it; of a text that is not, that of the record.
func (s *scanner) where(part []byte) int {
	if s.owned {
		return s.at
	}
	return s.room - cap(part)
}

// member, event, args and arg are the inner loop of reading a trace, and long on purpose: divided into functions for
// separators, values and kinds of arguments they parse 11 % slower.

// member moves past one key and its colon. It returns the key and the
// position of the value; a negative position is short or bad, and a nil key
// with a position >= 0 is the end of the object.
func (s *scanner) member(b []byte, i int, first bool) (key []byte, value int) {
	i = skipSpace(b, i)
	if i >= len(b) {
		return nil, short
	}
	if b[i] == ',' && !first {
		comma := i
		i = skipSpace(b, i+1)
		if i >= len(b) {
			return nil, short
		}
		if b[i] == '}' {
			s.fault(faultTrailingComma, comma)
		}
	} else if b[i] == '"' && !first {
		s.fault(faultMissingComma, i)
	}
	if b[i] == '}' {
		return nil, i + 1
	}
	if b[i] != '"' {
		return nil, bad
	}
	// Keys are short and have no escapes: a plain loop beats a search.
	k := i + 1
	for i = k; i < len(b) && b[i] != '"'; i++ {
	}
	if i+1 >= len(b) {
		return nil, short
	}
	key = b[k:i]
	i++
	if b[i] != ':' {
		if i = skipSpace(b, i); i >= len(b) {
			return nil, short
		}
		if b[i] != ':' {
			return nil, bad
		}
	}
	i++
	if i < len(b) && b[i] == ' ' {
		i++
	}
	if i = skipSpace(b, i); i >= len(b) {
		return nil, short
	}
	return key, i
}

// event scans the event object at b[i] == '{' into s.rec and returns the
// position behind it.
func (s *scanner) event(b []byte, i int) int {
	r := &s.rec
	s.at, s.room = i, cap(b)
	*r = record{args: noArguments, pid: -1, tid: -1}
	var key []byte
	for i, first := i+1, true; ; first = false {
		if key, i = s.member(b, i, first); key == nil {
			return i
		}
		v := i
		if len(key) == 4 && string(key) == "args" && b[i] == '{' {
			if i = s.args(b, i); i < 0 {
				return i
			}
			continue
		}
		if b[i] == '"' {
			next, repaired := skipQuoted(b, i)
			if next < 0 {
				return next
			}
			if repaired {
				s.fault(faultQuotes, i)
			}
			i = next
		} else if i = skipValue(b, i); i < 0 {
			return i
		}
		text := unquote(b[v:i])
		switch string(key) {
		case "ph":
			if len(text) == 1 {
				r.phase = text[0]
			}
		case "name":
			r.name = text
		case "cat":
			r.cat = text
		case "ts":
			r.start, r.hasStart = s.nanos(text, v)
			s.decimals = s.decimals || bytes.IndexByte(text, '.') >= 0
		case "dur":
			r.dur, r.hasDur = s.nanos(text, v)
			r.nullDur = !r.hasDur
		case "pid":
			r.pid = number(text, -1)
		case "tid":
			r.tid = number(text, -1)
		}
	}
}

// args scans the object at b[i] == '{' and returns the position behind it.
func (s *scanner) args(b []byte, i int) int {
	a := &s.rec.args
	var key []byte
	for i, first := i+1, true; ; first = false {
		if key, i = s.member(b, i, first); key == nil {
			return i
		}
		v := i
		if b[i] == '"' {
			next, repaired := skipQuoted(b, i)
			if next < 0 {
				return next
			}
			if repaired {
				s.fault(faultQuotes, i)
			}
			i = next
		} else if i = skipValue(b, i); i < 0 {
			return i
		}
		s.arg(a, key, b[v:i], v)
	}
}

// arg keeps one member of args if an analysis reads it.
func (s *scanner) arg(a *arguments, key, value []byte, at int) {
	switch string(key) {
	case "External id", "external id":
		a.external = s.integer(value, at)
	case "correlation":
		a.correlation = s.integer(value, at)
	case "stream":
		a.stream = s.integer(value, at)
		a.streamHex = len(value) > 2 && value[0] == '"' && !isDecimal(unquote(value))
	case "device":
		a.device = number(value, None)
	case "bytes":
		a.bytes = number(unquote(value), 0)
	case "size":
		if value[0] != '"' {
			a.bytes = number(value, 0)
		}
	case "memory bandwidth (GB/s)":
		a.gbps = value
	case "Total Allocated":
		a.allocated = number(value, None)
	case "Total Reserved":
		a.reserved = number(value, None)
	case "Bytes":
		a.memoryDelta, a.hasBytes = number(value, 0), true
	case "Addr":
		a.addr = number(value, 0)
	case "Device Type":
		a.deviceType = number(value, -1)
	case "Device Id":
		a.deviceID = number(value, -1)
	case "name":
		a.label = unquote(value)
	case "Input Dims", "Input dims":
		a.dims = value
	case "Concrete Inputs":
		a.concrete = value
	case "Input type":
		a.types = value
	case "Module Hierarchy":
		a.hierarchy = unquote(value)
	case "Sequence number":
		a.autograd = number(value, None)
	case "Fwd thread id":
		a.forward = number(value, 0)
	case "Call stack":
		a.stack = unquote(value)
	case "Flops", "flops", "FLOPs":
		a.flops = value
	case "Collective name":
		a.collective = unquote(value)
	case "dtype":
		a.dtype = unquote(value)
	case "Process Group Name":
		a.group = unquote(value)
	case "Process Group Ranks":
		a.groupRanks = unquote(value)
	case "Group size":
		a.groupSize = number(value, 0)
	case "In msg nelems":
		a.inMsg = number(value, 0)
	case "Out msg nelems":
		a.outMsg = number(value, 0)
	case "Seq":
		a.sequence = number(value, None)
	}
}

// nanos reads a time; NaN, null and nonsense count as no time.
func (s *scanner) nanos(text []byte, at int) (ns int64, ok bool) {
	ns, ok = parseNanos(text)
	if !ok && string(text) != "null" {
		s.fault(faultTime, at)
	}
	return ns, ok
}

// integer reads an identifier, None if it has no value.
func (s *scanner) integer(value []byte, at int) int64 {
	text := unquote(value)
	n, ok := parseIdentifier(text)
	if ok {
		return n
	}
	if len(text) > 0 && text[0]-'0' <= 9 {
		s.fault(faultBigInteger, at)
	}
	return None
}

// number reads an integer, or returns missing.
func number(text []byte, missing int64) int64 {
	if n, ok := parseIdentifier(unquote(text)); ok {
		return n
	}
	return missing
}

func isDecimal(text []byte) bool {
	_, ok := parseInteger(text)
	return ok
}
