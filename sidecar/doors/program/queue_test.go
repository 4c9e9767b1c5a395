package program

import (
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

func TestWaitingForACPUWithinACell(t *testing.T) {
	var q queue
	start := time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	for _, r := range [][2]int{{0, 10}, {100, 15}, {200, 60}, {300, 61}} {
		q.add(queueReading{at(r[0]), map[int]time.Duration{7: time.Duration(r[1]) * time.Millisecond}})
	}
	for _, c := range []struct{ from, to, want int }{
		{100, 200, 45}, // from a reading to a reading
		{110, 190, 45}, // between them
		{110, 210, 46}, // it ended behind one
		{50, 290, 51},
		{-10, 100, 0}, // nothing was read before
		{250, 310, 0}, // nor behind
	} {
		if got := q.within(7, at(c.from), at(c.to)); got != time.Duration(c.want)*time.Millisecond {
			t.Errorf("from %d to %d ms: %v, want %d ms", c.from, c.to, got, c.want)
		}
	}
	for i := range 3 * keptReadings {
		q.add(queueReading{at: at(1000 + i)})
	}
	if len(q.readings) != keptReadings {
		t.Errorf("%d readings are kept", len(q.readings))
	}
}

func TestThreadsThatTheMainThreadWaitsFor(t *testing.T) {
	start := time.Now()
	q := queue{[]queueReading{
		{start, map[int]time.Duration{7: 10, 8: 10, 9: 100}},
		{start.Add(time.Second), map[int]time.Duration{7: 13, 8: 50, 9: 101, 10: 5}},
	}}
	if got := q.within(7, start, start.Add(time.Second)); got != 43 {
		t.Errorf("%d ns, want 3 of the main thread and 40 of the other one that waited longest", got)
	}
}

func TestTheQueueOfThisProcess(t *testing.T) {
	if _, err := os.Stat("/proc/self/schedstat"); err != nil {
		t.Skip("the kernel has no schedstat files")
	}
	var q queue
	q.read(os.Getpid())
	q.read(-1)
	if len(q.readings) != 1 || len(q.readings[0].waited) == 0 {
		t.Errorf("%d readings of a process that is there and one that is not", len(q.readings))
	}
}

func TestALengthByTheKernelsTimes(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		w    watched
		want time.Duration
	}{
		{watched{sent: now, ended: now.Add(time.Second)}, time.Second},
		{watched{sent: now, ended: now.Add(-time.Second)}, 0}, // the clock was set
		{watched{ended: now}, 0},                              // its start was not seen
		{watched{sent: now}, 0},                               // nor its end
	} {
		if got := c.w.length(); got != c.want {
			t.Errorf("%v to %v: %v, want %v", c.w.sent, c.w.ended, got, c.want)
		}
	}
}

// %%capture runs the rest of its cell as one of its own, which has another file.
func TestACellsTextAndWhatItsMagicRuns(t *testing.T) {
	names := func(code string) string { return "file of " + code }
	for text, want := range map[string][]timeline.Source{
		"":                          nil,
		"x = 1":                     {{File: "own", ExecutionCount: 3, Text: "x = 1"}},
		"%%capture":                 {{File: "own", ExecutionCount: 3, Text: "%%capture"}},
		"\n%%capture out\nx = 1\ny": {{File: "own", ExecutionCount: 3, Text: "\n%%capture out\nx = 1\ny"}, {File: "file of x = 1\ny\n", ExecutionCount: 3, Text: "x = 1\ny\n", Nested: true}},
	} {
		w := watched{cell: &timeline.Cell{File: "own", ExecutionCount: 3, Text: text}}
		if got := w.sources(names); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}
