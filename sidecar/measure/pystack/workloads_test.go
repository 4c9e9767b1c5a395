package pystack

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/retry"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// eachVersion is truth.EachInterpreter for the first choice of each version:
// further builds differ in how they are found, not in what they do.
func eachVersion(t *testing.T, test func(*testing.T, truth.Interpreter)) {
	t.Helper()
	truth.EachInterpreter(t, func(t *testing.T, python truth.Interpreter) {
		if python.Build != "" {
			t.Skip("the first choice of each version is enough here")
		}
		test(t, python)
	})
}

// inTurn is whether a case of a table is tried on a version: each on two of the five, the next case on the next two;
// all on all where OMNI_PERF_TRUTH is set (make truth).
func inTurn(turn int, python truth.Interpreter) bool {
	at := slices.Index(truth.Minors, python.Minor) + 2*len(truth.Minors)*turn
	return os.Getenv("OMNI_PERF_TRUTH") != "" || (at-2*turn)%len(truth.Minors) < 2
}

// eachVersionInTurn is eachVersion for a case of a table.
func eachVersionInTurn(t *testing.T, turn int, test func(*testing.T, truth.Interpreter)) {
	t.Helper()
	eachVersion(t, func(t *testing.T, python truth.Interpreter) {
		if !inTurn(turn, python) {
			t.Skip("other cases are tried on this version")
		}
		test(t, python)
	})
}

// weights sums the main thread's time by what key says of a span.
func weights(rec *timeline.Recording, thread timeline.ThreadID, key func(timeline.Span, truth.Sample) string) map[string]float64 {
	out := make(map[string]float64)
	for _, s := range rec.Threads[thread].Spans {
		if k := key(s, stackOf(rec, s.Node, s.Truncated)); k != "" {
			out[k] += float64(s.End - s.Start)
		}
	}
	return out
}

// firstOf names the first of the functions that is in a stack.
func firstOf(functions ...string) func(timeline.Span, truth.Sample) string {
	return func(_ timeline.Span, s truth.Sample) string {
		for _, f := range s.Functions {
			if slices.Contains(functions, f) {
				return f
			}
		}
		return ""
	}
}

func TestTimeShares(t *testing.T) {
	eachVersion(t, func(t *testing.T, python truth.Interpreter) {
		retry.Again(t, func(try *retry.Attempt) {
			r := sampleHeld(try, python, truth.Parts, 2*time.Second, SampleOptions{})
			rec, measured, stats := r.rec, r.measured, r.stats
			got := weights(rec, mainThread(t, rec), firstOf("ada", "bob", "cleo", "dora", "emil"))
			distance := truth.Distance(got, measured.SpentNs)
			t.Logf("total variation distance %.4f; %d ticks missed of %d", distance, stats.Missed, stats.Samples+stats.Missed)
			if distance > 0.05 {
				try.Errorf("got shares %v, the program itself says %v", got, measured.SpentNs)
			}
		})
	})
}

// run is a program that was sampled from its first round to its last, and what it says of itself.
type run struct {
	rec      *timeline.Recording
	measured truth.Measured
	stats    Stats
	looks    []int64 // CLOCK_MONOTONIC of when its memory was read
}

// sampleHeld samples a program that is held until the sampling has begun.
func sampleHeld(t testing.TB, python truth.Interpreter, w truth.Workload, d time.Duration, opts SampleOptions) run {
	t.Helper()
	target, err := truth.Launch(python.Path, w, truth.Settings{Held: true})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Kill()
	p := attachTo(t, target)
	memory := &datedMemory{Memory: p.reader.mem.Memory}
	p.reader.mem.Memory = memory
	type result struct {
		stats Stats
		err   error
	}
	ctx, cancel := context.WithCancel(context.Background())
	tape, done := newTape(), make(chan result)
	go func() {
		stats, err := p.Sample(ctx, tape, opts)
		done <- result{stats, err}
	}()
	target.Go()
	time.Sleep(d)
	measured, err := target.Stop()
	cancel()
	sampled := <-done
	if sampled.err != nil && !errors.Is(sampled.err, ErrGone) && !errors.Is(sampled.err, ErrStarting) { // it may have ended by now
		t.Fatal(sampled.err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return run{tape.Snapshot(tape.Since(timeline.Monotonic())), measured, sampled.stats, memory.dates}
}

// datedMemory notes when it is read.
type datedMemory struct {
	Memory
	dates []int64
}

func (m *datedMemory) Read(buf []byte, ranges []Range) (int, error) {
	n, err := m.Memory.Read(buf, ranges)
	m.dates = append(m.dates, timeline.Monotonic())
	return n, err
}

func TestNativeStates(t *testing.T) {
	eachVersion(t, func(t *testing.T, python truth.Interpreter) {
		target := truth.Start(t, python, truth.Native)
		p := attachTo(t, target)
		type doing struct {
			state timeline.State
			wait  timeline.Wait
		}
		want := map[string]doing{
			"hashing": {timeline.StateNative, timeline.WaitUnknown}, "sleeping": {timeline.StateWaiting, timeline.WaitSleep},
			"waiting": {timeline.StateWaiting, timeline.WaitLock}, "polling": {timeline.StateWaiting, timeline.WaitPoll},
		}
		retry.Again(t, func(try *retry.Attempt) {
			_, rec, _ := sampleFor(t, p, time.Second, SampleOptions{Budget: -1})
			for name, what := range want {
				got := weights(rec, mainThread(t, rec), func(s timeline.Span, stack truth.Sample) string {
					if slices.Contains(stack.Functions, name) {
						return fmt.Sprint(doing{s.State, s.Wait})
					}
					return ""
				})
				delete(got, fmt.Sprint(doing{timeline.StateOff, timeline.WaitUnknown})) // on a busy machine
				total := 0.0
				for _, w := range got {
					total += w
				}
				if share := got[fmt.Sprint(what)] / total; !(share > 0.5) {
					try.Errorf("%s: %.0f %% of its time is %v, want most; got %v", name, 100*share, what, got)
				}
			}
		})
	})
}

// Nobody may have taken the GIL since the recording before.
func TestASecondRecordingHasItsIdleThreads(t *testing.T) {
	p := attachTo(t, truth.Start(t, truth.Any(t), truth.Threads(20)))
	for range 3 {
		if _, rec, _ := sampleFor(t, p, 100*time.Millisecond, SampleOptions{}); len(rec.Threads) != 20 {
			t.Errorf("a recording has %d threads, want 20", len(rec.Threads))
		}
	}
}

func TestIdleThreads(t *testing.T) {
	eachVersion(t, func(t *testing.T, python truth.Interpreter) {
		target := truth.Start(t, python, truth.Threads(160))
		legal, err := target.Legal()
		if err != nil {
			t.Fatal(err)
		}
		p := attachTo(t, target)
		retry.Again(t, func(try *retry.Attempt) {
			tape, rec, stats := sampleFor(t, p, 500*time.Millisecond, SampleOptions{Budget: -1})
			t.Logf("%d ticks, %.1f µs CPU and %.2f calls a tick", stats.Samples, float64(stats.CPU.Nanoseconds())/1000/float64(stats.Samples), float64(stats.Calls)/float64(stats.Samples))
			if len(rec.Threads) != 160 {
				t.Errorf("got %d threads, want 160", len(rec.Threads))
			}
			if v := legal.Judge(tape.samples(rec, mainThread(t, rec))); v.Impossible > 0 {
				t.Errorf("%d impossible: %q", v.Impossible, v.Examples)
			}
			if idle := idleThreads(rec); idle < 159 {
				try.Errorf("%d threads wait in idle_below all the time, want 159", idle)
			}
			if reads := float64(stats.Reads) / float64(stats.Samples); reads > 3 {
				try.Errorf("%.1f stacks read a tick, want about one: idle threads cost a word", reads)
			}
		})
	})
}

// idleThreads counts the threads that are seen waiting in idle_below and nowhere else.
func idleThreads(rec *timeline.Recording) (count int) {
	for i, thread := range rec.Threads {
		if thread.Main {
			continue
		}
		w := weights(rec, timeline.ThreadID(i), func(s timeline.Span, stack truth.Sample) string {
			if slices.Contains(stack.Functions, "idle_below") {
				return s.State.String()
			}
			return "elsewhere"
		})
		if len(w) == 1 && w["waiting"] > 0 {
			count++
		}
	}
	return count
}

// tornMemory is a Memory with copies of a stack that do not agree, at first.
type tornMemory struct {
	Memory
	torn int // reads of stacks that are
}

func (m *tornMemory) Read(buf []byte, ranges []Range) (int, error) {
	n, err := m.Memory.Read(buf, ranges)
	copied, at, again := make(map[Range]bool), 0, false
	for _, r := range ranges {
		if copied[r] && m.torn > 0 {
			clear(buf[min(at, n):min(at+r.Len, n)])
			again = true
		}
		copied[r] = true
		at += r.Len
	}
	if again {
		m.torn--
	}
	return n, err
}

// A thread that went on while it was read is read again, also if it waits ever since.
func TestAStackThatWasCutIsReadAgain(t *testing.T) {
	eachVersion(t, func(t *testing.T, python truth.Interpreter) {
		p := attachTo(t, truth.Start(t, python, truth.Threads(8)))
		p.reader.mem.Memory = &tornMemory{p.mem, 100} // at the first tick each of eight is read some five times
		tape, rec, stats := sampleFor(t, p, 300*time.Millisecond, SampleOptions{Budget: -1})
		if stats.Truncated+stats.Lost < 7 {
			t.Fatalf("%d stacks were cut and %d lost: the copies were to differ", stats.Truncated, stats.Lost)
		}
		whole := 0
		for i := range rec.Threads {
			stacks := tape.samples(rec, timeline.ThreadID(i))
			if last := stacks[len(stacks)-1]; !last.Truncated && len(last.Functions) > 0 {
				whole++
			}
		}
		if whole < 7 { // the main thread may be cut at its last moment
			t.Errorf("%d of 8 threads are whole in the end", whole)
		}
	})
}

func mean(points []timeline.Point) float64 {
	sum := 0.0
	for _, p := range points {
		sum += p.Value / float64(len(points))
	}
	return sum
}

// switchCount reads the hand-overs the first GIL has counted.
func switchCount(t testing.TB, p *Process) uint64 {
	t.Helper()
	var gil [cpython.GILSwitches + cpython.WordSize]byte
	if err := cpython.ReadAt(p.mem, p.gils[0].addr, gil[:]); err != nil {
		t.Fatal(err)
	}
	return cpython.Word(gil[:], cpython.GILSwitches)
}

func TestContendedGIL(t *testing.T) {
	eachVersion(t, func(t *testing.T, python truth.Interpreter) {
		target := truth.Start(t, python, truth.Handover)
		legal, err := target.Legal()
		if err != nil {
			t.Fatal(err)
		}
		p := attachTo(t, target)
		time.Sleep(50 * time.Millisecond) // its threads are started
		retry.Again(t, func(try *retry.Attempt) {
			before := switchCount(t, p)
			tape, rec, stats := sampleFor(t, p, time.Second, SampleOptions{Budget: -1})
			handovers := float64(switchCount(t, p) - before)
			t.Logf("%d ticks, %.1f µs CPU a tick, %.2f %% cut", stats.Samples, float64(stats.CPU.Nanoseconds())/1000/float64(stats.Samples), 100*float64(stats.Truncated)/float64(stats.Reads))
			if v := legal.Judge(tape.samples(rec, mainThread(t, rec))); v.Impossible > 0 {
				t.Errorf("%d impossible: %q", v.Impossible, v.Examples)
			}
			states := make(map[string]float64)
			for i := range rec.Threads {
				for k, w := range weights(rec, timeline.ThreadID(i), func(s timeline.Span, _ truth.Sample) string { return s.State.String() }) {
					states[k] += w / float64(rec.Duration)
				}
			}
			// On a busy machine some of the waiting threads are seen waking up, who has the GIL has no CPU for a
			// part of the time, and neither has the sampler.
			python, gil, unknown := states["python"], states["gil"], states["unknown"]
			if holds := python + states["native"] + states["off"]; holds < 0.8-unknown || python > 1.05 || gil < 1.2-unknown {
				try.Errorf("got states %v (threads), want 1 python and 3 gil", states)
			}
			// How often CPython really hands the GIL over is its own affair: from 0 to
			// 200 a second were seen on one machine.
			switches, waiting := gilFigures(rec)
			// All four wait only while the GIL lies free: until the one it was left to is on a CPU.
			if math.Abs(switches-handovers) > 2+handovers/20 || waiting < 1 || waiting > 3.05 {
				try.Errorf("tracks say %.0f hand-overs and %.4f threads waiting, want %.0f and 3", switches, waiting, handovers)
			}
		})
	})
}

// gilFigures are the hand-overs that the GIL's tracks show, and the mean of the threads that wait.
func gilFigures(rec *timeline.Recording) (switches, waiting float64) {
	for _, track := range rec.Tracks {
		switch track.ID {
		case "gil.switches":
			for _, point := range track.Points {
				switches += point.Value * (point.At - point.From).Seconds()
			}
		case "gil.wait":
			waiting = mean(track.Points)
		}
	}
	return switches, waiting
}

func TestLeafLines(t *testing.T) {
	eachVersion(t, func(t *testing.T, python truth.Interpreter) {
		retry.Again(t, func(t *retry.Attempt) {
			target := truth.Start(t, python, truth.Lines)
			p := attachTo(t, target)
			tape, rec, _ := sampleFor(t, p, 500*time.Millisecond, SampleOptions{Budget: -1})
			measured, err := target.Stop()
			if err != nil {
				t.Fatal(err)
			}
			wrong, judged := truth.LeafLines(tape.samples(rec, mainThread(t, rec)), measured.Hot)
			t.Logf("%d of %d samples at another line", wrong, judged)
			if judged < 20 || wrong*50 > judged {
				t.Errorf("%d of %d samples are at another line than the one that takes the time", wrong, judged)
			}
		})
	})
}

// shortLines is a recursion whose lines last some microseconds, with its own clock of the line that computes.
var shortLines = truth.Workload{Name: "shortlines", Source: `
import time
import harness

clock, spent = time.perf_counter_ns, {"computes": 0, "calls": 0}

def depth(n):
    start = clock(); x = sum(range(1000)); spent["computes"] += clock() - start
    return depth(n - 1) if n else x

def one_round():
    start, before = clock(), spent["computes"]
    for _ in range(20): depth(60)
    spent["calls"] += clock() - start - (spent["computes"] - before)

def begin():
    spent.update(computes=0, calls=0)

harness.drive(one_round, lambda: {"spent_ns": spent}, before=begin)
`}

// A read takes a microsecond and more, in which the leaf calls and returns: what it does
// then is not to have the time of the line before.
func TestShortLinesKeepTheirTime(t *testing.T) {
	lines := map[int]string{8: "computes", 9: "calls"}
	eachVersion(t, func(t *testing.T, python truth.Interpreter) {
		retry.Again(t, func(try *retry.Attempt) {
			r := sampleHeld(try, python, shortLines, 1500*time.Millisecond, SampleOptions{})
			got := weights(r.rec, mainThread(t, r.rec), func(_ timeline.Span, s truth.Sample) string {
				if n := len(s.Functions); n > 0 && s.Functions[n-1] == "depth" {
					return lines[s.Lines[n-1]]
				}
				return ""
			})
			distance := truth.Distance(got, r.measured.SpentNs)
			t.Logf("total variation distance %.4f: %v, the program itself says %v", distance, got, r.measured.SpentNs)
			if distance > 0.03 {
				try.Errorf("got shares %v, the program itself says %v", got, r.measured.SpentNs)
			}
		})
	})
}

// besideOthers waits on one line after the other, by the same function of the library and for long by
// itself, while a thread computes and six wait.
var besideOthers = truth.Workload{Name: "besideothers", Source: `
import threading, time
import harness

spent = {}

def computing():
    while True:
        sum(range(1000))

def one_round():
    times = [time.perf_counter_ns()]
    now = lambda: times.append(time.perf_counter_ns())
    threading.Event().wait(0.1); now()
    threading.Event().wait(0.3); now()
    threading.Event().wait(0.2); now()
    time.sleep(1.3); now()
    time.sleep(1.1); now()
    for n in range(5):
        spent[str(14 + n)] = spent.get(str(14 + n), 0) + times[n + 1] - times[n]

for _ in range(6):
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
threading.Thread(target=computing, daemon=True).start()
harness.drive(one_round, lambda: {"spent_ns": spent})
`}

// A thread that takes the GIL for a moment, between two others, is seen where it waits then.
func TestWaitsBesideOthersKeepTheirLines(t *testing.T) {
	eachVersion(t, func(t *testing.T, python truth.Interpreter) {
		retry.Again(t, func(try *retry.Attempt) {
			r := sampleHeld(try, python, besideOthers, 2500*time.Millisecond, SampleOptions{})
			got := weights(r.rec, mainThread(t, r.rec), func(_ timeline.Span, s truth.Sample) string {
				if i := slices.Index(s.Functions, "one_round"); i >= 0 {
					return fmt.Sprint(s.Lines[i])
				}
				return ""
			})
			distance := truth.Distance(got, r.measured.SpentNs)
			t.Logf("total variation distance %.4f", distance)
			if distance > 0.03 {
				try.Errorf("got %v by line, the program itself says %v", got, r.measured.SpentNs)
			}
		})
	})
}

func TestStdlibLineTables(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the whole standard library; not with -short")
	}
	eachVersion(t, func(t *testing.T, python truth.Interpreter) {
		path, err := truth.DumpLineTables(python.Path, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		objects, instructions := 0, 0
		for table, err := range truth.LineTables(file) {
			if err != nil {
				t.Fatal(err)
			}
			objects++
			got := cpython.DecodeLineTable(table.Table, int32(table.FirstLine))
			for i, want := range table.Lines {
				instructions++
				if line := int(got.Line(int32(i))); line != max(want, 0) {
					t.Fatalf("%s: instruction %d is at line %d, want %d", table.Function, i, line, want)
				}
			}
		}
		t.Logf("%d instructions of %d code objects", instructions, objects)
		if objects < 10_000 {
			t.Errorf("got %d code objects, want the standard library's", objects)
		}
	})
}

func TestTargetEnds(t *testing.T) {
	truth.EachInterpreter(t, func(t *testing.T, python truth.Interpreter) {
		target := truth.Start(t, python, truth.Work)
		p := attachTo(t, target)
		go func() {
			time.Sleep(100 * time.Millisecond)
			target.Kill()
		}()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		stats, err := p.Sample(ctx, newTape(), SampleOptions{})
		if !errors.Is(err, ErrGone) {
			t.Errorf("got %v after %d samples, want ErrGone", err, stats.Samples)
		}
	})
}

// TestShortLivedCode runs code objects that take each other's addresses.
func TestShortLivedCode(t *testing.T) {
	fleeting := truth.Workload{Name: "fleeting", Source: `
import harness
def busy():
    for _ in range(4000): pass
def one_round():
    for k in range(10):
        source = f"def f_{k}():\n    busy()\n" + f"f_{k}()"
        exec(compile(source, f"<gen f_{k}>", "exec"), {"busy": busy})
harness.drive(one_round)
`}
	eachVersion(t, func(t *testing.T, python truth.Interpreter) {
		retry.Again(t, func(t *retry.Attempt) {
			target := truth.Start(t, python, fleeting)
			p := attachTo(t, target)
			tape, rec, stats := sampleFor(t, p, 400*time.Millisecond, SampleOptions{Interval: 250 * time.Microsecond, Budget: -1})
			seen, wrong := 0, 0
			for _, s := range tape.sets {
				module := ""
				for n := s.node; n != timeline.RootNode; n = rec.Nodes[n].Parent {
					f := rec.Frames[rec.Nodes[n].Frame]
					if strings.HasPrefix(f.Function, "f_") {
						seen++
						module = "<gen " + f.Function + ">"
					}
					if module != "" && strings.HasPrefix(f.File, "<gen") && f.File != module {
						wrong++
					}
				}
			}
			t.Logf("%d of %d mixed; %.1f %% cut, %d lost of %d", wrong, seen, 100*float64(stats.Truncated)/float64(stats.Reads), stats.Lost, stats.Reads)
			if seen == 0 || wrong*500 > seen {
				t.Errorf("%d of %d samples mix code objects that followed each other (%+v)", wrong, seen, stats)
			}
		})
	})
}

// handlers are coroutines that each live for a millisecond and call functions that
// last less than one.
var handlers = truth.Workload{Name: "handlers", Source: `
import asyncio
import harness

def parse(n):
    return n + 1

def render(n):
    return parse(n) - 1

async def handle():
    for n in range(4000):
        render(n)
    await asyncio.sleep(0)

async def serve():
    await asyncio.gather(*(handle() for _ in range(20)))

def one_round():
    asyncio.run(serve())

harness.drive(one_round)
`}

func TestCoroutinesOfShortFunctionsAreSeen(t *testing.T) {
	truth.EachInterpreter(t, func(t *testing.T, python truth.Interpreter) {
		target := truth.Start(t, python, handlers)
		p := attachTo(t, target)
		retry.Again(t, func(try *retry.Attempt) {
			tape, rec, _ := sampleFor(t, p, 400*time.Millisecond, SampleOptions{Interval: 500 * time.Microsecond, Budget: -1})
			in, all := 0, 0
			for _, s := range tape.samples(rec, mainThread(t, rec)) {
				all++
				if slices.Contains(s.Functions, "handle") {
					in++
				}
			}
			if all < 50 || in*10 < all*8 {
				try.Errorf("%d of %d stacks have the coroutine in which nearly all time goes", in, all)
			}
		})
	})
}

// crowd has a hundred idle threads, two that wake all the time, and a main one
// that computes: the GIL changes hands far more often than we look.
var crowd = truth.Workload{Name: "crowd", Source: `
import threading, time
import harness

LEAF = f"for i in range({harness.turns(100)}):\n    n += i\nreturn n"
ARMS = [harness.chain(name, 7, LEAF) for name in ("north", "east")]
OVER = threading.Event()

def idle():
    OVER.wait()

def restless():
    while not OVER.is_set():
        time.sleep(0.0001)
        time.sleep(0.0001)

def one_round():
    for arm in ARMS:
        arm(1)

def start():
    for target, count in ((idle, 100), (restless, 2)):
        for _ in range(count):
            threading.Thread(target=target, daemon=True).start()

harness.drive(one_round, before=start)
OVER.set()
`}

// restlessLeaves notes where the threads that sleep and wake were seen.
func restlessLeaves(leaves map[string]bool, tape *tape, rec *timeline.Recording) {
	for i, thread := range rec.Threads {
		if thread.Main {
			continue
		}
		for _, s := range tape.samples(rec, timeline.ThreadID(i)) {
			if slices.Contains(s.Functions, "restless") && len(s.Lines) > 0 {
				leaves[fmt.Sprint(s.Functions[len(s.Functions)-1], s.Lines[len(s.Lines)-1])] = true
			}
		}
	}
}

func TestCrowd(t *testing.T) {
	eachVersion(t, func(t *testing.T, python truth.Interpreter) {
		target := truth.Start(t, python, crowd)
		legal, err := target.Legal()
		if err != nil {
			t.Fatal(err)
		}
		p := attachTo(t, target)
		time.Sleep(100 * time.Millisecond) // its threads are started
		var tape *tape
		var rec *timeline.Recording
		retry.Again(t, func(try *retry.Attempt) {
			var stats Stats
			tape, rec, stats = sampleFor(try, p, 500*time.Millisecond, SampleOptions{Budget: -1})
			reads := float64(stats.Reads) / float64(stats.Samples)
			t.Logf("%d ticks, %.1f µs CPU, %.1f stacks and %.1f calls a tick", stats.Samples,
				float64(stats.CPU.Nanoseconds())/1000/float64(stats.Samples), reads, float64(stats.Calls)/float64(stats.Samples))
			if reads > 10 {
				try.Errorf("%.1f stacks read a tick, want only the few that may have changed", reads)
			}
			v := legal.Judge(tape.samples(rec, mainThread(t, rec)))
			if v.Impossible > 0 {
				t.Errorf("%+v", v)
			}
			if v.Lost > 0 {
				try.Errorf("%+v", v)
			}
		})
		leaves := make(map[string]bool)
		restlessLeaves(leaves, tape, rec)
		// Beside a busy thread CPython may leave the others waiting for the GIL for
		// seconds: look on until it has been handed over often enough.
		before := switchCount(t, p)
		for tries := 0; len(leaves) < 2 && tries < 20 && switchCount(t, p) < before+200; tries++ {
			tape, rec, _ := sampleFor(t, p, 200*time.Millisecond, SampleOptions{Budget: -1})
			restlessLeaves(leaves, tape, rec)
		}
		if handed := switchCount(t, p) - before; len(leaves) < 2 && handed >= 200 {
			t.Errorf("the restless threads are seen at %v only after %d hand-overs, want both of their sleeps", leaves, handed)
		}
		if len(rec.Threads) != 103 {
			t.Errorf("%d threads, want 103", len(rec.Threads))
		}
	})
}

// A thread that waits ever since it was started is seen, although it takes the GIL
// no more.
func TestThreadsThatOnlyWaitAreSeen(t *testing.T) {
	waiters := truth.Workload{Name: "waiters", Source: `
import threading, time
import harness
started = []
def one_round():
    time.sleep(0.3)
    for n in range(3 - len(started)):
        started.append(threading.Thread(target=time.sleep, args=(30,), name=f"waiter{n}", daemon=True))
        started[-1].start()
harness.drive(one_round)
`}
	eachVersion(t, func(t *testing.T, python truth.Interpreter) {
		p := attachTo(t, truth.Start(t, python, waiters))
		_, rec, _ := sampleFor(t, p, time.Second, SampleOptions{})
		seen := 0
		for _, th := range rec.Threads {
			if strings.HasPrefix(th.Name, "waiter") && len(th.Spans) > 0 && th.Spans[0].Start < rec.Duration*3/4 {
				seen++
			}
		}
		if seen != 3 {
			t.Errorf("%d of 3 threads were seen in time: %+v", seen, rec.Threads)
		}
	})
}
