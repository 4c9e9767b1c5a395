package doctor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/doors/profiler"
	"github.com/omni-perf/omni-perf/sidecar/measure/gpu"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

func noGPU() *gpu.Driver { return gpu.Open("/nonexistent/libnvidia-ml.so") }

func find(t *testing.T, checks []Check, name string) Check {
	t.Helper()
	for _, c := range checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no check %q among %v", name, checks)
	return Check{}
}

func TestExamineSaysAllInSentences(t *testing.T) {
	truth.EachInterpreter(t, func(t *testing.T, python truth.Interpreter) {
		checks := Examine(context.Background(), Options{
			Interpreter: python.Path, GPUs: noGPU, Read: profiler.Attempt,
			Folder: func() (string, error) { return "", errors.New("nowhere to write") },
		})
		for _, c := range checks {
			if c.Sentence == "" || !strings.HasSuffix(c.Sentence, ".") || strings.ToUpper(c.Sentence[:1]) != c.Sentence[:1] {
				t.Errorf("%s: %q is no sentence", c.Name, c.Sentence)
			}
		}
		if Passed(checks) {
			t.Error("passed without a folder for the socket")
		}
		if c := find(t, checks, "runtime folder"); c.OK || c.Sentence != "Nowhere to write." {
			t.Errorf("%+v", c)
		}
		if c := find(t, checks, "Python"); !c.OK || !strings.Contains(c.Sentence, "cpython "+python.Minor) {
			t.Errorf("%+v", c)
		}
		if c := find(t, checks, "NVIDIA GPUs"); c.OK || c.Required {
			t.Errorf("%+v", c)
		}
	})
}

func TestTheTargetDoesNotDescendFromUsAndEndsWithTheCheck(t *testing.T) {
	p, err := startTarget(context.Background(), truth.Any(t).Path)
	if err != nil {
		t.Fatal(err)
	}
	stat, err := os.ReadFile(filepath.Join("/proc", itoa(p.pid), "stat"))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if fields[1] == itoa(os.Getpid()) || fields[3] == itoa(os.Getpid()) {
		t.Errorf("parent %s, session %s: it is ours (%d)", fields[1], fields[3], os.Getpid())
	}
	if err := p.grant(); err != nil {
		t.Errorf("grant: %v", err)
	}
	p.end()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		stat, err := os.ReadFile(filepath.Join("/proc", itoa(p.pid), "stat"))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the target outlives the check")
		}
	}
}

func TestPythonThatIsNone(t *testing.T) {
	for path, want := range map[string]string{"": "No Python was found", "/nonexistent/python": "did not start", "/bin/true": "it answered"} {
		checks := stacks(context.Background(), path, profiler.Attempt)
		if checks[0].OK || checks[1].OK || !strings.Contains(checks[0].Sentence, want) {
			t.Errorf("%q: %+v, want %q", path, checks, want)
		}
	}
}

func TestYama(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ptrace_scope")
	if c := yama(path); !c.OK {
		t.Errorf("without Yama: %+v", c)
	}
	for scope, want := range map[string]bool{"0\n": true, "1\n": true, "2\n": false, "3\n": false} {
		if err := os.WriteFile(path, []byte(scope), 0o600); err != nil {
			t.Fatal(err)
		}
		if c := yama(path); c.OK != want || c.Required || !strings.Contains(c.Sentence, strings.TrimSpace(scope)) {
			t.Errorf("scope %q: %+v", scope, c)
		}
	}
}

func itoa(n int) string { return strconv.Itoa(n) }
