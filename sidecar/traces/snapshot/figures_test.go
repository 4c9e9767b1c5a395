package snapshot

import (
	"fmt"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// history is a snapshot of one device.
func history(events ...Event) *Snapshot {
	for i := range events {
		events[i].TimeUs = int64(1000 + 10*i)
	}
	return &Snapshot{
		Stacks:     []Stack{nil, {{File: "/home/me/net.py", Function: "forward", Line: 3}}, {{File: "/home/me/opt.py", Function: "step", Line: 7}}},
		Devices:    []Device{{Events: events}},
		categories: []Category{CategoryNoStack, CategoryActivations, CategoryOptimizer},
	}
}

// written has a table's rows by some columns.
func written(t *table.Table, columns ...string) string {
	var b strings.Builder
	for r := range t.Len() {
		for i, c := range columns {
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(t.Column(c).Format(r))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// TestRequestedAndBlocks: the peak is of requested bytes, in use until no stream needs them; max_memory_allocated counts blocks of 512 bytes until the
// program frees them. Each has its own highest moment.
func TestRequestedAndBlocks(t *testing.T) {
	s := history(
		Event{Action: Alloc, Address: 1, Size: 1000, Stack: 1},
		Event{Action: FreeRequested, Address: 1, Size: 1000},
		Event{Action: Alloc, Address: 2, Size: 100, Stack: 2}, // requested 1,100; blocks 512
		Event{Action: FreeCompleted, Address: 1, Size: 1000},
		Event{Action: Alloc, Address: 3, Size: 520, Stack: 2}, // requested 620; blocks 512 + 1024
	)
	peaks := find(Analyze(s, Options{}), TablePeaks)
	if got, want := written(peaks, "device", "peak_bytes", "max_memory_allocated_bytes"), "device 0 1100 1536\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestAroundOOM: what happened before and after an allocation that failed, with what was in use.
func TestAroundOOM(t *testing.T) {
	var events []Event
	for i := range 30 {
		events = append(events, Event{Action: Alloc, Address: int64(i), Size: 10, Stack: 1})
	}
	events = append(events, Event{Action: OutOfMemory, Address: 77, Size: 500, Stack: 2}, Event{Action: FreeCompleted, Address: 0, Size: 10})
	around := find(Analyze(history(events...), Options{}), TableAroundOOM)
	if around.Len() != eventsBefore+2 {
		t.Fatalf("%d rows", around.Len())
	}
	last := around.Rows([]int{0, around.Len() - 2, around.Len() - 1})
	want := `1 -20 alloc 10 110 /home/me/net.py(3): forward
1 0 out of memory 500 300 /home/me/opt.py(7): step
1 1 free completed 10 290 (no stack recorded)
`
	if got := written(last, "failure", "event", "action", "bytes", "allocated_bytes", "place"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestCompare: peaks by category and place, the largest change first; what has not changed has no row.
func TestCompare(t *testing.T) {
	run := func(activations, states int64) *Snapshot {
		return history(
			Event{Action: Alloc, Address: 1, Size: 1000, Stack: 0},
			Event{Action: Alloc, Address: 2, Size: activations, Stack: 1},
			Event{Action: Alloc, Address: 3, Size: states, Stack: 2})
	}
	got := written(Compare(run(5000, 100), run(3000, 900)), "kind", "name", "before_bytes", "after_bytes", "change_bytes")
	want := `peak  6100 4900 -1200
reserved  0 0 0
category activations 5000 3000 -2000
category optimizer 100 900 800
place /home/me/net.py(3): forward 5000 3000 -2000
place /home/me/opt.py(7): step 100 900 800
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestWindow: what was there when a window began, came, went, and was there at its end; and how the memory was divided then.
func TestWindow(t *testing.T) {
	s := history(
		Event{Action: SegmentAlloc, Address: 0x1000, Size: 8192},
		Event{Action: Alloc, Address: 0x1000, Size: 1024, Stack: 1},
		Event{Action: Alloc, Address: 0x2000, Size: 2048, Stack: 2}, // the window begins: 20 µs
		Event{Action: FreeCompleted, Address: 0x1000, Size: 1024},
		Event{Action: Alloc, Address: 0x1400, Size: 512, Stack: 1}, // and ends: 40 µs
		Event{Action: SegmentAlloc, Address: 0x9000, Size: 4096},
	)
	s.Segments = []Segment{{Device: 0, Address: 0x1000, Total: 8192}, {Device: 0, Address: 0x9000, Total: 4096}}
	tables := Analyze(s, Options{Window: &Window{20, 40}})
	got := written(find(tables, TableWindow), "place", "begin_bytes", "came_bytes", "went_bytes", "end_bytes", "blocks")
	want := `/home/me/opt.py(7): step 0 2048 0 2048 1
/home/me/net.py(3): forward 1024 512 1024 512 1
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	got = written(find(tables, TableSegmentsAt), "at", "segments", "reserved_bytes", "used_bytes", "free_bytes", "largest_free_bytes")
	// at the peak both segments' lengths are those of that time; the free parts are before, between and behind the blocks
	want = fmt.Sprintf("peak 1 8192 3072 5120 %d\nwindow 1 8192 2560 5632 %d\n", 3072, 2560)
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
