package report

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// grew is a recording of a script in which line 3 and, perhaps, line 4 touched memory.
func grew(change func(*timeline.Builder)) *timeline.Recording {
	const s, mb = timeline.Nanos(time.Second), int64(1 << 20)
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	b.Describe(func(r *timeline.Recording) {
		r.Target = timeline.Target{PID: 7, Argv: []string{"app.py"}}
		r.Processes = []timeline.Process{{PID: 7, ParentIndex: -1, Role: timeline.RoleScript, CPU: -1, Start: -s,
			Memory: timeline.ProcessMemory{Growth: timeline.GrowthReading{Reads: 2000, Interval: s / 1000, First: 10 * mb}}}}
	})
	node := func(line int) timeline.NodeID {
		return b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "load", File: "app.py", Line: line, FirstLine: 2}))
	}
	main := b.Thread(timeline.Thread{PID: 7, NativeID: 7, Main: true, RunsCell: true, OnCPU: -1})
	b.Set(main, 0, node(3), timeline.StatePython, false)
	b.AddGrowth(timeline.Growth{Start: 0, End: s, Before: node(3), After: node(3), Bytes: 80 * mb})
	b.AddGrowth(timeline.Growth{Start: s, End: s + s/1000, Before: node(3), After: node(4), Bytes: 20 * mb})
	b.AddGrowth(timeline.Growth{Start: s + s/2, End: 2 * s, Bytes: -30 * mb})
	change(b)
	return b.Snapshot(2*s).Slice(0, 2*s)
}

func TestMemoryIsInTheReport(t *testing.T) {
	const mb = int64(1 << 20)
	v, err := Build(grew(func(*timeline.Builder) {}), nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(v.Memory) != 2 || len(v.MemoryReading) != 1 {
		t.Fatalf("got %+v, %+v", v.Memory, v.MemoryReading)
	}
	m, l := v.Memory[0], v.Memory[1]
	if v.FileName(&m.File) != "app.py" || m.Line != 3 || m.GrownBytes+l.GrownBytes != 100*mb || m.UncertainBytes != m.GrownBytes-80*mb || v.FunctionName(*m.Function) != "load" {
		t.Errorf("got %+v", m)
	}
	if l.Line != 4 || l.UncertainBytes != l.GrownBytes || l.GrownBytes < 10*mb || m.AtPeakBytes != m.GrownBytes || l.AtPeakBytes != l.GrownBytes {
		t.Errorf("at the peak there are %d and %d", m.AtPeakBytes, l.AtPeakBytes)
	}
	if len(v.FunctionMemory) != 1 {
		t.Fatalf("functions %+v", v.FunctionMemory)
	}
	if f := v.FunctionMemory[0]; v.FunctionName(f.Function) != "load" || f.SelfBytes != 100*mb || f.TotalBytes != 100*mb || f.UncertainBytes != 0 {
		t.Errorf("got %+v", f)
	}
	if r := v.MemoryReading[0]; r != (MemoryReading{Reads: 2000, IntervalNS: 1e6, GrownBytes: 100 * mb, ReleasedBytes: 30 * mb}) {
		t.Errorf("got %+v", r)
	}
	if kept := v.Processes[0].KeptBytes; kept == nil || *kept != 70*mb {
		t.Errorf("kept %v, want 70 MiB", kept)
	}
}

// The peak is exact where the kernel's mark rose in the recording or the process was waited for;
// else the largest reading is the least that it was.
func TestPeakOfMemory(t *testing.T) {
	const s, mb = timeline.Nanos(time.Second), float64(1 << 20)
	mark := func(first, last float64) func(*timeline.Builder) {
		return func(b *timeline.Builder) {
			w := b.Track(timeline.TrackSpec{ID: "rss.peak", Kind: timeline.KindGauge, Unit: "B", PID: 7, Device: -1})
			w.Add(0, first*mb)
			w.Add(2*s, last*mb)
		}
	}
	for name, c := range map[string]struct {
		change         func(*timeline.Builder)
		exact, atLeast float64
	}{
		"the mark rose":    {mark(50, 150), 150, 0},
		"it did not":       {mark(200, 200), 0, 110},
		"within its error": {mark(200, 200.5), 0, 110},
		"nobody read it":   {func(*timeline.Builder) {}, 0, 110},
		"it was waited for": {func(b *timeline.Builder) {
			mark(50, 150)(b)
			b.Describe(func(r *timeline.Recording) { r.Processes[0].Memory.Peak = int64(160 * mb) })
		}, 160, 0},
		"it ended before the last reading": {func(b *timeline.Builder) {
			mark(50, 105)(b)
			b.Describe(func(r *timeline.Recording) { r.Processes[0].End = 2*s - 1 })
		}, 0, 110},
		"the mark rose before it ended": {func(b *timeline.Builder) {
			mark(50, 150)(b)
			b.Describe(func(r *timeline.Recording) { r.Processes[0].Start, r.Processes[0].End = -1, 2*s-1 })
		}, 0, 150},
	} {
		v, err := Build(grew(c.change), nil, Options{})
		if err != nil {
			t.Fatal(err)
		}
		p := v.Processes[0]
		value := func(v *int64) float64 {
			if v == nil {
				return 0
			}
			return float64(*v) / mb
		}
		if exact, atLeast := value(p.PeakMemoryBytes), value(p.PeakAtLeastBytes); exact != c.exact || atLeast != c.atLeast {
			t.Errorf("%s: exactly %v, at least %v MiB, want %v and %v", name, exact, atLeast, c.exact, c.atLeast)
		}
	}
}

// Whatever grew, and whatever part of it is shown: the report is one that its reader takes.
func TestAnyGrowthMakesAReport(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 3))
		rec := grew(func(b *timeline.Builder) {
			for range 200 {
				start := timeline.Nanos(random.Int64N(2e9))
				frame := timeline.Frame{Function: "f", File: []string{"app.py", "/usr/lib/python3.12/json/decoder.py"}[random.IntN(2)], Line: random.IntN(4)}
				node := b.Child(timeline.RootNode, b.Frame(frame))
				b.AddGrowth(timeline.Growth{Start: start, End: start + timeline.Nanos(random.Int64N(1e7)), Before: node, After: timeline.NodeID(random.IntN(3)), Bytes: random.Int64N(1<<30) - 1<<29})
			}
		})
		from := timeline.Nanos(random.Int64N(1e9))
		v, err := Build(rec.Slice(from, from+1+timeline.Nanos(random.Int64N(1e9))), nil, Options{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		text, err := json.Marshal(v.Document)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Read(text); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// What is damaged is refused.
func TestDamagedMemoryIsRefused(t *testing.T) {
	for want, damage := range map[string]func(*Document){
		"memory.file":               func(d *Document) { d.Memory[0].File = 99 },
		"memory.process":            func(d *Document) { d.Memory[0].Process = -1 },
		"memory.line":               func(d *Document) { d.Memory[0].Line = 0 },
		"memory.function":           func(d *Document) { d.Memory[0].Function = pointer(99) },
		"more is uncertain":         func(d *Document) { d.Memory[0].UncertainBytes = d.Memory[0].GrownBytes + 1 },
		"memory.grown_bytes":        func(d *Document) { d.Memory[0].GrownBytes = -1 },
		"or at the peak":            func(d *Document) { d.Memory[0].AtPeakBytes = d.Memory[0].GrownBytes + 1 },
		"memory_functions.function": func(d *Document) { d.FunctionMemory[0].Function = 99 },
		"memory_functions.process":  func(d *Document) { d.FunctionMemory[0].Process = 99 },
		"a part is more":            func(d *Document) { d.FunctionMemory[0].SelfBytes = d.FunctionMemory[0].TotalBytes + 1 },
		"memory_reading.process":    func(d *Document) { d.MemoryReading[0].Process = 9 },
		"more is in no line":        func(d *Document) { d.MemoryReading[0].UnplacedBytes = 1 << 40 },
		"exact and at least": func(d *Document) {
			d.Processes[0].PeakMemoryBytes, d.Processes[0].PeakAtLeastBytes = pointer(int64(1)), pointer(int64(1))
		},
	} {
		v, err := Build(grew(func(*timeline.Builder) {}), nil, Options{})
		if err != nil {
			t.Fatal(err)
		}
		damage(v.Document)
		if _, err := Check(v.Document); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}

// Of a cell what it has kept is the difference of two readings at its edges; where one is missing, nothing is said, whatever
// the growth was in between.
func TestWhatACellHasKept(t *testing.T) {
	const mb = int64(1 << 20)
	cell := func(before, after int64) *int64 {
		v, err := Build(grew(func(b *timeline.Builder) {
			b.Describe(func(r *timeline.Recording) {
				r.Target.Cell = &timeline.Cell{File: "app.py"}
				r.Processes[0].Memory.AtBegin, r.Processes[0].Memory.AtEnd = before, after
			})
		}), nil, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return v.Processes[0].KeptBytes
	}
	if got := cell(300*mb, 100*mb); got == nil || *got != -200*mb {
		t.Errorf("got %v, want 200 MiB less", got)
	}
	if got := cell(0, 100*mb); got != nil {
		t.Errorf("%d bytes of a cell whose begin was not seen", *got)
	}
}
