// Package torchtrace reads PyTorch profiler (Kineto) traces of one or many
// ranks and answers where the device time went.
//
// In flow files: JSON, plain or gzip, of any size, possibly damaged. Out flow
// tables of plain columns that JSON, CSV, terminal, HTML and pandas all read.
// The package knows nothing of terminals, charts or notebooks.
//
//	set, err := torchtrace.Load(ctx, []string{"traces/"}, torchtrace.LoadOptions{})
//	if err != nil { … }                       // nothing at all could be read
//	for _, w := range set.Warnings { … }      // what was damaged, where, what was lost
//	a := torchtrace.Analyze(set, torchtrace.AnalyzeOptions{Mode: torchtrace.Exact})
//	idle := a.Table(torchtrace.TableTemporal) // *Table: columns with HTA's names beside ours
//	a.WriteJSON(os.Stdout)                    // the document "omni-perf.analyze/1"
//
// Run does both at once and lets each file's events go early, for traces larger
// than memory. Load keeps each file as a [Trace]: one columnar table per kind of record
// (device events, runtime calls, operators, Python frames, memory changes),
// strings interned, times in integer nanoseconds taken from the decimal text.
// Every analysis is a pure function from a Trace (or all of a [TraceSet]) to a
// [Table]. A TraceSet is read-only once Load returned it and may be analysed
// from several goroutines.
//
// # Modes
//
// Exact counts what is true: nanoseconds, one definition of a device event,
// nothing rounded. HTA reproduces HolisticTraceAnalysis with its microsecond
// rounding, HTANs the same with HTA_DISABLE_NS_ROUNDING=1; both copy its
// faults on purpose, so that numbers can be compared with older notebooks.
package torchtrace

import (
	"fmt"
	"time"
)

// Mode says by whose rules numbers are computed.
type Mode string

const (
	Exact Mode = "exact"  // integer nanoseconds, no known faults; the default
	HTA   Mode = "hta"    // HolisticTraceAnalysis with its microsecond rounding
	HTANs Mode = "hta-ns" // HolisticTraceAnalysis with HTA_DISABLE_NS_ROUNDING=1
)

// ParseMode accepts the spelling of the command line; "" means Exact.
func ParseMode(text string) (Mode, error) {
	switch m := Mode(text); m {
	case "":
		return Exact, nil
	case Exact, HTA, HTANs:
		return m, nil
	}
	return "", fmt.Errorf("unknown mode %q: use exact, hta or hta-ns", text)
}

// LoadOptions: the zero value reads every rank with sensible limits.
type LoadOptions struct {
	// Ranks keeps only these ranks; empty keeps all.
	Ranks []int
	// Parallel is how many files are read at once; 0 means one per CPU.
	Parallel int
	// Shapes keeps operators' input shapes, which GroupByShape needs.
	Shapes bool
	// SkipPython drops python_function records (often most of a with_stack
	// trace) when Python stacks are not wanted.
	SkipPython bool
	// Progress, when set, is called a few times a second and once at the
	// end, never from two goroutines at the same time.
	Progress func(Progress)
}

// Progress of a Load. Bytes count the files as stored, before gunzip.
type Progress struct {
	File            string // the file last worked on
	FilesDone       int
	Files           int
	Bytes, AllBytes int64
	Events          int64 // events read so far, all files
	Done            bool  // true in the last call only
}

// Warning tells what was wrong with an input and what it cost.
type Warning struct {
	File string `json:"file"` // "" when it is about the whole set
	// Byte is the offset in the decompressed JSON, or -1 when the warning
	// is about the whole file.
	Byte int64 `json:"byte"`
	// What happened and what was lost, each a clause.
	What string `json:"what"`
	Lost string `json:"lost,omitempty"`
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

// TraceSet is what Load read: one Trace per rank, sorted by rank.
type TraceSet struct {
	Traces   []*Trace
	Warnings []Warning
}

// Rank returns the trace of a rank, or nil.
func (s *TraceSet) Rank(rank int) *Trace {
	for _, t := range s.Traces {
		if t.Rank == rank {
			return t
		}
	}
	return nil
}

// Ranks lists the ranks, ascending.
func (s *TraceSet) Ranks() []int {
	ranks := make([]int, len(s.Traces))
	for i, t := range s.Traces {
		ranks[i] = t.Rank
	}
	return ranks
}

// AnalyzeOptions: the zero value is exact mode over all steps but an
// unfinished last one.
type AnalyzeOptions struct {
	Mode Mode
	// IncludeLastStep keeps the last ProfilerStep, which is usually cut off
	// by the end of the recording and therefore dropped.
	IncludeLastStep bool
	// Steps keeps only these ProfilerStep numbers (exact mode); empty keeps all.
	Steps []int
	// Tables names the tables to compute; empty means DefaultTables.
	Tables []string
	// KernelWait is the gap up to which a device that had work queued is
	// said to wait for the next kernel only; 0 means 30 µs, as in HTA.
	KernelWait time.Duration
	// TopKernels is how many kernels a folded breakdown names; 0 means 10.
	TopKernels int
	// GroupByShape splits the operator table by input shapes.
	GroupByShape bool
}
