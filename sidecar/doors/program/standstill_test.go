package program

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/retry"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// recordScript runs a script under the real collectors and returns the recording. What the script writes
// goes to output.
func recordScript(t testing.TB, s Script, output io.Writer) *timeline.Recording {
	t.Helper()
	return recordEach(t, time.Millisecond, s, output)
}

// recordEach is recordScript with another interval.
func recordEach(t testing.TB, interval time.Duration, s Script, output io.Writer) *timeline.Recording {
	t.Helper()
	var rec *timeline.Recording
	tools := realTools()
	tools.Analyse = func(r *timeline.Recording) (*report.View, error) {
		rec = r
		return report.Build(r, nil, report.Options{})
	}
	var messages bytes.Buffer
	s.Stdout, s.Stderr = output, output
	o, _ := options(t, &messages)
	o.Interval = interval
	if _, err := Run(context.Background(), tools, s, o); err != nil {
		t.Fatal(err)
	}
	if rec == nil {
		t.Fatalf("there is no recording: %s", &messages)
	}
	return rec
}

// mainSeconds sums the main thread's time by state and by innermost function.
func mainSeconds(t testing.TB, rec *timeline.Recording) (states, functions map[string]float64) {
	t.Helper()
	states, functions = make(map[string]float64), make(map[string]float64)
	lanes := 0
	for _, th := range rec.Threads {
		if !th.Main {
			continue
		}
		lanes++
		for _, s := range th.Spans {
			states[s.State.String()] += (s.End - s.Start).Seconds()
			if s.Node != timeline.RootNode {
				functions[rec.Frames[rec.Nodes[s.Node].Frame].Function] += (s.End - s.Start).Seconds()
			}
		}
	}
	if lanes != 1 {
		t.Errorf("the main thread has %d lanes", lanes)
	}
	return states, functions
}

func gapSeconds(rec *timeline.Recording, reason timeline.GapReason) float64 {
	sum := 0.0
	for _, g := range rec.Gaps {
		if g.Reason == reason {
			sum += (g.End - g.Start).Seconds()
		}
	}
	return sum
}

const spinner = `
import os, sys, time
def spin(s):
    end = time.monotonic() + s
    while time.monotonic() < end: pass
def before(s): spin(s)
def after(s): spin(s)
`

// near allows for a tenth of a second.
func near(got, want float64) bool { return math.Abs(got-want) <= 0.1+0.1*want }

func TestALauncherIsWaitedFor(t *testing.T) {
	script := write(t, "work.py", spinner+"after(0.5)\n")
	launcher := write(t, "launch.sh", fmt.Sprintf("sleep 1\nexec %s %s\n", truth.OnPath(t), script))
	retry.Again(t, func(t *retry.Attempt) {
		rec := recordScript(t, Script{Interpreter: "/bin/sh", Args: []string{launcher}}, io.Discard)
		if got := gapSeconds(rec, timeline.GapStarting); got < 1 || !near(got, 1.05) {
			t.Errorf("%.2f s before there was Python, want one and a little: %+v", got, rec.Gaps)
		}
		if _, functions := mainSeconds(t, rec); !near(functions["spin"], 0.5) {
			t.Errorf("functions %v, want 0.5 s of spin", functions)
		}
	})
}

func TestAProgramThatRunsNoPython(t *testing.T) {
	retry.Again(t, func(t *retry.Attempt) {
		rec := recordScript(t, Script{Program: "/bin/sleep", Args: []string{"0.3"}}, io.Discard)
		if got := gapSeconds(rec, timeline.GapNoPython); !near(got, 0.3) || gapSeconds(rec, timeline.GapStarting) != 0 {
			t.Errorf("gaps %+v, want all of its time without Python", rec.Gaps)
		}
	})
}

// TestALauncherThatTakesLong is a launcher of the kind that starts a container first.
func TestALauncherThatTakesLong(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 12 s; not with -short")
	}
	script := write(t, "work.py", spinner+"after(0.5)\n")
	launcher := write(t, "launch.sh", fmt.Sprintf("sleep 11\nexec %s %s\n", truth.OnPath(t), script))
	retry.Again(t, func(t *retry.Attempt) {
		rec := recordScript(t, Script{Interpreter: "/bin/sh", Args: []string{launcher}}, io.Discard)
		if _, functions := mainSeconds(t, rec); !near(functions["spin"], 0.5) {
			t.Errorf("functions %v, gaps %v, want 0.5 s of spin after 11 s of waiting", functions, rec.Gaps)
		}
	})
}

func TestAProgramThatBecomesAnother(t *testing.T) {
	second := write(t, "second.py", spinner+"after(0.4)\n")
	first := write(t, "first.py", spinner+fmt.Sprintf("before(0.4)\nos.execv(sys.executable, [sys.executable, %q])\n", second))
	retry.Again(t, func(t *retry.Attempt) {
		rec := recordScript(t, Script{Interpreter: truth.OnPath(t), Args: []string{first}}, io.Discard)
		_, functions := mainSeconds(t, rec)
		if !near(functions["spin"], 0.8) {
			t.Errorf("functions %v, want 0.8 s of spin", functions)
		}
		if got := gapSeconds(rec, timeline.GapExec); got <= 0 || !near(got, 0.05) {
			t.Errorf("%.2f s unknown because of exec: %+v", got, rec.Gaps)
		}
		names := make(map[string]bool)
		for _, f := range rec.Frames {
			names[f.Function] = true
		}
		if !names["before"] || !names["after"] {
			t.Errorf("functions %v, want before and after", names)
		}
	})
}

// TestTheIntervalAfterAnExec: sampling begins anew, as often as was asked for, whatever its
// budget had made of that before.
func TestTheIntervalAfterAnExec(t *testing.T) {
	const asked = 50 * time.Microsecond
	second := write(t, "second.py", spinner+"after(0.5)\n")
	first := write(t, "first.py", spinner+fmt.Sprintf("before(1)\nos.execv(sys.executable, [sys.executable, %q])\n", second))
	retry.Again(t, func(t *retry.Attempt) {
		rec := recordEach(t, asked, Script{Interpreter: truth.OnPath(t), Args: []string{first}}, io.Discard)
		var exec timeline.Gap
		for _, g := range rec.Gaps {
			if g.Reason == timeline.GapExec {
				exec = g
			}
		}
		before, after := rec.Sampling.Interval, rec.Sampling.Interval
		for _, c := range rec.Sampling.Changes {
			if c.From <= exec.Start {
				before = c.Interval
			}
			if c.From <= exec.End {
				after = c.Interval
			}
		}
		if exec.End == 0 || before <= asked || after != asked {
			t.Errorf("an interval of %v before the exec and of %v after it, want more than %v and that: %+v, exec %+v", before, after, asked, rec.Sampling, exec)
		}
	})
}

func TestAProgramThatIsNoPythonAnyMore(t *testing.T) {
	script := write(t, "first.py", spinner+"before(0.3)\nos.execv('/bin/sleep', ['sleep', '0.7'])\n")
	retry.Again(t, func(t *retry.Attempt) {
		rec := recordScript(t, Script{Interpreter: truth.OnPath(t), Args: []string{script}}, io.Discard)
		states, functions := mainSeconds(t, rec)
		if !near(functions["spin"], 0.3) || !near(states["unknown"], 0.7) {
			t.Errorf("functions %v, states %v, want 0.3 s of spin and 0.7 s unknown", functions, states)
		}
	})
}

// TestAnInterpreterThatShutsDownIsNoExec: the process lives on for a moment, as one that has a library's
// exit handlers to run; and one that starts other programs remains what it is.
func TestAnInterpreterThatShutsDownIsNoExec(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		exits  float64
	}{
		"it shuts down": {"before(0.4)\nimport ctypes\nc = ctypes.CDLL(None)\n" +
			"c.__cxa_atexit(ctypes.cast(c.usleep, ctypes.c_void_p), ctypes.c_void_p(700_000), None)\n", 0.7},
		"its children exec": {"import subprocess\nfor n in range(3): subprocess.run(['/bin/sleep', '0.1'])\nbefore(0.2)\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			script := write(t, "first.py", spinner+c.script)
			retry.Again(t, func(t *retry.Attempt) {
				rec := recordScript(t, Script{Interpreter: truth.OnPath(t), Args: []string{script}}, io.Discard)
				if got := gapSeconds(rec, timeline.GapExec); got > 0 {
					t.Errorf("%.2f s after an exec that there was not: %+v", got, rec.Gaps)
				}
				if got := gapSeconds(rec, timeline.GapExit); !near(got, c.exits) {
					t.Errorf("%.2f s after the interpreter's end, want %.2f: %+v", got, c.exits, rec.Gaps)
				}
			})
		})
	}
}

// TestTheEndOfAProgramIsNoNews: its interpreter is gone a moment before it is.
func TestTheEndOfAProgramIsNoNews(t *testing.T) {
	script := write(t, "short.py", "import asyncio, time\ntime.sleep(0.05)\n")
	for range 8 {
		rec := recordScript(t, Script{Interpreter: truth.OnPath(t), Args: []string{script}}, io.Discard)
		for _, n := range rec.Notes {
			if n.What == "Python stacks" {
				t.Errorf("%s: %s", n.What, n.Reason)
			}
		}
	}
}

func TestAProgramThatIsStopped(t *testing.T) {
	for name, work := range map[string]string{
		"that computes": "before(0.6)", "that sleeps": "time.sleep(0.6)", "in C code": "sum(range(30_000_000))",
	} {
		t.Run(name, func(t *testing.T) {
			script := write(t, "work.py", spinner+"print(os.getpid(), flush=True)\n"+work+"\nbefore(0.3)\n")
			retry.Again(t, func(t *retry.Attempt) {
				rec, want := recordStopped(t, script)
				if got := gapSeconds(rec, timeline.GapStopped); !near(got, want) {
					t.Errorf("%.2f s stopped, want %.2f: %+v", got, want, rec.Gaps)
				}
				states, functions := mainSeconds(t, rec)
				if !near(states["unknown"], want) || functions["spin"] < 0.2 {
					t.Errorf("states %v, functions %v, want %.2f s unknown", states, functions, want)
				}
			})
		})
	}
}

// recordStopped stops a script, which prints its process id first, for some time.
func recordStopped(t testing.TB, script string) (rec *timeline.Recording, stopped float64) {
	t.Helper()
	pid, output := make(chan int, 1), &firstLine{}
	output.line = func(s string) {
		var n int
		fmt.Sscan(s, &n)
		pid <- n
	}
	length := make(chan float64, 1)
	go func() {
		n := <-pid
		time.Sleep(200 * time.Millisecond)
		unix.Kill(n, unix.SIGSTOP)
		start := time.Now()
		time.Sleep(700 * time.Millisecond)
		unix.Kill(n, unix.SIGCONT)
		length <- time.Since(start).Seconds()
	}()
	rec = recordScript(t, Script{Interpreter: truth.OnPath(t), Args: []string{script}}, output)
	return rec, <-length
}

// firstLine keeps what is written to it, and calls line with its first line.
type firstLine struct {
	text string
	line func(string)
}

func (f *firstLine) Write(b []byte) (int, error) {
	f.text += string(b)
	if f.line != nil {
		if first, _, ok := strings.Cut(f.text, "\n"); ok {
			f.line(first)
			f.line = nil
		}
	}
	return len(b), nil
}

// TestAGILHolderThatSleeps sleeps in C code that keeps the GIL: it does not compute.
func TestAGILHolderThatSleeps(t *testing.T) {
	script := write(t, "work.py", spinner+"import ctypes\nctypes.PyDLL(None).usleep(600_000)\nbefore(0.4)\n")
	retry.Again(t, func(t *retry.Attempt) {
		rec := recordScript(t, Script{Interpreter: truth.OnPath(t), Args: []string{script}}, io.Discard)
		if states, _ := mainSeconds(t, rec); !near(states["waiting"], 0.6) {
			t.Errorf("states %v, want 0.6 s waiting", states)
		}
	})
}

// TestCPUTimeOfThreadsThatEnded has threads that compute for less than the time between two readings.
func TestCPUTimeOfThreadsThatEnded(t *testing.T) {
	script := write(t, "work.py", spinner+`
import threading
def work():
    end = time.thread_time() + 0.3
    while time.thread_time() < end: pass
for n in range(3):
    thread = threading.Thread(target=work, name=f"worker {n}")
    thread.start()
    thread.join()
`)
	retry.Again(t, func(t *retry.Attempt) {
		rec := recordScript(t, Script{Interpreter: truth.OnPath(t), Args: []string{script}}, io.Discard)
		workers := 0
		for _, th := range rec.Threads {
			if !strings.HasPrefix(th.Name, "worker") {
				continue
			}
			workers++
			if got := th.OnCPU.Seconds(); got > 0.32 || got < 0.2 || !th.OnCPUAtLeast && got < 0.3 {
				t.Errorf("%s was on a CPU for %.3f s (at least: %v), want 0.3 s", th.Name, got, th.OnCPUAtLeast)
			}
		}
		if workers != 3 {
			t.Errorf("%d threads have their names, want 3", workers)
		}
	})
}
