package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

func TestArgumentsArePartedAsPythonDoes(t *testing.T) {
	for _, c := range []struct{ args, ours, python string }{
		{"x.py", "", "x.py"},
		{"x.py -o out -m y -h", "", "x.py -o out -m y -h"},
		{"-o out x.py", "-o out", "x.py"},
		{"-o=out --format svg,html -p 0.01 x.py a", "-o=out --format svg,html -p 0.01", "x.py a"},
		{"--interpreter py x.py", "--interpreter py", "x.py"},
		{"-m pkg.mod -m other --help", "", "-m pkg.mod -m other --help"},
		{"-o out -m pkg -o theirs", "-o out", "-m pkg -o theirs"},
		{"-mpkg.mod x", "", "-mpkg.mod x"},
		{"-c code -o x", "", "-c code -o x"},
		{"- a -o b", "", "- a -o b"},
		{"-I -u x.py -u", "", "-I -u x.py -u"},
		{"-IuOO -Xdev -X importtime -Werror -W ignore x.py", "", "-IuOO -Xdev -X importtime -Werror -W ignore x.py"},
		{"-Im pkg a", "", "-Im pkg a"},
		{"-uXdev x.py", "", "-uXdev x.py"},
		{"-uX dev x.py", "", "-uX dev x.py"},
		{"--check-hash-based-pycs always x.py", "", "--check-hash-based-pycs always x.py"},
		{"-s 2 -I x.py", "-s 2", "-I x.py"},
		{"--open x.py -o y", "--open", "x.py -o y"},
		{"--children none torchrun --children x", "--children none", "torchrun --children x"},
		{"-- -x.py", "", "-- -x.py"},
		{"-h", "-h", ""},
		{"--help x", "--help", "x"},
		{"-o", "-o", ""},
		{"", "", ""},
		{"-oout -p0.01 -s=2 x.py", "-oout -p0.01 -s=2", "x.py"},
		{"--prof_interval 0.01 --sys-interval=2 x.py --prof_interval 1", "--prof_interval 0.01 --sys-interval=2", "x.py --prof_interval 1"},
	} {
		ours, python, err := splitRun(runFlags(), strings.Fields(c.args))
		got := []string{strings.Join(ours, " "), strings.Join(python, " ")}
		if want := []string{c.ours, c.python}; err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q, %v, want %q", c.args, got, err, want)
		}
	}
	for _, c := range []struct{ args, options, what string }{
		{"", "", ""}, {"-I -u", "-I -u", ""}, {"-X dev", "-X dev", ""}, {"-I x.py -u", "-I", "x.py -u"}, {"-X dev -m pkg a", "-X dev", "-m pkg a"},
		{"-", "", "-"}, {"-- -x.py", "", "-- -x.py"}, {"-Ic code", "", "-Ic code"}, {"torchrun -x", "", "torchrun -x"},
	} {
		options, what := partProgram(strings.Fields(c.args))
		if got := []string{strings.Join(options, " "), strings.Join(what, " ")}; !reflect.DeepEqual(got, []string{c.options, c.what}) {
			t.Errorf("%q: %q, want %q", c.args, got, c)
		}
	}
}

func runFlags() *pflag.FlagSet {
	c := find(newRoot(), "run")
	c.InitDefaultHelpFlag()
	return c.Flags()
}

func FuzzSplitRun(f *testing.F) {
	f.Add("-o\nout\n-IX\ndev\n-m\npkg")
	f.Add("-\n--\n-\u00e9\n\n--=")
	flags := runFlags()
	f.Fuzz(func(t *testing.T, args string) {
		given := strings.Split(args, "\n")
		ours, python, err := splitRun(flags, given)
		if n := len(ours) + len(python); err == nil && n != len(given) {
			t.Errorf("%q became %q, %q", given, ours, python)
		}
	})
}

// both runs the same once by python and once by omni-perf run.
func both(t *testing.T, stdin string, args ...string) (python, ours result) {
	t.Helper()
	interpreter := truth.OnPath(t)
	python = runs(t, stdin, nil, interpreter, args...)
	t.Setenv("OMNI_PERF_TEST_ARGV", "1")
	ours = runs(t, stdin, nil, os.Args[0], append([]string{"run", "-o", filepath.Join(t.TempDir(), "r.json"), "--interpreter", interpreter}, args...)...)
	return python, ours
}

type result struct {
	stdout string
	status syscall.WaitStatus
	stderr string
}

func runs(t testing.TB, stdin string, attr *syscall.SysProcAttr, program string, args ...string) result {
	t.Helper()
	cmd := exec.Command(program, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = strings.NewReader(stdin), &out, &errs, attr
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return result{out.String(), cmd.ProcessState.Sys().(syscall.WaitStatus), errs.String()}
}

func TestAProgramRunsAsByPython(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "x.py")
	const program = `
import sys
print(sys.argv, sys.flags.isolated, sys.flags.optimize, sys.flags.dev_mode, sys.warnoptions, sorted(sys._xoptions), __name__, sys.stdout.write_through)
print(repr(sys.stdin.read(20)))
`
	if err := os.WriteFile(script, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PYTHONPATH", dir)
	for name, c := range map[string]struct {
		stdin string
		args  []string
	}{
		"script":               {"typed", []string{script, "-o", "theirs", "-m", "x", "--help"}},
		"module":               {"typed", []string{"-m", "x", "-o", "theirs", "-m", "y", "--format", "z", "-h"}},
		"module in a cluster":  {"typed", []string{"-Om", "x", "a"}},
		"code":                 {"typed", []string{"-c", program, "-o", "theirs", "-"}},
		"script on stdin":      {program, []string{"-", "-o", "theirs"}},
		"script on stdin, too": {program, nil},
		"options":              {"typed", []string{"-I", "-u", "-OO", "-X", "dev", "-X", "faulthandler", "-W", "error", "-Wignore", script, "a"}},
		"clusters":             {"typed", []string{"-IuO", "-Xdev", script}},
		"exit code":            {"", []string{"-c", "raise SystemExit(42)"}},
		"exception":            {"", []string{"-c", "1 / 0"}},
		"no such script":       {"", []string{filepath.Join(dir, "none.py")}},
		"no such module":       {"", []string{"-m", "no_such_module"}},
		"killed":               {"", []string{"-c", "import os; os.kill(os.getpid(), 9)"}},
		"interrupted":          {"", []string{"-c", "import os, signal, time; os.kill(os.getpid(), 2); time.sleep(60)"}},
		"crashed":              {"", []string{"-c", "import os, resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); os.abort()"}},
	} {
		t.Run(name, func(t *testing.T) {
			python, ours := both(t, c.stdin, c.args...)
			if ours.stdout != python.stdout || ours.status != python.status {
				t.Errorf("omni-perf: %q, status %#x; python: %q, status %#x\n%s", ours.stdout, ours.status, python.stdout, python.status, ours.stderr)
			}
			if !strings.HasPrefix(ours.stderr, python.stderr) {
				t.Errorf("stderr begins with %q, python's is %q", ours.stderr, python.stderr)
			}
		})
	}
}

// background is a program that was started and said a first line.
func background(t *testing.T, attr *syscall.SysProcAttr, wrap []string, args ...string) (*exec.Cmd, func() string) {
	t.Helper()
	t.Setenv("OMNI_PERF_TEST_ARGV", "1")
	argv := append(append(wrap, os.Args[0], "run", "-o", filepath.Join(t.TempDir(), "r.json"), "--interpreter", truth.OnPath(t)), args...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.SysProcAttr = attr
	var out bytes.Buffer
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Kill(-cmd.Process.Pid, unix.SIGKILL); cmd.Process.Kill(); cmd.Wait(); r.Close() })
	buf := make([]byte, 4096)
	for !strings.Contains(out.String(), "ready\n") {
		n, err := r.Read(buf)
		out.Write(buf[:n])
		if err != nil {
			t.Fatalf("it said %q, %v", out.String(), err)
		}
	}
	return cmd, func() string {
		w.Close()
		for {
			n, err := r.Read(buf)
			out.Write(buf[:n])
			if err != nil {
				cmd.Wait()
				return strings.TrimPrefix(out.String(), "ready\n")
			}
		}
	}
}

// counts prints each signal it gets, until none came for half a second.
const counts = `
import signal, time
got = []
for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGALRM):
    if signal.getsignal(s) != signal.SIG_IGN:
        signal.signal(s, lambda s, frame: got.append(signal.Signals(s).name))
print("ready", flush=True)
end = time.monotonic() + 20
while not got and time.monotonic() < end:
    time.sleep(0.01)
time.sleep(0.5)
print(*got)
`

func TestSignalsReachTheScriptOnce(t *testing.T) {
	for _, s := range []syscall.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGUSR1, unix.SIGALRM} {
		for _, to := range []string{"us alone", "the group"} {
			t.Run(fmt.Sprintf("%v to %s", s, to), func(t *testing.T) {
				cmd, rest := background(t, &syscall.SysProcAttr{Setpgid: true}, nil, "-c", counts)
				pid := cmd.Process.Pid
				if to == "the group" {
					pid = -pid
				}
				if err := unix.Kill(pid, s); err != nil {
					t.Fatal(err)
				}
				if got, want := rest(), unix.SignalName(s)+"\n"; got != want || cmd.ProcessState.ExitCode() != 0 {
					t.Errorf("the script got %q, want %q; %v", got, want, cmd.ProcessState)
				}
			})
		}
	}
}

func TestAScriptThatASignalEndsIsReportedAllTheSame(t *testing.T) {
	for _, group := range []int{1, -1} {
		cmd, rest := background(t, &syscall.SysProcAttr{Setpgid: true}, nil, "-c", "import time; print('ready', flush=True); time.sleep(60)")
		if err := unix.Kill(group*cmd.Process.Pid, unix.SIGTERM); err != nil {
			t.Fatal(err)
		}
		rest()
		if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != unix.SIGTERM {
			t.Errorf("ended by %v, want SIGTERM", cmd.ProcessState)
		}
		if _, err := os.Stat(cmd.Args[3]); err != nil {
			t.Errorf("no result: %v", err)
		}
	}
}

func TestIgnoredSignalsStayIgnored(t *testing.T) {
	const ask = `
import os, signal, time
print("ready", flush=True)
time.sleep(0.5)
print(*(signal.Signals(s).name for s in (1, 2, 3, 15) if signal.getsignal(s) == signal.SIG_IGN))
`
	for names, want := range map[string]string{"HUP": "SIGHUP\n", "INT QUIT": "SIGINT SIGQUIT\n", "TERM": "SIGTERM\n"} {
		cmd, rest := background(t, &syscall.SysProcAttr{Setpgid: true}, []string{"sh", "-c", `trap "" ` + names + `; exec "$0" "$@"`}, "-c", ask)
		for name := range strings.FieldsSeq(names) {
			if err := unix.Kill(-cmd.Process.Pid, unix.SignalNum("SIG"+name)); err != nil {
				t.Fatal(err)
			}
		}
		if got := rest(); got != want || cmd.ProcessState.ExitCode() != 0 {
			t.Errorf("with %s ignored the script ignores %q, want %q; %v", names, got, want, cmd.ProcessState)
		}
	}
}

func TestNoProcessOfOursIsLeft(t *testing.T) {
	cmd, rest := background(t, &syscall.SysProcAttr{Setpgid: true}, nil, "-c", "print('ready', flush=True)")
	rest()
	if err := unix.Kill(-cmd.Process.Pid, 0); err != unix.ESRCH {
		t.Errorf("somebody of the process group is left: %v", err)
	}
}
