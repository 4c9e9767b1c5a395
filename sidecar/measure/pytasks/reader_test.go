package pytasks

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/pystack"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// eachVersion is truth.EachInterpreter for the first choice of each version.
func eachVersion(t *testing.T, test func(*testing.T, truth.Interpreter)) {
	t.Helper()
	truth.EachInterpreter(t, func(t *testing.T, python truth.Interpreter) {
		if python.Build != "" {
			t.Skip("the first choice of each version is enough here")
		}
		test(t, python)
	})
}

// start runs a program until the test ends; the program has printed line by then.
func start(t testing.TB, python truth.Interpreter, args ...string) (pid int, line string) {
	t.Helper()
	target := startSteps(t, python.Path, args...)
	return target.pid, target.next()
}

// steps is a program that prints a line, waits for one, and goes on.
type steps struct {
	t     testing.TB
	pid   int
	in    io.Writer
	lines *bufio.Reader
	err   *strings.Builder
	begun bool
	wait  func() error
}

// startSteps runs a program until the test ends.
func startSteps(t testing.TB, python string, args ...string) *steps {
	t.Helper()
	target := exec.Command(python, args...)
	in, err := target.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := target.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr := &strings.Builder{}
	target.Stderr = stderr
	if err := target.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = target.Process.Kill()
		_ = target.Wait()
	})
	return &steps{t: t, pid: target.Process.Pid, in: in, lines: bufio.NewReader(out), err: stderr, wait: target.Wait}
}

// next lets the program go on, but for the first time, and returns the line that it prints then.
func (s *steps) next() string {
	s.t.Helper()
	if s.begun {
		if _, err := io.WriteString(s.in, "\n"); err != nil {
			s.t.Fatal(err)
		}
	}
	s.begun = true
	line, err := s.lines.ReadString('\n')
	if err != nil {
		_ = s.wait()
		s.t.Fatalf("the program ended: %v\n%s", err, s.err)
	}
	return strings.TrimSpace(line)
}

func open(t testing.TB, pid int) *Reader {
	t.Helper()
	p, err := pystack.Attach(pid, pystack.Options{Wait: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return New(p.Interpreter())
}

// said is a task as the program describes it, and as it is compared.
type said struct {
	Name  string
	Chain [][2]any
}

func (s said) String() string {
	text := s.Name
	for _, f := range s.Chain {
		text += fmt.Sprintf(" > %v:%v", f[0], f[1])
	}
	return text
}

func describe(tasks []Task) (out []string) {
	for _, t := range tasks {
		s := said{Name: t.Name}
		for _, f := range t.Frames {
			s.Chain = append(s.Chain, [2]any{f.Code.Function, f.Line})
		}
		out = append(out, s.String())
	}
	slices.Sort(out)
	return out
}

// The names, chains and lines of tasks in every kind of wait are those that the program itself sees.
func TestTasksAreWhatTheProgramSays(t *testing.T) {
	eachVersion(t, func(t *testing.T, python truth.Interpreter) { compareTasks(t, python, "testdata/kinds.py", 0) })
}

// compareTasks compares the tasks that wait, and how many run, with what a program says of them, and returns what was read.
func compareTasks(t *testing.T, python truth.Interpreter, program string, run int) Snapshot {
	t.Helper()
	pid, line := start(t, python, program)
	var all []said
	if err := json.Unmarshal([]byte(line), &all); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, s := range all {
		if r := []rune(s.Name); len(r) > maxNameSize {
			s.Name = string(r[:maxNameSize]) + "…"
		}
		want = append(want, s.String())
	}
	slices.Sort(want)
	snapshot, err := open(t, pid).Read()
	if err != nil {
		t.Fatal(err)
	}
	waiting := slices.DeleteFunc(slices.Clone(snapshot.Tasks), func(task Task) bool { return task.State == Running })
	if got := describe(waiting); !slices.Equal(got, want) {
		t.Errorf("got %d tasks\n%s\nwant %d\n%s", len(got), strings.Join(got, "\n"), len(want), strings.Join(want, "\n"))
	}
	for _, task := range waiting {
		if task.State != Waiting || task.Cut {
			t.Errorf("%s is in state %d, cut %v: it waits", task.Name, task.State, task.Cut)
		}
	}
	if running := len(snapshot.Tasks) - len(waiting); running != run {
		t.Errorf("%d tasks run, want %d", running, run)
	}
	return snapshot
}

// A task whose future is done waits for its turn, not for the future.
func TestTasksWhoseFutureIsDoneAreReady(t *testing.T) {
	eachVersion(t, func(t *testing.T, python truth.Interpreter) { readyOnes(t, python, "testdata/ready.py") })
}

// readyOnes compares which tasks are ready with what a program says.
func readyOnes(t *testing.T, python truth.Interpreter, program string) {
	t.Helper()
	pid, line := start(t, python, program)
	var want map[string]bool
	if err := json.Unmarshal([]byte(line), &want); err != nil {
		t.Fatal(err)
	}
	snapshot, err := open(t, pid).Read()
	if err != nil {
		t.Fatal(err)
	}
	snapshot.Wake(timeline.Monotonic())
	found := 0
	for _, task := range snapshot.Tasks {
		ready, known := want[task.Name]
		if !known {
			continue // the program's own, which runs
		}
		found++
		state := map[bool]State{false: Waiting, true: Ready}[ready]
		if strings.HasSuffix(task.Name, "not-begun") {
			state = Created
		}
		if task.State != state || len(task.Frames) == 0 {
			t.Errorf("%s is in state %d with %d frames, want state %d", task.Name, task.State, len(task.Frames), state)
		}
	}
	if found != len(want) {
		t.Errorf("%d of %d tasks are found", found, len(want))
	}
}

// A process that was forked within a loop has a copy of its tasks, which nothing runs any more; those of its own loop count.
func TestTasksFromBeforeAForkDoNotCount(t *testing.T) {
	const program = `
import asyncio, os, time
async def wait(seconds):
    await asyncio.sleep(seconds)
async def own():
    tasks = [asyncio.create_task(wait(60), name="own") for _ in range(3)]
    await asyncio.sleep(60)
async def main():
    tasks = [asyncio.create_task(wait(60), name="before") for _ in range(5)]
    await asyncio.sleep(0.01)
    inside = os.fork()
    if not inside:
        time.sleep(60)
    anew = os.fork()
    if not anew:
        asyncio.new_event_loop().run_until_complete(own())
    await asyncio.sleep(0.5)
    print(inside, anew, flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
`
	eachVersion(t, func(t *testing.T, python truth.Interpreter) {
		pid, line := start(t, python, "-c", program)
		var inside, anew int
		if _, err := fmt.Sscan(line, &inside, &anew); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			for _, child := range []int{inside, anew} {
				_ = syscall.Kill(child, syscall.SIGKILL)
			}
		})
		for _, test := range []struct {
			pid          int
			before, owns int
		}{{pid, 5, 0}, {inside, 0, 0}, {anew, 0, 3}} {
			snapshot, err := open(t, test.pid).Read()
			if err != nil {
				t.Fatal(err)
			}
			before, owns := 0, 0
			for _, task := range snapshot.Tasks {
				before, owns = before+strings.Count(task.Name, "before"), owns+strings.Count(task.Name, "own")
			}
			if before != test.before || owns != test.owns {
				t.Errorf("%d tasks from before the fork, and %d of its own loop, want %d and %d", before, owns, test.before, test.owns)
			}
		}
	})
}
