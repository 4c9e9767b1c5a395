package server

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/omni-perf/omni-perf/sidecar/api"
)

func TestSidecarsStartedAtOnceAllServe(t *testing.T) {
	folder := folders(t)
	kernel := standIn(t)
	for range 3 {
		var work sync.WaitGroup
		answers := make([]startAnswer, 24)
		for i := range answers {
			work.Go(func() {
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+folder, actAs+"="+asDetach)
				cmd.Stdin = strings.NewReader(fmt.Sprintf(`{"token": %q, "kernel_pid": %d}`+"\n", testToken, kernel.Process.Pid))
				out, err := cmd.Output()
				if err != nil {
					t.Error(err)
				} else if err := json.Unmarshal(out, &answers[i]); err != nil || answers[i].Error != "" {
					t.Errorf("%q, %v", out, err)
				}
			})
		}
		work.Wait()
		for _, a := range answers {
			if a.PID == 0 {
				continue
			}
			p := &process{answer: a, folder: folder}
			c, ctx := p.client(t, "proto", testToken)
			if _, err := c.Status(ctx, &api.StatusRequest{}); err != nil {
				t.Errorf("sidecar %d: %v", a.PID, err)
			}
			_ = unix.Kill(a.PID, unix.SIGTERM)
		}
		for _, a := range answers {
			p := &process{answer: a}
			for end := time.Now().Add(20 * time.Second); p.alive() && time.Now().Before(end); {
				time.Sleep(5 * time.Millisecond)
			}
		}
		if left, _ := os.ReadDir(folder); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

func TestALogThatIsNoFileHoldsNothingUp(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Skip(err)
	}
	began := time.Now()
	for _, reader := range []bool{false, true} {
		if reader {
			f, err := os.OpenFile(fifo, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
		}
		p := launch(t, os.Getpid(), nil, "OMNI_PERF_LOG="+fifo)
		c, ctx := p.client(t, "proto", testToken)
		answer, err := c.Hello(ctx, hello(os.Getpid()))
		if err != nil {
			t.Fatal(err)
		}
		want := "The log " + fifo + " (OMNI_PERF_LOG) cannot be written: it is no file."
		if notes := strings.Join(answer.Notes, " "); !strings.Contains(notes, want) {
			t.Errorf("notes %q do not say %q", notes, want)
		}
		if answer, err = c.Hello(ctx, hello(os.Getpid())); err != nil || strings.Contains(strings.Join(answer.Notes, " "), want) {
			t.Errorf("it is reported again: %v, %v", answer.GetNotes(), err)
		}
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("two starts took %v", took)
	}
}

func TestAStartThatHangsLeavesNoOrphan(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for the patience of a start")
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), actAs+"="+asSidecar)
	stdin, err := cmd.StdinPipe() // on which nothing comes
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case <-done:
	case <-time.After(10 * startPatience):
		cmd.Process.Kill()
		t.Error("it waits for ever")
	}
}

// refuseFlock lets flock(2) fail in this process, as on a network file system
// without locks: a seccomp filter, since nothing here is one.
func refuseFlock() error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the system call's number
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 0, Jf: 1, K: unix.SYS_FLOCK},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOLCK)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return errno
	}
	return nil
}

func TestARefusedLockIsASentenceAndLeavesNothing(t *testing.T) {
	folder := folders(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+folder, actAs+"="+asSidecar, "REFUSE_FLOCK=1")
	cmd.Stdin = strings.NewReader(fmt.Sprintf(`{"token": %q, "kernel_pid": %d}`+"\n", testToken, os.Getpid()))
	out, err := cmd.Output()
	if strings.HasPrefix(string(out), "skip") {
		t.Skipf("%s", out)
	}
	var a startAnswer
	if json.Unmarshal(out, &a) != nil || err == nil || !strings.Contains(a.Error, "cannot be locked: no locks available") || !strings.Contains(a.Error, "Set XDG_RUNTIME_DIR") {
		t.Errorf("answer %q, %v", out, err)
	}
	if left, _ := os.ReadDir(folder); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if left, _ := filepath.Glob(fmt.Sprintf("/tmp/omni_perf-%d-*", cmd.Process.Pid)); len(left) > 0 {
		t.Errorf("left behind in /tmp: %v", left)
	}
}

// The extension gives up a recording that does not begin in time and ends it; the
// calls may arrive in any order, when the sidecar was stopped between them.
func TestARecordingThatWasGivenUpDoesNotBegin(t *testing.T) {
	p := launch(t, os.Getpid(), nil)
	c, ctx := p.client(t, "proto", testToken)
	if _, err := c.Hello(ctx, hello(os.Getpid())); err != nil {
		t.Fatal(err)
	}
	if _, err := c.End(ctx, &api.EndRequest{CellId: "7", Quiet: true}); status.Code(err) != codes.NotFound {
		t.Fatalf("the end of a cell that did not begin: %v", err)
	}
	if _, err := c.Begin(ctx, &api.BeginRequest{CellId: "7"}); status.Code(err) != codes.Canceled {
		t.Errorf("its beginning afterwards: %v, want Canceled", err)
	}
	if st, err := c.Status(ctx, &api.StatusRequest{}); err != nil || len(st.Recording) > 0 {
		t.Errorf("recordings %v run, %v", st.GetRecording(), err)
	}
	if _, err := c.Begin(ctx, &api.BeginRequest{CellId: "8"}); err != nil {
		t.Errorf("the next cell: %v", err)
	}
	if _, err := c.End(ctx, &api.EndRequest{CellId: "8", Quiet: true}); err != nil {
		t.Error(err)
	}
}
