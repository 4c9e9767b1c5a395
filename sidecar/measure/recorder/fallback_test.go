package recorder

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// pushing is a recorder whose clock and thread states the test sets.
type pushing struct {
	*Recorder
	now     int64
	states  map[int]timeline.State // from the time from on
	from    int64
	watched chan struct{} // closed when the log was asked to watch
}

func newPushing() *pushing {
	p := &pushing{now: 1e9, states: make(map[int]timeline.State), watched: make(chan struct{}, 9)}
	p.Recorder = New(Options{
		Target:  timeline.Target{PID: targetPID},
		Stacks:  &fakeStacks{refusal: errors.New("CPython 2.7 cannot be read from outside")},
		Clock:   func() int64 { return p.now },
		Threads: p,
	})
	return p
}

func (p *pushing) Watch(context.Context) { p.watched <- struct{}{} }
func (p *pushing) Read()                 {}
func (p *pushing) State(tid int, at int64) (timeline.State, bool) {
	state, ok := p.states[tid]
	return state, ok && at >= p.from
}

// span is one stretch of a thread in words: "outer>inner python 5ms".
func spans(rec *timeline.Recording, tid int) string {
	var out []string
	for _, th := range rec.Threads {
		if th.NativeID != tid {
			continue
		}
		for _, s := range th.Spans {
			var names []string
			for n := s.Node; n != timeline.RootNode; n = rec.Nodes[n].Parent {
				names = append([]string{rec.Frames[rec.Nodes[n].Frame].Function}, names...)
			}
			out = append(out, fmt.Sprintf("%s %v %v", strings.Join(names, ">"), s.State, (s.End-s.Start).Duration()))
		}
	}
	return strings.Join(out, ", ")
}

func TestPushedSamplesBecomeSpans(t *testing.T) {
	p := newPushing()
	if outside, err := p.Begin(Spec{ID: "a", Started: p.now, ThreadID: 7}); err != nil || outside == nil {
		t.Fatalf("Begin: %v, %v; want a reason for the fallback", outside, err)
	}
	start := p.now
	at := func(ms int64) int64 { return start + ms*1e6 }
	<-p.watched
	p.states[7], p.states[8], p.from = timeline.StatePython, timeline.StateWaiting, at(4)
	p.now = at(4)
	p.Push(Samples{
		Frames:  map[uint32]timeline.Frame{1: {Function: "outer"}, 2: {Function: "inner"}},
		Stacks:  map[uint32][]uint32{1: {1}, 2: {1, 2}, 3: {1, 77}},
		Threads: []PushedThread{{7, "MainThread", true}, {8, "loader", false}},
		Ticks:   []Tick{{at(0), map[int]uint32{7: 1, 8: 1}}, {at(2), map[int]uint32{7: 2, 8: 1}}},
	})
	p.now = at(14)
	p.Push(Samples{
		Ticks: []Tick{{at(4), map[int]uint32{7: 2, 8: 1}}, {at(10), map[int]uint32{7: 3}}},
		CPU:   123,
	})
	p.now = at(20)
	rec, err := p.End("a", Ending{At: p.now})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := spans(rec, 7), "outer unknown 2ms, outer>inner unknown 2ms, outer>inner python 6ms, outer>(not kept: too many functions) python 10ms"; got != want {
		t.Errorf("main thread: %s\nwant %s", got, want)
	}
	if got, want := spans(rec, 8), "outer unknown 4ms, outer waiting 6ms"; got != want {
		t.Errorf("loader, which ended at 10 ms: %s, want %s", got, want)
	}
	s := rec.Sampling
	if s.Method != fallbackMethod || !strings.Contains(s.FallbackReason, "2.7") || s.Samples != 4 || s.CPU != 123 {
		t.Errorf("sampling %+v", s)
	}
	if want := 10 * time.Millisecond / 3; s.Interval.Round(time.Microsecond) != want.Round(time.Microsecond) || rec.Resolution != s.Interval {
		t.Errorf("interval %v, resolution %v; want the %v that was kept", s.Interval, rec.Resolution, want)
	}
	for _, th := range rec.Threads {
		if th.RunsCell != (th.NativeID == 7) || (th.NativeID == 7) != th.Main {
			t.Errorf("thread %+v", th)
		}
	}
}

func TestEverNewThreadsAreBounded(t *testing.T) {
	p := newPushing()
	if _, err := p.Begin(Spec{ID: "a", Started: p.now}); err != nil {
		t.Fatal(err)
	}
	start := p.now
	s := Samples{Frames: map[uint32]timeline.Frame{1: {Function: "f"}}, Stacks: map[uint32][]uint32{1: {1}}}
	for i := range maxLanes + 100 {
		s.Ticks = append(s.Ticks, Tick{start + int64(i)*1e6, map[int]uint32{100 + i: 1}})
	}
	p.now += int64(maxLanes+100) * 1e6
	p.Push(s)
	rec, err := p.End("a", Ending{At: p.now})
	if err != nil {
		t.Fatal(err)
	}
	if len(rec.Threads) != maxLanes || !hasNote(rec, "threads") {
		t.Errorf("%d threads, notes %v; want %d and a note", len(rec.Threads), rec.Notes, maxLanes)
	}
}

func TestWhatIsInternedOutlivesARun(t *testing.T) {
	p := newPushing()
	p.Push(Samples{ // before any cell
		Frames: map[uint32]timeline.Frame{1: {Function: "f"}}, Stacks: map[uint32][]uint32{1: {1}},
		Ticks: []Tick{{p.now, map[int]uint32{7: 1}}},
	})
	for _, id := range []string{"a", "b"} {
		begin := p.now
		if _, err := p.Begin(Spec{ID: id, Started: begin}); err != nil {
			t.Fatal(err)
		}
		p.now += int64(time.Millisecond)
		p.Push(Samples{Ticks: []Tick{{begin, map[int]uint32{7: 1}}}})
		rec, err := p.End(id, Ending{At: p.now})
		if err != nil {
			t.Fatal(err)
		}
		if got := spans(rec, 7); got != "f unknown 1ms" {
			t.Errorf("cell %s: %q", id, got)
		}
	}
}

func TestSourcesAreBoundedAndTheCellsOwnWins(t *testing.T) {
	var b sourceBook
	b.add(
		timeline.Source{File: "same.py", ExecutionCount: 1, Text: "x = 1"},
		timeline.Source{File: "same.py", ExecutionCount: 2, Text: "x = 1\n"}, // run again
		timeline.Source{Text: "nameless"},
	)
	rec := &timeline.Recording{Frames: []timeline.Frame{{File: "same.py"}, {File: "other.py"}, {File: "same.py"}}}
	if got := b.of(rec); len(got) != 1 || got[0].ExecutionCount != 2 {
		t.Errorf("sources %+v, want the newer of same.py alone", got)
	}
	rec.Target.Cell = &timeline.Cell{File: "same.py", ExecutionCount: 9, Text: "x = 1"}
	if got := b.of(rec); len(got) != 1 || got[0].ExecutionCount != 9 {
		t.Errorf("sources %+v, want the cell's own", got)
	}
	b.add(timeline.Source{File: "same.py", ExecutionCount: 3, Text: "y = 2"}) // as IPYKERNEL_CELL_NAME has it
	if got := b.of(rec); len(got) != 2 || got[0].ExecutionCount != 9 || got[1].Text != "y = 2" {
		t.Errorf("sources %+v, want the cell's own and the other of its name", got)
	}
	line := strings.Repeat("é", 100) + "\n"
	for i := range 100 {
		b.add(timeline.Source{File: fmt.Sprintf("%d.py", i), Text: strings.Repeat(line, 10000)})
	}
	total := 0
	for _, several := range b.byFile {
		s := several[0]
		total += len(s.Text) + len(s.File)
		if len(s.Text) > maxSourceText || !strings.HasSuffix(s.Text, "é\n") {
			t.Fatalf("a text of %d bytes ends with %q", len(s.Text), s.Text[len(s.Text)-3:])
		}
	}
	if total != b.size || total > maxSourceTotal || len(b.order) != len(b.byFile) {
		t.Errorf("%d bytes are kept (counted as %d), want at most %d", total, b.size, maxSourceTotal)
	}
}

// Workers run functions that were sent to them by value, which name no file.
func TestCellsComeWithTheFunctionsThatWereSentToWorkers(t *testing.T) {
	var b sourceBook
	b.add(
		timeline.Source{File: "1.py", ExecutionCount: 1, Text: "def work(n):\n    return n"},
		timeline.Source{File: "2.py", ExecutionCount: 2, Text: "def other(n):\n    return n"},
		timeline.Source{File: "3.py", ExecutionCount: 3, Text: "twice = lambda n: 2 * n"},
	)
	for function, want := range map[string]string{"work": "1.py", "Outer.other": "2.py", "<lambda>": "3.py", "missing": ""} {
		rec := &timeline.Recording{Frames: []timeline.Frame{{File: timeline.SentCode, Function: function}}}
		var got string
		for _, s := range b.of(rec) {
			got += s.File
		}
		if got != want {
			t.Errorf("%s: %q, want %q", function, got, want)
		}
	}
}

func TestCellsWithMagicsComeWithWhatTheirMagicsCompiled(t *testing.T) {
	var b sourceBook
	b.add(timeline.Source{File: "3.py", ExecutionCount: 3, Text: "%%time\ndef f():\n    pass"}, timeline.Source{File: "4.py", ExecutionCount: 4, Text: "g()"})
	rec := &timeline.Recording{Frames: []timeline.Frame{{Function: "f", File: "<timed exec>"}}}
	if got := b.of(rec); len(got) != 1 || got[0].File != "3.py" {
		t.Errorf("sources %+v, want the cell that may have defined f", got)
	}
}
