package pystack

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/procfs"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/requirement"
	"github.com/omni-perf/omni-perf/sidecar/testkit/retry"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// brood is a program that forks workers which keep their own account of how long they
// are in which function: each of another share, on its own thread's clock of the wall.
const brood = `
import json, os, sys, time

def spin(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        sum(range(50))

def ada(seconds): spin(seconds)
def bob(seconds): spin(seconds)

def work(number, length):
    spent = {"ada": 0.0, "bob": 0.0}
    share = 0.2 + 0.6 * (number % 4) / 3
    end = time.perf_counter() + length
    while time.perf_counter() < end:
        for function, part in ((ada, share), (bob, 1 - share)):
            start = time.perf_counter()
            function(0.02 * part)
            spent[function.__name__] += time.perf_counter() - start
    return spent

ada(0.01), bob(0.01)
count, length = int(sys.argv[1]), float(sys.argv[2])
for number in range(count):
    pid = os.fork()
    if not pid:
        os.read(0, 1)
        print(json.dumps({"pid": os.getpid(), "spent": work(number, length)}), flush=True)
        os._exit(0)
    print(json.dumps({"pid": pid, "number": number}), flush=True)
for number in range(count):
    os.wait()
print(json.dumps({}), flush=True)
`

type broodResult struct {
	PID    int
	Number *int
	Spent  map[string]float64
}

// startBrood starts the program; its workers wait until go is called.
func startBrood(t testing.TB, python truth.Interpreter, count int, length time.Duration) (parent int, workers []int, start func(), ended <-chan broodResult) {
	t.Helper()
	cmd := exec.Command(python.Path, "-c", brood, fmt.Sprint(count), fmt.Sprint(length.Seconds()))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cmd.Process.Kill(); cmd.Wait() })
	lines := bufio.NewScanner(out)
	for len(workers) < count && lines.Scan() {
		var one broodResult
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			t.Fatal(err)
		}
		workers = append(workers, one.PID)
	}
	results := make(chan broodResult, count+1)
	go func() {
		defer close(results)
		for lines.Scan() {
			var one broodResult
			if json.Unmarshal(lines.Bytes(), &one) == nil && one.PID != 0 {
				results <- one
			}
		}
	}()
	return cmd.Process.Pid, workers, func() { in.Write(make([]byte, count)) }, results
}

func TestSharesOfForkedWorkers(t *testing.T) {
	eachVersion(t, func(t *testing.T, python truth.Interpreter) {
		retry.Again(t, func(t *retry.Attempt) { sharesOfForkedWorkers(t, python) })
	})
}

func sharesOfForkedWorkers(t *retry.Attempt, python truth.Interpreter) {
	const count = 8
	parent, workers, start, results := startBrood(t, python, count, 3*time.Second)
	p, err := Attach(parent, Options{Wait: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	b := timeline.NewBuilder(timeline.Options{})
	b.Describe(func(r *timeline.Recording) { r.Processes = make([]timeline.Process, count+1) })
	s := NewSampler(b, SamplerOptions{})
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() { s.Run(ctx); close(stopped) }()
	gone := make(chan int, count)
	for i, pid := range workers {
		s.Fork(p, pid, i+1, func(_ *Process, err error) {
			if err != nil {
				t.Errorf("worker %d: %v", i, err)
			}
		}, func(error) { gone <- i })
	}
	start()
	spent := make(map[int]map[string]float64)
	for one := range results {
		spent[one.PID] = one.Spent
	}
	for range count {
		select {
		case <-gone:
		case <-time.After(5 * time.Second):
			t.Fatal("the end of a worker was not noticed")
		}
	}
	cancel()
	<-stopped
	rec := b.Snapshot(b.Since(timeline.Monotonic()))
	if len(rec.Threads) != count {
		t.Fatalf("%d threads, want one of each of %d workers", len(rec.Threads), count)
	}
	for i, th := range rec.Threads {
		if !th.Main || th.RunsCell || th.Process == 0 || workers[th.Process-1] != th.PID {
			t.Errorf("thread %+v", th)
		}
		got := weights(rec, timeline.ThreadID(i), firstOf("ada", "bob"))
		want := spent[th.PID]
		share := got["ada"] / (got["ada"] + got["bob"])
		wanted := want["ada"] / (want["ada"] + want["bob"])
		how := rec.Processes[th.Process].Stacks
		if how.Reason != timeline.StacksRead || how.Samples < 50 || how.Interval < time.Millisecond {
			t.Errorf("worker %d was read %+v", i, how)
		}
		// The workers are off their CPUs for most of the time, in stretches of many
		// milliseconds: each share is of that many independent ones.
		if bound := 0.03 + 3*math.Sqrt(wanted*(1-wanted)/float64(how.Samples)); math.Abs(share-wanted) > bound {
			t.Errorf("worker %d: share %.3f, by its own account %.3f (%d samples)", i, share, wanted, how.Samples)
		}
	}
	t.Logf("interval %v, code objects known to all: %d", rec.Processes[1].Stacks.Interval, len(s.libraries[p]))
}

// The programs of known truth as a tree of processes: the one that was started, and its forks,
// which share what is read of code objects. OMNI_PERF_TRUTH: for longer, and all on every version.
func TestTruthProgramsAsChildren(t *testing.T) {
	long := os.Getenv("OMNI_PERF_TRUTH") != ""
	for _, test := range []struct {
		name     string
		workload truth.Workload
		lost     float64 // at most, as a share of the stacks read
		each     bool    // on every version
	}{
		{"work", truth.Work, 0.001, true},
		{"flat", truth.Flat, 0.001, false},
		{"deep", truth.Deep, 0.001, false},
		{"generators 20µs", truth.Generators(20 * time.Microsecond), 0.01, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			found, err := truth.Interpreters()
			if err != nil || len(found) == 0 {
				requirement.Missing(t, requirement.Python, "no interpreters: %v", err)
			}
			if !long {
				found = slices.DeleteFunc(slices.Clone(found), func(i truth.Interpreter) bool { return i.Build != "" })
			}
			if !test.each && !long {
				found = found[len(found)-1:]
			}
			for _, python := range found {
				t.Run(python.String(), func(t *testing.T) {
					length := time.Second
					if long {
						length = 20 * time.Second
					}
					truthAsChildren(t, python, test.workload, length, test.lost)
				})
			}
		})
	}
}

// What the reading of many processes costs falls with their number, within the budget.
func TestManyProcessesAreReadLessOften(t *testing.T) {
	cost := func(processes int) float64 {
		s := NewSampler(nil, SamplerOptions{})
		s.clock, s.members, s.awake = &clock{}, make([]*session, processes), float64(processes)
		s.pace()
		return float64(wakeCost+readCost*time.Duration(processes)) / float64(s.clock.interval)
	}
	for processes, want := range map[int]float64{2: 0.02, 8: 0.02, 32: 0.01, 72: 0.02 / 3} {
		if got := cost(processes); math.Abs(got-want) > 0.0001 {
			t.Errorf("%d processes take %.4f of a core, want %.4f", processes, got, want)
		}
	}
	if got := cost(1); got > 0.0251 { // one is read at the interval asked for, if that costs no more
		t.Errorf("one process takes %.4f of a core", got)
	}
}

func truthAsChildren(t *testing.T, python truth.Interpreter, w truth.Workload, length time.Duration, lost float64) {
	const forks = 2
	target := truth.Start(t, python, w.Forked(forks))
	legal, err := target.Legal()
	if err != nil {
		t.Fatal(err)
	}
	p := attachTo(t, target)
	children := forksOf(t, target.Pid, forks)
	tape := newTape()
	tape.Describe(func(r *timeline.Recording) { r.Processes = make([]timeline.Process, forks+2) })
	s := NewSampler(tape, SamplerOptions{Interval: 500 * time.Microsecond, Budget: 0.5})
	ended := func(err error) { t.Errorf("a process is said to have ended: %v", err) }
	s.Add(p, 1, ended)
	for i, pid := range children {
		s.Fork(p, pid, i+2, func(_ *Process, err error) {
			if err != nil {
				t.Errorf("fork %d: %v", pid, err)
			}
		}, ended)
	}
	ctx, cancel := context.WithTimeout(context.Background(), length)
	defer cancel()
	s.Run(ctx)
	rec := tape.Snapshot(tape.Since(timeline.Monotonic()))
	if len(rec.Threads) != forks+1 {
		t.Fatalf("%d threads of %d processes", len(rec.Threads), forks+1)
	}
	var v truth.Verdict
	var reads, unread int64
	for i, th := range rec.Threads {
		v = v.Add(legal.Judge(tape.samples(rec, timeline.ThreadID(i))))
		how := rec.Processes[th.Process].Stacks
		reads, unread = reads+how.Reads, unread+how.Lost
		if how.Reads < 20 {
			t.Errorf("process %d was read %d times", th.Process, how.Reads)
		}
	}
	t.Logf("%d stacks read, %d changes; impossible %d, at a wrong line %d, lost %d", reads, v.Samples, v.Impossible, v.WrongLines, unread)
	atMost(t, "impossible", int64(v.Impossible), reads, 0.0005)
	atMost(t, "at a wrong line", int64(v.WrongLines), reads, 0.0005)
	if atMost(t, "lost", unread, reads, lost); t.Failed() {
		t.Logf("%q", v.Examples)
	}
}

// forksOf waits for the forks of a process.
func forksOf(t *testing.T, pid, count int) []int {
	t.Helper()
	proc := procfs.New("/proc")
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		children, err := proc.Children(pid, pid)
		if len(children) == count {
			time.Sleep(50 * time.Millisecond) // what an interpreter does after a fork is not the program's
			return children
		}
		if time.Now().After(end) {
			t.Fatalf("%d forks of %d, %v", len(children), count, err)
		}
	}
}

// endlessForks waits for the forks of a process that would go on for ever, and kills them at the end of the test.
func endlessForks(t *testing.T, pid, count int) []int {
	t.Helper()
	pids := forksOf(t, pid, count)
	t.Cleanup(func() {
		for _, pid := range pids {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return pids
}

// addForks has a sampler read the forks of a process, from place 1 on; what it returns closes them, once the sampler has ended.
func addForks(t *testing.T, s *Sampler, p *Process, pids []int) (closeAll func()) {
	var forks []*Process
	for i, pid := range pids {
		s.Fork(p, pid, i+1, func(c *Process, err error) {
			if err != nil {
				t.Errorf("fork %d: %v", pid, err)
				return
			}
			forks = append(forks, c)
		}, func(err error) { t.Error(err) })
	}
	return func() {
		for _, c := range forks {
			c.Close()
		}
	}
}
