package jupyter

import (
	"context"
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
	wait, stop := context.WithTimeout(ctx, patience)
	defer stop()
	if err := o.Ready(wait); err != nil {
		t.Fatal(err)
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
			out, ok := o.Output(id)
			if !ok || out.Messages < 2 || out.Bytes < 1000 || out.AtLeast {
				t.Errorf("output %+v, %v; want a stream of 1,000 bytes and a result, exactly", out, ok)
			}

			id = k.run(t, "raise KeyError('k')", false)
			if got := next(t, o, CellEnded, id).Outcome; got != "error: KeyError" {
				t.Errorf("outcome of a raising cell is %q, want error: KeyError", got)
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
		t.Errorf("3,000 displays are told as exactly %d messages; IOPub may have dropped some", out.Messages)
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
