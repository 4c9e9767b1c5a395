package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// spinSource is what scripts of these tests begin with.
const spinSource = `
import os, signal, subprocess, sys, time
def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(100))
`

const nobody = 65534

// profiled runs a script by omni-perf run and reads its report.
func profiled(t *testing.T, text string, args ...string) (result, *report.View) {
	t.Helper()
	return profiledAs(t, nil, t.TempDir(), os.Args[0], truth.OnPath(t), text, args...)
}

func profiledAs(t *testing.T, attr *syscall.SysProcAttr, dir, program, interpreter, text string, args ...string) (result, *report.View) {
	t.Helper()
	t.Setenv("OMNI_PERF_TEST_ARGV", "1")
	script, file := filepath.Join(dir, "script.py"), filepath.Join(dir, "r.json")
	if err := os.WriteFile(script, []byte(spinSource+text), 0o644); err != nil {
		t.Fatal(err)
	}
	got := runs(t, "", attr, program, append([]string{"run", "-s", "0.1", "-o", file, "--interpreter", interpreter, script}, args...)...)
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

// secondsIn is for how long a process's threads had a function on their stacks.
func secondsIn(r *report.View, process int, function string) (sum float64) {
	for i, thread := range r.Threads {
		if thread.Process != process {
			continue
		}
		for _, s := range r.History(i) {
			if slices.ContainsFunc(r.Stack(s.Node, 1<<10), func(frame int) bool { return r.Functions[r.FunctionOf(frame)].Name == function }) {
				sum += report.Seconds(s.End - s.Start)
			}
		}
	}
	return sum
}

// who is the process that spent most in a function, with the time.
func who(r *report.View, function string) (process int, seconds float64) {
	process = -1
	for i := range r.Processes {
		if s := secondsIn(r, i, function); s > seconds {
			process, seconds = i, s
		}
	}
	return process, seconds
}

func TestAScriptThatLeavesADaemonEndsWithoutIt(t *testing.T) {
	dir := t.TempDir()
	note := filepath.Join(dir, "pid")
	began := time.Now()
	got, r := profiled(t, `
def serve():
    spin(60)
if not os.fork():
    os.setsid()
    if os.fork():
        os._exit(0)
    for fd in range(3):
        os.close(fd)
    open(sys.argv[1], "w").write(str(os.getpid()))
    serve()
    os._exit(0)
os.wait()
spin(1.5)
sys.exit(5)
`, note)
	var daemon int
	if text, err := os.ReadFile(note); err == nil {
		fmt.Sscan(string(text), &daemon)
		defer unix.Kill(daemon, unix.SIGKILL)
	}
	if got.status.ExitStatus() != 5 || time.Since(began) > 50*time.Second {
		t.Errorf("status %#x after %v, want the script's 5, without waiting for the daemon", got.status, time.Since(began))
	}
	if daemon == 0 || unix.Kill(daemon, 0) != nil {
		t.Errorf("the daemon (%d) is gone", daemon)
	}
	at, seconds := who(r, "serve")
	if at < 0 || r.Processes[at].PID != daemon || seconds < 0.5 {
		t.Fatalf("process %d, %.1f s in serve; processes %+v", at, seconds, r.Processes)
	}
	if p := r.Processes[at]; p.EndNS != nil || p.EndReason != nil {
		t.Errorf("the daemon lives on, the report says it ended: %+v", p)
	}
	if !slices.ContainsFunc(r.Notes, func(n report.Note) bool {
		return n.ID == "goes-on" && strings.Contains(n.Text, fmt.Sprintf("omni-perf attach %d", daemon))
	}) {
		t.Errorf("no note says how to follow the daemon: %+v", r.Notes)
	}
}

func TestAScriptThatClosesItsStreams(t *testing.T) {
	got, r := profiled(t, `
print("before", flush=True)
os.closerange(0, 3)
spin(0.5)
os._exit(3)
`)
	if got.stdout != "before\n" || got.status.ExitStatus() != 3 {
		t.Errorf("%q, status %#x", got.stdout, got.status)
	}
	if s := secondsIn(r, r.Target().Process, "spin"); s < 0.25 {
		t.Errorf("%.2f s in spin, of 0.5", s)
	}
	if !strings.Contains(got.stderr, "wrote") {
		t.Errorf("it said %q: our own messages must not be lost with the script's streams", got.stderr)
	}
}

func TestBinaryOutputIsPassedOnAsItIs(t *testing.T) {
	got, _ := profiled(t, `
every = bytes(range(256)) * 1000
sys.stdout.buffer.write(every)
sys.stderr.buffer.write(b"\xff\x00\x1b[2J")
`)
	var every strings.Builder
	for range 1000 {
		for b := range 256 {
			every.WriteByte(byte(b))
		}
	}
	if got.stdout != every.String() {
		t.Errorf("%d bytes came out of %d, or others", len(got.stdout), every.Len())
	}
	if !strings.HasPrefix(got.stderr, "\xff\x00\x1b[2J") {
		t.Errorf("stderr begins %q", got.stderr[:min(len(got.stderr), 20)])
	}
}

func TestAWorkerThatIsKilledEndsItsLaneWithTheReason(t *testing.T) {
	got, r := profiled(t, `
def work():
    held = b"x" * (64 << 20)
    spin(100)
pid = os.fork()
if not pid:
    work()
spin(1)
os.kill(pid, signal.SIGKILL)
os.waitpid(pid, 0)
spin(1)
`)
	if got.status != 0 {
		t.Errorf("status %#x", got.status)
	}
	at, seconds := who(r, "work")
	if at < 0 || seconds < 0.5 {
		t.Fatalf("%.2f s in work; processes %+v", seconds, r.Processes)
	}
	if f := r.MainFinding(); f == nil || f.ID != "worker-killed" || f.Number("pid") != float64(r.Processes[at].PID) || !(f.Number("bytes") >= 64<<20) {
		t.Errorf("the first finding is not that it was killed, with its memory: %q of %v", r.Headline.Text, r.Findings)
	}
	p := r.Processes[at]
	if p.EndNS == nil || p.EndReason == nil || *p.EndReason != "signal" || p.ExitCode == nil || *p.ExitCode != 137 {
		t.Fatalf("it ended %+v (%v)", p, p.EndReason)
	}
	for i, thread := range r.Threads {
		if h := r.History(i); thread.Process == at && len(h) > 0 && h[len(h)-1].End > *p.EndNS+int64(200*time.Millisecond) {
			t.Errorf("its lane goes on until %d, the process ended at %d", h[len(h)-1].End, *p.EndNS)
		}
	}
}

// The kernel hands out a pid anew once it has been round; a test can ask for it.
func TestAPidThatIsUsedAgainIsAnotherProcess(t *testing.T) {
	if f, err := os.OpenFile("/proc/sys/kernel/ns_last_pid", os.O_WRONLY, 0); err != nil {
		t.Skipf("pids cannot be chosen here: %v", err)
	} else {
		f.Close()
	}
	got, r := profiled(t, `
def first():
    spin(2)
def second():
    spin(2)
def child(what):
    pid = os.fork()
    if not pid:
        what()
        os._exit(0)
    os.waitpid(pid, 0)
    return pid
one = child(first)
time.sleep(1)  # a pid does not come round at once
for attempt in range(200):  # others may come between
    with open("/proc/sys/kernel/ns_last_pid", "w") as f:
        f.write(str(one - 1))
    if (pid := os.fork()) == 0:
        if os.getpid() == one:
            second()
        os._exit(0)
    os.waitpid(pid, 0)
    if pid == one:
        break
else:
    sys.exit(77)
`)
	if got.status.ExitStatus() == 77 {
		t.Skip("the pid could not be had again")
	}
	one, s1 := who(r, "first")
	two, s2 := who(r, "second")
	if one < 0 || two < 0 || one == two || s1 < 0.2 || s2 < 0.2 {
		t.Fatalf("first in %d for %.2f s, second in %d for %.2f s; processes %+v", one, s1, two, s2, r.Processes)
	}
	a, b := r.Processes[one], r.Processes[two]
	const tick = int64(20 * time.Millisecond) // starts are counted in ticks of 10 ms
	if a.PID != b.PID || a.EndNS == nil || *a.EndNS > b.StartNS+tick {
		t.Errorf("%+v until %d and %+v from %d; want one pid, one after the other", a, *a.EndNS, b, b.StartNS)
	}
	if second, first := secondsIn(r, one, "second"), secondsIn(r, two, "first"); second > 0 || first > 0 {
		t.Errorf("%.3f s of what the second did are in the first report, %.3f s of the first in the second", second, first)
	}
}

func TestChildrenInOtherNamespaces(t *testing.T) {
	if out, err := exec.Command("unshare", "--pid", "--mount", "--fork", "--mount-proc", "true").CombinedOutput(); err != nil {
		t.Skipf("namespaces cannot be made here: %v %s", err, out)
	}
	_, r := profiled(t, `
inside = """
import os, time
def inside():
    end = time.monotonic() + 1.5
    while time.monotonic() < end: sum(range(100))
assert os.getpid() == 1
inside()
"""
subprocess.run(["unshare", "--pid", "--mount", "--fork", "--mount-proc", sys.executable, "-c", inside], check=True)
`)
	at, seconds := who(r, "inside")
	if at <= 0 || seconds < 0.5 || !r.Processes[at].Stacks.Read {
		t.Errorf("%.2f s of 1.5 in process %d; processes %+v", seconds, at, r.Processes)
	}
}

func TestAScriptThatBecomesAnotherUserIsStillRead(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	_, r := profiled(t, `
def mine():
    spin(0.7)
def theirs():
    spin(0.7)
def worker():
    spin(0.7)
mine()
os.setuid(65534)
theirs()
if not os.fork():
    worker()
    os._exit(0)
os.wait()
`)
	root := r.Target().Process
	if mine, theirs := secondsIn(r, root, "mine"), secondsIn(r, root, "theirs"); mine < 0.3 || theirs < 0.3 {
		t.Errorf("%.2f s before, %.2f s after, of 0.7 each", mine, theirs)
	}
	if at, seconds := who(r, "worker"); at < 0 || at == root || seconds < 0.3 {
		t.Errorf("%.2f s in the worker, of 0.7; %+v", seconds, r.Processes)
	}
}

// A process that has forbidden to be looked at is read by root alone.
func TestAChildThatMayNotBeReadHasFiguresAndAReason(t *testing.T) {
	dir, program, interpreter := t.TempDir(), os.Args[0], truth.OnPath(t)
	var attr *syscall.SysProcAttr
	if os.Geteuid() == 0 {
		interpreter = "/usr/bin/python3"
		if err := exec.Command(interpreter, "-c", "import sys, ctypes; assert sys.version_info >= (3, 11)").Run(); err != nil {
			t.Skipf("no Python that another user may execute: %v", err)
		}
		text, err := os.ReadFile(program)
		program = filepath.Join(dir, "omni-perf")
		if err = errors.Join(err, os.WriteFile(program, text, 0o755), os.Chown(dir, nobody, nobody)); err != nil {
			t.Fatal(err)
		}
		for d := dir; len(d) > len(os.TempDir()); d = filepath.Dir(d) {
			os.Chmod(d, 0o755)
		}
		attr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		t.Chdir("/")
	}
	got, r := profiledAs(t, attr, dir, program, interpreter, `
import ctypes
def hidden():
    spin(1.5)
pid = os.fork()
if not pid:
    ctypes.CDLL(None).prctl(4, 0)  # PR_SET_DUMPABLE
    os.execv(sys.executable, [sys.executable, "-c", "import ctypes, time; ctypes.CDLL(None).prctl(4, 0)\nend = time.monotonic() + 1.5\nwhile time.monotonic() < end: pass"])
spin(1.5)
os.waitpid(pid, 0)
`)
	if got.status != 0 {
		t.Fatalf("status %#x: %s", got.status, got.stderr)
	}
	if s := secondsIn(r, r.Target().Process, "spin"); s < 0.5 {
		t.Errorf("%.2f s of 1.5 in the script itself: its child costs it its stacks", s)
	}
	if len(r.Processes) != 2 {
		t.Fatalf("processes %+v", r.Processes)
	}
	child := r.Processes[1]
	if child.CPUNS == nil || *child.CPUNS < int64(100*time.Millisecond) || !slices.ContainsFunc(r.Tracks, func(tr report.Track) bool { return tr.Process != nil && *tr.Process == 1 }) {
		t.Errorf("the child is %+v; want figures of it", child)
	}
	// It was read until it forbade it, if at all.
	if s := child.Stacks; s.Reason == nil || *s.Reason != "permission" || s.Text == "" {
		t.Errorf("its stacks are %+v, want the reason why there are none, or no more", s)
	}
}
