package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/retry"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// wrapped runs train.py by a command, in which PYTHON and TRAIN stand for the two, and reads
// the report.
func wrapped(t testing.TB, train string, command ...string) (result, *report.View) {
	t.Helper()
	dir := t.TempDir()
	script, file := filepath.Join(dir, "train.py"), filepath.Join(dir, "r.json")
	if err := os.WriteFile(script, []byte(spinSource+train), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"run", "-s", "0.1", "-o", file, "--"}
	for _, a := range command {
		args = append(args, strings.NewReplacer("PYTHON", truth.OnPath(t), "TRAIN", script).Replace(a))
	}
	got := runs(t, "", nil, os.Args[0], args...)
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; it said %q", err, got.stderr)
	}
	r, err := report.Read(content)
	if err != nil {
		t.Fatal(err)
	}
	return got, r
}

// A shell script, uv and "accelerate launch" start the program that one wants to know about:
// its lines are reported, with what they waited, whatever starts it.
func TestWhatIsOnlyStartedIsToldOf(t *testing.T) {
	t.Setenv("OMNI_PERF_TEST_ARGV", "1")
	tool := filepath.Join(t.TempDir(), "site-packages", "tool")
	if err := os.MkdirAll(tool, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tool, "__main__.py"), []byte("import subprocess, sys\nsys.exit(subprocess.call([sys.executable] + sys.argv[1:]))\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PYTHONPATH", filepath.Dir(tool))
	const train = "spin(1)\ntime.sleep(0.5)\n"
	for name, command := range map[string][]string{
		"a shell":               {"sh", "-c", "PYTHON TRAIN; true"},
		"a shell, for a second": {"sh", "-c", "sleep 1; PYTHON TRAIN; true"},
		"a launcher in Python":  {"PYTHON", "-m", "tool", "TRAIN"},
	} {
		t.Run(name, func(t *testing.T) {
			retry.Again(t, func(t *retry.Attempt) {
				got, r := wrapped(t, train, command...)
				p := r.Processes[r.Program()]
				if p.Command != "train.py" || r.MainThread() < 0 || r.Threads[r.MainThread()].Process != r.Program() {
					t.Fatalf("it describes %+v", p)
				}
				var lines []string
				for _, l := range r.Lines {
					if s := report.Seconds(l.SelfNS); l.Process == r.Program() && s >= 0.3 && s < 1.3 {
						lines = append(lines, r.Text(l.File, l.Line))
					}
				}
				if f := r.MainFinding(); len(lines) < 2 || lines[len(lines)-1] != "time.sleep(0.5)" || f == nil || f.File == nil || !strings.HasSuffix(r.FileName(f.File), "train.py") {
					t.Errorf("lines %q, headline %+v", lines, f)
				}
				if !strings.Contains(got.stderr, "Where the time went") || strings.Contains(got.stderr, "not sampled") || strings.Contains(got.stderr, "What train.py did") {
					t.Errorf("it says\n%s", got.stderr)
				}
			})
		})
	}
}

// What runs twice is reported once as the program, once beside it.
func TestTheOtherProgramsOfAShellScript(t *testing.T) {
	t.Setenv("OMNI_PERF_TEST_ARGV", "1")
	retry.Again(t, func(t *retry.Attempt) {
		got, r := wrapped(t, "spin(float(sys.argv[1]))\n", "sh", "-c", "PYTHON TRAIN 0.5; PYTHON TRAIN 1; PYTHON TRAIN 0.5")
		if start := report.Seconds(r.Processes[r.Program()].StartNS); start < 0.5 {
			t.Errorf("it describes what started at %.2f s, want the longest", start)
		}
		if !strings.Contains(got.stderr, "What the 2 runs of train.py did") {
			t.Errorf("it says\n%s", got.stderr)
		}
	})
}

// A shell that sets up the environment first, as pyenv's do, becomes the interpreter when
// it is looked at seldom.
func TestThePoolOfWhatAShellBecame(t *testing.T) {
	t.Setenv("OMNI_PERF_TEST_ARGV", "1")
	retry.Again(t, func(t *retry.Attempt) {
		_, r := wrapped(t, `
import multiprocessing
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.map(spin, [0.5] * 4)
`, "sh", "-c", "sleep 1.5; exec PYTHON TRAIN")
		workers := 0
		for _, p := range r.Processes {
			if p.Role == string(timeline.RolePoolWorker) {
				workers++
			}
		}
		if workers != 2 {
			t.Errorf("%d pool workers of 2: %+v", workers, r.Processes)
		}
	})
}
