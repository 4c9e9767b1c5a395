package jupyter

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

const patience = 60 * time.Second // for a loaded machine; nothing waits that long when all is well

func observe(t *testing.T, k *kernel) *Observer {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	o, err := Observe(ctx, k.conn)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-o.Connected():
	case <-time.After(patience):
		t.Fatal("the kernel's IOPub does not answer")
	}
	select {
	case <-o.Ready():
	case <-time.After(time.Second): // ipykernel before 7 welcomes nobody
		if k.welcomes {
			t.Fatal("no welcome within a second")
		}
	}
	return o
}

func next(t *testing.T, o *Observer, kind EventKind, msgID string) Event {
	t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case e := <-o.Events():
			if e.Kind == kind && e.MsgID == msgID {
				return e
			}
		case <-timeout:
			t.Fatalf("no event of kind %d for %s", kind, msgID)
		}
	}
}

func TestObserverFollowsCells(t *testing.T) {
	for _, transport := range []string{"tcp", "ipc"} {
		t.Run(transport, func(t *testing.T) {
			k := startKernel(t, transport)
			o := observe(t, k)

			code := "print('x' * 1000)\n1 + 1"
			id := k.run(t, code, false)
			started := next(t, o, CellStarted, id)
			if started.Code != code || started.ExecutionCount != 1 {
				t.Errorf("started with %q, count %d; want the cell as sent, count 1", started.Code, started.ExecutionCount)
			}
			ended := next(t, o, CellEnded, id)
			if ended.Outcome != "ok" || ended.ExecutionCount != 1 {
				t.Errorf("ended with outcome %q, count %d; want ok, 1", ended.Outcome, ended.ExecutionCount)
			}
			if took := ended.Sent.Sub(started.Sent); started.Sent.IsZero() || took <= 0 || ended.Sent.After(ended.At) {
				t.Errorf("by the kernel's times it took %v, from %v to %v", took, started.Sent, ended.Sent)
			}
			out, ok := o.Output(id)
			if !ok || out.Messages < 2 || out.Bytes < 1000 || out.AtLeast {
				t.Errorf("output %+v, %v; want a stream of 1,000 bytes and a result, exactly", out, ok)
			}

			id = k.run(t, "raise KeyError('k')", false)
			if got := next(t, o, CellEnded, id).Outcome; got != "error: KeyError" {
				t.Errorf("outcome of a raising cell is %q, want error: KeyError", got)
			}
			id = k.run(t, "get_ipython().run_cell('1/0')\n5", false)
			if got := next(t, o, CellEnded, id).Outcome; got != "ok" {
				t.Errorf("outcome of a cell that ran one which failed, and had a result, is %q, want ok", got)
			}
		})
	}
}

func TestObserverTellsFloodsAsLowerBounds(t *testing.T) {
	k := startKernel(t, "tcp")
	o := observe(t, k)
	id := k.run(t, "from IPython.display import display\nfor i in range(3000): display(i)", false)
	next(t, o, CellEnded, id)
	out, _ := o.Output(id)
	if !out.AtLeast {
		t.Errorf("3,000 displays are reported as exactly %d messages; IOPub may have dropped some", out.Messages)
	}
}

// A display that the extension has marked is not what the cell put out, however large.
func TestObserverLeavesOutDisplaysThatAreOurs(t *testing.T) {
	k := startKernel(t, "tcp")
	o := observe(t, k)
	const hook = "p = get_ipython().display_pub\ndef mark(m):\n    m['metadata']['omni_perf'] = %q\n    return m\np.register_hook(mark)\n" +
		"for size in 10, %d: p.publish({'text/plain': 'x' * size}, {})\ngone = p.unregister_hook(mark)"
	for _, c := range []struct {
		mark string
		want int64
	}{{"display", 0}, {"another", 2}} {
		id := k.run(t, fmt.Sprintf(hook, c.mark, 2*maxMessage), false)
		next(t, o, CellEnded, id)
		if out, ok := o.Output(id); !ok || out.Messages != c.want {
			t.Errorf("marked as %s: %+v, %v; want %d messages", c.mark, out, ok, c.want)
		}
	}
}

func TestObserverIgnoresSilentCells(t *testing.T) {
	k := startKernel(t, "tcp")
	o := observe(t, k)
	k.run(t, "x = 1", true)
	id := k.run(t, "x", false)
	if e := next(t, o, CellStarted, id); e.Code != "x" {
		t.Errorf("the first visible cell is %q, want x", e.Code)
	}
}

func TestObserverTellsTheKernelsDeath(t *testing.T) {
	k := startKernel(t, "tcp")
	o := observe(t, k)
	id := k.run(t, "import time; time.sleep(600)", false)
	next(t, o, CellStarted, id)
	k.cmd.Process.Kill()
	next(t, o, Disconnected, "")
}

// Of a cell that ran before the observer came only the end is seen.
func TestTheEndOfACellThatRanBeforeIsReported(t *testing.T) {
	k := startKernel(t, "tcp")
	first := observe(t, k)
	id := k.run(t, "import time; time.sleep(3); 1 / 0", false)
	next(t, first, CellStarted, id)
	late := observe(t, k)
	if e := next(t, late, CellEnded, id); !e.Unseen || e.Subshell || e.Outcome != "error: ZeroDivisionError" {
		t.Errorf("%+v, want its outcome, and that its start was not seen", e)
	}
	if e := next(t, first, CellEnded, id); e.Unseen {
		t.Errorf("%+v, whose start was seen", e)
	}
}

func TestAnObserverSendsNoRequest(t *testing.T) {
	k := startKernel(t, "tcp")
	file := filepath.Join(t.TempDir(), "seen")
	k.run(t, `
import random, ipykernel.kernelbase as base
random.seed(0)
state, received, set_parent = random.getstate(), [], base.Kernel.set_parent
def note(self, ident, parent, *rest, **named):
    received.append(parent["header"]["msg_type"])
    return set_parent(self, ident, parent, *rest, **named)
base.Kernel.set_parent = note`, false)
	early, late := observe(t, k), observe(t, k)
	last := k.run(t, fmt.Sprintf("open(%q, 'w').write(f'{received} {random.getstate() == state}')", file), false)
	next(t, early, CellEnded, last)
	next(t, late, CellEnded, last)
	if seen, err := os.ReadFile(file); err != nil || string(seen) != "['execute_request'] True" {
		t.Errorf("the kernel has seen %s, %v; want the test's own request only, and the state of random as it was", seen, err)
	}
}
