package kineto

// What a trace may have. docs/torch-traces.md states these limits.
const (
	windowSize = 512 << 10
	// maxRecord bounds the memory that one event or metadata value may take; a larger one
	// is skipped.
	maxRecord = 8 << 20
	// maxBlanks is the white space before the JSON.
	maxBlanks = 1 << 20
	// maxEvents is how many events of a file are read, about 100 bytes of memory each.
	maxEvents = 1 << 25
	// MaxEvents is how many events of another tool's file are read: an event may be four bytes there, and the tables
	// grow by copying.
	MaxEvents = 1 << 24
	// maxForeign is how many elements of traceEvents may be no events: a file of more is no
	// trace.
	maxForeign = 1 << 20
	// maxLarger is how often something of more than maxRecord is looked for an end of, which
	// each time costs reading so much.
	maxLarger = 16
)
