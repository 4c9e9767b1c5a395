package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/doors/program"
	"github.com/omni-perf/omni-perf/sidecar/doors/waiter"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// limited is a command line that is executed under a limit.
func limited(limit string, args ...string) []string {
	return append([]string{"bash", "-c", "ulimit -c 0; ulimit " + limit + ` && exec "$0" "$@"`}, args...)
}

func TestBelowALimitTheProgramRunsUnprofiled(t *testing.T) {
	t.Setenv("OMNI_PERF_TEST_ARGV", "1")
	dir, python, command := t.TempDir(), truth.OnPath(t), os.Args[0]
	var another *syscall.SysProcAttr // a user whose processes are limited
	if os.Geteuid() == 0 {
		python = "/usr/bin/python3"
		command = filepath.Join(dir, "omni-perf")
		text, err := os.ReadFile(os.Args[0])
		if err = errors.Join(err, os.WriteFile(command, text, 0o755)); err != nil {
			t.Fatal(err)
		}
		for d := dir; len(d) > len(os.TempDir()); d = filepath.Dir(d) {
			os.Chmod(d, 0o755)
		}
		t.Chdir("/")
		another = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	for _, limit := range []string{"-v 200000", "-v 600000", "-v 1100000", "-n 8", "-n 20", "-u 6"} {
		t.Run(limit, func(t *testing.T) {
			result := filepath.Join(dir, "r.json")
			argv := limited(limit, command, "run", "-o", result, "--interpreter", python, "-c", "import sys; print(sys.argv[1:]); sys.exit(7)", "-o", "theirs")
			got := runs(t, "", another, argv[0], argv[1:]...)
			if got.stdout != "['-o', 'theirs']\n" || got.status.ExitStatus() != 7 {
				t.Errorf("it wrote %q, status %#x", got.stdout, got.status)
			}
			if want := "(ulimit " + strings.Fields(limit)[0] + ") is " + strings.Fields(limit)[1]; !strings.Contains(got.stderr, want) || strings.Count(got.stderr, "\n") != 1 {
				t.Errorf("it said %q, want one sentence with %q", got.stderr, want)
			}
			if _, err := os.Stat(result); err == nil {
				t.Error("there is a result")
			}
		})
	}
	t.Run("death by a signal", func(t *testing.T) {
		argv := limited("-n 8", command, "run", "--interpreter", python, "-c", "import os; os.kill(os.getpid(), 15)")
		if got := runs(t, "", nil, argv[0], argv[1:]...); got.status.Signal() != unix.SIGTERM {
			t.Errorf("status %#x", got.status)
		}
	})
	t.Run("a wrong command line", func(t *testing.T) {
		argv := limited("-n 8", command, "run", "--nonsense", "x.py")
		if got := runs(t, "", nil, argv[0], argv[1:]...); got.status.ExitStatus() != exitUsage || !strings.Contains(got.stderr, "command line is wrong") {
			t.Errorf("status %#x, %q", got.status, got.stderr)
		}
	})
}

// The command line is read in C where no Go program can run: by the same rules.
func TestUnprofiledCommandLines(t *testing.T) {
	t.Setenv("OMNI_PERF_TEST_ARGV", "1")
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("VIRTUAL_ENV", "")
	const echo = "#!/bin/sh\nprintf '%s\\n' \"$0\" \"$@\"\n"
	for name, text := range map[string]string{
		"python3": echo, "other": echo, "launcher": echo, "tool.sh": echo, "x.py": "#!/usr/bin/python3\n", "script": "pass\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	words := []string{
		"x.py", "script", "launcher", "./tool.sh", "none.py", "-o", "-oout", "--output=out", "--output", "out", "-p", "0.01", "-s=2", "--sys_interval", "--children",
		"none", "--interpreter", "other", "--interpreter=other", "--open", "--format", "svg", "-I", "-u", "-IuOO", "-Xdev", "-X", "dev", "-W", "ignore",
		"-m", "-mpkg", "-c", "code", "-Ic", "-", "--", "--check-hash-based-pycs", "always", "--check-hash-based-pycs=x", "--nonsense", "-t", "",
	}
	runFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			words = append(words, "--"+f.Name)
		}
	})
	random := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		args := []string{"run"}
		for range random.IntN(7) {
			args = append(args, words[random.IntN(len(words))])
		}
		want, ok := profiledCommand(args)
		if ok && !slices.Contains([]string{"python3", "other", "launcher", "tool.sh"}, filepath.Base(want[0])) {
			continue // no such interpreter
		}
		argv := limited("-n 20", append([]string{os.Args[0]}, args...)...)
		got := runs(t, "", nil, argv[0], argv[1:]...)
		if !ok {
			if got.status.ExitStatus() != exitUsage || got.stdout != "" {
				t.Errorf("%q: %q, status %#x; want it refused", args, got.stdout, got.status)
			}
			continue
		}
		lines := strings.Split(strings.TrimSuffix(got.stdout, "\n"), "\n")
		lines[0] = filepath.Base(lines[0])
		want[0] = filepath.Base(want[0])
		if !slices.Equal(lines, want) {
			t.Errorf("%q was executed as %q, want %q; %s", args, lines, want, got.stderr)
		}
	}
}

// profiledCommand is what run executes.
func profiledCommand(args []string) (command []string, ok bool) {
	flags := runFlags()
	ours, theirs, err := splitRun(flags, args[1:])
	if err != nil {
		return nil, false
	}
	interpreter := "python3"
	for len(ours) > 0 { // as cobra reads it, but for values that are wrong
		n := ourOption(flags, ours)
		if value, found := strings.CutPrefix(ours[0], "--interpreter="); found {
			interpreter = value
		} else if ours[0] == "--interpreter" && n == 2 {
			interpreter = ours[1]
		}
		ours = ours[n:]
	}
	python, what := partProgram(theirs)
	named := interpreter
	if interpreter == "python3" {
		named = ""
	}
	s, err := program.Resolve(named, python, what)
	switch {
	case err != nil && strings.Contains(err.Error(), "there is no script"): // python says so, too
		if what[0] == "--" {
			what = what[1:]
		}
		return slices.Concat([]string{interpreter}, python, what), true
	case err != nil:
		return nil, false
	case s.Program != "":
		return append([]string{s.Program}, s.Args...), true
	}
	return append([]string{interpreter}, s.Args...), true
}

func TestOnlyRunIsWaitedFor(t *testing.T) {
	t.Setenv("OMNI_PERF_TEST_ARGV", "1")
	t.Chdir(t.TempDir())
	for _, c := range newRoot().Commands() {
		if err := os.WriteFile(c.Name(), nil, 0o644); err != nil { // a file of a command's name is no script
			t.Fatal(err)
		}
		argv := limited("-n 8", os.Args[0], c.Name(), "--help")
		got := runs(t, "", nil, argv[0], argv[1:]...)
		if said := strings.Contains(got.stderr, "nothing is recorded"); said != (c.Name() == "run") {
			t.Errorf("%s: %q", c.Name(), got.stderr)
		}
	}
	if !slices.Equal(slices.Sorted(slices.Values(program.Relayed)), waiter.Signals()) {
		t.Errorf("the waiting process passes on %v, the profiler %v", waiter.Signals(), program.Relayed)
	}
}

// children are the processes that a process has started.
func children(t *testing.T, pid int) (pids []int) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil || len(files) == 0 {
		t.Skip("the kernel does not list the children of a process")
	}
	for _, file := range files {
		text, _ := os.ReadFile(file)
		for word := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

func TestTheProgramOutlivesItsProfiler(t *testing.T) {
	for name, c := range map[string]struct {
		code string
		then syscall.Signal // sent to the command when the profiler is gone
		want func(syscall.WaitStatus) bool
		out  string
	}{
		"its exit code is passed on": {
			code: "import time, sys; time.sleep(1.5); print('done'); sys.exit(7)", out: "done\n",
			want: func(s syscall.WaitStatus) bool { return s.ExitStatus() == 7 },
		},
		"it dies by a signal": {
			code: "import time, os; time.sleep(1.5); os.kill(os.getpid(), 9)",
			want: func(s syscall.WaitStatus) bool { return s.Signal() == unix.SIGKILL },
		},
		"a signal reaches it": {
			code: "import signal, time, sys; signal.signal(15, lambda *a: sys.exit(9)); time.sleep(60)", then: unix.SIGTERM,
			want: func(s syscall.WaitStatus) bool { return s.ExitStatus() == 9 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			errs, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
			if err != nil {
				t.Fatal(err)
			}
			defer errs.Close()
			wrap := []string{"sh", "-c", `exec 2>"$0"; exec "$@"`, errs.Name()}
			cmd, rest := background(t, &syscall.SysProcAttr{Setpgid: true}, wrap, "-c", "print('ready', flush=True)\n"+c.code)
			time.Sleep(300 * time.Millisecond)
			of := children(t, cmd.Process.Pid)
			if len(of) != 1 {
				t.Fatalf("the command has started %v, want the profiler alone", of)
			}
			script := children(t, of[0])
			if len(script) != 1 {
				t.Fatalf("the profiler has started %v, want the program alone", script)
			}
			unix.Kill(of[0], unix.SIGKILL)
			if c.then != 0 {
				for end := time.Now().Add(patience); time.Now().Before(end) && !slices.Equal(children(t, cmd.Process.Pid), script); {
					time.Sleep(time.Millisecond)
				}
				time.Sleep(50 * time.Millisecond)
				unix.Kill(cmd.Process.Pid, c.then)
			}
			out := rest()
			if status := cmd.ProcessState.Sys().(syscall.WaitStatus); out != c.out || !c.want(status) {
				t.Errorf("it wrote %q, status %#x", out, status)
			}
			text, _ := os.ReadFile(errs.Name())
			if want := "omni-perf: the profiler has ended (signal 9), and what it recorded is lost; the program goes on\n"; string(text) != want {
				t.Errorf("it said %q, want %q", text, want)
			}
		})
	}
}

func TestTheExitCodeIsKeptWhereTheReportIsNot(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "r.json") // nobody reads it
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "run", "-o", fifo, "--interpreter", truth.OnPath(t), "-c", "raise SystemExit(7)")
	cmd.Env = append(os.Environ(), "OMNI_PERF_TEST_ARGV=1")
	said, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if info, err := said.Stat(); err == nil && info.Size() > 0 { // the summary: results are written next
			break
		}
		if time.Now().After(end) {
			t.Fatal("it says nothing")
		}
	}
	time.Sleep(200 * time.Millisecond)
	for _, profiler := range children(t, cmd.Process.Pid) {
		unix.Kill(profiler, unix.SIGKILL)
	}
	cmd.Wait()
	text, _ := os.ReadFile(said.Name())
	if cmd.ProcessState.ExitCode() != 7 || !strings.HasSuffix(string(text), "and what it recorded is lost\n") {
		t.Errorf("%v; it said %q", cmd.ProcessState, text)
	}
}

// A Go program that does not even begin: the program runs as if by itself.
func TestTheProgramRunsWhereTheProfilerDoesNotStart(t *testing.T) {
	const dispositions = `grep -E "Sig(Blk|Ign|Cgt)" /proc/self/status; exit 7`
	want := runs(t, "", nil, "sh", "-c", dispositions)
	t.Setenv("GOMEMLIMIT", "as much as there is")
	t.Setenv("OMNI_PERF_TEST_ARGV", "1")
	got := runs(t, "", nil, os.Args[0], "run", "sh", "-c", dispositions)
	if got.stdout != want.stdout || got.status != want.status {
		t.Errorf("%q, status %#x, want %q, %#x", got.stdout, got.status, want.stdout, want.status)
	}
	if !strings.HasSuffix(got.stderr, "omni-perf: the profiler did not start, and nothing is recorded; the program runs without it\n") {
		t.Errorf("it said %q", got.stderr)
	}
}

// Nothing of ours takes the place of a stream that is closed.
func TestClosedStreamsBecomeNoOthers(t *testing.T) {
	t.Setenv("OMNI_PERF_TEST_ARGV", "1")
	const code = `
import os, sys
open(sys.argv[1], "w").write(" ".join(os.readlink(f"/proc/self/fd/{fd}") for fd in (0, 1)))
`
	file := filepath.Join(t.TempDir(), "streams")
	got := runs(t, "", nil, "sh", "-c", `exec "$0" "$@" <&- >&-`, os.Args[0], "run", "-o", file+".json", "--interpreter", truth.OnPath(t), "-c", code, file)
	if text, err := os.ReadFile(file); err != nil || string(text) != "/dev/null /dev/null" || got.status != 0 {
		t.Errorf("the streams were %q, %v; status %#x, %q", text, err, got.status, got.stderr)
	}
}

func TestTheProfilerEndsWithTheKilledCommand(t *testing.T) {
	cmd, _ := background(t, &syscall.SysProcAttr{Setpgid: true}, nil, "-c", "import time; print('ready', flush=True); time.sleep(60)")
	profiler := children(t, cmd.Process.Pid)
	cmd.Process.Kill()
	for end := time.Now().Add(patience); unix.Kill(profiler[0], 0) == nil; time.Sleep(time.Millisecond) {
		if stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", profiler[0])); strings.Contains(string(stat), ") Z ") {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the profiler outlives the command")
		}
	}
}
