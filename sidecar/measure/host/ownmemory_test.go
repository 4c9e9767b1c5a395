package host

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/requirement"
)

// One Python process of 120 MB has three children: one forked, which writes 20 MB of its parent's
// pages, one forked that makes and frees 20 MB again and again, and one that is a program of its own, of 40 MB.
const relatives = `
import mmap, os, subprocess, sys
block = bytearray(os.urandom(1 << 20)) * 120
if os.fork() == 0:
    for page in range(0, 20 << 20, 4096):
        block[page] = 1
    print("fork", os.getpid(), flush=True)
    sys.stdin.read()
    os._exit(0)
if os.fork() == 0:
    for turn in range(10):
        bytearray(os.urandom(1 << 20)) * 20
    print("churn", os.getpid(), flush=True)
    sys.stdin.read()
    os._exit(0)
child = subprocess.Popen([sys.executable, "-c", "import os, sys; b = bytearray(os.urandom(1 << 20)) * 40; print('program', os.getpid(), flush=True); sys.stdin.read()"])
print("parent", os.getpid(), flush=True)
sys.stdin.read()
`

// What is exactly a process's own lies within the bounds of the estimate.
func TestOwnMemory(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		requirement.Missing(t, requirement.Python, "python3: %v", err)
	}
	cmd := exec.Command(python, "-c", relatives)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	pids := make(map[string]int)
	for lines := bufio.NewScanner(out); len(pids) < 4 && lines.Scan(); {
		var name string
		var pid int
		if _, err := fmt.Sscan(lines.Text(), &name, &pid); err != nil {
			t.Fatal(err)
		}
		pids[name] = pid
	}
	reader := NewOwnMemory("")
	const mb = 1 << 20
	for name, want := range map[string]struct {
		low, high uint64 // of what is exact
		within    uint64 // of the estimate
		forked    bool
	}{
		"fork":    {20 * mb, 30 * mb, 30 * mb, true},
		"churn":   {0, 30 * mb, 160 * mb, true},
		"program": {40 * mb, 55 * mb, 5 * mb, false},
	} {
		got, err := reader.Estimate(pids[name], pids["parent"])
		if err != nil {
			t.Fatal(err)
		}
		exact, err := reader.Exact(pids[name])
		if err != nil {
			t.Fatal(err)
		}
		if exact.Own < want.low || exact.Own > want.high || exact.Proportional < exact.Own || exact.Proportional > exact.Resident {
			t.Errorf("%s: exactly %+v, want %+v", name, exact, want)
		}
		const other = 5 * mb // private pages of files that were written to
		if got.Forked != want.forked || got.Low > exact.Own || got.High+other < exact.Own || got.High > exact.Own+want.within {
			t.Errorf("%s: %+v, exactly %d bytes of its own", name, got, exact.Own)
		}
	}
	if got, err := reader.Estimate(pids["parent"], os.Getpid()); err != nil || got.Forked || got.Low < 100*mb || got.High > 140*mb {
		t.Errorf("the parent: %+v, %v", got, err)
	}
}

// A status file without the line, and a process that is ending, have no figure rather than 0.
func TestOwnMemoryUnknown(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "7")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const after = " 1 7 7 0 -1 0 9 0 0 0 1 1 0 0 20 0 1 0 5 0 2\n"
	write("stat", "7 (py) S"+after)
	write("status", "Name:\tpy\nVmRSS:\t8 kB\n")
	if got, err := NewOwnMemory(root).Estimate(7, 1); err == nil {
		t.Errorf("without RssAnon: %+v", got)
	}
	write("status", "RssAnon:\t8 kB\n")
	if got, err := NewOwnMemory(root).Estimate(7, 1); err != nil || got != (Own{Low: 8 << 10, High: 8 << 10}) {
		t.Errorf("%+v, %v, want 8 kB", got, err)
	}
	write("stat", "7 (py) Z"+after)
	if got, err := NewOwnMemory(root).Estimate(7, 1); err == nil {
		t.Errorf("of a zombie: %+v", got)
	}
}

// What forked workers share with their parent is in no sum of their memory: the sum is that of what is their own.
func TestForkedWorkersMemoryIsTheirOwn(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		requirement.Missing(t, requirement.Python, "python3: %v", err)
	}
	cmd := exec.Command(python, "-c", `
import os, sys
block = bytearray(os.urandom(1 << 20)) * 100
for worker in range(4):
    if os.fork() == 0:
        own = bytearray(os.urandom(1 << 20)) * 10
        print("ready", flush=True)
        sys.stdin.read()
        os._exit(0)
sys.stdin.read()
`)
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
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	b := timeline.NewBuilder(timeline.Options{Origin: timeline.Monotonic()})
	s := newSampler(New(cmd.Process.Pid, Options{}), b, 0)
	lines := bufio.NewScanner(out)
	for range 4 {
		if !lines.Scan() {
			t.Fatal("the workers have not begun")
		}
	}
	s.read(timeline.Monotonic(), everything)
	s.read(timeline.Monotonic(), everything)
	now := timeline.Monotonic()
	rec := b.Snapshot(b.Since(now))
	tr := find(rec, "own.children")
	if tr == nil || tr.Peak < 40<<20 || tr.Peak > 120<<20 { // each has 10 MB of its own, and shares 100
		t.Errorf("four workers with 40 MB of their own hold %+v", tr)
	}
}
