package pystack

import (
	"errors"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// sleeper is a kernel in which every thread sleeps, after it has used so much CPU time.
type sleeper struct {
	imageKernel
	used *int64
}

func (k sleeper) activity(int) (activity, bool) {
	return activity{known: true, syscall: unix.SYS_CLOCK_NANOSLEEP}, false
}
func (k sleeper) state() byte                        { return 'S' }
func (k sleeper) scheduled(int) (ran, delayed int64) { return *k.used, 0 }

// ticks samples a recorded process that sleeps at given times after the begin.
type ticks struct {
	*session
	tape *tape
	zero time.Time
	used int64
}

func newTicks(t *testing.T, interval time.Duration) *ticks {
	im := loadImage(t, "3.13")
	k := &ticks{tape: newTape()}
	p, err := open(im, sleeper{imageKernel{im}, &k.used}, runtimePlace{addr: im.Runtime, hex: im.Hex})
	if err != nil {
		t.Fatal(err)
	}
	k.session = newSession(p, k.tape, SampleOptions{Interval: interval, Budget: -1}, &worker{}) // what the test itself costs is not what sampling does
	k.zero = time.Now()
	return k
}

func (k *ticks) at(t *testing.T, times ...time.Duration) {
	t.Helper()
	for _, at := range times {
		if err := k.step(k.zero.Add(at)); err != nil {
			t.Fatal(err)
		}
	}
}

// every is the times from one to another.
func every(interval, from, to time.Duration) (times []time.Duration) {
	for at := from; at <= to; at += interval {
		times = append(times, at)
	}
	return times
}

// unknown is for how long nothing is known of some thread at the most, and how long the gaps are.
func (k *ticks) unknown(t *testing.T) (thread, gaps time.Duration) {
	rec := k.tape.Snapshot(k.sink.Since(k.session.at))
	if len(rec.Threads) == 0 {
		t.Fatal("no thread was seen")
	}
	for i := range rec.Threads {
		var spans time.Duration
		for _, span := range rec.Threads[i].Spans {
			if span.State == timeline.StateUnknown && span.Node == timeline.RootNode {
				spans += (span.End - span.Start).Duration()
			}
		}
		thread = max(thread, spans)
	}
	for _, g := range rec.Gaps {
		if g.Reason != timeline.GapLate {
			t.Errorf("gap %v", g)
		}
		gaps += (g.End - g.Start).Duration()
	}
	return thread, gaps
}

const ms = time.Millisecond

// What a program did while the sampler itself got no CPU is not known: it is not divided
// between what it did before and after.
func TestALongPauseOfTheSamplerIsAGap(t *testing.T) {
	for _, c := range []struct {
		name     string
		interval time.Duration
		before   time.Duration
		pause    time.Duration
		used     time.Duration // of CPU by the program, during the pause
		want     time.Duration
	}{
		{"a little late", ms, 20 * ms, 9 * ms, ms, 0},
		{"1.7 s late", ms, 20 * ms, 1700 * ms, ms, 1700 * ms},
		{"1.7 s late, of which it slept all", ms, 20 * ms, 1700 * ms, 0, 0},
		{"three intervals of 40 ms", 40 * ms, 400 * ms, 119 * ms, ms, 0},
		{"more than that", 40 * ms, 400 * ms, 130 * ms, ms, 130 * ms},
		{"at rest, and nobody used the CPU", ms, 2000 * ms, 1700 * ms, 0, 0},
		{"at rest, and somebody did", ms, 2000 * ms, 1700 * ms, ms, 1700 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newTicks(t, c.interval)
			k.at(t, every(c.interval, c.interval, c.before)...)
			k.used += int64(c.used)
			again := c.before + c.pause
			k.at(t, every(c.interval, again, again+20*c.interval)...)
			if thread, gaps := k.unknown(t); thread.Round(ms) != c.want || gaps.Round(ms) != c.want {
				t.Errorf("the thread is unknown for %v, the gaps are %v, want %v", thread, gaps, c.want)
			}
			last := k.tape.sets[len(k.tape.sets)-1]
			if last.node == timeline.RootNode || !slices.ContainsFunc(k.tape.sets, func(s setCall) bool { return s.state == timeline.StateWaiting }) {
				t.Errorf("after the pause it is reported as %+v", last)
			}
		})
	}
}

// Before the first tick it is the same, where the target could have been read all the time.
func TestALongPauseBeforeTheFirstTickIsAGap(t *testing.T) {
	for _, c := range []struct {
		ready       bool
		pause, want time.Duration
	}{
		{true, 640 * ms, 640 * ms},
		{true, 49 * ms, 0},
		{false, 640 * ms, 0},
	} {
		k := newTicks(t, ms)
		k.opts.Ready, k.p.pid = c.ready, k.p.kernel.tid(k.p.gils[0].threads[0].nativeID)
		k.at(t, every(ms, c.pause, c.pause+20*ms)...)
		thread, gaps := k.unknown(t)
		if (thread-c.want).Abs() > 5*ms || (gaps-c.want).Abs() > 5*ms || thread != gaps {
			t.Errorf("ready %v, after %v: the thread is unknown for %v, the gaps are %v, want %v", c.ready, c.pause, thread, gaps, c.want)
		}
	}
}

// An interpreter's GIL that is gone is of one that has ended; the program has become another
// one only if the main interpreter's is.
func TestAnInterpreterThatEndsIsNoExec(t *testing.T) {
	k := newTicks(t, ms)
	k.at(t, ms)
	const gone = 0x10
	k.p.gils = append(k.p.gils, &gilGroup{addr: gone, interpreters: []uint64{gone}})
	if k.at(t, 2*ms); k.p.groupAt(gone) != nil || len(k.p.gils) == 0 {
		t.Errorf("the groups are %+v", k.p.gils)
	}
	k.p.gils = []*gilGroup{{addr: gone, interpreters: []uint64{k.p.mainInterp}}}
	if err := k.step(k.zero.Add(3 * ms)); !errors.Is(err, ErrReplaced) {
		t.Errorf("without the main interpreter's GIL: %v", err)
	}
}
