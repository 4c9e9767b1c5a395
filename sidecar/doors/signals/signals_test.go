package signals

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The test binary is also the program that the tests send signals to.
func TestMain(m *testing.M) {
	switch os.Getenv("OMNI_PERF_TEST_SIGNALS") {
	case "ignored":
		fmt.Println(Ignored(unix.SIGINT), Ignored(unix.SIGQUIT), Ignored(unix.SIGTERM), Ignored(unix.SIGPIPE))
		KeepIgnored()
		c := make(chan os.Signal, 1)
		Notify(c, unix.SIGUSR1)
		out, err := exec.Command("grep", "SigIgn", "/proc/self/status").Output()
		fmt.Print(string(out), err, "\n")
	case "context":
		ctx, stop := Context(context.Background())
		defer stop()
		fmt.Println("ready")
		select {
		case <-ctx.Done():
			fmt.Println("asked to end")
		case <-time.After(time.Second):
			fmt.Println("not asked")
			return
		}
		time.Sleep(10 * time.Minute)
	case "die":
		var s int
		fmt.Sscan(os.Getenv("SIGNAL"), &s)
		DieBy(syscall.Signal(s))
		fmt.Println("alive")
	default:
		// What the tests start has the defaults, also where they run in the background.
		c := make(chan os.Signal, 1)
		signal.Notify(c, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP)
		go func() { <-c; os.Exit(1) }()
		os.Exit(m.Run())
	}
}

type program struct {
	*exec.Cmd
	out *bufio.Reader
}

func start(t *testing.T, as string, attr *syscall.SysProcAttr, wrap ...string) *program {
	t.Helper()
	args := append(wrap, os.Args[0])
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "OMNI_PERF_TEST_SIGNALS="+as)
	cmd.SysProcAttr = attr
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return &program{cmd, bufio.NewReader(out)}
}

func (p *program) says(t *testing.T) string {
	t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		t.Fatalf("it said %q, %v", line, err)
	}
	return strings.TrimSpace(line)
}

// trap runs a program with signals ignored, as nohup and a shell's & do.
func trap(names string) []string {
	return []string{"sh", "-c", `trap "" ` + names + `; exec "$0" "$@"`}
}

func TestWhatWasIgnoredAtTheStartIsKnownAndInherited(t *testing.T) {
	p := start(t, "ignored", nil, trap("INT QUIT")...)
	if got, want := p.says(t), "true true false false"; got != want {
		t.Errorf("ignored: %s, want %s", got, want)
	}
	var ignored uint64
	line := p.says(t)
	if _, err := fmt.Sscanf(line, "SigIgn:\t%x", &ignored); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	if want := bit(unix.SIGINT) | bit(unix.SIGQUIT); ignored&(want|bit(unix.SIGTERM)|bit(unix.SIGPIPE)) != want {
		t.Errorf("what it runs ignores %x, want %x", ignored, want)
	}
}

func TestAFirstSignalAsksAndASecondEnds(t *testing.T) {
	for _, pair := range [][2]syscall.Signal{{unix.SIGINT, unix.SIGINT}, {unix.SIGHUP, unix.SIGTERM}, {unix.SIGTERM, unix.SIGINT}} {
		p := start(t, "context", nil)
		p.says(t)
		if err := p.Process.Signal(pair[0]); err != nil {
			t.Fatal(err)
		}
		if got := p.says(t); got != "asked to end" {
			t.Errorf("%v: %s", pair[0], got)
		}
		time.Sleep(20 * time.Millisecond) // the handler is gone a moment later
		if err := p.Process.Signal(pair[1]); err != nil {
			t.Fatal(err)
		}
		p.Wait()
		if status := p.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != pair[1] {
			t.Errorf("%v after %v: %v", pair[1], pair[0], p.ProcessState)
		}
	}
}

func TestAnIgnoredSignalAsksNothing(t *testing.T) {
	p := start(t, "context", nil, trap("HUP INT")...)
	p.says(t)
	for _, s := range []syscall.Signal{unix.SIGHUP, unix.SIGINT} {
		if err := p.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	if got := p.says(t); got != "not asked" {
		t.Errorf("it was %s", got)
	}
}

func TestDyingAsAProgramDied(t *testing.T) {
	for _, s := range []syscall.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGKILL, unix.SIGSEGV, unix.SIGABRT, unix.SIGQUIT, unix.SIGPIPE, unix.SIGUSR1} {
		cmd := exec.Command(os.Args[0])
		cmd.Dir = t.TempDir() // no core is to be left there
		cmd.Env = append(os.Environ(), "OMNI_PERF_TEST_SIGNALS=die", fmt.Sprintf("SIGNAL=%d", int(s)))
		out, _ := cmd.CombinedOutput()
		if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != s || status.CoreDump() || len(out) > 0 {
			t.Errorf("%v: %v, %q", s, cmd.ProcessState, out)
		}
	}
}
