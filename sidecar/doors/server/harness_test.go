package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/omni-perf/omni-perf/sidecar/api"
	"github.com/omni-perf/omni-perf/sidecar/doors/display"
	"github.com/omni-perf/omni-perf/sidecar/doors/profiler"
	"github.com/omni-perf/omni-perf/sidecar/measure/gpu"
	"github.com/omni-perf/omni-perf/sidecar/measure/procfs"
	"github.com/omni-perf/omni-perf/sidecar/measure/targetfs"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/show/live"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
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
		if os.Getenv("REFUSE_FLOCK") != "" {
			if err := refuseFlock(); err != nil {
				fmt.Println("skip: no seccomp here:", err)
				return
			}
		}
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
func testSession(start Start) Session {
	if os.Getenv("PANIC") != "" {
		return panicSession{}
	}
	noGPU := func() *gpu.Driver { return gpu.Open("/nonexistent") }
	files := targetfs.New(start.KernelPID)
	return NewSession(start, Tools{
		Version:  "1.2.3",
		Recorder: profiler.Recorder(timeline.Target{PID: start.KernelPID}, "kernel", noGPU),
		Analyse: func(rec *timeline.Recording) (*report.View, error) {
			return report.Build(rec, &diagnose.Diagnosis{}, report.Options{})
		},
		Present:  display.Charts{},
		Follower: func() *live.Follower { return profiler.Follower(files) },
	})
}

type panicSession struct {
	api.UnimplementedOmniPerfServer
}

func (panicSession) Announced(Announcement)    {}
func (panicSession) Close()                    {}
func (panicSession) KernelEnded(Exit, *Folder) {}

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
		_, alive := procfs.Start(p.answer.PID)
		if !alive && len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after %v the sidecar lives: %v, left behind: %v", within, alive, left)
		}
	}
}

func (p *process) alive() bool {
	_, alive := procfs.Start(p.answer.PID)
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
