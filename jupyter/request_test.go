package jupyter

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestTheLastInputIsToldWhileItRuns(t *testing.T) {
	k := startKernel(t, "tcp")
	o := observe(t, k)
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	if in, err := o.LastInput(ctx); !errors.Is(err, errNoInput) {
		t.Errorf("before any cell: %+v, %v", in, err)
	}
	const code = "import time\ntime.sleep(600)  # für immer"
	id := k.run(t, code, false)
	next(t, o, CellStarted, id)
	if in, err := o.LastInput(ctx); err != nil || in != (Input{1, code}) {
		t.Errorf("%+v, %v; want the cell that runs", in, err)
	}
}

func TestTheShellAnswersBetweenCellsOnly(t *testing.T) {
	k := startKernel(t, "tcp")
	o := observe(t, k)
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	if err := o.AwaitShell(ctx); err != nil {
		t.Errorf("an idle kernel: %v", err)
	}
	id := k.run(t, "import asyncio; await asyncio.sleep(1.5)", false)
	next(t, o, CellStarted, id)
	soon, stop := context.WithTimeout(ctx, 300*time.Millisecond)
	defer stop()
	if err := o.AwaitShell(soon); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while a cell awaits: %v", err)
	}
	if err := o.AwaitShell(ctx); err != nil {
		t.Errorf("after it: %v", err)
	}
	next(t, o, CellEnded, id)
}

// Of a cell that ran before the observer came only the end is seen.
func TestTheEndOfACellThatRanBeforeIsTold(t *testing.T) {
	k := startKernel(t, "tcp")
	first := observe(t, k)
	id := k.run(t, "import time; time.sleep(2); 1 / 0", false)
	next(t, first, CellStarted, id)
	late := observe(t, k)
	if e := next(t, late, CellEnded, id); !e.Unseen || e.Subshell || e.Outcome != "error: ZeroDivisionError" {
		t.Errorf("%+v, want its outcome, and that its start was not seen", e)
	}
	if e := next(t, first, CellEnded, id); e.Unseen {
		t.Errorf("%+v, whose start was seen", e)
	}
}

func FuzzParseHistory(f *testing.F) {
	f.Add([]byte(`{"status": "ok", "history": [[0, 3, "x = 1"]]}`))
	f.Add([]byte(`{"history": [[0, 3, ["in", "out"]]]}`))
	f.Add([]byte(`{"history": [[], null, [1]]}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		if in, err := parseHistory(content); err == nil && in.ExecutionCount < 1 {
			t.Errorf("%q was read as cell %d", content, in.ExecutionCount)
		}
	})
}
