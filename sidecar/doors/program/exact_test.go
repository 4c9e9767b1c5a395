package program

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/cupti"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/requirement"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// usesCUDA has a stand-in for the driver, which loads what CUDA_INJECTION64_PATH names, and a worker that does the same.
const usesCUDA = `
import ctypes, subprocess, sys, time
cuda = ctypes.CDLL(sys.argv[1])
record = cuda.fake_record
record.argtypes = [ctypes.c_int, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_char_p] + 3 * [ctypes.c_uint64]
cuda.cuInit(0)
name = b"fusion_1"
for _ in range(50):
    start = time.time_ns()
    time.sleep(0.002)
    record(10, 0, 7, name, start, time.time_ns(), 0)
    print(time.time_ns() - start)
if len(sys.argv) < 3:
    subprocess.run([sys.executable, __file__, sys.argv[1], "worker"])
`

// toolsWithRings have a folder for what processes record themselves, and keep the recording.
func toolsWithRings(private string, rec **timeline.Recording) Tools {
	tools := realTools()
	tools.Folder = func() (Private, error) {
		return Private{Socket: filepath.Join(private, "s"), StepHook: filepath.Join(private, "hook"), Rings: private, Remove: func() {}}, nil
	}
	tools.Analyse = func(r *timeline.Recording) (*report.View, error) {
		*rec = r
		return report.Build(r, nil, report.Options{})
	}
	return tools
}

// What the GPUs of a program and of its workers did is in its recording, each piece of work.
func TestExactWorkOfAProgram(t *testing.T) {
	if _, err := exec.LookPath("cc"); err != nil {
		requirement.Missing(t, requirement.Compiler, "no C compiler to build the library with")
	}
	built := t.TempDir()
	shim := filepath.Join(built, "exact.so")
	for _, command := range [][]string{{"shim/build.sh", shim}, {"testdata/build.sh", built}} {
		command[0] = filepath.Join("../../measure/cupti", command[0])
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}
	fake := filepath.Join(built, "libcupti.so")
	t.Setenv("OMNI_PERF_CUPTI_LIBRARY", fake)
	t.Setenv("OMNI_PERF_FAKE_CUPTI", "version=130401")

	var rec *timeline.Recording
	tools := toolsWithRings(t.TempDir(), &rec)
	var messages, out bytes.Buffer
	o, _ := options(t, &messages)
	o.Exact = shim
	script := write(t, "cuda.py", usesCUDA)
	exit, err := Run(context.Background(), tools, Script{Interpreter: truth.OnPath(t), Args: []string{script, fake}, Stdout: &out}, o)
	if err != nil || exit.Code != 0 {
		t.Fatalf("exit %+v, %v\n%s", exit, err, messages.String())
	}
	if len(rec.Work) != 2 {
		t.Fatalf("got work %+v, notes %+v", rec.Work, rec.Notes)
	}
	for _, w := range rec.Work {
		at := slices.IndexFunc(rec.Processes, func(p timeline.Process) bool { return p.PID == w.PID })
		if at < 0 || len(w.Activities) != 50 || len(w.Complete) != 1 {
			t.Fatalf("process %d (%d of the recording's): %d activities, complete %v", w.PID, at, len(w.Activities), w.Complete)
		}
		for _, a := range w.Activities {
			if a.Name != "fusion_1" || a.Stream != 7 || a.Nanos().Duration() < 2*time.Millisecond || a.Start < w.Complete[0].Start || a.End > w.Complete[0].End {
				t.Errorf("an activity is %+v, complete are %v", a, w.Complete)
			}
		}
	}
}

// Where no process uses CUDA, a note says that of what was asked for; nobody is bothered with it otherwise.
func TestWithoutCUDAExactWorkIsNotSilent(t *testing.T) {
	for _, wanted := range []bool{true, false} {
		private := t.TempDir()
		var rec *timeline.Recording
		tools := toolsWithRings(private, &rec)
		var messages bytes.Buffer
		o, _ := options(t, &messages)
		if wanted {
			o.Exact = filepath.Join(private, "exact.so")
		}
		if _, err := Run(context.Background(), tools, Script{Interpreter: truth.OnPath(t), Args: []string{write(t, "plain.py", "import time; time.sleep(0.3)")}}, o); err != nil {
			t.Fatal(err)
		}
		said := 0
		for _, n := range rec.Notes {
			if n.What == cupti.What && n.ID == timeline.NoteUnavailable {
				said++
			}
		}
		if (said == 1) != wanted || said > 1 {
			t.Errorf("wanted %v: it is said %d times: %+v", wanted, said, rec.Notes)
		}
	}
}
