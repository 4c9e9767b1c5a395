package report

import (
	"cmp"
	"fmt"
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
}

// MemoryReading is what the resident memory of a process did, and how it was read.
type MemoryReading struct {
	Process       int   `json:"process"`
	Reads         int64 `json:"reads"`
	IntervalNS    int64 `json:"interval_ns"` // between two of them, on average
	GrownBytes    int64 `json:"grown_bytes"`
	UnplacedBytes int64 `json:"unplaced_bytes"` // of them, those that grew in no line of the user's own
	ReleasedBytes int64 `json:"released_bytes"` // given back, by lines that nobody knows
}

// KeptBytes is what was never given back; negative where more was given back than grew.
func (m *MemoryReading) KeptBytes() int64 { return m.GrownBytes - m.ReleasedBytes }

// maxMemoryLines bounds the table; what is further down grew the least.
const maxMemoryLines = 500

// memory fills Memory, MemoryReading and the figures of processes.
func (b *builder) memory() {
	own := func(id timeline.FrameID) bool { return b.names.code(b.rec.Frames[id]).Own() }
	lines, sums := activity.Memory(b.rec, own)
	for _, l := range lines[:min(len(lines), maxMemoryLines)] {
		b.wanted[l.Place] = true
		b.doc.Memory = append(b.doc.Memory, Memory{
			File: b.codes.file(l.Place.File), Line: l.Place.Line, Function: pointer(b.codes.functionOf(l.Function)), Process: b.placed(l.Process),
			GrownBytes: l.Grown, UncertainBytes: l.Uncertain,
		})
	}
	slices.SortStableFunc(b.doc.Memory, func(a, b Memory) int { return cmp.Compare(b.GrownBytes, a.GrownBytes) })
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

// peak is the most that was resident in a process while it was recorded, and whether that is
// exact. The kernel keeps the most of a process's whole life (VmHWM): where that rose in the
// recording, it is the recording's; where not, the peak is between the largest reading and it.
func (b *builder) peak(place int) (bytes int64, exact bool) {
	p := &b.rec.Processes[place]
	if p.Memory.Peak > 0 {
		return p.Memory.Peak, true
	}
	largest := float64(p.Memory.Growth.Largest)
	first, last := math.NaN(), math.NaN()
	for i := range b.rec.Tracks {
		t := &b.rec.Tracks[i]
		if t.PID != p.PID || t.Process != place || len(t.Points) == 0 {
			continue
		}
		switch t.ID {
		case "rss", fmt.Sprintf("process.%d.rss", place):
			largest = max(largest, t.Peak)
		case "rss.peak":
			first, last = t.Points[0].Value, t.Points[len(t.Points)-1].Value
		}
	}
	if last > first+inexactPages*4096 && p.End == 0 {
		return int64(max(last, largest)), true
	}
	if p.Start >= 0 && last > largest { // all of its life is in the recording, but for its end
		largest = last
	}
	if !(largest > 0) || largest > math.MaxInt64/2 {
		return 0, false
	}
	return int64(largest), false
}

// inexactPages is how far off VmHWM may be: the kernel adds up pages in batches for each CPU.
const inexactPages = 256

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
		c.must(m.UncertainBytes <= m.GrownBytes, "memory: more is uncertain than has grown")
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
