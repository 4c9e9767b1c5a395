package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/pystack/truth"
)

// TestMain lets the test binary be the command.
func TestMain(m *testing.M) {
	if args := os.Getenv("OMNI_PERF_TEST_ARGS"); args != "" {
		os.Exit(dispatch(strings.Fields(args)))
	}
	if os.Getenv("OMNI_PERF_TEST_ARGV") != "" { // arguments with spaces
		os.Unsetenv("OMNI_PERF_TEST_ARGV")
		os.Exit(dispatch(os.Args[1:]))
	}
	// What the tests start has the defaults, also where they run in the background.
	c := make(chan os.Signal, 1)
	signal.Notify(c, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP)
	go func() { <-c; os.Exit(1) }()
	os.Exit(m.Run())
}

// invoke runs the command in a process of its own.
func invoke(t *testing.T, args string, env ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), append(env, "OMNI_PERF_TEST_ARGS="+args)...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func TestVersion(t *testing.T) {
	out, _, code := invoke(t, "version")
	if code != exitOK || !strings.HasPrefix(out, "omni-perf "+version+" (go") {
		t.Errorf("%q, exit status %d", out, code)
	}
}

func TestUsage(t *testing.T) {
	out, _, code := invoke(t, "--help")
	if code != exitOK {
		t.Errorf("help: exit status %d", code)
	}
	for _, c := range commands() {
		if !strings.Contains(out, c.name) || !strings.Contains(out, c.summary) {
			t.Errorf("the usage does not tell of %s", c.name)
		}
	}
	if _, errs, code := invoke(t, "nonsense"); code != exitUsage || !strings.Contains(errs, `no command "nonsense"`) {
		t.Errorf("an unknown command: %q, exit status %d", errs, code)
	}
}

func TestDoctorExitStatusTellsWhetherItWorks(t *testing.T) {
	found, err := truth.Interpreters()
	if err != nil || len(found) == 0 {
		t.Skipf("no CPython on this machine (%v)", err)
	}
	out, errs, code := invoke(t, "doctor --json --interpreter "+found[0].Path, "OMNI_PERF_NVML_LIBRARY=/nonexistent")
	var got struct {
		OK     bool
		Checks []struct {
			Name, Sentence string
			OK, Required   bool
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%q, %q: %v", out, errs, err)
	}
	want := true
	for _, c := range got.Checks {
		want = want && (c.OK || !c.Required)
	}
	if got.OK != want || (code == exitOK) != want || len(got.Checks) < 8 {
		t.Errorf("ok %v, exit status %d, checks %+v", got.OK, code, got.Checks)
	}
	if out, _, code := invoke(t, "doctor --interpreter /bin/false"); code != exitFailed || !strings.Contains(out, "FAILED   Python") {
		t.Errorf("with a Python that is none: exit status %d, %q", code, out)
	}
}

func TestServeWithoutALauncherSaysSo(t *testing.T) {
	out, _, code := invoke(t, "serve")
	if code != exitFailed || !strings.Contains(out, "got no start message") {
		t.Errorf("%q, exit status %d", out, code)
	}
}
