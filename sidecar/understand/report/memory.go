package report

import (
	"cmp"
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

// Memory is a line of the user's own while which ran the resident memory of its process grew:
// the innermost such line of the thread that touched the memory. It is no allocation: memory
// that was allocated and not touched does not count, nor does memory that is used again.
type Memory struct {
	File           int   `json:"file"`
	Line           int   `json:"line"`
	Function       *int  `json:"function"`
	Process        int   `json:"process"`
	GrownBytes     int64 `json:"grown_bytes"`
	UncertainBytes int64 `json:"uncertain_bytes"` // of them, those that another line may have touched
	// AtPeakBytes are those of them with which the process reached its highest level: the last rise through each byte.
	AtPeakBytes int64 `json:"at_peak_bytes,omitempty"`
	// Evidence is when most of it grew; absent for lines with little of their process's growth.
	Evidence []Interval `json:"evidence,omitempty"`
}

// MemoryFunction is what the resident memory of a process grew by in a function, of whomever; recursion counts once.
type MemoryFunction struct {
	Function       int   `json:"function"`
	Process        int   `json:"process"`
	SelfBytes      int64 `json:"self_bytes"`      // while it was the innermost Python function
	TotalBytes     int64 `json:"total_bytes"`     // with the functions that it called
	UncertainBytes int64 `json:"uncertain_bytes"` // of TotalBytes, those that may have been touched before its call or after it
}

// MemoryReading is what the resident memory of a process did, and how it was read.
type MemoryReading struct {
	Process       int   `json:"process"`
	Reads         int64 `json:"reads"`
	IntervalNS    int64 `json:"interval_ns"` // between two of them, on average
	GrownBytes    int64 `json:"grown_bytes"`
	UnplacedBytes int64 `json:"unplaced_bytes"` // of them, those that grew in no line of the user's own
	// ReleasedBytes were given back, by lines that nobody knows, until the process's own code had ended.
	ReleasedBytes int64 `json:"released_bytes"`
}

// maxMemoryLines bounds the table; what is further down grew the least.
const maxMemoryLines = 500

// maxMemoryFunctions bounds the table of functions likewise; of what grew by less than leastMemoryFunction nobody asks.
const (
	maxMemoryFunctions  = 200
	leastMemoryFunction = 1 << 20
)

const (
	// Of a line that has worthEvidence of its process's growth it is kept when it grew, in so many stretches, each
	// of growth no further apart than this share of the recording.
	worthEvidence   = 0.05
	maxGrowthTimes  = 4
	growthTimesJoin = 0.01
)

// memory fills Memory, MemoryReading and the figures of processes.
func (b *builder) memory() {
	own := func(id timeline.FrameID) bool { return b.names.code(b.rec.Frames[id]).Own() }
	touches := activity.Touches(b.rec, b.ownerOf, own)
	lines, sums := activity.Memory(b.rec, touches, own, codeEnds(b.rec, b.source))
	grown := make(map[int]int64)
	for _, s := range sums {
		grown[s.Process] = s.Grown
	}
	for _, l := range lines[:min(len(lines), maxMemoryLines)] {
		b.wanted[l.Place] = true
		var evidence []Interval
		if float64(l.Grown) >= worthEvidence*float64(grown[l.Process]) {
			evidence = intervals(l.Most(maxGrowthTimes, timeline.Nanos(growthTimesJoin*float64(b.rec.Duration))))
		}
		b.doc.Memory = append(b.doc.Memory, Memory{
			File: b.codes.file(l.Place.File), Line: l.Place.Line, Function: pointer(b.codes.functionOf(l.Function)), Process: b.placed(l.Process),
			GrownBytes: l.Grown, UncertainBytes: l.Uncertain, AtPeakBytes: l.AtPeak, Evidence: evidence,
		})
	}
	slices.SortStableFunc(b.doc.Memory, func(a, b Memory) int { return cmp.Compare(b.GrownBytes, a.GrownBytes) })
	b.doc.FunctionMemory = b.memoryFunctions(touches)
	for _, s := range sums {
		read := timeline.GrowthReading{Reads: 1}
		if s.Process < len(b.rec.Processes) {
			read = b.rec.Processes[s.Process].Memory.Growth
		}
		b.doc.MemoryReading = append(b.doc.MemoryReading, MemoryReading{
			Process: b.placed(s.Process), Reads: read.Reads, IntervalNS: max(int64(read.Interval), 0),
			GrownBytes: s.Grown, UnplacedBytes: s.Unplaced, ReleasedBytes: s.Released,
		})
	}
	b.keptMemory(sums)
	for i, p := range b.rec.Processes {
		out := &b.doc.Processes[b.placed(i)]
		out.OwnBytes, out.PSSBytes = known(max(p.Memory.Own, 0), 0), known(max(p.Memory.Proportional, 0), 0)
		peak, exact := b.peak(i)
		switch {
		case peak <= 0:
		case exact:
			out.PeakMemoryBytes = &peak
		default:
			out.PeakAtLeastBytes = &peak
		}
	}
}

// codeEnds gives when a process's own code ended, which is looked for once, where it is asked for.
func codeEnds(rec *timeline.Recording, source *activity.Source) func(process int) timeline.Nanos {
	var stacks *activity.Stacks
	known := make(map[int]timeline.Nanos)
	return func(process int) timeline.Nanos {
		if stacks == nil {
			stacks = activity.NewStacks(rec, source)
		}
		end, ok := known[process]
		if !ok {
			end = stacks.CodeEnd(process)
			known[process] = end
		}
		return end
	}
}

// keptMemory fills KeptBytes. Of a cell it is known by what was resident at its begin and its end alone: of a short one
// most of the growth is over before the first of the other readings.
func (b *builder) keptMemory(sums []activity.GrowthSum) {
	kept := make(map[int]int64)
	for i, p := range b.rec.Processes {
		if p.Memory.Growth.Reads > 1 {
			kept[i] = 0
		}
	}
	for _, s := range sums {
		kept[s.Process] = s.Kept
	}
	if b.rec.Target.Cell != nil {
		delete(kept, 0)
		if len(b.rec.Processes) > 0 {
			if m := b.rec.Processes[0].Memory; m.AtBegin > 0 && m.AtEnd > 0 {
				kept[0] = m.AtEnd - m.AtBegin
			}
		}
	}
	for process, bytes := range kept {
		b.doc.Processes[b.placed(process)].KeptBytes = pointer(bytes)
	}
}

// memoryFunctions is what grew in each function, most with what it called first, divided as of lines; a function that is on
// all the stacks that may have touched it has it for sure.
func (b *builder) memoryFunctions(touches []activity.Touch) []MemoryFunction {
	type key struct{ process, function int }
	sums := make(map[key]*MemoryFunction)
	get := func(process, function int) *MemoryFunction {
		k := key{process, function}
		if sums[k] == nil {
			sums[k] = &MemoryFunction{Function: function, Process: b.placed(process)}
		}
		return sums[k]
	}
	functions := func(n timeline.NodeID) (list []int) {
		for _, id := range b.tree.path(n) {
			list = append(list, b.codes.functionOf(id))
		}
		return list
	}
	for _, g := range touches {
		paths := make([][]int, len(g.By))
		for i, part := range g.By {
			paths[i] = functions(part.Node)
		}
		for i, part := range g.By {
			for j, function := range paths[i] {
				if part.Bytes == 0 {
					break
				}
				m := get(g.Process, function)
				if j == len(paths[i])-1 {
					m.SelfBytes += part.Bytes
				}
				if slices.Contains(paths[i][:j], function) {
					continue
				}
				m.TotalBytes += part.Bytes
				if slices.ContainsFunc(paths, func(path []int) bool { return !slices.Contains(path, function) }) {
					m.UncertainBytes += part.Bytes
				}
			}
		}
	}
	var out []MemoryFunction
	for _, m := range sums {
		if m.TotalBytes >= leastMemoryFunction {
			out = append(out, *m)
		}
	}
	all := b.codes.functions
	slices.SortFunc(out, func(x, y MemoryFunction) int {
		f, g := all[x.Function], all[y.Function]
		return cmp.Or(cmp.Compare(y.TotalBytes, x.TotalBytes), cmp.Compare(y.SelfBytes, x.SelfBytes),
			cmp.Compare(b.codes.files[f.File].Name, b.codes.files[g.File].Name), cmp.Compare(f.Name, g.Name),
			cmp.Compare(f.FirstLine, g.FirstLine), cmp.Compare(x.Process, y.Process), cmp.Compare(x.Function, y.Function))
	})
	return out[:min(len(out), maxMemoryFunctions)]
}

// peak is the most that was resident in a process while it was recorded, and whether that is
// exact. The kernel keeps the most of a process's whole life (VmHWM): where that rose in the
// recording, it is the recording's; where not, the peak is between the largest reading and it.
func (b *builder) peak(place int) (bytes int64, exact bool) {
	p := &b.rec.Processes[place]
	if p.Memory.Peak > 0 {
		return p.Memory.Peak, true
	}
	read := b.rec.Resident(place)
	switch {
	case read.Rose() && p.End == 0:
		return max(read.Mark, read.Largest), true
	case read.Rose() || p.Start >= 0 && read.Mark > 0: // all of its life is in the recording, but for its end
		return max(read.Mark, read.Largest), false
	}
	return read.Largest, false
}

// PeakMemory is the most that was resident in a process, and whether it is not exact, but the least that it was. It is nil where
// nothing is known.
func (p *Process) PeakMemory() (bytes *int64, atLeast bool) {
	if p.PeakMemoryBytes != nil {
		return p.PeakMemoryBytes, false
	}
	return p.PeakAtLeastBytes, p.PeakAtLeastBytes != nil
}

// memory checks the table of lines and the readings.
func (c *checker) memory() {
	for i := range c.d.Memory {
		m := &c.d.Memory[i]
		c.index("memory.file", m.File, len(c.d.Files))
		c.indexOrNull("memory.function", m.Function, len(c.d.Functions))
		c.index("memory.process", m.Process, len(c.d.Processes))
		c.must(m.Line > 0 && m.Line <= math.MaxInt32, "memory.line is %d", m.Line)
		c.amount("memory.grown_bytes", m.GrownBytes)
		c.amount("memory.uncertain_bytes", m.UncertainBytes)
		c.amount("memory.at_peak_bytes", m.AtPeakBytes)
		c.intervals("memory.evidence", m.Evidence, true)
		c.must(max(m.UncertainBytes, m.AtPeakBytes) <= m.GrownBytes, "memory: more is uncertain, or at the peak, than has grown")
	}
	for i := range c.d.FunctionMemory {
		m := &c.d.FunctionMemory[i]
		c.index("memory_functions.function", m.Function, len(c.d.Functions))
		c.index("memory_functions.process", m.Process, len(c.d.Processes))
		for _, v := range []int64{m.SelfBytes, m.TotalBytes, m.UncertainBytes} {
			c.amount("memory_functions", v)
		}
		c.must(max(m.SelfBytes, m.UncertainBytes) <= m.TotalBytes, "memory_functions: a part is more than the whole")
	}
	for i := range c.d.MemoryReading {
		m := &c.d.MemoryReading[i]
		c.index("memory_reading.process", m.Process, len(c.d.Processes))
		for _, v := range []int64{m.Reads, m.IntervalNS, m.GrownBytes, m.UnplacedBytes, m.ReleasedBytes} {
			c.amount("memory_reading", v)
		}
		c.must(m.UnplacedBytes <= m.GrownBytes, "memory_reading: more is in no line than has grown")
	}
	for i := range c.d.Processes {
		p := &c.d.Processes[i]
		for _, v := range []*int64{p.PeakMemoryBytes, p.PeakAtLeastBytes, p.OwnBytes, p.PSSBytes} {
			if v != nil {
				c.amount("processes: memory", *v)
			}
		}
		if e := p.Exception; e != nil {
			c.place("processes.exception", e.File, e.Line, nil)
		}
		c.must(p.PeakMemoryBytes == nil || p.PeakAtLeastBytes == nil, "processes: a peak that is exact and at least")
	}
}
