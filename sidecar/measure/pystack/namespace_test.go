package pystack

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// TestPIDNamespace samples a process that has other thread ids than we see.
func TestPIDNamespace(t *testing.T) {
	eachVersion(t, func(t *testing.T, python truth.Interpreter) {
		script := filepath.Join(t.TempDir(), "inside.py")
		source := "import os, threading, time\n" +
			"threading.Thread(target=time.sleep, args=(100,), name='inside', daemon=True).start()\n" +
			"print(os.getpid(), flush=True)\ntime.sleep(100)\n"
		if err := os.WriteFile(script, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		command := exec.Command(python.Path, script)
		command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
		stdout, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Skipf("this user may not make a pid namespace: %v", err)
		}
		t.Cleanup(func() {
			_ = command.Process.Kill()
			_ = command.Wait()
		})
		if line, _ := bufio.NewReader(stdout).ReadString('\n'); strings.TrimSpace(line) != "1" {
			t.Fatalf("the process says its id is %q, want 1", line)
		}
		p, err := Attach(command.Process.Pid, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		threads, err := p.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		got := make(map[string]int)
		for _, s := range threads {
			got[s.Name] = s.NativeID
		}
		if got["MainThread"] != 1 || got["inside"] < 2 || len(got) != 2 {
			t.Errorf("got threads %v, want MainThread with id 1 and inside with a small one", got)
		}
	})
}

// TestDeletedExecutable samples a process whose executable is no longer there.
func TestDeletedExecutable(t *testing.T) {
	truth.EachInterpreter(t, func(t *testing.T, python truth.Interpreter) {
		if python.Build == "container" {
			t.Skip("a wrapper, not an executable")
		}
		copied := filepath.Join(t.TempDir(), "python"+python.Minor)
		source, err := os.ReadFile(python.Path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(copied, source, 0o700); err != nil {
			t.Fatal(err)
		}
		command := exec.Command(copied, "-c", "def here(): input()\nprint('up', flush=True)\nhere()")
		command.Env = append(os.Environ(), "PYTHONHOME="+filepath.Dir(filepath.Dir(python.Path)))
		stdout, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		stdin, err := command.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			stdin.Close()
			_ = command.Process.Kill()
			_ = command.Wait()
		})
		if _, err := io.ReadFull(stdout, make([]byte, 3)); err != nil {
			t.Skipf("a copy of it does not start: %v", err)
		}
		if err := os.Remove(copied); err != nil {
			t.Fatal(err)
		}
		p, err := Attach(command.Process.Pid, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		threads, err := p.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if len(threads) != 1 || len(threads[0].Frames) == 0 || threads[0].Frames[0].Function != "<module>" {
			t.Errorf("got %+v, want one thread in <module>", threads)
		}
	})
}
