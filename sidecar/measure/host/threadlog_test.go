package host

import (
	"os"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

func TestThreadLogTellsWhatAThreadDid(t *testing.T) {
	p := newFakeProc(t)
	p.set(fakeProcess{pid: 10})
	now := int64(0)
	l := NewThreadLog(10)
	l.fs, l.clock = newFiles(p.root, p.root), func() int64 { return now }
	if state, ok := l.State(10, 0); ok || state != timeline.StateUnknown {
		t.Errorf("an empty log gives %v", state)
	}
	for _, r := range []struct {
		at        int64
		schedstat string
	}{
		{0, "1000000000 500000000 9\n"},
		{100e6, "1090000000 500000000 9\n"}, // ran
		{200e6, "1100000000 580000000 9\n"}, // waited for a CPU
		{300e6, "1100000000 590000000 9\n"}, // waited
	} {
		now = r.at
		p.write("10/task/10/schedstat", r.schedstat)
		l.Read()
	}
	for at, want := range map[int64]timeline.State{
		-5: timeline.StatePython, 50e6: timeline.StatePython, 100e6: timeline.StatePython, 150e6: timeline.StateOff,
		250e6: timeline.StateWaiting, 900e6: timeline.StateWaiting,
	} {
		if got, ok := l.State(10, at); !ok || got != want {
			t.Errorf("at %d ms it was %v, %v; want %v", at/1e6, got, ok, want)
		}
	}
	if _, ok := l.State(11, 50e6); ok {
		t.Error("it knows a thread that there never was")
	}
}

func TestThreadLogIsBoundedAndForgetsTheDead(t *testing.T) {
	p := newFakeProc(t)
	p.set(fakeProcess{pid: 10})
	p.write("10/task/11/schedstat", "5 5 5\n")
	now := int64(0)
	l := NewThreadLog(10)
	l.fs, l.clock = newFiles(p.root, p.root), func() int64 { return now }
	l.Read()
	now += int64(earlyInterval)
	l.Read()
	if err := os.RemoveAll(p.root + "/10/task/11"); err != nil {
		t.Fatal(err)
	}
	now += int64(earlyInterval)
	l.Read()
	if _, ok := l.State(11, now); !ok {
		t.Error("a thread that died just now is forgotten at once")
	}
	for range 2 * threadLogLength {
		now += int64(earlyInterval)
		l.Read()
	}
	if _, ok := l.State(11, now); ok {
		t.Error("a thread that died long ago is remembered")
	}
	if n := len(l.threads[10]); n != threadLogLength {
		t.Errorf("%d readings are kept, want %d", n, threadLogLength)
	}
}

func TestThreadLogOfThisProcess(t *testing.T) {
	l := NewThreadLog(os.Getpid())
	l.Read()
	if len(l.threads) == 0 {
		t.Skip("schedstat files cannot be read here")
	}
	time.Sleep(5 * time.Millisecond)
	l.Read()
	if _, ok := l.State(os.Getpid(), timeline.Monotonic()); !ok {
		t.Error("nothing is known of the main thread")
	}
}

func FuzzParseSchedstat(f *testing.F) {
	f.Add([]byte("1000000000 500000000 9\n"))
	f.Add([]byte("99999999999999999999 -1\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if use := parseSchedstat(text); use.cpu < 0 || use.queued < 0 {
			t.Errorf("%q: %+v", text, use)
		}
	})
}
