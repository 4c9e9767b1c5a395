package torchtrace

import "math"

// Sym is a string of a trace: an index into its Names. Zero is "".
type Sym uint32

// RankSource says how a trace's rank is known.
type RankSource string

const (
	RankStated   RankSource = "distributedInfo" // written in the file
	RankFromName RankSource = "file name"       // "…rank3…": a guess that a Warning states
	RankAssumed  RankSource = "assumed"         // the lowest number still free
)

// Trace is what was read of one rank. Times are integer nanoseconds on the
// file's own clock; UnixNs converts. Rows of every table keep the file's order,
// which need not be the order of time.
type Trace struct {
	File     string
	Rank     int
	RankFrom RankSource
	Meta     Meta
	Records  int64 // trace events in the file, those without a table of their own included

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

	decimals bool // some ts has a decimal point
}

// Meta is what the file says about itself outside traceEvents.
type Meta struct {
	BaseTime  int64 // ns since the epoch that timestamps count from; 0: they are absolute
	WorldSize int   // 0 if not stated
	Backend   string
	Devices   []string // names, by device id
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
	Stream      []int64 // args.stream as number, decimal or hex text; else tid
	Correlation []int64 // joins RuntimeCalls.Correlation
	External    []int64 // joins Operators.External
	Thread      []uint32
	Collective  []uint32
	GBps        []float64 // memory bandwidth as recorded; NaN if not
	Bytes       []int64   // copied or set; 0 if not recorded
	index       []uint32  // position in traceEvents
	htaStream   []bool    // HTA sees the stream: it is a number
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
	index       []uint32
	// onStream holds the rows whose args.stream is a number: HTA takes them
	// for device events.
	onStream map[uint32]int64
}

// htaStream is the stream as HTA reads it, -1 for none.
func (c *RuntimeCalls) htaStream(row int) int64 {
	if stream, ok := c.onStream[uint32(row)]; ok {
		return stream
	}
	return -1
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
	Shapes     []Sym // raw text of "Input Dims" when LoadOptions.Shapes; else nil
	index      []uint32
	// onStream lists the few rows that carry args.stream, by row.
	onStream []streamedOp
	flops    map[uint32]float64 // row → "Flops", where recorded
	stacks   map[uint32]Sym     // row → "Call stack", where recorded
}

// streamedOp is an operator or sync record with a stream of its own: Triton
// launches and cuda_sync.
type streamedOp struct {
	row                 uint32
	stream, correlation int64 // -1: none
}

// Len is the number of rows.
func (o *Operators) Len() int { return len(o.Start) }

// PythonFrames are python_function records: a call of a Python function, with
// "file(line): function" as name. Callers are known by nesting in time.
type PythonFrames struct {
	Start, Dur []int64 // ns
	Name       []Sym
	Thread     []uint32
	leads      bool // the first row is the file's first event
}

// Len is the number of rows.
func (p *PythonFrames) Len() int { return len(p.Start) }

// MemoryChanges are the [memory] instants of the caching allocator.
type MemoryChanges struct {
	Time                       []int64 // ns
	Bytes, Allocated, Reserved []int64 // change; totals after it
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
