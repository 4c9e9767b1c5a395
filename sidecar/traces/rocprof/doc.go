// Package rocprof reads what AMD's rocprofv3 writes with --output-format json.
//
// In flows the JSON of a run, of any size; out flows a kineto.Trace per process with its
// kernels, copies, calls of HIP, HSA and RCCL, and ROCTx ranges. Times are the file's
// nanoseconds. The file knows neither operators nor Python.
//
// The form is that of rocprofiler-sdk's documentation, "rocprofv3 JSON schema" (docs/how-to/using-rocprofv3.rst): under
// "rocprofiler-sdk-tool" an element a process, with metadata, agents, strings (names by number), kernel_symbols and
// buffer_records. Names come before the records that use them.
package rocprof

import (
	"context"

	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/understand/jsonstream"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Key is the member that such a file has, and no other.
const Key = "rocprofiler-sdk-tool"

const (
	windowSize = 512 << 10
	// maxRecord is how long a record may be; docs/torch-traces.md states it.
	maxRecord = 8 << 20
)

// Read reads a file. Its error is non-nil only when ctx ended.
func Read(ctx context.Context, in kineto.Input, opts kineto.Options) (traces []*kineto.Trace, warnings []kineto.Warning, err error) {
	r := &reader{ctx: ctx, in: in, opts: opts, w: jsonstream.NewWindow(in, windowSize, maxRecord), events: kineto.EventCount{Step: in.Step}}
	whole := r.w.Members(func(key string) bool {
		if key != Key {
			return true
		}
		return r.w.Elements(func() bool {
			p := newProcess(r)
			whole := p.read()
			if t := p.done(); t.Records > 0 {
				traces = append(traces, t)
			}
			return whole
		})
	})
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	warnings = r.warnings(whole)
	if len(traces) == 0 {
		warnings = append(warnings, in.Warn("the JSON of rocprofv3 has no kernels, copies, calls or markers",
			"record with --kernel-trace, --hip-trace, --memory-copy-trace or --marker-trace"))
	} else {
		warnings = append(warnings, in.Note("recorded by rocprofv3", "it knows neither operators nor Python"))
	}
	return traces, warnings, nil
}

// reader reads one file.
type reader struct {
	ctx    context.Context
	in     kineto.Input
	opts   kineto.Options
	w      *jsonstream.Window
	events kineto.EventCount // of all processes
	// What was left out.
	damaged, larger int
}

// warnings are about what was lost; whole: the JSON has its own end.
func (r *reader) warnings(whole bool) (list []kineto.Warning) {
	at := func(what, lost string) {
		list = append(list, kineto.Warning{File: r.in.File, Byte: r.w.Offset(), What: what, Lost: lost})
	}
	switch {
	case r.w.Truncated():
		at(kineto.Ending(r.w.Err))
	case r.events.Over:
		at(r.events.TooMany())
	case !whole && r.w.Err != nil && r.w.Pos == len(r.w.Buf):
		at("the file ends inside the JSON", "what followed is not there")
	case !whole:
		at("damaged JSON", "what followed was not read")
	}
	if r.damaged > 0 {
		list = append(list, r.in.Warn(words.Plural(r.damaged, "record", "records")+" without the numbers that a record has", "these were left out"))
	}
	if r.larger > 0 {
		list = append(list, r.in.Warn(words.Plural(r.larger, "record", "records")+" of more than "+words.Count(maxRecord)+" bytes", "these were left out"))
	}
	return list
}
