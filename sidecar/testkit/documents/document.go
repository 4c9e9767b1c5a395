// Package documents makes up recordings, for the viewer's tests, benchmark and
// harness page: report documents of version 2 with the chart's geometry in
// them, the static picture that goes with each, and pages that hold both as an
// output does. Nothing of the product imports it.
//
// It lays lanes out by the same rules as the viewer, in a second implementation, and
// chooses columns as the static picture does (flame.Instants): testdata/geometry.json
// holds all to the same numbers.
package documents

// Document is a report, version 2, as far as the viewer reads it.
type Document struct {
	Document     string         `json:"document"`
	Version      int            `json:"version"`
	Name         string         `json:"name,omitempty"`
	DurationNS   int64          `json:"duration_ns"`
	Targets      []Target       `json:"targets"`
	Subject      Subject        `json:"subject"`
	Processes    []Process      `json:"processes"`
	Threads      []Thread       `json:"threads"`
	Devices      []Device       `json:"devices"`
	Files        []File         `json:"files"`
	Functions    []Function     `json:"functions"`
	Frames       Frames         `json:"frames"`
	Nodes        Nodes          `json:"nodes"`
	Spans        Spans          `json:"spans"`
	Tracks       []Track        `json:"tracks"`
	Idle         *Idle          `json:"idle"`
	Steps        []Step         `json:"steps"`
	Lines        []Line         `json:"lines"`
	Memory       []Growth       `json:"memory,omitempty"`
	Findings     []Finding      `json:"findings"`
	Kernels      []Kernels      `json:"kernels,omitempty"`
	Enumerations map[string]any `json:"enumerations"`
	Chart        *Chart         `json:"chart,omitempty"`
}

// Target is what was recorded.
type Target struct {
	Kind    string `json:"kind"`
	Process int    `json:"process"`
}

// Subject is whom it is about: a thread, and those that run the program's code.
type Subject struct {
	Process int   `json:"process"`
	Thread  int   `json:"thread"`
	Program int   `json:"program"`
	Threads []int `json:"threads"`
}

// Process is the target's or a descendant.
type Process struct {
	Target int    `json:"target"`
	PID    int    `json:"pid"`
	Role   string `json:"role"`
	Number *int   `json:"role_number"`
}

// Thread is one of a process.
type Thread struct {
	Process  int    `json:"process"`
	NativeID int    `json:"native_id"`
	Name     string `json:"name"`
	Main     bool   `json:"main"`
	RunsCell bool   `json:"runs_cell"`
	Internal bool   `json:"internal"`
}

// Device is a GPU.
type Device struct {
	Number int    `json:"number"`
	Name   string `json:"name"`
	Used   bool   `json:"used"`
}

// File is a source file; code is an index into enumerations.
type File struct {
	Name           string   `json:"name"`
	Code           int      `json:"code"`
	Package        *string  `json:"package"`
	ExecutionCount *int     `json:"execution_count"`
	Lines          []string `json:"lines"`
}

// Function is one of a file.
type Function struct {
	File      int    `json:"file"`
	Name      string `json:"name"`
	FirstLine int    `json:"first_line"`
	Code      int    `json:"code"`
}

// Frames are functions at lines, Nodes stacks of frames, Spans what each thread's
// stack was when.
type Frames struct {
	Function []int `json:"function"`
	Line     []int `json:"line"`
}

// Nodes is the stack tree: node 0 is the empty stack.
type Nodes struct {
	Parent []int `json:"parent"`
	Frame  []int `json:"frame"`
}

// Spans are columns; First has the index of each thread's first one, and the total.
type Spans struct {
	First  []int   `json:"first"`
	Gap    []int64 `json:"gap_us"`
	Length []int64 `json:"length_us"`
	Node   []int   `json:"node"`
	State  []int   `json:"state"`
}

// Track is a figure over time; nil is unknown.
type Track struct {
	ID     string     `json:"id"`
	Kind   string     `json:"kind"`
	Unit   string     `json:"unit"`
	Device *int       `json:"device"`
	At     []int64    `json:"at_us"`
	Value  []*float64 `json:"value"`
}

// Idle is what the devices waited for.
type Idle struct {
	IdleNS  int64        `json:"idle_ns"`
	Causes  []Cause      `json:"causes"`
	Devices []DeviceIdle `json:"devices"`
}

// DeviceIdle is the same for one device.
type DeviceIdle struct {
	Device    int        `json:"device"`
	IdleNS    int64      `json:"idle_ns"`
	Intervals [][2]int64 `json:"intervals"`
}

// Cause is one reason.
type Cause struct {
	Kind     string     `json:"kind"`
	NS       int64      `json:"ns"`
	LowNS    *int64     `json:"low_ns"`
	HighNS   *int64     `json:"high_ns"`
	File     *int       `json:"file"`
	Line     *int       `json:"line"`
	Evidence [][2]int64 `json:"evidence"`
	Text     string     `json:"text"`
	Hint     string     `json:"hint"`
}

// Step is a training step.
type Step struct {
	StartNS    int64  `json:"start_ns"`
	EndNS      int64  `json:"end_ns"`
	DataWaitNS int64  `json:"data_wait_ns"`
	BusyNS     *int64 `json:"busy_ns"`
}

// Growth is what the resident memory of a process grew by in a line.
type Growth struct {
	File       int        `json:"file"`
	Line       int        `json:"line"`
	Process    int        `json:"process"`
	GrownBytes int64      `json:"grown_bytes"`
	Evidence   [][2]int64 `json:"evidence,omitempty"`
}

// Line is the time of one line of the user's own.
type Line struct {
	File    int      `json:"file"`
	Line    int      `json:"line"`
	Process int      `json:"process"`
	SelfNS  int64    `json:"self_ns"`
	TotalNS int64    `json:"total_ns"`
	IdleNS  int64    `json:"idle_ns"`
	StateNS [7]int64 `json:"state_ns"`
}

// Finding is something worth saying.
type Finding struct {
	Severity string     `json:"severity"`
	File     *int       `json:"file"`
	Line     *int       `json:"line"`
	Evidence [][2]int64 `json:"evidence"`
	CostNS   int64      `json:"cost_ns"`
	Text     string     `json:"text"`
	Hint     string     `json:"hint"`
}

// Kernels is what a stream ran, in nanoseconds.
type Kernels struct {
	Names    []string `json:"names"`
	Name     []int    `json:"name"`
	Gap      []int64  `json:"gap_ns"`
	Length   []int64  `json:"length_ns"`
	Count    []int    `json:"count,omitempty"`
	Launch   []int64  `json:"launch_ns,omitempty"`
	Launcher []int    `json:"launcher,omitempty"`
}

// State is what a thread was doing.
type State int

// The states, in the order of Document.Enumerations.
const (
	Python State = iota
	Native
	Waiting
	IO
	GIL
	Off
	Unknown
)

// Code is whose code a function is.
type Code int

// The codes, in the order of Document.Enumerations.
const (
	Cell Code = iota
	User
	Data
	Framework
	DeviceCall
	InputOutput
	Pictures
	Other
)

var (
	stateIDs   = []string{"python", "native", "waiting", "io", "gil", "off", "unknown"}
	codeIDs    = []string{"cell", "user", "data", "framework", "device", "io", "picture", "other"}
	stateWords = []string{"Python", "native code", "waiting", "input/output", "waits for the GIL", "no free CPU", "unknown"}
	// Paints of the chart's style sheet, by code.
	codePaints = []string{"cell", "user", "data", "frame", "dev", "io", "pic", "other"}
)
