package synth

import "maps"

// Answers is what an analysis of the traces must find. Times are nanoseconds.
type Answers struct {
	Ranks       []RankAnswers
	Collectives []Collective
}

// RankAnswers are the answers of one rank.
type RankAnswers struct {
	Rank   int
	Skew   int64 // the file's clock minus the common one
	Bytes  int64 // of JSON written
	Events int64 // entries of traceEvents
	Steps  []Step
	// Kept leaves out the last step, as analyses do by default; All has it.
	Kept, All Totals
}

// Step is one ProfilerStep, on the file's own clock (since its base time).
type Step struct {
	Number     int
	Start, End int64
	DataWait   int64 // in enumerate(DataLoader)…; the device is idle under all of it
	FirstWork  int64 // start of the step's first device event
	LastWork   int64 // end of its last
}

// Totals count device time. KernelTime = Idle + Compute + NonCompute; of several
// devices they are sums.
type Totals struct {
	KernelTime, Idle, Compute, NonCompute int64
	// Communication is the time collectives ran; Overlap the part of it under
	// compute kernels.
	Communication, Overlap int64

	Streams map[int64]StreamIdle // of several devices: together
	Devices map[int64]DeviceTotals
	Kernels map[string]KernelTotal
	Calls   map[string]int // operators by name

	Launches           int // pairs of runtime call and device event
	DelaySum, DelayMax int64
	PeakAllocated      int64
	PeakReserved       int64
}

// DeviceTotals are the times of one of several devices.
type DeviceTotals struct {
	Busy, Compute int64
	Streams       map[int64]StreamIdle
}

// StreamIdle divides the gaps between one stream's events.
type StreamIdle struct {
	HostWait, KernelWait, Other int64
}

func (s StreamIdle) plus(o StreamIdle) StreamIdle {
	return StreamIdle{s.HostWait + o.HostWait, s.KernelWait + o.KernelWait, s.Other + o.Other}
}

func (s StreamIdle) minus(o StreamIdle) StreamIdle {
	return StreamIdle{s.HostWait - o.HostWait, s.KernelWait - o.KernelWait, s.Other - o.Other}
}

// device are the totals of one device, made when they are first asked for.
func (t *Totals) device(number int64) DeviceTotals {
	d, ok := t.Devices[number]
	if !ok {
		d.Streams = map[int64]StreamIdle{}
		t.Devices[number] = d
	}
	return d
}

// KernelTotal sums up the device events of one name.
type KernelTotal struct {
	Kind          string // COMPUTATION, COMMUNICATION, MEMORY
	Count         int
	Sum, Min, Max int64
}

// Collective is one all-reduce over all ranks, on the common clock.
type Collective struct {
	Step, Bucket int
	Elements     int64
	Start        []int64 // by rank
	End          int64   // the same for all
	Last         int     // the rank that started last: the others waited for it
}

// Wait is how long a rank's kernel only waited for the last rank.
func (c *Collective) Wait(rank int) int64 { return c.Start[c.Last] - c.Start[rank] }

// Transfer is how long the data took once every rank was there.
func (c *Collective) Transfer() int64 { return c.End - c.Start[c.Last] }

func newTotals() Totals {
	return Totals{
		Streams: map[int64]StreamIdle{}, Devices: map[int64]DeviceTotals{},
		Kernels: map[string]KernelTotal{}, Calls: map[string]int{},
	}
}

func (t Totals) clone() Totals {
	t.Streams, t.Kernels, t.Calls = maps.Clone(t.Streams), maps.Clone(t.Kernels), maps.Clone(t.Calls)
	t.Devices = maps.Clone(t.Devices)
	for device, d := range t.Devices {
		d.Streams = maps.Clone(d.Streams)
		t.Devices[device] = d
	}
	return t
}
