package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
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
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/omni-perf/omni-perf/sidecar/api"
	"github.com/omni-perf/omni-perf/sidecar/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/gpu"
	"github.com/omni-perf/omni-perf/sidecar/host"
	"github.com/omni-perf/omni-perf/sidecar/recorder"
	"github.com/omni-perf/omni-perf/sidecar/report"
	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// The test binary is the sidecar too, and its peers: a variable says what it is.
const (
	actAs     = "OMNI_PERF_TEST_ACT_AS"
	asSidecar = "sidecar"
	asDetach  = "detach"
	asPeer    = "peer" // connects to the socket given in the environment
)

func TestMain(m *testing.M) {
	switch os.Getenv(actAs) {
	case asSidecar:
		err := Serve(context.Background(), Config{
			Version: "1.2.3", Stdin: os.Stdin, Stdout: os.Stdout, LogFile: os.Getenv("OMNI_PERF_LOG"),
			Session: testSession, Detach: true,
		})
		if err != nil {
			os.Exit(1)
		}
	case asDetach:
		os.Setenv(actAs, asSidecar)
		if err := StartDetached(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case asPeer:
		c, err := net.Dial("unix", os.Getenv("SOCKET"))
		if err != nil {
			fmt.Println("dial:", err)
			return
		}
		_ = c.SetDeadline(time.Now().Add(5 * time.Second))
		fmt.Fprint(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00") // preface, empty SETTINGS
		n, err := c.Read(make([]byte, 64))
		fmt.Println(n, err)
	default:
		os.Exit(m.Run())
	}
}

// testSession is the real session with the real collectors, but no GPU.
func testSession(pid int, log *slog.Logger, logFile string) Session {
	if os.Getenv("PANIC") != "" {
		return panicSession{}
	}
	noGPU := func() *gpu.Driver { return gpu.Open("/nonexistent") }
	return NewSession(pid, logFile, Tools{
		Version:  "1.2.3",
		Recorder: recorder.ForProcess(timeline.Target{PID: pid}, "kernel", noGPU),
		Analyse: func(rec *timeline.Recording) *report.Report {
			return report.Build(rec, &diagnose.Diagnosis{}, report.Options{})
		},
		Log: log,
	})
}

type panicSession struct {
	api.UnimplementedOmniPerfServer
}

func (panicSession) Close() {}

func (panicSession) Status(context.Context, *api.StatusRequest) (*api.StatusResponse, error) {
	var none []int
	_ = none[len(os.Args)]
	return nil, nil
}

func (panicSession) List(context.Context, *api.ListRequest) (*api.ListResponse, error) {
	return &api.ListResponse{}, nil
}

const testToken = "0123456789abcdef0123456789abcdef"

// process is a sidecar under test.
type process struct {
	answer startAnswer
	folder string // XDG_RUNTIME_DIR
	cmd    *exec.Cmd
}

// launch starts a sidecar for the kernel with that pid and reads its answer.
func launch(t *testing.T, kernelPID int, wrap []string, env ...string) *process {
	t.Helper()
	folder, err := os.MkdirTemp("", "op") // t.TempDir is long, and a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	args := append(wrap, os.Args[0])
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), append([]string{"XDG_RUNTIME_DIR=" + folder, actAs + "=" + asSidecar}, env...)...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{folder: folder, cmd: cmd}
	fmt.Fprintf(in, `{"token": %q, "kernel_pid": %d, "version": "1.2.3", "later": {}}`+"\n", testToken, kernelPID)
	in.Close()
	read := bufio.NewReader(out)
	line, err := read.ReadBytes('\n')
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	if err := json.Unmarshal(line, &p.answer); err != nil {
		t.Fatalf("answer %q: %v", line, err)
	}
	if rest, err := io.ReadAll(read); err != nil || len(rest) > 0 {
		t.Errorf("after the answer came %q, %v; want end of file", rest, err)
	}
	if p.answer.Error == "" {
		t.Cleanup(func() { _ = unix.Kill(p.answer.PID, unix.SIGKILL) })
		go cmd.Wait() // no zombie
	}
	return p
}

// client connects; codec is "proto" or "json".
func (p *process) client(t *testing.T, codec, token string) (api.OmniPerfClient, context.Context) {
	t.Helper()
	conn, err := grpc.NewClient("unix:"+p.answer.Socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.CallContentSubtype(codec), grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	if token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	return api.NewOmniPerfClient(conn), ctx
}

// ended waits for the sidecar's end and for its folder to be empty.
func (p *process) ended(t *testing.T, within time.Duration) {
	t.Helper()
	for end := time.Now().Add(within); ; time.Sleep(5 * time.Millisecond) {
		left, _ := os.ReadDir(p.folder)
		_, alive := host.ProcessStart(p.answer.PID)
		if !alive && len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after %v the sidecar lives: %v, left behind: %v", within, alive, left)
		}
	}
}

func (p *process) alive() bool {
	_, alive := host.ProcessStart(p.answer.PID)
	return alive
}

// standIn starts a process that lives until it is killed, in a kernel's place.
func standIn(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Skipf("no sleep to stand in for a kernel: %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

func hello(pid int) *api.HelloRequest {
	return &api.HelloRequest{Version: "1.2.3", Api: api.Number, Pid: int32(pid), PythonVersion: "3.12.1", Implementation: "cpython"}
}

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
	if text, _ := os.ReadFile(log); !strings.Contains(string(text), "sidecar_test.go") {
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
