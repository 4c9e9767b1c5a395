// Package api is the contract between extension and sidecar: the messages and
// the service generated from omni_perf.proto, the protocol's number, and the JSON
// codec that is used beside protobuf. It knows nothing of what the calls do.
package api

import (
	"bytes"
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Number is the protocol this sidecar speaks. It grows when an extension of the
// number before would go wrong; fields may be added without.
const Number = 1

// init is where grpc wants codecs registered: its table is not locked.
func init() { encoding.RegisterCodecV2(jsonCodec{}) }

// jsonCodec carries calls of content type application/grpc+json by protojson's
// rules. It is stateless.
type jsonCodec struct{}

func (jsonCodec) Name() string { return "json" }

func (jsonCodec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("json codec: %T is no message", v)
	}
	text, err := protojson.Marshal(m)
	if err != nil {
		return nil, err
	}
	return mem.BufferSlice{mem.SliceBuffer(text)}, nil
}

func (jsonCodec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("json codec: %T is no message", v)
	}
	return Decode(data.Materialize(), m)
}

// Decode reads a message of an extension, which may be newer and send fields that this sidecar does not know.
func Decode(text []byte, m proto.Message) error {
	return protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(mendSurrogates(text), m)
}

// mendSurrogates replaces lone surrogates in the escapes of a JSON text by
// U+FFFD. Python's json writes them for strings that are no Unicode, as names in
// a user's program may be; protojson would refuse the whole message.
func mendSurrogates(text []byte) []byte {
	if !bytes.Contains(text, []byte(`\ud`)) && !bytes.Contains(text, []byte(`\uD`)) {
		return text
	}
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		unit, ok := escapedUnit(text[i:])
		switch {
		case !ok:
			i++ // an escape of one character, which may be a backslash
		case unit < 0xD800 || unit > 0xDFFF:
			i += 5
		default:
			if low, ok := escapedUnit(text[i+6:]); unit < 0xDC00 && ok && low >= 0xDC00 && low <= 0xDFFF {
				i += 11
				continue
			}
			copy(text[i+2:], "fffd")
			i += 5
		}
	}
	return text
}

// escapedUnit reads the \uXXXX that text begins with.
func escapedUnit(text []byte) (unit uint16, ok bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	for _, c := range text[2:6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		unit = unit<<4 | uint16(c)
	}
	return unit, true
}
