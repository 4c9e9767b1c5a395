package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

const spinning = `
import time
def work(n):
    return sum(i * i for i in range(n))
while True:
    time.sleep(0.01)
    work(20000)
`

// top runs omni-perf top until it ends by itself or, after a while, by a signal.
func top(t *testing.T, interruptAfter time.Duration, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"top"}, args...)...)
	cmd.Env = append(os.Environ(), "OMNI_PERF_TEST_ARGV=1")
	var out, messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &messages
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if interruptAfter > 0 {
		time.AfterFunc(interruptAfter, func() { _ = cmd.Process.Signal(syscall.SIGINT) })
	}
	hangs := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
	defer hangs.Stop()
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), messages.String(), cmd.ProcessState.ExitCode()
}

func TestTopFollowsAProcessLineByLine(t *testing.T) {
	pid := readablePython(t, nil, truth.OnPath(t), spinning)
	stdout, stderr, code := top(t, 0, fmt.Sprint(pid), "--duration", "4")
	if code != exitOK || stderr != "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if len(lines) < 3 || !strings.HasPrefix(lines[0], fmt.Sprintf("following process %d ", pid)) {
		t.Fatalf("%s", stdout)
	}
	if look := lines[1]; !strings.Contains(look, "watched · ") || !strings.Contains(look, "<string>:") || !strings.Contains(look, "memory ") {
		t.Errorf("a look is %q", look)
	}
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "4") || !strings.Contains(last, " s: ") {
		t.Errorf("it ends with %q", last)
	}
}

func TestTopEndsByCtrlCWithASummary(t *testing.T) {
	pid := readablePython(t, nil, truth.OnPath(t), spinning)
	stdout, stderr, code := top(t, 2500*time.Millisecond, fmt.Sprint(pid))
	if code != exitOK || stderr != "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if last := stdout[strings.LastIndexByte(strings.TrimSpace(stdout), '\n')+1:]; !strings.Contains(last, " s: ") {
		t.Errorf("it ends with %q", last)
	}
}

func TestTopEndsWithItsProcess(t *testing.T) {
	pid := readablePython(t, nil, truth.OnPath(t), "import time\nend = time.monotonic() + 4\nwhile time.monotonic() < end: sum(range(1000))")
	stdout, _, code := top(t, 0, fmt.Sprint(pid))
	if code != exitOK || !strings.Contains(stdout, "the process ended") {
		t.Errorf("exit code %d: %s", code, stdout)
	}
}

func TestTopRefusesAsAttachDoes(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"no such notebook"}, exitFailed, "no such notebook"},
		{[]string{"2147483646"}, exitFailed, "There is no process 2147483646 here"},
		{[]string{"1", "2"}, exitUsage, `"2" is one argument too many`},
		{[]string{"1", "--children", "some"}, exitUsage, "children are recorded as none, tracks or stacks"},
		{[]string{"1", "--bogus"}, exitUsage, "there is no option --bogus"},
	} {
		stdout, stderr, code := top(t, 0, c.args...)
		if code != c.code || !strings.Contains(stderr, c.want) || stdout != "" {
			t.Errorf("top %v: exit code %d, %q, %q; want %d, %q", c.args, code, stdout, stderr, c.code, c.want)
		}
	}
}
