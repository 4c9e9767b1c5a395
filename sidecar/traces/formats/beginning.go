package formats

import (
	"bytes"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/omni-perf/omni-perf/sidecar/understand/jsonstream"
)

// beginning is what a file is recognised by.
type beginning struct {
	name string // lower case, without .gz
	head []byte // decompressed
	// Of JSON the members of the object, and if it is a list those of its first element, as far as head has them.
	json     byte // { or [, 0 if it is no JSON
	keys     []string
	elements []string
}

// mostKeys is how many members of an object are looked at.
const mostKeys = 256

func beginningOf(name string, head []byte) beginning {
	b := beginning{name: strings.TrimSuffix(strings.ToLower(name), ".gz"), head: head}
	text := bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	w := jsonstream.NewWindow(bytes.NewReader(text), max(16, len(text)), max(16, len(text)))
	c, ok := w.Space()
	switch {
	case ok && c == '{':
		b.json, b.keys = c, keysOf(w)
	case ok && c == '[':
		b.json = c
		w.Pos++
		if c, ok := w.Space(); ok && c == '{' {
			b.elements = keysOf(w)
		}
	}
	return b
}

// keysOf lists the members of the object at the window's position, as far as the window reaches.
func keysOf(w *jsonstream.Window) (keys []string) {
	w.Pos++
	for len(keys) < mostKeys {
		c, ok := w.Space()
		if ok && c == ',' {
			w.Pos++
			c, ok = w.Space()
		}
		if !ok || c != '"' {
			return keys
		}
		key, whole, ok := w.String(nil, 256)
		if !ok {
			return keys
		}
		if c, ok = w.Space(); !ok || c != ':' {
			return keys
		}
		w.Pos++
		if whole {
			keys = append(keys, string(bytes.Trim(key, `"`)))
		}
		if _, ok = w.Space(); !ok || !w.Skip() {
			return keys
		}
	}
	return keys
}

// How a format is recognised.

// hasKeys are objects with these members. A trace may have members of any name, so that what has traceEvents is none.
func hasKeys(all ...string) func(beginning) bool {
	return func(b beginning) bool { return has(b.keys, all) && !slices.Contains(b.keys, "traceEvents") }
}

// elementsHave are lists of objects with these members.
func elementsHave(all ...string) func(beginning) bool {
	return func(b beginning) bool { return has(b.elements, all) }
}

func has(keys, all []string) bool {
	for _, key := range all {
		if !slices.Contains(keys, key) {
			return false
		}
	}
	return true
}

func begins(with string) func(beginning) bool { return at(0, with) }

func at(offset int, with string) func(beginning) bool {
	return func(b beginning) bool {
		return len(b.head) >= offset && bytes.HasPrefix(b.head[offset:], []byte(with))
	}
}

// named are files that are no JSON, by the ends of their names.
func named(ends ...string) func(beginning) bool {
	return func(b beginning) bool {
		return b.json == 0 && slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(b.name, end) })
	}
}

// isPickle: a pickle of protocol 2 or later begins with its number; an empty dict or a frame follows.
func isPickle(b beginning) bool {
	return len(b.head) > 2 && b.head[0] == 0x80 && 2 <= b.head[1] && b.head[1] <= 5 && strings.IndexByte("\x95}](c", b.head[2]) >= 0
}

// fields lists the numbers and types of the fields of a protobuf message, as far as they are there; ok is false
// where the bytes are none.
func fields(message []byte) (list map[protowire.Number]protowire.Type, ok bool) {
	list = map[protowire.Number]protowire.Type{}
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return list, len(list) > 0
		}
		message = message[n:]
		n = protowire.ConsumeFieldValue(number, kind, message)
		if kind == protowire.BytesType && n < 0 { // it reaches beyond what is known
			if _, m := protowire.ConsumeVarint(message); m < 0 {
				return list, len(list) > 0
			}
			list[number] = kind
			return list, true
		}
		if n < 0 {
			return list, false
		}
		list[number] = kind
		message = message[n:]
	}
	return list, true
}

// firstMessage is the first field of a protobuf file if that is field 1, a message, as far as head has it.
func (b beginning) firstMessage() (message []byte, ok bool) {
	number, kind, n := protowire.ConsumeTag(b.head)
	if n < 0 || number != 1 || kind != protowire.BytesType {
		return nil, false
	}
	size, m := protowire.ConsumeVarint(b.head[n:])
	if m < 0 {
		return nil, false
	}
	rest := b.head[n+m:]
	return rest[:min(uint64(len(rest)), size)], size > 0
}

// isXPlane: XSpace.planes is an XPlane, whose name begins like that of a device or a host (xplane.proto).
func isXPlane(b beginning) bool {
	message, ok := b.firstMessage()
	if !ok {
		return false
	}
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return false
		}
		message = message[n:]
		if number == 2 && kind == protowire.BytesType {
			name, m := protowire.ConsumeBytes(message)
			return m > 0 && (bytes.HasPrefix(name, []byte("/host:")) || bytes.HasPrefix(name, []byte("/device:")) || string(name) == "Task Environment")
		}
		if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
			return false
		}
		message = message[n:]
	}
	return false
}

// isPprof: Profile.sample_type is a ValueType of two numbers (profile.proto).
func isPprof(b beginning) bool {
	message, ok := b.firstMessage()
	if !ok {
		return false
	}
	of, ok := fields(message)
	return ok && len(of) == 2 && of[1] == protowire.VarintType && of[2] == protowire.VarintType && hasField(of, 1) && hasField(of, 2)
}

// isPerfetto: Trace.packet is a TracePacket, which has a timestamp (8), a clock snapshot (6), the writer's uid (3),
// its sequence (10) or a synchronisation marker (36) (trace_packet.proto).
func isPerfetto(b beginning) bool {
	message, ok := b.firstMessage()
	if !ok {
		return false
	}
	of, ok := fields(message)
	if !ok {
		return false
	}
	for number, kind := range map[protowire.Number]protowire.Type{
		3: protowire.VarintType, 6: protowire.BytesType, 8: protowire.VarintType, 10: protowire.VarintType, 36: protowire.BytesType,
	} {
		if got, there := of[number]; there && got == kind {
			return true
		}
	}
	return false
}

func hasField(of map[protowire.Number]protowire.Type, number protowire.Number) bool {
	_, there := of[number]
	return there
}
