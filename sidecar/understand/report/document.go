// Package report is the one document that every display, export and script reads.
//
// Build turns a timeline.Recording and its diagnosis into a Document: plain data,
// everything referring by index into the lists of the same document, described
// property by property in report.schema.json. Read takes a document from anywhere,
// checks it once and gives a View: what consumers ask for (a thread's history, a
// frame's function, a file's lines, a device's tracks), with nothing left for them
// to check. Thin makes the same document smaller.
//
// Times are integers: nanoseconds (names that end in NS), since the document's
// origin where they are instants; in columns microseconds (US), of which each
// boundary is rounded once. Unknown is null, never 0. Lists are never null. Words
// for people are beside the data (Text, Hint); nothing compares them.
package report

import "time"

// Kind and Version say what a document is. The version changes when a reader of an
// older document would go wrong; what is only added changes nothing.
const (
	Kind    = "omni_perf.report"
	Version = 2
)

// Document is one recording. Its JSON names are the interface.
type Document struct {
	Document  string    `json:"document"`
	Version   int       `json:"version"`
	Generator Generator `json:"generator"`
	Name      string    `json:"name"` // what the user called it, or empty
	StartedAt time.Time `json:"started_at"`
	// DurationNS is how long was recorded; all instants lie within.
	DurationNS int64    `json:"duration_ns"`
	Headline   Headline `json:"headline"`

	Hosts     []Host     `json:"hosts"`
	Targets   []Target   `json:"targets"`
	Processes []Process  `json:"processes"`
	Threads   []Thread   `json:"threads"`
	Subject   *Subject   `json:"subject,omitempty"` // nil only in documents of older programs: Check adds it
	Pools     []Pool     `json:"pools,omitempty"`   // absent where there are none
	Devices   []Device   `json:"devices"`
	Files     []File     `json:"files"`
	Functions []Function `json:"functions"`
	Frames    Frames     `json:"frames"`
	Nodes     Nodes      `json:"nodes"`
	Spans     Spans      `json:"spans"`
	Tracks    []Track    `json:"tracks"`

	Idle          *Idle          `json:"idle"` // null where no device's activity is known
	Steps         []Step         `json:"steps"`
	Ranks         []Rank         `json:"ranks,omitempty"`      // absent where there are none
	RankLines     []RankLine     `json:"rank_lines,omitempty"` // absent where no two ranks have five steps
	Regions       []Region       `json:"regions"`
	Lines         []Line         `json:"lines"`
	Phases        []Phase        `json:"phases"`
	FunctionTimes []FunctionTime `json:"function_times"`
	Blocked       []Blocked      `json:"blocked,omitempty"`      // absent where no call on a file, socket or pipe was seen to block
	Awaits        []Await        `json:"awaits,omitempty"`       // absent where no task of an event loop waited in the user's own code
	TaskReading   *TaskReading   `json:"task_reading,omitempty"` // likewise
	Memory        []Memory       `json:"memory,omitempty"`       // absent where no resident memory grew in the user's own code
	// MemoryFunctions is the growth by function; absent where none grew.
	FunctionMemory []MemoryFunction `json:"memory_functions,omitempty"`
	GPUMemory      []GPUMemory      `json:"gpu_memory,omitempty"` // absent where none grew, or the driver has no figure of it
	// GPUMemoryReads is how the memory on GPUs was read; TorchMemory what torch's allocator said of itself.
	GPUMemoryReads []GPUMemoryReading `json:"gpu_memory_reading,omitempty"`
	TorchMemory    []TorchMemory      `json:"torch_memory,omitempty"`
	Allocations    *Allocations       `json:"allocations,omitempty"`     // absent unless each one was recorded
	MemoryReading  []MemoryReading    `json:"memory_reading,omitempty"`  // of each process whose resident memory changed
	TrainingPhases []TrainingPhase    `json:"training_phases,omitempty"` // absent where no training was seen
	SlowSteps      []SlowSteps        `json:"slow_steps,omitempty"`      // absent where none was slow for a reason that is known
	Loaders        []Loader           `json:"loaders,omitempty"`         // absent where nothing trains with loaders of torch
	Findings       []Finding          `json:"findings"`
	Gaps           []Gap              `json:"gaps"`
	Notes          []Note             `json:"notes"`
	Kernels        []KernelLane       `json:"kernels,omitempty"`       // absent unless a trace was merged
	Operators      []Operator         `json:"operators,omitempty"`     // likewise, as the next two
	KernelTimes    []KernelTime       `json:"kernel_times,omitempty"`  // by name
	Traces         []Trace            `json:"traces,omitempty"`        // what the three are made of
	OutOfMemory    []OutOfMemory      `json:"out_of_memory,omitempty"` // absent where no allocation on a device failed
	Thinned        *Thinned           `json:"thinned"`
	Enumerations   Enumerations       `json:"enumerations"`
}

// Generator is the program that wrote the document.
type Generator struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Headline is what to read first, and what it refers to.
type Headline struct {
	Kind    HeadlineKind `json:"kind"`
	Finding *int         `json:"finding"`
	// Limits are findings that say what was not observed; Text contains them, too.
	Limits []int  `json:"limits"`
	Text   string `json:"text"`
	Hint   string `json:"hint"`
}

// HeadlineKind is what a headline is about.
type HeadlineKind string

// The kinds of headlines.
const (
	HeadlineFinding  HeadlineKind = "finding"   // Finding
	HeadlineTooFew   HeadlineKind = "too-few"   // too few stacks were read for shares of time to mean something
	HeadlineNoStacks HeadlineKind = "no-stacks" // nothing is known of what the program did
	HeadlineSummary  HeadlineKind = "summary"   // nothing stands out
)

// Host is a machine.
type Host struct {
	BootID      *string `json:"boot_id"` // the same for documents of one machine between two starts
	Name        *string `json:"name"`
	Cores       *int    `json:"cores"`
	MemoryBytes *int64  `json:"memory_bytes"`
	Clock       Clock   `json:"clock"`
	// Aligned is how this machine's clock was related to that of the document's first machine; nil of that one.
	Aligned *Alignment `json:"aligned,omitempty"`
	// Readings are those of this machine's clock beside another one's, as the client of an engine took them.
	Readings []ClockReading `json:"readings,omitempty"`
}

// ClockReading is one reading of a machine's monotonic clock, asked for by another machine, which looked at its own before and after.
type ClockReading struct {
	BootID      string `json:"boot_id"`      // of the other machine
	MonotonicNS int64  `json:"monotonic_ns"` // of this one
	LowNS       int64  `json:"low_ns"`       // of the other one, before
	HighNS      int64  `json:"high_ns"`      // and after
}

// Alignment is how the clocks of two machines were related.
type Alignment struct {
	Method  string `json:"method"`   // AlignedByWall and so on
	BoundNS int64  `json:"bound_ns"` // how far off it can be
}

// The methods of an Alignment.
const (
	AlignedByWall        = "wall"        // by the wall clocks, as far as those agree
	AlignedByCollectives = "collectives" // nobody leaves one before everybody has entered it
	AlignedByReadings    = "readings"    // one machine asked for the other's clock, between two looks at its own
)

// Clock relates a host's clocks: CLOCK_MONOTONIC, by which everything was timed,
// and the wall clock.
type Clock struct {
	MonotonicNS    int64  `json:"monotonic_ns"` // at the origin
	WallNS         int64  `json:"wall_ns"`      // at the origin, since 1970
	EndMonotonicNS *int64 `json:"end_monotonic_ns"`
	EndWallNS      *int64 `json:"end_wall_ns"`
	ErrorNS        *int64 `json:"error_ns"` // half-width of what the relation is known to
}

// Target is what was recorded.
type Target struct {
	Kind    TargetKind `json:"kind"`
	Host    int        `json:"host"`
	Process int        `json:"process"` // its root
	// Program is the process that the report is about, where the root only starts it: a shell
	// script, uv, a launcher. nil: the root.
	Program *int `json:"program,omitempty"`
	// Leading is the first rank's process of a launcher that is explained by it. nil: the
	// target is not explained by a rank.
	Leading       *int     `json:"leading,omitempty"`
	Rank          *int     `json:"rank"`
	LocalRank     *int     `json:"local_rank"`
	WorldSize     *int     `json:"world_size"`
	Node          *int     `json:"node"`
	Run           *string  `json:"run,omitempty"` // what the launcher calls the run: the same for all its ranks
	Name          string   `json:"name"`          // "Cell [7]", "train.py", "-m package", "process 12"
	Argv          []string `json:"argv"`
	Interpreter   string   `json:"interpreter"`
	PythonVersion string   `json:"python_version"`
	StartNS       int64    `json:"start_ns"`
	EndNS         int64    `json:"end_ns"`
	// ThreadNS is the time that is known of the threads which ran the target's code,
	// NoLineNS the part of it in none of the user's own lines. Of the process whose
	// code is reported, the self times of Lines and NoLineNS add up to ThreadNS.
	ThreadNS int64    `json:"thread_ns"`
	NoLineNS int64    `json:"no_line_ns"`
	Cell     *Cell    `json:"cell"`
	Output   *Output  `json:"output"`
	Sampling Sampling `json:"sampling"`
}

// TargetKind says what a target is.
type TargetKind string

// The kinds of targets.
const (
	TargetCell    TargetKind = "cell"
	TargetScript  TargetKind = "script"
	TargetProcess TargetKind = "process"
)

// Cell is a recorded notebook cell. Its lines are its file's.
type Cell struct {
	ExecutionCount *int    `json:"execution_count"`
	File           int     `json:"file"`
	Outcome        Outcome `json:"outcome"`
	Exception      *string `json:"exception"` // its type, where Outcome is an error
}

// Outcome is how a cell ended.
type Outcome string

// The outcomes.
const (
	OutcomeOK          Outcome = "ok"
	OutcomeError       Outcome = "error"
	OutcomeInterrupted Outcome = "interrupted"
	OutcomeTimedOut    Outcome = "timed-out" // it took longer than who had it executed allows
	OutcomeKernelDied  Outcome = "kernel-died"
	OutcomeRestarted   Outcome = "kernel-restarted"
	OutcomeRunning     Outcome = "still-running"
	OutcomeUnknown     Outcome = "unknown"
)

// Output is what a target printed.
type Output struct {
	Messages int64 `json:"messages"`
	Bytes    int64 `json:"bytes"`
	AtLeast  bool  `json:"at_least"`
}

// Process is a target's root or a descendant.
type Process struct {
	Target     int     `json:"target"`
	Host       int     `json:"host"`
	PID        int     `json:"pid"`
	Parent     *int    `json:"parent"` // null: not one of these
	Role       string  `json:"role"`
	RoleNumber *int    `json:"role_number"`
	Rank       *int    `json:"rank"`
	Command    string  `json:"command"`
	Text       string  `json:"text"`     // what it is called: "DataLoader worker 3"
	StartNS    int64   `json:"start_ns"` // negative: before the recording
	EndNS      *int64  `json:"end_ns"`   // null: it was alive to the last
	EndReason  *string `json:"end_reason"`
	ExitCode   *int    `json:"exit_code"` // or 128 and the signal
	// Exception is what ended its Python program; absent where nothing did, or it is not known.
	Exception *Exception `json:"exception,omitempty"`
	CPUNS     *int64     `json:"cpu_ns"`
	Stacks    Stacks     `json:"stacks"`
	// PeakMemoryBytes is the most that was resident while it was recorded, where that is exact;
	// else PeakAtLeastBytes is the most that was seen. Both are absent where nothing is known.
	PeakMemoryBytes  *int64 `json:"peak_memory_bytes,omitempty"`
	PeakAtLeastBytes *int64 `json:"peak_at_least_bytes,omitempty"`
	// KeptBytes is what its resident memory grew by until its own code had ended, or the cell, less what was given back;
	// negative where that was more. Absent where it is not known.
	KeptBytes *int64 `json:"kept_bytes,omitempty"`
	OwnBytes  *int64 `json:"own_bytes,omitempty"` // at the end, what no other process had (USS)
	PSSBytes  *int64 `json:"pss_bytes,omitempty"` // and its part of what it shared: these may be added up
	Work      *Work  `json:"work,omitempty"`      // nil: not known
}

// Exception is one that nothing in a program has caught.
type Exception struct {
	Type    string `json:"type"`
	Message string `json:"message"` // its first line; empty where it is not known
	File    *int   `json:"file"`    // of the innermost line of the user's own that it came through; null: none did
	Line    *int   `json:"line"`
}

// Work is what the threads of a descendant that do its work spent their time with. What is left of it they
// worked at what the process was started for.
type Work struct {
	ThreadNS   int64 `json:"thread_ns"`   // that they lived and were read, all together
	StartingNS int64 `json:"starting_ns"` // being set up, in no line of the user's own: imports, unpickling what they run
	NoTaskNS   int64 `json:"no_task_ns"`  // waiting for a task
	PassingNS  int64 `json:"passing_ns"`  // handing over tasks and results, or in the library that does
}

// Stacks says whether a process's stacks were read.
type Stacks struct {
	Read       bool    `json:"read"`
	IntervalNS *int64  `json:"interval_ns"` // kept on average; null of the target, for which Sampling has it
	Reason     *string `json:"reason"`      // why not
	Text       string  `json:"text"`
}

// Thread is one lane. Threads are sorted: the subject's first, then the target's, then
// by time not spent waiting.
type Thread struct {
	Process  int    `json:"process"`
	NativeID int    `json:"native_id"`
	Name     string `json:"name"`
	Main     bool   `json:"main"`
	RunsCell bool   `json:"runs_cell"`
	// AtWork: it does its process's work. Of other processes than the program lines have all of the time of these threads,
	// of the rest what they did.
	AtWork bool `json:"at_work"`
	// Internal threads are the notebook's own machinery and ours: tables leave them out.
	Internal     bool       `json:"internal"`
	OnCPUNS      *int64     `json:"on_cpu_ns"`
	OnCPUAtLeast bool       `json:"on_cpu_at_least"`
	StateNS      StateTimes `json:"state_ns"`
	Leaf         *string    `json:"leaf"` // last known native leaf: "in poll"
}

// Device is a GPU. Busy, idle and unknown time add up to the duration.
type Device struct {
	Host         int    `json:"host"`
	UUID         string `json:"uuid"`
	Number       int    `json:"number"`
	Name         string `json:"name"`
	Driver       string `json:"driver"`
	Source       string `json:"source"` // of the activity
	ResolutionNS *int64 `json:"resolution_ns"`
	BusyNS       int64  `json:"busy_ns"`
	IdleNS       int64  `json:"idle_ns"`
	UnknownNS    int64  `json:"unknown_ns"`
	Used         bool   `json:"used"` // by the target; else its idle time is nobody's
	Simulated    bool   `json:"simulated"`
	LostAtNS     *int64 `json:"lost_at_ns"`
	// Xids are the errors that its driver reported.
	Xids      []Xid `json:"xids,omitempty"`
	Processes []int `json:"processes"` // the target's that used it
	Others    *int  `json:"other_processes"`
	// EnergyJ is what the device used, whoever used it; absent where it does not count that, or was not asked for most of
	// the time.
	EnergyJ *float64 `json:"energy_j,omitempty"`
}

// Xid is an error of a device.
type Xid struct {
	AtNS int64 `json:"at_ns"` // when it was read, half a second later at most
	Code int   `json:"code"`  // NVIDIA's number of its kind
}

// File is a source file, or a notebook cell.
type File struct {
	Name    string  `json:"name"` // "Cell [7]", "~/train.py"
	Code    Code    `json:"code"`
	Package *string `json:"package"`
	// SHA256 is that of the text: of a cell as typed, of a file of the user's own as it
	// was when its code was loaded. It is what ties two documents' files to each other.
	SHA256         *string `json:"sha256"`
	ExecutionCount *int    `json:"execution_count"` // of a cell
	// Lines is the text, of the user's own files: all lines where it is small, else
	// those that the document refers to; null where there is none.
	Lines []*string `json:"lines"`
}

// Function is one function of a file. (file's identity, Name) is it in other documents.
type Function struct {
	File      int     `json:"file"`
	Name      string  `json:"name"`  // qualified, "<module>" of a file's own level
	Label     *string `json:"label"` // what it is called for people; null: Name
	FirstLine int     `json:"first_line"`
	Code      Code    `json:"code"`
	Task      bool    `json:"task,omitempty"` // it stands for the tasks of this name, or for having none where it has no name
}

// Idle is the idle time of the devices in use. Causes add up to IdleNS exactly.
type Idle struct {
	IdleNS int64 `json:"idle_ns"`
	Certainty
	Causes  []Cause      `json:"causes"`
	Devices []DeviceIdle `json:"devices"`
}

// Certainty says how idle time was divided and how far that can be trusted.
type Certainty struct {
	Method   string   `json:"method"`
	WindowNS *int64   `json:"window_ns"`
	Windows  int      `json:"windows"`
	Repeats  int      `json:"repeats"`
	LagNS    *int64   `json:"lag_ns"`
	R2       *float64 `json:"r2"`
	HeldOut  *float64 `json:"held_out"`
	Text     string   `json:"text"`
}

// DeviceIdle is the idle time of one device. Causes add up to IdleNS exactly.
type DeviceIdle struct {
	Device int   `json:"device"`
	IdleNS int64 `json:"idle_ns"`
	Certainty
	Causes    []Cause    `json:"causes"`
	Intervals []Interval `json:"intervals"` // in order, apart from each other
}

// Interval is a stretch of the recording: start and end, nanoseconds.
type Interval [2]int64

// Cause is one reason at one place.
type Cause struct {
	ID       string     `json:"id"`   // diagnose.Cause
	Kind     string     `json:"kind"` // diagnose.Kind
	NS       int64      `json:"ns"`
	Share    float64    `json:"share"`
	LowNS    *int64     `json:"low_ns"` // null: it is no estimate
	HighNS   *int64     `json:"high_ns"`
	File     *int       `json:"file"`
	Line     *int       `json:"line"`
	Function *int       `json:"function"`
	Evidence []Interval `json:"evidence"`
	Text     string     `json:"text"`
	Hint     string     `json:"hint"`
}

// Step is one training step. The steps of the process that leads come first, which is the
// target or else the first rank, then those of other ranks.
type Step struct {
	Process    int    `json:"process,omitempty"` // absent: 0
	StartNS    int64  `json:"start_ns"`
	EndNS      int64  `json:"end_ns"`
	Name       string `json:"name"`
	Epoch      *int   `json:"epoch"`
	Samples    *int64 `json:"samples,omitempty"` // that it worked on; absent: not known
	Tokens     *int64 `json:"tokens,omitempty"`
	DataWaitNS int64  `json:"data_wait_ns"`
	BusyNS     *int64 `json:"busy_ns"` // mean over the devices in use
	IdleNS     *int64 `json:"idle_ns"`
	Source     string `json:"source"` // "marked", "optimizer", "sampled", "unknown"
	// CollectiveNS is for how long its rank's main thread was in collectives, by its stacks; absent where its process is
	// no rank, or most of the stacks are not known.
	CollectiveNS *int64 `json:"collective_ns,omitempty"`
	// PhasesNS is its time by phase of the training, without what its process's stacks do not show;
	// absent where no training was seen.
	PhasesNS map[string]int64 `json:"phases_ns,omitempty"`
}

// Region sums up the stretches of one process that the user, or an engine for its tasks, gave one name.
type Region struct {
	Process int    `json:"process"` // that was in them
	Name    string `json:"name"`
	Count   int    `json:"count"`
	TotalNS int64  `json:"total_ns"`
	P50NS   int64  `json:"p50_ns"`
	P95NS   int64  `json:"p95_ns"`
}

// Line is the time of one line of the user's own. Self time is that for which the
// line is the innermost such line on the stack; total time has those it called, too.
// Of the target it is the time of the threads that run its code, of other processes
// that of the threads that do their work, and of others what they did not wait.
type Line struct {
	File    int        `json:"file"`
	Line    int        `json:"line"`
	Process int        `json:"process"`
	SelfNS  int64      `json:"self_ns"`
	TotalNS int64      `json:"total_ns"`
	IdleNS  int64      `json:"idle_ns"` // of GPUs, charged to it
	StateNS StateTimes `json:"state_ns"`
	// IncompleteNS is the part of SelfNS in which it may have called something that
	// could not be read.
	IncompleteNS int64 `json:"incomplete_ns,omitempty"`
	// FreeingNS is the part of SelfNS that is proven to be the freeing of what a function held that had returned to it;
	// FreeingFunction is that function, of several the one with most.
	FreeingNS       int64 `json:"freeing_ns,omitempty"`
	FreeingFunction *int  `json:"freeing_function,omitempty"`
	// GCNS is the part of SelfNS in which the interpreter's garbage collector ran.
	GCNS int64 `json:"gc_ns,omitempty"`
}

// Phase is what the notebook did around the cell's code, with none of the user's
// own lines on the stack. It is part of the target's NoLineNS.
type Phase struct {
	ID      string `json:"id"` // timeline.Phase
	Process int    `json:"process"`
	SelfNS  int64  `json:"self_ns"`
	Text    string `json:"text"`
}

// FunctionTime is the time of one function over a process's threads; recursion
// counts once.
type FunctionTime struct {
	Function int   `json:"function"`
	Process  int   `json:"process"`
	SelfNS   int64 `json:"self_ns"`
	TotalNS  int64 `json:"total_ns"`
	// IncompleteNS is the part of SelfNS in which it may have called something that
	// could not be read.
	IncompleteNS int64      `json:"incomplete_ns"`
	StateNS      StateTimes `json:"state_ns"` // of SelfNS
}

// Finding is something worth saying, the main one first.
type Finding struct {
	ID        string   `json:"id"` // diagnose.FindingID
	Severity  string   `json:"severity"`
	Value     *float64 `json:"value"`
	Unit      *string  `json:"unit"`
	Threshold *float64 `json:"threshold"`
	File      *int     `json:"file"`
	Line      *int     `json:"line"`
	Function  *int     `json:"function"`
	// Args are the figures that the sentence contains; the id determines which.
	Args     map[string]any `json:"args"`
	Evidence []Interval     `json:"evidence"`
	CostNS   *int64         `json:"cost_ns"` // what removing it could save at most
	Text     string         `json:"text"`
	Hint     string         `json:"hint"`
}

// Note says what could not be read, or is less exact than asked, and why.
type Note struct {
	ID   string         `json:"id"`
	Args map[string]any `json:"args"`
	Text string         `json:"text"`
}

// Gap is a stretch of time in which the stacks of a process are unknown. Reason is a
// timeline.GapReason: "starting", "exec", "exit", "permission", "stopped", "traced", "late",
// "no-python" or "unreadable".
type Gap struct {
	Process int    `json:"process"`
	StartNS int64  `json:"start_ns"`
	EndNS   int64  `json:"end_ns"`
	Reason  string `json:"reason"`
	Text    string `json:"text"`
}

// Thinned says what was left out to make a document smaller.
type Thinned struct {
	BudgetBytes int `json:"budget_bytes"` // of the document, compressed by gzip
	// SpansStepNS is the step of the grid that spans were put on; null: all are there.
	SpansStepNS  *int64            `json:"spans_step_ns"`
	Tables       map[string]KeptOf `json:"tables"`
	TracksPoints *int              `json:"tracks_points"` // most points that a track kept
}

// KeptOf counts a table's rows.
type KeptOf struct {
	Kept int `json:"kept"`
	Of   int `json:"of"`
}

func pointer[T any](v T) *T { return &v }

// known is a pointer to v, or nil for the value that means unknown.
func known[T comparable](v, unknown T) *T {
	if v == unknown {
		return nil
	}
	return &v
}
