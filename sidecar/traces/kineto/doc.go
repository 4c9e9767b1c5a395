// Package kineto reads PyTorch profiler (Kineto) traces.
//
// In flow files: JSON, plain or gzip, of any size, possibly damaged. Out flows a
// [Set] of traces: one [Trace] per file with a columnar table per kind of record
// (device events, runtime calls, operators, Python frames, memory changes),
// strings interned, times in integer nanoseconds taken from the decimal text,
// and the rank of the process it is of. Files of other tools are handed to the
// readers that Options.Formats names, which fill a [Builder]; VizTracer's and other
// slices in the same format are read here. What was damaged, where, and what that
// cost is a [Warning]. The package knows nothing of what is asked of a trace.
//
// A Set is read-only once Load returned it and may be read from several
// goroutines.
package kineto

import "fmt"

// Warning says what was wrong with an input and what it cost.
type Warning struct {
	File string // "" when it is about the whole set
	// Byte is the offset in the decompressed JSON, or -1 when the warning
	// is about the whole file.
	Byte int64
	// What happened and what was lost, each a clause.
	What string
	Lost string
	Note bool // no figure is affected: a text was repaired, a file in the folder is no trace
}

func (w Warning) String() string {
	text := w.What
	if w.Lost != "" {
		text += "; " + w.Lost
	}
	switch {
	case w.File == "":
		return text
	case w.Byte >= 0:
		return fmt.Sprintf("%s: byte %d: %s", w.File, w.Byte, text)
	}
	return w.File + ": " + text
}
