package jupyter

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/omni-perf/omni-perf/sidecar/testkit/requirement"
)

// kernel is a real ipykernel that a test drives over its shell channel.
type kernel struct {
	cmd   *exec.Cmd
	conn  Connection
	file  string
	shell zmq4.Socket
	sign  signer
	// welcomes: it is ipykernel 7 or later.
	welcomes bool
}

// kernelPython finds a Python with ipykernel: the one named by
// OMNI_PERF_TEST_PYTHON, else that of the checkout's .venv.
func kernelPython(t *testing.T) string {
	t.Helper()
	python := os.Getenv("OMNI_PERF_TEST_PYTHON")
	if python == "" {
		python, _ = filepath.Abs("../.venv/bin/python")
	}
	if out, err := exec.Command(python, "-c", "import ipykernel").CombinedOutput(); err != nil {
		requirement.Missing(t, requirement.VirtualEnv, "no Python with ipykernel: %v %s (run make build, or set OMNI_PERF_TEST_PYTHON)", err, out)
	}
	return python
}

func startKernel(t *testing.T, transport string) *kernel {
	t.Helper()
	python := kernelPython(t)
	dir := t.TempDir()
	k := &kernel{file: filepath.Join(dir, "kernel-test.json")}
	k.welcomes = exec.Command(python, "-c", "import ipykernel; assert ipykernel.version_info >= (7,)").Run() == nil
	ip := "127.0.0.1"
	if transport == "ipc" {
		ip = filepath.Join(dir, "k")
	}
	k.start(t, python, "--KernelManager.transport="+transport, "--IPKernelApp.transport="+transport, "--ip="+ip)
	deadline := time.Now().Add(60 * time.Second)
	for {
		conn, err := ReadConnection(k.file)
		if err == nil {
			k.conn = conn.Connection
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the kernel wrote no connection file: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	k.sign, _ = newSigner(k.conn)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	k.shell = zmq4.NewDealer(ctx, zmq4.WithID(zmq4.SocketIdentity("test")), zmq4.WithDialerMaxRetries(-1), zmq4.WithLogger(log.New(io.Discard, "", 0)))
	if err := register(); err != nil {
		t.Fatal(err)
	}
	if err := k.shell.Dial(k.conn.endpoint(k.conn.ShellPort)); err != nil {
		t.Fatal(err)
	}
	return k
}

func (k *kernel) start(t *testing.T, python string, args ...string) {
	t.Helper()
	k.cmd = exec.Command(python, append([]string{"-m", "ipykernel_launcher", "-f", k.file}, args...)...)
	k.cmd.Dir = t.TempDir()
	k.cmd.Env = append(os.Environ(), "IPYTHONDIR="+t.TempDir(), "JUPYTER_RUNTIME_DIR="+t.TempDir())
	if err := k.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.cmd.Process.Kill(); k.cmd.Wait() })
}

// run sends a cell and returns its msg_id without waiting.
func (k *kernel) run(t *testing.T, code string, silent bool) string {
	t.Helper()
	content, _ := json.Marshal(map[string]any{"code": code, "silent": silent, "store_history": !silent, "user_expressions": map[string]any{}, "allow_stdin": false})
	h := newHeader("test-session", "execute_request")
	frames, err := k.sign.encode(Message{Header: h, Content: content})
	if err != nil {
		t.Fatal(err)
	}
	if err := k.shell.SendMulti(zmq4.NewMsgFrom(frames...)); err != nil {
		t.Fatal(err)
	}
	return h.MsgID
}

// encode writes a message's frames.
func (s signer) encode(m Message) ([][]byte, error) {
	header, err := json.Marshal(m.Header)
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	parent := []byte("{}")
	if m.Parent != (Header{}) {
		if parent, err = json.Marshal(m.Parent); err != nil {
			return nil, fmt.Errorf("parent header: %w", err)
		}
	}
	parts := [][]byte{header, parent, orEmpty(m.Metadata), orEmpty(m.Content)}
	frames := append([][]byte{}, m.Identities...)
	frames = append(frames, delimiter, s.sign(parts))
	frames = append(frames, parts...)
	return append(frames, m.Buffers...), nil
}

func orEmpty(part json.RawMessage) []byte {
	if len(part) == 0 {
		return []byte("{}")
	}
	return part
}

// newHeader names a message of a front end; ids are random, so no message repeats a
// signature, at which ipykernel raises.
func newHeader(session, msgType string) Header {
	return Header{
		MsgID: rand.Text(), MsgType: msgType, Session: session, Username: "test",
		Date: time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"), Version: "5.3",
	}
}
