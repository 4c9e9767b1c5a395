package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/omni-perf/omni-perf/sidecar/api"
)

func TestSidecarStartsPrivateAndReady(t *testing.T) {
	p := launch(t, os.Getpid(), nil)
	if p.answer.PID != p.cmd.Process.Pid || p.answer.Version != "1.2.3" || p.answer.API != api.Number {
		t.Errorf("answer %+v", p.answer)
	}
	for path, want := range map[string]os.FileMode{
		filepath.Dir(p.answer.Socket):                       os.ModeDir | 0o700,
		p.answer.Socket:                                     os.ModeSocket | 0o600,
		filepath.Join(filepath.Dir(p.answer.Socket), "log"): 0o600,
	} {
		if st, err := os.Stat(path); err != nil || st.Mode() != want {
			t.Errorf("%s: mode %v, %v; want %v", path, st.Mode(), err, want)
		}
	}
	if sid, err := unix.Getsid(p.answer.PID); err != nil || sid != p.answer.PID {
		t.Errorf("session %d, %v; want one of its own", sid, err)
	}
	if cwd, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", p.answer.PID)); cwd != "/" {
		t.Errorf("it holds the folder %s", cwd)
	}
	// At once, without waiting for anything: the socket accepts.
	c, err := net.Dial("unix", p.answer.Socket)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

func TestDetachedSidecarIsNobodysChild(t *testing.T) {
	kernel := standIn(t)
	folder, err := os.MkdirTemp("", "op")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+folder, actAs+"="+asDetach)
	cmd.Stdin = strings.NewReader(fmt.Sprintf(`{"token": %q, "kernel_pid": %d}`+"\n", testToken, kernel.Process.Pid))
	out, err := cmd.Output() // waits for the starter, then for the end of file
	if err != nil {
		t.Fatal(err)
	}
	p := &process{folder: folder}
	if err := json.Unmarshal(out, &p.answer); err != nil {
		t.Fatalf("answer %q: %v", out, err)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.answer.PID))
	if err != nil {
		t.Fatal(err)
	}
	parent, _ := strconv.Atoi(strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))[1])
	if parent == os.Getpid() || parent == cmd.Process.Pid {
		t.Errorf("its parent is %d, one of us", parent)
	}
	_ = kernel.Process.Kill()
	p.ended(t, 2*time.Second)
}

func TestSidecarEndsWithItsKernelInMidCell(t *testing.T) {
	kernel := standIn(t)
	p := launch(t, kernel.Process.Pid, nil)
	c, ctx := p.client(t, "json", testToken)
	if _, err := c.Hello(ctx, hello(kernel.Process.Pid)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Begin(ctx, &api.BeginRequest{CellId: "a"}); err != nil {
		t.Fatal(err)
	}
	_ = kernel.Process.Kill() // it stays a zombie until Wait: dead all the same
	p.ended(t, 2*time.Second)
}

func TestSidecarIgnoresSIGINTAndEndsOnSIGTERM(t *testing.T) {
	p := launch(t, os.Getpid(), nil)
	for _, sig := range []syscall.Signal{unix.SIGINT, unix.SIGHUP, unix.SIGINT} {
		if err := unix.Kill(p.answer.PID, sig); err != nil {
			t.Fatal(err)
		}
	}
	c, ctx := p.client(t, "proto", testToken)
	if _, err := c.Status(ctx, &api.StatusRequest{}); err != nil {
		t.Fatalf("after SIGINT: %v", err)
	}
	if err := unix.Kill(p.answer.PID, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.ended(t, 2*time.Second)
}

func TestSidecarEndsWhenNobodyCanReachIt(t *testing.T) {
	p := launch(t, os.Getpid(), nil)
	c, ctx := p.client(t, "json", testToken)
	if _, err := c.Status(ctx, &api.StatusRequest{}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(p.answer.Socket); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * watchEvery)
	if _, err := c.Status(ctx, &api.StatusRequest{}); err != nil {
		t.Fatalf("an open connection outlives the socket's file: %v", err)
	}
	q := launch(t, os.Getpid(), nil)
	if err := os.Remove(q.answer.Socket); err != nil {
		t.Fatal(err)
	}
	q.ended(t, 5*time.Second)
	if !p.alive() {
		t.Error("the connected one ended too")
	}
}

func TestTwoKernelsAtOnce(t *testing.T) {
	kernels := []*exec.Cmd{standIn(t), standIn(t)}
	var sidecars []*process
	for _, k := range kernels {
		sidecars = append(sidecars, launch(t, k.Process.Pid, nil))
	}
	if sidecars[0].answer.Socket == sidecars[1].answer.Socket {
		t.Fatal("they share a socket")
	}
	c, ctx := sidecars[0].client(t, "json", testToken)
	if _, err := c.Hello(ctx, hello(kernels[1].Process.Pid)); err == nil {
		t.Error("a sidecar took another kernel's Hello")
	}
	_ = kernels[0].Process.Kill()
	sidecars[0].ended(t, 2*time.Second)
	if !sidecars[1].alive() {
		t.Error("the other kernel's sidecar ended as well")
	}
}

func TestPeersWithoutTokenAreRefused(t *testing.T) {
	p := launch(t, os.Getpid(), nil)
	for _, codec := range []string{"proto", "json"} {
		for _, token := range []string{"", "wrong", testToken + "0", testToken[:31]} {
			c, ctx := p.client(t, codec, token)
			_, err := c.Hello(ctx, hello(os.Getpid()))
			if err == nil || !strings.Contains(err.Error(), "Unauthenticated") {
				t.Errorf("%s, token %q: %v, want Unauthenticated", codec, token, err)
			}
		}
	}
}

// rawCodec sends bytes as they are, under the name of a codec the server knows.
type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error) { return v.([]byte), nil }
func (rawCodec) Unmarshal([]byte, any) error   { return nil }
func (rawCodec) Name() string                  { return "json" }

func TestABodyIsReadOnlyOfWhoHasTheToken(t *testing.T) {
	p := launch(t, os.Getpid(), nil)
	conn, err := grpc.NewClient("unix:"+p.answer.Socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{}), grpc.MaxCallSendMsgSize(maxMessage)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for name, body := range map[string][]byte{"nonsense": []byte("no JSON"), "200 MB": bytes.Repeat([]byte{' '}, 200<<20)} {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		err := conn.Invoke(ctx, api.OmniPerf_Hello_FullMethodName, body, new(int))
		if status.Code(err) != codes.Unauthenticated {
			t.Errorf("%s: %v, want Unauthenticated", name, err)
		}
		cancel()
	}
	if peak := peakOf(t, p.answer.PID); peak > 64<<20 {
		t.Errorf("the sidecar took %d MB for calls without token", peak>>20)
	}
}

// peakOf is the most memory that a process had, in bytes.
func peakOf(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var kB int64
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kB); n == 1 {
			return kB << 10
		}
	}
	t.Skip("no VmHWM here")
	return 0
}

func TestPeersOfAnotherUserAreRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user to try it")
	}
	p := launch(t, os.Getpid(), nil)
	// Open the doors, so that only the peer's credentials stand in the way.
	dir := filepath.Dir(p.answer.Socket)
	for _, err := range []error{os.Chmod(p.folder, 0o755), os.Chmod(dir, 0o755), os.Chmod(p.answer.Socket, 0o666)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(p.folder, "peer")
	copyProgram(t, program)
	try := func(uid uint32) string {
		cmd := exec.Command(program)
		cmd.Dir = "/"
		cmd.Env = []string{actAs + "=" + asPeer, "SOCKET=" + p.answer.Socket}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("uid %d: %v", uid, err)
		}
		return strings.TrimSpace(string(out))
	}
	if got := try(0); !strings.HasSuffix(got, "<nil>") {
		t.Errorf("our own uid got %q, want the server's preface", got)
	}
	if got := try(65534); got != "0 EOF" && !strings.Contains(got, "reset") {
		t.Errorf("another uid got %q, want to be hung up on", got)
	}
}

func copyProgram(t *testing.T, to string) {
	t.Helper()
	content, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, content, 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestAPanicInACallIsASentence(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	p := launch(t, os.Getpid(), nil, "PANIC=1", "OMNI_PERF_LOG="+log)
	c, ctx := p.client(t, "json", testToken)
	_, err := c.Status(ctx, &api.StatusRequest{})
	if err == nil || !strings.Contains(err.Error(), "The sidecar failed in Status: runtime error") {
		t.Errorf("error %v, want a sentence", err)
	}
	if _, err := c.List(ctx, &api.ListRequest{}); err != nil {
		t.Errorf("the next call: %v", err)
	}
	if text, _ := os.ReadFile(log); !strings.Contains(string(text), "panicSession.Status") {
		t.Errorf("log %q holds no stack", text)
	}
}

func TestALogThatCannotBeWrittenIsNoReasonNotToStart(t *testing.T) {
	p := launch(t, os.Getpid(), nil, "OMNI_PERF_LOG=/nonexistent/folder/log")
	c, ctx := p.client(t, "json", testToken)
	st, err := c.Status(ctx, &api.StatusRequest{})
	if err != nil || st.Log != filepath.Join(filepath.Dir(p.answer.Socket), "log") {
		t.Fatalf("status %v, %v; want the log in the sidecar's folder", st, err)
	}
	if text, _ := os.ReadFile(st.Log); !strings.Contains(string(text), "/nonexistent/folder/log") {
		t.Errorf("the log %q does not say why it is here", text)
	}
}

func TestBadStartsAreSentences(t *testing.T) {
	for _, c := range []struct{ name, line, want string }{
		{"nothing", "", "got no start message"},
		{"no JSON", "hello\n", "could not read the start message"},
		{"no token", `{"kernel_pid": 1}` + "\n", "holds no token"},
		{"short token", `{"token": "abc", "kernel_pid": 1}` + "\n", "holds no token"},
		{"no kernel", `{"token": "` + testToken + `"}` + "\n", "names no kernel_pid"},
		{"dead kernel", `{"token": "` + testToken + `", "kernel_pid": 999999999}` + "\n", "There is no process 999999999"},
		{"pid used again", `{"token": "` + testToken + fmt.Sprintf(`", "kernel_pid": %d, "kernel_start": 1}`, os.Getpid()) + "\n", "has ended"},
	} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), actAs+"="+asSidecar)
		cmd.Stdin = strings.NewReader(c.line)
		out, err := cmd.Output()
		var a startAnswer
		if json.Unmarshal(out, &a) != nil || !strings.Contains(a.Error, c.want) {
			t.Errorf("%s: answer %q, want an error with %q", c.name, out, c.want)
		}
		if err == nil {
			t.Errorf("%s: exit status 0", c.name)
		}
	}
}
