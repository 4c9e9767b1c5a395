// Package report is the one document that a display, an export or a test reads.
//
// Build turns a timeline.Recording and its diagnosis into a Report: plain data,
// names as a user reads them ("Cell [7]", "~/train.py"), and everything derived
// that more than one display needs (times per function and cell line, threads,
// findings). A Report marshals to the JSON document described by
// report.schema.json and can be read back without the process that made it.
//
// Seconds are float64 since the recording's start. Indices are into the slices
// of the same document. Slices that can be empty are never null.
package report

import (
	"encoding/json"
	"math"
	"strconv"
	"time"
)

// SchemaVersion changes when a reader of an older document would go wrong.
const SchemaVersion = 1

// Report is the document. Field names are the interface of DESIGN: do not rename.
type Report struct {
	SchemaVersion int       `json:"schema_version"`
	Generator     string    `json:"generator"` // "omni_perf 0.1.0"
	Name          string    `json:"name,omitempty"`
	StartedAt     time.Time `json:"started_at"`
	DurationS     float64   `json:"duration_s"`
	// Headline is the main finding in one sentence, or what can be said instead,
	// and what was not observed.
	Headline string `json:"headline"`
	// HeadlineFinding is the index of the finding that the headline tells; null
	// where it tells none.
	HeadlineFinding *int `json:"headline_finding"`
	// HeadlineLimits are the findings, in the headline too, that say what was not
	// observed.
	HeadlineLimits []int `json:"headline_limits"`
	// TooFew tells that too few stacks were read for shares of time to mean something.
	TooFew    bool      `json:"too_few,omitempty"`
	Target    Target    `json:"target"`
	Sampling  Sampling  `json:"sampling"`
	Processes []Process `json:"processes"`
	Threads   []Thread  `json:"threads"`
	Stacks    Stacks    `json:"stacks"`
	Tracks    []Track   `json:"tracks"`
	// Kernels is what the GPUs' streams ran, by device and stream; empty unless a
	// trace was merged into the recording.
	Kernels   []KernelLane `json:"kernels,omitempty"`
	GPUs      []GPU        `json:"gpus"`
	Idle      *Idle        `json:"idle,omitempty"` // nil where no GPU was seen
	Steps     []Step       `json:"steps"`
	Regions   []Region     `json:"regions"`
	CellLines []CellLine   `json:"cell_lines"`
	// Around is the time of the cell in which none of the user's lines ran but the
	// notebook worked around them, by phase: with the lines' self times and what is
	// of neither it adds up to the duration.
	Around []Around `json:"around"`
	// LineSpans is the lane of the user's own lines: which line of LineFile, the
	// cell that holds most of the time, ran when.
	LineFile  string     `json:"line_file"`
	LineSpans []LineSpan `json:"line_spans"`
	Functions []Function `json:"functions"`
	Findings  []Finding  `json:"findings"`
	Output    *Output    `json:"output,omitempty"`
	// Gaps are stretches of time in which a process's stacks tell nothing.
	Gaps  []Gap  `json:"gaps,omitempty"`
	Notes []Note `json:"notes"`
}

// Gap is a stretch of time in which the stacks of a process tell nothing. Reason is
// "starting", "exec", "exit", "permission", "stopped", "traced" or "unreadable".
type Gap struct {
	StartS float64 `json:"start_s"`
	EndS   float64 `json:"end_s"`
	PID    int     `json:"pid"`
	Reason string  `json:"reason"`
}

// Target says what was recorded: a cell, a script or a process.
type Target struct {
	PID           int      `json:"pid"`
	PythonVersion string   `json:"python_version"`
	Interpreter   string   `json:"interpreter"`
	Argv          []string `json:"argv,omitempty"`
	Cell          *Cell    `json:"cell,omitempty"`
}

// Cell is the recorded notebook cell.
type Cell struct {
	ExecutionCount int      `json:"execution_count"`
	Source         []string `json:"source"` // lines without line ends
	Outcome        string   `json:"outcome"`
}

// Sampling says how the stacks were read and how exact they are.
type Sampling struct {
	Method         string   `json:"method"`
	IntervalS      float64  `json:"interval_s"`                 // that was kept, on average
	AskedS         float64  `json:"asked_interval_s,omitempty"` // that was asked for
	ResolutionS    float64  `json:"resolution_s"`
	Samples        int64    `json:"samples"`
	Lost           int64    `json:"lost"`
	Truncated      int64    `json:"truncated"`
	FallbackReason string   `json:"fallback_reason,omitempty"`
	CPUS           *float64 `json:"cpu_s,omitempty"` // cost of the sampling itself
}

// Process is the target or a descendant.
type Process struct {
	PID    int    `json:"pid"`
	Parent int    `json:"parent"`
	Role   string `json:"role"`
	Rank   *int   `json:"rank,omitempty"`
}

// Thread is one lane. Threads are sorted: the cell's first, then by time not
// spent waiting.
type Thread struct {
	NativeID int      `json:"native_id"`
	PID      int      `json:"pid"`
	Name     string   `json:"name"`
	IsMain   bool     `json:"is_main"`
	RunsCell bool     `json:"runs_cell"`
	OnCPUS   *float64 `json:"on_cpu_s"` // null: unknown
	// OnCPUAtLeast: it may have been on a CPU for longer, after the last reading.
	OnCPUAtLeast bool   `json:"on_cpu_at_least,omitempty"`
	Leaf         string `json:"leaf,omitempty"`
	// Internal threads are the notebook's own machinery and ours: their stacks
	// are kept, tables leave them out.
	Internal bool `json:"internal,omitempty"`
	// StateS is the time in each state, by the state's name.
	StateS map[string]float64 `json:"state_s"`
}

// Stacks holds every thread's history in columns. Node 0 is the empty stack;
// a node's parent precedes it.
type Stacks struct {
	Frames []Frame `json:"frames"`
	Nodes  []Node  `json:"nodes"`
	Spans  Spans   `json:"spans"`
}

// Frame is a function at a line. Kind groups it for colour and diagnosis.
type Frame struct {
	Function  string `json:"function"`
	File      string `json:"file"`
	Line      int    `json:"line"`
	FirstLine int    `json:"first_line"`
	Kind      Kind   `json:"kind"`
}

// Node is a stack: caller's node and leaf frame (meaningless for node 0).
type Node struct {
	Parent int `json:"parent"`
	Frame  int `json:"frame"`
}

// Spans are columns of equal length, sorted by thread, then start.
type Spans struct {
	Thread    []int     `json:"thread"`
	StartS    []float64 `json:"start_s"`
	EndS      []float64 `json:"end_s"`
	Node      []int     `json:"node"`
	State     []string  `json:"state"`
	Truncated []bool    `json:"truncated"`
}

// MarshalJSON writes the columns, times to the microsecond. It is by hand since
// it is on the way from a cell's end to its chart, and a long cell has 10⁵ spans.
func (s Spans) MarshalJSON() ([]byte, error) {
	out := make([]byte, 0, 64+len(s.Thread)*40)
	out = appendColumn(out, `{"thread":`, s.Thread, appendInt)
	out = appendColumn(out, `,"start_s":`, s.StartS, appendMicroseconds)
	out = appendColumn(out, `,"end_s":`, s.EndS, appendMicroseconds)
	out = appendColumn(out, `,"node":`, s.Node, appendInt)
	out = appendColumn(out, `,"state":`, s.State, strconv.AppendQuote) // names of ours, plain ASCII
	out = appendColumn(out, `,"truncated":`, s.Truncated, strconv.AppendBool)
	return append(out, '}'), nil
}

func appendColumn[T any](out []byte, name string, column []T, write func([]byte, T) []byte) []byte {
	out = append(append(out, name...), '[')
	for i, v := range column {
		if i > 0 {
			out = append(out, ',')
		}
		out = write(out, v)
	}
	return append(out, ']')
}

func appendInt(out []byte, n int) []byte { return strconv.AppendInt(out, int64(n), 10) }

// appendMicroseconds writes seconds without superfluous zeros; a report from a
// file may hold anything, but no NaN survives JSON.
func appendMicroseconds(out []byte, s float64) []byte {
	if !(math.Abs(s) < 1e12) {
		return append(out, '0')
	}
	out = strconv.AppendFloat(out, s, 'f', 6, 64)
	for out[len(out)-1] == '0' {
		out = out[:len(out)-1]
	}
	if out[len(out)-1] == '.' {
		out = out[:len(out)-1]
	}
	return out
}

// Track is one figure over time. Value i of a rate is the mean over (t[i-1],
// t[i]], of a gauge the value at t[i]; null is unknown.
type Track struct {
	ID          string    `json:"id"`
	Kind        string    `json:"kind"` // "rate" or "gauge"
	Unit        string    `json:"unit"`
	Source      string    `json:"source"`
	ResolutionS float64   `json:"resolution_s"`
	PID         int       `json:"pid,omitempty"`
	Device      *int      `json:"device,omitempty"`
	Limit       float64   `json:"limit,omitempty"`
	T           []float64 `json:"t_s"`
	Value       []Figure  `json:"value"`
	Mean        Figure    `json:"mean"` // over time, unknown stretches left out
	Peak        Figure    `json:"peak"`
	Ended       string    `json:"ended,omitempty"`
}

// Figure is a number that may be unknown: NaN here, null in JSON.
type Figure float64

// MarshalJSON writes unknown and infinite figures as null.
func (f Figure) MarshalJSON() ([]byte, error) {
	v := float64(f)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(v)
}

// UnmarshalJSON reads null as NaN.
func (f *Figure) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*f = Figure(math.NaN())
		return nil
	}
	return json.Unmarshal(text, (*float64)(f))
}

// GPU is one device; busy + idle + unknown is the duration.
type GPU struct {
	Index          int     `json:"index"`
	UUID           string  `json:"uuid"`
	Name           string  `json:"name"`
	BusyS          float64 `json:"busy_s"`
	IdleS          float64 `json:"idle_s"`
	UnknownS       float64 `json:"unknown_s"`
	Source         string  `json:"source"`
	ResolutionS    float64 `json:"resolution_s"`
	OtherProcesses int     `json:"other_processes"`
	// Used is false when nothing of the recorded program ran on it: its idle time
	// is then nobody's fault and not in Idle.
	Used      bool `json:"used"`
	Simulated bool `json:"simulated,omitempty"`
}

// Idle ranks what the GPUs waited for. Causes add up to the idle time.
type Idle struct {
	GPUIdleS  float64      `json:"gpu_idle_s"`
	Certainty string       `json:"certainty"` // one line for the table's heading
	Method    string       `json:"method"`    // how idle inside a window was divided: diagnose.Method
	R2        *float64     `json:"r2,omitempty"`
	Devices   []DeviceIdle `json:"devices"`
	Causes    []Cause      `json:"causes"`
}

// DeviceIdle is the same for one device.
type DeviceIdle struct {
	Device    int     `json:"device"`
	IdleS     float64 `json:"idle_s"`
	Certainty string  `json:"certainty"`
	Causes    []Cause `json:"causes"`
	// Intervals are the merged idle stretches: start and end, seconds.
	Intervals [][2]float64 `json:"intervals"`
}

// Cause is one reason on one source line.
type Cause struct {
	ID         string   `json:"id"`    // diagnose.Cause
	Cause      string   `json:"cause"` // its name
	Seconds    float64  `json:"seconds"`
	Share      float64  `json:"share"` // of the idle time, 0..1
	File       string   `json:"file"`
	Line       int      `json:"line"`
	SourceText string   `json:"source_text"`
	Hint       string   `json:"hint"`
	BoundS     *float64 `json:"bound_s,omitempty"` // half-width where it is an estimate
	// LowS and HighS are what the measured windows allow, where it is an estimate.
	LowS  *float64 `json:"low_s,omitempty"`
	HighS *float64 `json:"high_s,omitempty"`
	// Evidence is where most of it lies: start and end, seconds.
	Evidence [][2]float64 `json:"evidence"`
}

// Step is one training step.
type Step struct {
	StartS    float64  `json:"start_s"`
	EndS      float64  `json:"end_s"`
	Name      string   `json:"name,omitempty"`
	Epoch     *int     `json:"epoch,omitempty"`
	DataWaitS float64  `json:"data_wait_s"`
	BusyS     *float64 `json:"busy_s,omitempty"`
}

// Region sums up the stretches the user gave one name.
type Region struct {
	Name   string  `json:"name"`
	Count  int     `json:"count"`
	TotalS float64 `json:"total_s"`
	P50S   float64 `json:"p50_s"`
	P95S   float64 `json:"p95_s"`
}

// CellLine is the time of one line of the user's own code: of the cell, of
// functions defined in other cells, or of the script. Self time is that for
// which the line is the innermost such line on the stack, so that self times
// add up; total time also has the user's lines it called.
type CellLine struct {
	File   string  `json:"file"`
	Line   int     `json:"line"`
	Text   string  `json:"text"`
	SelfS  float64 `json:"self_s"`
	TotalS float64 `json:"total_s"`
	IdleS  float64 `json:"idle_s"` // GPU idle charged to it
}

// Around is the time of one phase of the notebook's work around a cell's code.
type Around struct {
	Phase   string  `json:"phase"` // "prepare", "display", "traceback", "figures", "callbacks"
	Name    string  `json:"name"`  // for people
	Seconds float64 `json:"seconds"`
}

// LineSpan is a stretch in which one line of the cell ran (line 0: none did).
type LineSpan struct {
	StartS float64 `json:"start_s"`
	EndS   float64 `json:"end_s"`
	Line   int     `json:"line"`
}

// Function is the time of one function over all threads; recursion counts once.
type Function struct {
	Function string  `json:"function"`
	File     string  `json:"file"`
	Line     int     `json:"line"` // first line
	Kind     Kind    `json:"kind"`
	SelfS    float64 `json:"self_s"`
	TotalS   float64 `json:"total_s"`
	// CutS is the part of SelfS in which the function may have called something that
	// could not be read: its callee was cut off the stack.
	CutS float64 `json:"cut_s,omitempty"`
}

// Finding is one sentence worth saying, most severe first.
type Finding struct {
	ID         string `json:"id"`
	Severity   string `json:"severity"` // "warning" or "info"
	Text       string `json:"text"`     // names the place, never the source text
	Hint       string `json:"hint,omitempty"`
	File       string `json:"file,omitempty"`
	Line       int    `json:"line,omitempty"`
	SourceText string `json:"source_text,omitempty"`
	// Evidence are stretches in which it shows: start and end, seconds.
	Evidence [][2]float64 `json:"evidence"`
	CostS    float64      `json:"cost_s,omitempty"` // what removing it could save at most
}

// Output is what the cell printed.
type Output struct {
	Messages int64 `json:"messages"`
	Bytes    int64 `json:"bytes"`
	AtLeast  bool  `json:"at_least"`
}

// Note says what could not be read, and why.
type Note struct {
	What   string `json:"what"`
	Reason string `json:"reason"`
}
