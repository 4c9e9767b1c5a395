// Package formats knows what the files are that people take for traces.
//
// In flow a file's name and how it begins, out flows which reader reads it, or what it
// is and what to do instead: one table, the only place where a format is recognised.
// What it does not know is read as a trace of torch.profiler, whose reader is the most
// tolerant one.
package formats

import (
	"context"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
)

// Load is kineto.Load of files that any tool of the table may have written.
func Load(ctx context.Context, paths []string, opts kineto.Options) (*kineto.Set, error) {
	return LoadEach(ctx, paths, opts, nil)
}

// LoadEach is kineto.LoadEach of such files.
func LoadEach(ctx context.Context, paths []string, opts kineto.Options, each func(*kineto.Trace)) (*kineto.Set, error) {
	opts.Formats = &kineto.Formats{Recognise: Recognise, Listed: listed}
	return kineto.LoadEach(ctx, paths, opts, each)
}

// OfProcess is the trace of a process in the set of a file, the first where none has its number.
func OfProcess(set *kineto.Set, pid int64) *kineto.Trace {
	return set.Traces[max(0, slices.IndexFunc(set.Traces, func(t *kineto.Trace) bool { return t.Process.PID == pid }))]
}

// EachRaw visits the events of a process in a file of another format as if it were in the trace event format.
func EachRaw(ctx context.Context, path string, pid int64, visit func(kineto.RawEvent) error) error {
	set, err := Load(ctx, []string{path}, kineto.Options{})
	if err != nil {
		return err
	}
	return OfProcess(set, pid).EachRaw(ctx, visit)
}

// Recognise finds what another tool than torch.profiler wrote; nil if it is none that is known.
func Recognise(name string, head []byte) *kineto.Foreign {
	b := beginningOf(name, head)
	for i := range table {
		if table[i].is(b) {
			return &table[i].Foreign
		}
	}
	return nil
}
