package pystack

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/retry"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// subinterpreters run code in an interpreter of their own, on the main thread and on
// another one, and note for how long.
var subinterpreters = truth.Workload{Name: "subinterpreters", Source: `
import threading, time
import harness
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

run = getattr(interpreters, "exec", None) or interpreters.run_string
INNER = '''
import time
def busy():
    end = time.monotonic() + 0.03
    while time.monotonic() < end:
        pass
def nap():
    time.sleep(0.03)
'''
SPENT = {}

def spent(name, start):
    SPENT[name] = SPENT.get(name, 0) + time.monotonic_ns() - start

def outside():
    start = time.monotonic_ns()
    while time.monotonic_ns() < start + 20_000_000:
        pass
    spent("outside", start)

def call(name):
    start = time.monotonic_ns()
    run(inner, f"{name}()")
    spent(name, start)

def one_round():
    call("busy")
    outside()
    call("nap")

def elsewhere():
    own = interpreters.create()
    run(own, "import time; time.sleep(60)")

inner = interpreters.create()
run(inner, INNER)
threading.Thread(target=elsewhere, name="elsewhere", daemon=True).start()
time.sleep(0.2)
harness.drive(one_round, lambda: {"spent_ns": SPENT})
`}

// The thread states of one operating system thread, one in each interpreter that it has been
// in, are one thread; what runs in an interpreter was called by what runs it.
func TestSubinterpretersOfAThreadAreThatThread(t *testing.T) {
	eachVersion(t, func(t *testing.T, python truth.Interpreter) {
		retry.Again(t, func(t *retry.Attempt) {
			r := sampleHeld(t, python, subinterpreters, 1500*time.Millisecond, SampleOptions{Budget: -1})
			rec, lanes := r.rec, make(map[int]int)
			for _, th := range rec.Threads {
				lanes[th.NativeID]++
				if lanes[th.NativeID] > 1 || strings.Contains(th.Name, "subinterpreter") {
					t.Errorf("thread %d has %d lanes, this one is called %q", th.NativeID, lanes[th.NativeID], th.Name)
				}
			}
			main := mainThread(t, rec)
			got := weights(rec, main, firstOf("busy", "nap", "outside"))
			if distance := truth.Distance(got, r.measured.SpentNs); distance > 0.05 {
				t.Errorf("distance %.3f: got %v, the program itself says %v", distance, got, r.measured.SpentNs)
			}
			called := weights(rec, main, func(_ timeline.Span, s truth.Sample) string {
				if name := firstOf("busy", "nap")(timeline.Span{}, s); name == "" || firstOf("call")(timeline.Span{}, s) != "" {
					return name
				}
				return "alone"
			})
			if alone := called["alone"]; alone > 0.05*(called["busy"]+called["nap"]) {
				t.Errorf("%.0f ms of code in an interpreter without what runs it", alone/1e6)
			}
			waiting := 0.0
			for _, s := range rec.Threads[main].Spans {
				if s.State == timeline.StateWaiting {
					waiting += float64(s.End - s.Start)
				}
			}
			if nap := r.measured.SpentNs["nap"]; waiting < 0.8*nap {
				t.Errorf("the thread waits for %.0f ms, the program says %.0f", waiting/1e6, nap/1e6)
			}
		})
	})
}

// lateInterpreter makes an interpreter when it is sampled already, and stays in it.
const lateInterpreter = `
import time
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
time.sleep(0.3)
run = getattr(interpreters, "exec", None) or interpreters.run_string
run(interpreters.create(), "def busy():\n  while True: pass\nbusy()")
`

// An interpreter with a GIL of its own is found although no other GIL shows that it was made.
func TestAnInterpreterThatIsMadeWhileSamplingIsFound(t *testing.T) {
	eachVersion(t, func(t *testing.T, python truth.Interpreter) {
		target := exec.Command(python.Path, "-c", lateInterpreter)
		if err := target.Start(); err != nil {
			t.Fatal(err)
		}
		defer target.Wait()
		defer target.Process.Kill()
		p, err := Attach(target.Process.Pid, Options{Wait: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		_, rec, _ := sampleFor(t, p, 1500*time.Millisecond, SampleOptions{})
		got := weights(rec, mainThread(t, rec), firstOf("busy"))
		if len(rec.Threads) != 1 || got["busy"] < 0.5e9 {
			t.Errorf("%d threads, %.0f ms in the interpreter", len(rec.Threads), got["busy"]/1e6)
		}
	})
}

// lentInterpreter has another thread run an interpreter that the main one made.
const lentInterpreter = `
import threading, time
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
run = getattr(interpreters, "exec", None) or interpreters.run_string
made = interpreters.create()
source = "import time\ndef napping():\n  while True: time.sleep(.01)\nnapping()"
threading.Thread(target=run, args=(made, source), daemon=True).start()

def outside():
    end = time.monotonic() + 0.02
    while time.monotonic() < end:
        pass
    time.sleep(0.02)

print("ready", flush=True)
while True:
    outside()
`

func TestAnInterpreterThatAnotherThreadRunsIsNotTheMakers(t *testing.T) {
	eachVersion(t, func(t *testing.T, python truth.Interpreter) {
		target := exec.Command(python.Path, "-c", lentInterpreter)
		out, err := target.StdoutPipe()
		if err == nil {
			err = target.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		defer target.Wait()
		defer target.Process.Kill()
		if _, err := out.Read(make([]byte, 6)); err != nil {
			t.Fatal(err)
		}
		p, err := Attach(target.Process.Pid, Options{Wait: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		_, rec, _ := sampleFor(t, p, time.Second, SampleOptions{})
		got := weights(rec, mainThread(t, rec), firstOf("napping", "outside"))
		if got["napping"] > 0.1*got["outside"] {
			t.Errorf("the main thread has %.0f ms of another's interpreter, and %.0f of its own", got["napping"]/1e6, got["outside"]/1e6)
		}
	})
}
