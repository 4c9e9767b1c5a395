// Package xplane reads what JAX's profiler writes (HOST.xplane.pb), and TensorFlow's.
//
// In flows an XSpace message, plain or gzip; out flows a kineto.Trace with what the streams of GPUs and the cores of
// TPUs ran, the runtime's calls with their correlation, the ranges that JAX and its user marked, steps and calls of
// Python functions. The file knows no operators of torch.
//
// The message is read by the numbers of its fields (tsl/profiler/protobuf/xplane.proto). A plane is a device or a host,
// a line of it a stream or a thread. Names come behind the events that use them, and times are picoseconds since
// the begin of a line; starts and ends are rounded down to nanoseconds.
package xplane

import (
	"context"
	"io"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// maxFile is how large a decompressed file may be: names come last, so that all of it is in memory.
// docs/torch-traces.md states it.
const maxFile = 1 << 30

// Fields of XSpace.
const (
	spacePlanes    = 1
	spaceErrors    = 2
	spaceWarnings  = 3
	spaceHostnames = 4
)

// Read reads a file. Its error is non-nil only when ctx ended.
func Read(ctx context.Context, in kineto.Input, opts kineto.Options) (traces []*kineto.Trace, warnings []kineto.Warning, err error) {
	content, failed := readAll(in)
	if len(content) > maxFile {
		return nil, []kineto.Warning{in.Warn("more than "+words.Count(maxFile)+" bytes", "nothing was read: record fewer steps")}, nil
	}
	r := &reader{ctx: ctx, in: in, events: kineto.EventCount{Step: in.Step}}
	if failed != nil {
		what, lost := kineto.Ending(failed)
		r.warnings = append(r.warnings, kineto.Warning{File: in.File, Byte: int64(len(content)), What: what, Lost: lost})
	}
	r.space(content, opts, failed != nil)
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	t := r.b.Done()
	if t.Records == 0 {
		return nil, append(r.warnings, in.Warn("the .xplane.pb has no events", "the profiler recorded nothing")), nil
	}
	note := in.Note("recorded by JAX or TensorFlow", "it knows no operators of torch")
	return []*kineto.Trace{t}, append(r.warnings, note), nil
}

// readAll reads up to a byte more than the largest file has. A plain file is read into a buffer of its size.
func readAll(in kineto.Input) ([]byte, error) {
	content := make([]byte, 0, 512)
	if !in.Compressed {
		content = make([]byte, 0, min(in.Size, maxFile)+1)
	}
	for len(content) <= maxFile {
		if len(content) == cap(content) {
			content = slices.Grow(content, min(len(content), maxFile+1-len(content)))
		}
		n, err := in.Read(content[len(content):cap(content)])
		content = content[:len(content)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return content, err
		}
	}
	return content, nil
}

// reader reads one file.
type reader struct {
	ctx      context.Context
	in       kineto.Input
	b        *kineto.Builder
	warnings []kineto.Warning
	events   kineto.EventCount
	begin    int64 // ns since the epoch of the profiler's start
	absolute bool  // lines count from the epoch
}

// space reads an XSpace. cut says that the file was already found to end early.
func (r *reader) space(content []byte, opts kineto.Options, cut bool) {
	r.b = kineto.NewBuilder(r.in.File, opts, -1, "")
	planesWhole := true
	whole := fields(content, func(number protowire.Number, v value) {
		switch number {
		case spacePlanes:
			planesWhole = r.plane(v.bytes) && planesWhole
		case spaceErrors, spaceWarnings:
			if len(r.warnings) < mostWarnings {
				r.warnings = append(r.warnings, r.in.Warn("the profiler says: "+words.Cut(string(v.bytes[:min(len(v.bytes), 400)]), 200), "something may be missing"))
			}
		case spaceHostnames:
			if m := r.b.Meta(); m.Host == "" {
				m.Host = string(v.bytes)
			}
		}
	})
	if !r.absolute {
		r.b.Meta().BaseTime = r.begin
	}
	if (!whole || !planesWhole) && !cut {
		r.warnings = append(r.warnings, r.in.Warn("damaged protobuf, or the file is cut off", "what followed in it was not read"))
	}
	if r.events.Over {
		r.warnings = append(r.warnings, r.in.Warn(r.events.TooMany()))
	}
}

// mostWarnings bounds those of the profiler that are given.
const mostWarnings = 10

// plane reads an XPlane. It reports false where that is damaged.
func (r *reader) plane(message []byte) (whole bool) {
	p := parsePlane(message)
	switch {
	case p.name == environmentPlane:
		r.environment(p)
	case p.isHost():
		r.host(p)
	default:
		if device, isTPU, ok := p.device(); ok {
			r.device(p, device, isTPU)
		}
	}
	return p.whole
}

// value is what a field holds: a number, or bytes.
type value struct {
	number uint64
	bytes  []byte
}

// fields visits the fields of a message. It reports false where the message is damaged, or cut off.
func fields(message []byte, visit func(protowire.Number, value)) bool {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return false
		}
		message = message[n:]
		var v value
		switch kind {
		case protowire.VarintType:
			v.number, n = protowire.ConsumeVarint(message)
		case protowire.Fixed64Type:
			v.number, n = protowire.ConsumeFixed64(message)
		case protowire.BytesType:
			v.bytes, n = protowire.ConsumeBytes(message)
		default:
			n = protowire.ConsumeFieldValue(number, kind, message)
		}
		if n < 0 {
			return false
		}
		visit(number, v)
		message = message[n:]
	}
	return true
}
