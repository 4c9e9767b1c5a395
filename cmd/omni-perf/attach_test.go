package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/measure/pystack"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// readable starts a Python that sleeps and waits until it can be read.
func readablePython(t *testing.T, attr *syscall.SysProcAttr, interpreter, code string) int {
	t.Helper()
	cmd := exec.Command(interpreter, "-c", code)
	cmd.SysProcAttr, cmd.Dir = attr, "/"
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		p, err := pystack.Attach(cmd.Process.Pid, pystack.Options{})
		if err == nil {
			p.Close()
			return cmd.Process.Pid
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// attached is a running omni-perf attach.
type attached struct {
	*exec.Cmd
	done chan struct{} // closed when it has ended
}

// attaching starts omni-perf attach and waits until it samples.
func attaching(t *testing.T, pid int, wrap []string, args ...string) attached {
	t.Helper()
	argv := append(append(wrap, os.Args[0], "attach", fmt.Sprint(pid)), args...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "OMNI_PERF_TEST_ARGV=1")
	messages, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	a := attached{cmd, make(chan struct{})}
	t.Cleanup(func() { cmd.Process.Kill(); <-a.done })
	line, err := bufio.NewReader(messages).ReadString('\n')
	go func() {
		io.Copy(io.Discard, messages)
		cmd.Wait()
		close(a.done)
	}()
	if !strings.Contains(line, "watching process") {
		t.Fatalf("it said %q, %v", line, err)
	}
	return a
}

func (a attached) ended(within time.Duration) bool {
	select {
	case <-a.done:
		return true
	case <-time.After(within):
		return false
	}
}

const patience = 30 * time.Second

func TestAttachEndsWithAResultOnEachSignalThatAsks(t *testing.T) {
	pid := readablePython(t, nil, truth.OnPath(t), "import time; time.sleep(600)")
	for _, s := range []syscall.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP} {
		result := filepath.Join(t.TempDir(), "r.json")
		cmd := attaching(t, pid, nil, "-o", result)
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		if !cmd.ended(patience) || cmd.ProcessState.ExitCode() != exitOK {
			t.Errorf("%v: %v", s, cmd.ProcessState)
		}
		if _, err := os.Stat(result); err != nil {
			t.Errorf("%v: %v", s, err)
		}
	}
}

func TestAttachUnderNohupOutlivesItsTerminal(t *testing.T) {
	pid := readablePython(t, nil, truth.OnPath(t), "import time; time.sleep(600)")
	cmd := attaching(t, pid, []string{"sh", "-c", `trap "" HUP; exec "$0" "$@"`}, "-o", filepath.Join(t.TempDir(), "r.json"), "--duration", "2")
	if err := cmd.Process.Signal(unix.SIGHUP); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if !cmd.ended(patience) || cmd.ProcessState.ExitCode() != exitOK || time.Since(began) < time.Second {
		t.Errorf("after %v: %v; want it to go on for 2 s", time.Since(began), cmd.ProcessState)
	}
}

// The first signal ends the watching; the result goes to a FIFO that nobody reads.
func TestASecondSignalEndsAttachWhateverItWaitsFor(t *testing.T) {
	pid := readablePython(t, nil, truth.OnPath(t), "import time; time.sleep(600)")
	fifo := filepath.Join(t.TempDir(), "r.json")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Skip(err)
	}
	cmd := attaching(t, pid, nil, "-o", fifo)
	if err := cmd.Process.Signal(unix.SIGINT); err != nil {
		t.Fatal(err)
	}
	if cmd.ended(time.Second) {
		t.Fatalf("it has ended without a reader: %v", cmd.ProcessState)
	}
	if err := cmd.Process.Signal(unix.SIGINT); err != nil {
		t.Fatal(err)
	}
	if !cmd.ended(patience) {
		t.Error("a second signal does not end it")
	}
}

// Another user's process lies about its source files: root must not read for it what
// the user may not.
func TestAPrivilegedAttachReadsNothingForTheTarget(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root has rights to lend")
	}
	const python, nobody = "/usr/bin/python3", 65534
	if err := exec.Command(python, "-c", "import sys; assert sys.version_info >= (3, 11)").Run(); err != nil {
		t.Skipf("no Python that another user may execute: %v", err)
	}
	dir := t.TempDir()
	secret, fifo := filepath.Join(dir, "secret"), filepath.Join(dir, "fifo")
	if err := os.WriteFile(secret, []byte(strings.Repeat("root's secret\n", 9)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(fifo, 0o666); err != nil {
		t.Fatal(err)
	}
	for d := dir; len(d) > len(os.TempDir()); d = filepath.Dir(d) {
		os.Chmod(d, 0o755)
	}
	// What the process becomes then waits, with root's rights.
	program := filepath.Join(dir, "setuid")
	if text, err := os.ReadFile("/bin/sleep"); err != nil {
		t.Fatal(err)
	} else if err := errors.Join(os.WriteFile(program, text, 0o755), os.Chmod(program, 0o755|os.ModeSetuid)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SECRET_OF_ROOT", "root's secret")
	for name, then := range map[string]string{
		"goes on": "",
		"executes a set-uid program": fmt.Sprintf(`os.path.exists(%[1]q) and time.time() > os.path.getmtime(%[1]q) + 1 and os.execv(%[2]q, ["sleep", "60"])`,
			filepath.Join(dir, "go"), program),
	} {
		t.Run("the target "+name, func(t *testing.T) {
			code := fmt.Sprintf(`
import os, time
lie = "import time\ndef f(end):\n    while time.monotonic() < end: pass\n"
for name in (%q, %q, "/proc/self/environ", "/dev/zero", "/etc/shadow"):
    exec(compile(lie, name, "exec"), globals().setdefault(name, {}))
while True:
    %s
    for name in list(globals()):
        if name.startswith("/"):
            globals()[name]["f"](time.monotonic() + 0.05)
`, secret, fifo, then)
			pid := readablePython(t, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}, python, code)
			result := filepath.Join(t.TempDir(), "r.json")
			cmd := attaching(t, pid, nil, "-o", result, "--duration", "2.5")
			if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			if !cmd.ended(patience) || cmd.ProcessState.ExitCode() != exitOK {
				t.Fatalf("%v", cmd.ProcessState)
			}
			text, err := os.ReadFile(result)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), secret) {
				t.Error("the lie was not recorded: the test shows nothing")
			}
			if strings.Contains(string(text), "root's secret") || strings.Contains(string(text), "root:") {
				t.Error("the report holds what the target's user may not read")
			}
		})
		os.Remove(filepath.Join(dir, "go"))
	}
}
