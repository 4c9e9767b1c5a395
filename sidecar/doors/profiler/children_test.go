package profiler

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/gpu"
	"github.com/omni-perf/omni-perf/sidecar/measure/recorder"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/retry"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
	"github.com/omni-perf/omni-perf/sidecar/understand/interpret"
)

const spin = `
import os, subprocess, sys, time
def spin(seconds=0.5):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(100))
`

// recordScript runs a script from its first line to its end, and
// returns what was recorded of it and its children.
func recordScript(t testing.TB, children recorder.Children, text string, environment ...string) *timeline.Recording {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script.py")
	if err := os.WriteFile(file, []byte(spin+"if __name__ == '__main__':\n    print('ready', flush=True)\n    sys.stdin.readline()\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, truth.OnPath(t), file)
	cmd.WaitDelay = time.Second
	cmd.Env = append(os.Environ(), environment...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
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
	if n, _ := out.Read(make([]byte, 6)); n == 0 {
		t.Fatal("the script said nothing")
	}
	t.Cleanup(func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	r := Recorder(timeline.Target{PID: cmd.Process.Pid, Argv: []string{"python3", file}}, timeline.RoleScript, func() *gpu.Driver { return gpu.Open("") })
	defer r.Close()
	if outside, err := r.Begin(recorder.Spec{ID: "x", FigureInterval: 50 * time.Millisecond, Children: children}); err != nil || outside != nil {
		t.Fatal(outside, err)
	}
	time.Sleep(50 * time.Millisecond)
	in.Write([]byte("\n"))
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("the script: %v", err)
	}
	time.Sleep(100 * time.Millisecond)
	rec, err := r.End("x", recorder.Ending{})
	if err != nil {
		t.Fatal(err)
	}
	return interpret.Identify(rec)
}

// ofRole are the processes of a role.
func ofRole(rec *timeline.Recording, role timeline.Role) (out []int) {
	for i, p := range rec.Processes {
		if p.Role == role {
			out = append(out, i)
		}
	}
	return out
}

// timeIn is for how long a process's threads had a function on their stacks.
func timeIn(rec *timeline.Recording, process int, function string) (sum time.Duration) {
	for _, th := range rec.Threads {
		if th.Process != process {
			continue
		}
		for _, s := range th.Spans {
			for n := s.Node; n != timeline.RootNode; n = rec.Nodes[n].Parent {
				if rec.Frames[rec.Nodes[n].Frame].Function == function {
					sum += (s.End - s.Start).Duration()
					break
				}
			}
		}
	}
	return sum
}

// sees fails unless at least half of what a process must have spent in a function is seen.
func sees(t testing.TB, rec *timeline.Recording, process int, function string, spent time.Duration) {
	t.Helper()
	if got := timeIn(rec, process, function); got < spent/2 || got > 20*spent {
		t.Errorf("%+v: %v in %s, want about %v", rec.Processes[process], got, function, spent)
	}
}

func TestWorkersOfPools(t *testing.T) {
	for _, method := range []string{"fork", "spawn", "forkserver"} {
		t.Run(method, func(t *testing.T) {
			retry.Again(t, func(t *retry.Attempt) {
				rec := recordScript(t, recorder.ChildrenStacks, `
import multiprocessing
def work(n):
    spin(0.3)
if __name__ == "__main__":
    with multiprocessing.get_context("`+method+`").Pool(2) as pool:
        pool.map(work, range(4), chunksize=1)
        pool.close()
        pool.join()
`)
				workers := ofRole(rec, timeline.RolePoolWorker)
				if len(workers) != 2 {
					t.Fatalf("processes %+v", rec.Processes)
				}
				for i, at := range workers {
					p := rec.Processes[at]
					if p.Number == nil || *p.Number != i+1 || p.Stacks.Reason != timeline.StacksRead || p.End == 0 || p.CPU == 0 {
						t.Errorf("worker %+v", p)
					}
				}
				total := timeIn(rec, workers[0], "work") + timeIn(rec, workers[1], "work")
				if total < 600*time.Millisecond {
					t.Errorf("%v in work(), want 4 times 0.3 s", total)
				}
				for _, th := range rec.Threads {
					if th.RunsCell != (th.Process == 0 && th.Main) {
						t.Errorf("thread %+v", th)
					}
				}
			})
		})
	}
}

func TestAWorkerThatIsKilled(t *testing.T) {
	retry.Again(t, func(t *retry.Attempt) {
		rec := recordScript(t, recorder.ChildrenStacks, `
pid = os.fork()
if not pid:
    spin(100)
spin(0.4)
os.kill(pid, 9)
time.sleep(0.2)
os.waitpid(pid, 0)
`)
		if len(rec.Processes) != 2 {
			t.Fatalf("processes %+v", rec.Processes)
		}
		p := rec.Processes[1]
		if p.Exit == nil || *p.Exit != 137 || p.Signal != 9 || p.End == 0 {
			t.Errorf("it ended %+v", p)
		}
		sees(t, rec, 1, "spin", 400*time.Millisecond)
		for _, th := range rec.Threads {
			if last := th.Spans[len(th.Spans)-1]; th.Process == 1 && (last.End-p.End).Duration().Abs() > 200*time.Millisecond {
				t.Errorf("its lane ends at %v, the process at %v", last.End.Duration(), p.End.Duration())
			}
		}
	})
}

// It is followed whenever it happens: of a process that is young its program is looked at
// often, of one that is not, when its memory shows no stacks any more.
func TestExecIsFollowed(t *testing.T) {
	for _, after := range []string{"0.1", "0.7"} {
		retry.Again(t, func(t *retry.Attempt) {
			rec := recordScript(t, recorder.ChildrenStacks, `
if not os.fork():
    spin(`+after+`)
    os.execv(sys.executable, [sys.executable, "-c", "import time\ndef again():\n    end = time.monotonic() + 1.2\n    while time.monotonic() < end: sum(range(100))\nagain()"])
os.wait()
`)
			if len(rec.Processes) != 2 {
				t.Fatalf("processes %+v", rec.Processes)
			}
			seconds, _ := time.ParseDuration(after + "s")
			sees(t, rec, 1, "spin", seconds)
			if got := timeIn(rec, 1, "again"); got < 600*time.Millisecond {
				t.Errorf("%v of 1.2 s after exec", got)
			}
		})
	}
}

func TestSubprocessesAndOtherPrograms(t *testing.T) {
	retry.Again(t, func(t *retry.Attempt) {
		rec := recordScript(t, recorder.ChildrenStacks, `
one = subprocess.Popen([sys.executable, "-c", "import time\ndef other():\n    end = time.monotonic() + 0.7\n    while time.monotonic() < end: sum(range(100))\nother()"])
two = subprocess.Popen(["sleep", "0.7"])
one.wait(), two.wait()
`)
		children := ofRole(rec, timeline.RoleChild)
		if len(children) != 2 {
			t.Fatalf("processes %+v", rec.Processes)
		}
		python, sleep := rec.Processes[children[0]], rec.Processes[children[1]]
		if python.Command == "sleep" {
			python, sleep = sleep, python
			children[0], children[1] = children[1], children[0]
		}
		sees(t, rec, children[0], "other", 700*time.Millisecond)
		if sleep.Command != "sleep" || sleep.Stacks.Reason != timeline.StacksNotPython || sleep.Exit == nil || *sleep.Exit != 0 {
			t.Errorf("sleep is %+v", sleep)
		}
	})
}

// What a child starts is followed, too, also when the child has ended before it.
func TestGrandchildrenAreFollowed(t *testing.T) {
	retry.Again(t, func(t *retry.Attempt) {
		rec := recordScript(t, recorder.ChildrenStacks, `
deep = "import time\ndef deep():\n    end = time.monotonic() + 0.8\n    while time.monotonic() < end: sum(range(100))\ndeep()"
leave = "import subprocess, sys, time\nsubprocess.Popen([sys.executable, '-c', sys.argv[1]])\ntime.sleep(0.3)"
subprocess.run([sys.executable, "-c", leave, deep])
spin(1)
`)
		children := ofRole(rec, timeline.RoleChild)
		if len(children) != 2 {
			t.Fatalf("processes %+v", rec.Processes)
		}
		child, grandchild := children[0], children[1]
		if p := rec.Processes[grandchild]; p.ParentIndex != child {
			t.Errorf("the grandchild is %+v, its parent %+v", p, rec.Processes[child])
		}
		sees(t, rec, grandchild, "deep", 800*time.Millisecond)
	})
}

func TestDaemonsAreKept(t *testing.T) {
	retry.Again(t, func(t *retry.Attempt) {
		rec := recordScript(t, recorder.ChildrenStacks, `
if not os.fork():
    os.setsid()
    if not os.fork():
        spin(0.6)
        os._exit(0)
    os._exit(0)
os.wait()
spin(0.7)
`)
		daemon := slices.IndexFunc(rec.Processes, func(p timeline.Process) bool {
			return p.End.Duration()-p.Start.Duration() > 400*time.Millisecond && p.PID != rec.Target.PID
		})
		if daemon < 0 {
			t.Fatalf("processes %+v", rec.Processes)
		}
		sees(t, rec, daemon, "spin", 600*time.Millisecond)
	})
}

func TestChildrenInNamespacesOfTheirOwn(t *testing.T) {
	if out, err := exec.Command("unshare", "--pid", "--mount", "--fork", "--mount-proc", "true").CombinedOutput(); err != nil {
		t.Skipf("namespaces cannot be made here: %v %s", err, out)
	}
	retry.Again(t, func(t *retry.Attempt) {
		rec := recordScript(t, recorder.ChildrenStacks, `
subprocess.run(["unshare", "--pid", "--mount", "--fork", "--mount-proc", sys.executable, "-c",
    "import os, time\ndef inside():\n    end = time.monotonic() + 0.8\n    while time.monotonic() < end: sum(range(100))\nassert os.getpid() == 1\ninside()"])
`)
		python := slices.IndexFunc(rec.Processes, func(p timeline.Process) bool {
			return strings.HasPrefix(p.Command, "python") && p.PID != rec.Target.PID
		})
		if python < 0 {
			t.Fatalf("processes %+v", rec.Processes)
		}
		sees(t, rec, python, "inside", 800*time.Millisecond)
		for _, th := range rec.Threads {
			if th.Process == python && (!th.Main || th.NativeID != 1) {
				t.Errorf("its thread is %+v", th)
			}
		}
	})
}

func TestManyShortChildren(t *testing.T) {
	retry.Again(t, func(t *retry.Attempt) {
		startFile := filepath.Join(t.TempDir(), "started")
		var before, after syscall.Rusage
		syscall.Getrusage(syscall.RUSAGE_SELF, &before)
		start := time.Now()
		rec := recordScript(t, recorder.ChildrenStacks, `
end = time.monotonic() + 3
started = 0
while time.monotonic() < end:
    started += 1
    if not os.fork():
        time.sleep(0.08)
        os._exit(3)
    time.sleep(0.01)
    try:
        while os.waitpid(-1, os.WNOHANG)[0]: pass
    except ChildProcessError:
        pass
open(os.environ["STARTED"], "w").write(str(started))
spin(0.2)
`, "STARTED="+startFile)
		wall := time.Since(start)
		syscall.Getrusage(syscall.RUSAGE_SELF, &after)
		used := time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
		text, err := os.ReadFile(startFile)
		if err != nil {
			t.Fatal(err)
		}
		started, _ := strconv.Atoi(string(text)) // 250 on a quiet machine
		if 5*len(rec.Processes) < 2*started {
			t.Errorf("%d processes were seen of %d", len(rec.Processes), started)
		}
		for _, p := range rec.Processes[1:] {
			if p.End == 0 && p.Start.Duration() < rec.Duration.Duration()-time.Second {
				t.Errorf("%+v lives on", p)
			}
		}
		var delays []time.Duration // until the first stack
		for _, th := range rec.Threads {
			if th.Process > 0 {
				delays = append(delays, (th.Spans[0].Start - rec.Processes[th.Process].Start).Duration())
			}
		}
		if len(delays) == 0 || 5*len(delays) < started {
			t.Fatalf("stacks of %d processes of %d", len(delays), started)
		}
		slices.Sort(delays)
		if middle := delays[len(delays)/2]; middle > 500*time.Millisecond { // promised are 50 ms
			t.Errorf("the first stack came after %v", middle)
		}
		// One process alone costs 3 % of a core.
		if share := float64(used) / float64(wall); share > 0.30 {
			t.Errorf("recording took %.0f %% of a core", 100*share)
		}
		t.Logf("%d processes, %.1f %% of a core, first stack after %v", len(rec.Processes), 100*float64(used)/float64(wall), delays[len(delays)/2])
		sees(t, rec, 0, "spin", 200*time.Millisecond)
	})
}

func TestWhatIsRecordedOfChildren(t *testing.T) {
	const script = `
if not os.fork():
    spin(0.5)
    os._exit(0)
os.wait()
`
	retry.Again(t, func(t *retry.Attempt) { // a child that gets no CPU has no track
		for children, want := range map[recorder.Children]string{recorder.ChildrenTracks: "2 1 true not-asked", recorder.ChildrenNone: "1 1 false "} {
			rec := recordScript(t, children, script)
			tracks := slices.ContainsFunc(rec.Tracks, func(tr timeline.Track) bool { return tr.ID == "process.1.cpu" && tr.Process == 1 })
			reason := ""
			if len(rec.Processes) > 1 {
				reason = string(rec.Processes[1].Stacks.Reason)
			}
			if got := fmt.Sprint(len(rec.Processes), len(rec.Threads), tracks, " ", reason); strings.Join(strings.Fields(got), " ") != strings.TrimSpace(want) {
				t.Errorf("children %d: %s, want %s", children, got, want)
			}
		}
	})
}

func TestRanksByTheirEnvironment(t *testing.T) {
	retry.Again(t, func(t *retry.Attempt) {
		rec := recordScript(t, recorder.ChildrenStacks, `
ranks = [subprocess.Popen([sys.executable, "-c", "import time; time.sleep(0.4)"], env=dict(os.environ, RANK=str(n), WORLD_SIZE="2")) for n in range(2)]
for rank in ranks:
    rank.wait()
`)
		ranks := ofRole(rec, timeline.RoleRank)
		if len(ranks) != 2 {
			t.Fatalf("processes %+v", rec.Processes)
		}
		for i, at := range ranks {
			if p := rec.Processes[at]; p.Rank == nil || *p.Rank != i || *p.Number != i {
				t.Errorf("rank %d is %+v", i, p)
			}
		}
	})
}

func TestAProcessThatBecomesAnotherIsReadOnce(t *testing.T) {
	retry.Again(t, func(t *retry.Attempt) {
		rec := recordScript(t, recorder.ChildrenStacks, `
become = "exec sh -c 'exec sh -c \"exec %s -c \\\"import time; end = time.monotonic() + 1\nwhile time.monotonic() < end: pass\\\"\"'" % sys.executable
subprocess.run(["sh", "-c", become], check=True)
`)
		lanes := 0
		for _, th := range rec.Threads {
			if th.Process > 0 && th.Main {
				lanes++
			}
		}
		if lanes != 1 || len(rec.Processes) != 2 {
			t.Errorf("%d lanes of %d processes, want one of the child: %+v", lanes, len(rec.Processes), rec.Processes)
		}
	})
}
