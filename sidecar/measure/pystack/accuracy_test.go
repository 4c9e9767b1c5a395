package pystack

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/retry"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// tape is a Builder that also keeps every change it is given.
type tape struct {
	*timeline.Builder
	sets []setCall
}

type setCall struct {
	id        timeline.ThreadID
	at        timeline.Nanos
	node      timeline.NodeID
	state     timeline.State
	truncated bool
}

func newTape() *tape { return &tape{Builder: timeline.NewBuilder(timeline.Options{})} }

func (t *tape) Set(id timeline.ThreadID, at timeline.Nanos, node timeline.NodeID, state timeline.State, truncated bool) {
	t.sets = append(t.sets, setCall{id, at, node, state, truncated})
	t.Builder.Set(id, at, node, state, truncated)
}

// samples returns the stacks of one thread that were reported.
func (t *tape) samples(rec *timeline.Recording, thread timeline.ThreadID) []truth.Sample {
	var out []truth.Sample
	for _, s := range t.sets {
		if s.id == thread && !(s.state == timeline.StateUnknown && s.node == timeline.RootNode) { // no sample: a Gap
			out = append(out, stackOf(rec, s.node, s.truncated))
		}
	}
	return out
}

func stackOf(rec *timeline.Recording, node timeline.NodeID, truncated bool) truth.Sample {
	s := truth.Sample{Truncated: truncated}
	for ; node != timeline.RootNode; node = rec.Nodes[node].Parent {
		f := rec.Frames[rec.Nodes[node].Frame]
		if f.Suspended { // not called by what is below it
			continue
		}
		s.Functions = append(s.Functions, f.Function)
		s.Lines = append(s.Lines, f.Line)
	}
	for i, j := 0, len(s.Functions)-1; i < j; i, j = i+1, j-1 {
		s.Functions[i], s.Functions[j] = s.Functions[j], s.Functions[i]
		s.Lines[i], s.Lines[j] = s.Lines[j], s.Lines[i]
	}
	return s
}

func mainThread(t testing.TB, rec *timeline.Recording) timeline.ThreadID {
	t.Helper()
	for i := range rec.Threads {
		if rec.Threads[i].Main {
			return timeline.ThreadID(i)
		}
	}
	t.Fatal("the recording has no main thread")
	return 0
}

// sampleFor samples a process for a while.
func sampleFor(t testing.TB, p *Process, d time.Duration, opts SampleOptions) (*tape, *timeline.Recording, Stats) {
	t.Helper()
	tape := newTape()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	stats, err := p.Sample(ctx, tape, opts)
	if err != nil {
		t.Fatalf("Sample: %v", err)
	}
	return tape, tape.Snapshot(tape.Since(timeline.Monotonic())), stats
}

func attachTo(t testing.TB, target *truth.Target) *Process {
	t.Helper()
	p, err := Attach(target.Pid, Options{Wait: 5 * time.Second})
	if errors.Is(err, ErrPermission) {
		t.Skipf("this user may not read other processes: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func TestAccuracy(t *testing.T) {
	for turn, test := range []struct {
		name                        string
		workload                    truth.Workload
		truncated, lost, impossible float64 // at most, as shares of the samples
	}{
		{"work", truth.Work, 0.004, 0.001, 0.0005},
		// Nothing but calls of microseconds: the faster the machine, the more of them a read spans
		// (flat 0.2 to 0.4, deep 0.45 to 0.8 on a Zen 5).
		{"flat", truth.Flat, 0.45, 0.001, 0.0005},
		{"deep", truth.Deep, 0.85, 0.001, 0.0005},
		{"generators", truth.Generators(0), 0.7, 0.01, 0.0005},
		{"generators 20µs", truth.Generators(20 * time.Microsecond), 0.3, 0.01, 0.0005},
		{"tasks 100µs", truth.Tasks(100 * time.Microsecond), 0.02, 0.001, 0.0005},
		{"event loops", truth.EventLoops(), 0.15, 0.001, 0.0005},
	} {
		t.Run(test.name, func(t *testing.T) {
			truth.EachInterpreter(t, func(t *testing.T, python truth.Interpreter) {
				if python.Build != "" && test.name != "work" {
					t.Skip("one workload is enough for further builds of a version")
				}
				if python.Build == "" && !inTurn(turn, python) {
					t.Skip("other workloads are tried on this version")
				}
				target := truth.Start(t, python, test.workload)
				legal, err := target.Legal()
				if err != nil {
					t.Fatal(err)
				}
				p := attachTo(t, target)
				var impossible, wrongLines, reads int64 // of all attempts
				var examples []string
				retry.Again(t, func(try *retry.Attempt) {
					tape, rec, stats := sampleFor(t, p, 400*time.Millisecond, SampleOptions{Interval: 250 * time.Microsecond, Budget: -1})
					v := legal.Judge(tape.samples(rec, mainThread(t, rec)))
					impossible, wrongLines, reads = impossible+int64(v.Impossible), wrongLines+int64(v.WrongLines), reads+stats.Reads
					examples = append(examples, v.Examples...)
					share := func(n int64) float64 { return 100 * float64(n) / float64(stats.Reads) }
					t.Logf("%d ticks (%d missed), %.1f µs CPU, %.2f calls a tick; cut %.2f %%, lost %.3f %%, impossible %.3f %%, wrong lines %.3f %%",
						stats.Samples, stats.Missed, float64(stats.CPU.Nanoseconds())/1000/float64(stats.Samples), float64(stats.Calls)/float64(stats.Samples),
						share(stats.Truncated), share(stats.Lost), share(int64(v.Impossible)), share(int64(v.WrongLines)))
					if stats.Samples < 100 {
						try.Errorf("got %d samples in 400 ms", stats.Samples)
					}
					atMost(try, "lost", stats.Lost, stats.Reads, test.lost)
					atMost(try, "cut", stats.Truncated, stats.Reads, test.truncated)
				})
				atMost(t, "impossible", impossible, reads, test.impossible)
				if atMost(t, "at a wrong line", wrongLines, reads, test.impossible); t.Failed() {
					t.Logf("%q", examples)
				}
			})
		})
	}
}

// atMost fails for a count that is above a share of so few samples by more than four standard deviations.
func atMost(t testing.TB, what string, count, reads int64, share float64) {
	t.Helper()
	if limit := share * float64(reads); float64(count) > limit+4*math.Sqrt(limit)+1 {
		t.Errorf("%d of %d samples %s, at most %.2f %%", count, reads, what, 100*share)
	}
}
