package program

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/procfs"
	"github.com/omni-perf/omni-perf/sidecar/measure/pystack"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// started starts a shell that starts so many others, and returns the shell and these.
func started(t *testing.T, count int) (shell int, others []int) {
	t.Helper()
	code := ""
	for range count {
		code += "sleep 600 & "
	}
	cmd := exec.Command("/bin/sh", "-c", code+"read wait")
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	fs := procfs.New("/proc")
	t.Cleanup(func() {
		for _, pid := range others {
			if p, err := os.FindProcess(pid); err == nil {
				p.Kill()
			}
		}
		in.Close()
		cmd.Wait()
	})
	sleeps := func(pid int) bool { return slices.Equal(fs.Arguments(pid), []string{"sleep", "600"}) }
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		others = descendants(&fs, cmd.Process.Pid)
		if len(others) == count && !slices.ContainsFunc(others, func(pid int) bool { return !sleeps(pid) }) {
			return cmd.Process.Pid, others
		}
		if time.Now().After(end) {
			t.Fatalf("the shell started %v", others)
		}
	}
}

func TestWhatALauncherStartedIsNamed(t *testing.T) {
	shell, others := started(t, 5)
	fs := procfs.New("/proc")
	who := fmt.Sprintf("process %d (%s)", shell, fs.Executable(shell))
	notPython := fmt.Errorf("%s: %w", who, pystack.ErrNotPython)
	slices.Sort(others)
	for readable, want := range map[int]string{
		0: who + " runs no Python",
		1: fmt.Sprintf("%s runs no Python, but a process that it started does: omni-perf top %d (sleep 600)", who, others[0]),
		5: fmt.Sprintf("%s runs no Python, but processes that it started do: omni-perf top %d (sleep 600), omni-perf top %d (sleep 600), omni-perf top %d (sleep 600), 2 more",
			who, others[0], others[1], others[2]),
	} {
		tools := Tools{Stack: func(pid int) ([]timeline.Frame, error) {
			if slices.Contains(others[:readable], pid) {
				return nil, nil
			}
			return nil, notPython
		}}
		if got := tools.unreadable("top", shell, notPython).Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	refused := errors.New("ptrace")
	if got := (Tools{}).unreadable("top", 7, refused); !errors.Is(got, refused) || got.Error() != "process 7 cannot be profiled: ptrace" {
		t.Errorf("%v", got)
	}
}
