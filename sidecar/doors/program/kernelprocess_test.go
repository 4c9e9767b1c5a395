package program

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/omni-perf/omni-perf/jupyter"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

const connection = `{"iopub_port": 2, "control_port": 4, "ip": "127.0.0.1", "key": "k"}`

// connectionFile makes one that others may read where uid is not ours.
func connectionFile(t *testing.T, name string, uid int) jupyter.ConnectionFile {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	err := os.WriteFile(path, []byte(connection), 0o644)
	if uid != os.Getuid() {
		for d := filepath.Dir(path); len(d) > len(os.TempDir()); d = filepath.Dir(d) {
			os.Chmod(d, 0o755)
		}
		err = errors.Join(err, os.Chown(path, uid, uid))
	}
	if err != nil {
		t.Fatal(err)
	}
	file, err := jupyter.ReadConnection(path)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// pretend starts a process with these arguments behind its program.
func pretend(t *testing.T, uid int, source string, args ...string) (pid int, says func() string) {
	t.Helper()
	interpreter := truth.OnPath(t)
	if uid != os.Getuid() { // one that others may execute
		interpreter = "/usr/bin/python3"
		if _, err := os.Stat(interpreter); err != nil {
			t.Skip("no Python that another user may execute")
		}
	}
	cmd := exec.Command(interpreter, append([]string{"-c", source}, args...)...)
	cmd.Dir = "/"
	if uid != os.Getuid() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	says = func() string {
		text := make([]byte, 64)
		n, _ := out.Read(text)
		return strings.TrimSpace(string(text[:n]))
	}
	return cmd.Process.Pid, says
}

const (
	sleeps = "import time; print('ready', flush=True); time.sleep(600)"
	forks  = "import os, time; pid = os.fork(); pid and print(pid, flush=True); time.sleep(600)"
)

func TestAKernelIsFoundByItsConnectionFile(t *testing.T) {
	for _, args := range [][]string{{"-f", "FILE"}, {"--f=FILE"}, {"--IPKernelApp.connection_file=FILE"}} {
		file := connectionFile(t, "kernel-1.json", os.Getuid())
		for i := range args {
			args[i] = strings.Replace(args[i], "FILE", file.Path, 1)
		}
		pid, says := pretend(t, os.Getuid(), sleeps, args...)
		says()
		if got, err := KernelProcess(file); err != nil || got != pid {
			t.Errorf("%v: process %d, %v; want %d", args, got, err, pid)
		}
	}
}

func TestAFileOfTheSameNameElsewhereIsAnother(t *testing.T) {
	mine, other := connectionFile(t, "kernel-1.json", os.Getuid()), connectionFile(t, "kernel-1.json", os.Getuid())
	_, says := pretend(t, os.Getuid(), sleeps, "-f", other.Path)
	says()
	if got, err := KernelProcess(mine); err == nil || !strings.Contains(err.Error(), "no process here of the owner of "+mine.Path) {
		t.Errorf("process %d, %v; want none", got, err)
	}
	pid, says := pretend(t, os.Getuid(), sleeps, "-f", mine.Path)
	says()
	if got, err := KernelProcess(mine); err != nil || got != pid {
		t.Errorf("process %d, %v; want %d", got, err, pid)
	}
}

func TestWorkersThatAKernelForkedAreNotMeant(t *testing.T) {
	file := connectionFile(t, "kernel-1.json", os.Getuid())
	pid, says := pretend(t, os.Getuid(), forks, "-f", file.Path)
	child, err := strconv.Atoi(says())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Kill(child, syscall.SIGKILL) })
	if got, err := KernelProcess(file); err != nil || got != pid {
		t.Errorf("process %d, %v; want %d, not its worker %d", got, err, pid, child)
	}
}

func TestSeveralKernelsOfOneFileAreSaid(t *testing.T) {
	file := connectionFile(t, "kernel-1.json", os.Getuid())
	one, says := pretend(t, os.Getuid(), sleeps, "-f", file.Path)
	says()
	two, says := pretend(t, os.Getuid(), sleeps, "-f", file.Path)
	says()
	_, err := KernelProcess(file)
	if err == nil || !strings.Contains(err.Error(), "2 processes") || !strings.Contains(err.Error(), strconv.Itoa(one)) || !strings.Contains(err.Error(), strconv.Itoa(two)) {
		t.Errorf("%v does not name both processes", err)
	}
}

// Another user starts a process with the words of somebody's kernel, to be read in
// its place by a privileged reader, or to have it read.
func TestAKernelBelongsToTheOwnerOfItsFile(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user to try it")
	}
	const nobody = 65534
	for _, c := range []struct{ owner, runs int }{{0, nobody}, {nobody, 0}} {
		file := connectionFile(t, "kernel-1.json", c.owner)
		_, says := pretend(t, c.runs, sleeps, "-f", file.Path)
		says()
		if got, err := KernelProcess(file); err == nil {
			t.Errorf("process %d of user %d is taken for the kernel of user %d", got, c.runs, c.owner)
		}
	}
	file := connectionFile(t, "kernel-1.json", nobody)
	pid, says := pretend(t, nobody, sleeps, "-f", file.Path)
	says()
	if got, err := KernelProcess(file); err != nil || got != pid {
		t.Errorf("process %d, %v; want %d", got, err, pid)
	}
}

func FuzzParseUser(f *testing.F) {
	f.Add([]byte("Name:\tx\nPPid:\t7\nUid:\t1\t2\t3\t4\n"))
	f.Fuzz(func(t *testing.T, status []byte) {
		if uid, ok := parseUser(status); ok && uid < 0 {
			t.Errorf("%q was read as user %d", status, uid)
		}
	})
}

func FuzzParseExecuted(f *testing.F) {
	f.Add([]byte("7 (python) S 1 7 7 0 -1 4194304 1 0\n"), true)
	f.Add([]byte("7 (a) S 1) S 1 7 7 0 -1 4194368 1 0\n"), false)
	f.Fuzz(func(t *testing.T, stat []byte, executed bool) {
		// Whatever a process calls itself, the kernel's own words behind its name count.
		flags := map[bool]string{true: "4194304", false: "4194368"}[executed]
		line := "7 (" + strings.ReplaceAll(string(stat), "\n", " ") + ") S 1 7 7 0 -1 " + flags + " 1 0\n"
		if got, ok := parseExecuted([]byte(line)); !ok || got != executed {
			t.Errorf("%q: executed %v, %v; want %v", line, got, ok, executed)
		}
		parseExecuted(stat)
	})
}
