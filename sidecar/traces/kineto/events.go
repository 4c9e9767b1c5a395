package kineto

import "math"

// Sym is a string of a trace: an index into its Names. Zero is "".
type Sym uint32

// Trace is what was read of one file. Times are integer nanoseconds on the
// file's own clock; UnixNs converts. Rows of every table keep the file's order,
// which need not be the order of time.
type Trace struct {
	File     string
	Rank     int // of the process, known when all files are read
	RankFrom RankSource
	Meta     Meta
	Process  Process
	From     Origin
	Records  int64 // trace events in the file, those without a table of their own included
	// First and Last are the first start and the last end of all complete
	// events in the tables; both 0 if there are none.
	First, Last int64
	Earliest    int64 // time of the first event of any kind; math.MaxInt64 if there is none

	Names   *Symbols
	Threads []Thread // what the tables' Thread columns index

	Device DeviceEvents
	Calls  RuntimeCalls
	Ops    Operators
	Python PythonFrames
	Memory MemoryChanges
	// Collectives holds what NCCL kernels say about themselves;
	// DeviceEvents.Collective indexes it. Row 0 is empty and means "none".
	Collectives []Collective

	// Frame is what HolisticTraceAnalysis's rules want besides; nil unless
	// Options.Frame asked for it.
	Frame *Frame
}

// Origin is what kind of file a trace was made of.
type Origin uint8

const (
	FromTorch  Origin = iota // torch.profiler's
	FromSlices               // another tool's, in the trace event format
	FromOther                // another tool's, of another format
)

// Release lets the events go and keeps what the file says about itself.
func (t *Trace) Release() {
	*t = Trace{
		File: t.File, Rank: t.Rank, RankFrom: t.RankFrom, From: t.From, Meta: t.Meta, Process: t.Process,
		Records: t.Records, First: t.First, Last: t.Last, Earliest: t.Earliest,
	}
}

// Process is whose trace it is.
type Process struct {
	Host string // "" if neither the file nor its name says
	PID  int64  // of the process that launched most; -1 if there is none
}

// Meta is what the file says about itself outside traceEvents.
type Meta struct {
	BaseTime  int64 // ns since the epoch that timestamps count from; 0: they are absolute
	WorldSize int   // 0 if not stated
	Backend   string
	Devices   []string // names, by device id
	Host      string   // "" if not stated
}

// NameDevice names the device of an id, which is not negative; those without a name have "".
func (m *Meta) NameDevice(id int32, name string) {
	for len(m.Devices) <= int(id) {
		m.Devices = append(m.Devices, "")
	}
	m.Devices[id] = name
}

// UnixNs converts a Start of this trace to nanoseconds since the epoch.
func (t *Trace) UnixNs(start int64) int64 { return start + t.Meta.BaseTime }

// Text returns the string of a Sym.
func (t *Trace) Text(s Sym) string { return t.Names.Text(s) }

// Thread is one pair of pid and tid with the name metadata gave it.
type Thread struct {
	PID, TID int64 // -1 where the file has a text that is no number
	Name     string
}

// None is the value of an identifier column (correlation, external id, stream,
// parent) whose event has none.
const None = math.MinInt64

// DeviceClass is the category of a device event.
type DeviceClass uint8

const (
	ClassKernel DeviceClass = iota
	ClassMemcpy
	ClassMemset
	ClassMTIA
)

// DeviceEvents are kernels, copies and fills that ran on a device. Columns
// have one value per row.
type DeviceEvents struct {
	Start, Dur  []int64 // ns; Dur may be negative in a broken trace
	Name        []Sym
	Class       []DeviceClass
	Device      []int32 // args.device; else the pid, which Kineto sets to the device's number
	Stream      []int64 // args.stream as number, decimal or hex text; else tid
	Correlation []int64 // joins RuntimeCalls.Correlation
	External    []int64 // joins Operators.External
	Thread      []uint32
	Collective  []uint32
	GBps        []float64 // memory bandwidth as recorded; NaN if not
	Bytes       []int64   // copied or set; 0 if not recorded
}

// Len is the number of rows.
func (d *DeviceEvents) Len() int { return len(d.Start) }

// End of a row; never before its start.
func (d *DeviceEvents) End(row int) int64 { return d.Start[row] + max(0, d.Dur[row]) }

// RuntimeCalls are host calls of the CUDA, HIP or MTIA runtime and driver.
type RuntimeCalls struct {
	Start, Dur  []int64 // ns
	Name        []Sym
	Correlation []int64
	External    []int64
	Thread      []uint32
}

// Len is the number of rows.
func (c *RuntimeCalls) Len() int { return len(c.Start) }

// OpClass is the category of a row of Operators.
type OpClass uint8

const (
	OpCPU           OpClass = iota // cpu_op, Operator
	OpAnnotation                   // user_annotation: record_function, ProfilerStep#N
	OpGPUAnnotation                // gpu_user_annotation
	OpSync                         // cuda_sync
	OpOther                        // overhead, cuda_profiler_range, …
)

// Operators are host operators, annotations and the other complete events.
type Operators struct {
	Start, Dur []int64 // ns
	Name       []Sym
	Class      []OpClass
	External   []int64
	Thread     []uint32
	// Autograd is the operator's number among those that autograd differentiates, counted per thread; that of an
	// operator of the backward pass is the forward one's. None if it has none.
	Autograd []int64
	Backward []bool // autograd called it: it says which thread the forward pass ran on
	// What few rows have, by row ascending.
	Inputs []OpInputs
	Flops  map[uint32]float64 // row → "Flops" as recorded
	Stacks map[uint32]Sym     // row → "Call stack" of older profilers
	// Hierarchy of the modules of TorchScript: row → TOP(Net)::forward.conv1(Conv2d)::forward.
	Hierarchy map[uint32]Sym
}

// OpInputs are an operator's inputs as raw JSON texts, where they were recorded
// and Options.Inputs wants them.
type OpInputs struct {
	Row      uint32
	Dims     Sym // [[8, 32], [32, 10], []]
	Concrete Sym // ["", "", "1"]: the values of what is no tensor; 0 if not recorded
	Types    Sym // ["c10::BFloat16", "float", "Scalar"]; 0 if not recorded
}

// Len is the number of rows.
func (o *Operators) Len() int { return len(o.Start) }

// PythonFrames are python_function records: a call of a Python function, with
// "file(line): function" as name. Callers are known by nesting in time.
type PythonFrames struct {
	Start, Dur []int64 // ns
	Name       []Sym
	Thread     []uint32
}

// Len is the number of rows.
func (p *PythonFrames) Len() int { return len(p.Start) }

// MemoryChanges are the [memory] instants of the caching allocator.
type MemoryChanges struct {
	Time                       []int64 // ns
	Bytes, Allocated, Reserved []int64 // change; totals after it, None where older profilers wrote none
	Addr                       []int64
	DeviceType                 []int8 // 0 CPU, 1 CUDA or ROCm, …
	DeviceID                   []int16
	Thread                     []uint32
}

// Len is the number of rows.
func (m *MemoryChanges) Len() int { return len(m.Time) }

// Collective describes one communication kernel.
type Collective struct {
	Name        Sym // allreduce, …
	Dtype       Sym
	Group       Sym   // process group name
	GroupRanks  Sym   // "[0, 1]"
	GroupSize   int64 // 0 if not stated
	InNelems    int64
	OutNelems   int64
	SequenceNum int64 // None if not stated
}
