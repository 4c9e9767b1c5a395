package diagnose

import (
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// recorded are the stacks of a recording whose files cannot be read.
func recorded(rec *timeline.Recording) *stacks { return newStacks(rec, NewSource(rec, nil)) }

func TestClassify(t *testing.T) {
	const site = "/v/lib/python3.12/site-packages/"
	cell := "for batch in loader:\n    loss.item()\n    x.to('cuda')\n    torch.save(m, f)\n    time.sleep(1)\n    y = f(x)"
	s := recorded(&timeline.Recording{
		Target:    timeline.Target{Cell: &timeline.Cell{File: cellFile, Text: cell}},
		Processes: []timeline.Process{{PID: 2, Role: "worker"}},
	})
	s.device = true
	at := func(l int, below ...timeline.Frame) []timeline.Frame {
		return append(below, timeline.Frame{Function: "<module>", File: cellFile, Line: l}, timeline.Frame{Function: "run_code", File: site + "IPython/core/interactiveshell.py", Line: 9})
	}
	lib := func(file, function string) timeline.Frame {
		return timeline.Frame{File: file, Function: function, Line: 1}
	}
	for _, c := range []struct {
		name   string
		frames []timeline.Frame
		state  timeline.State
		cause  Cause
		line   int
	}{
		{"loader in the main thread", at(1, lib(site+"torch/utils/data/dataloader.py", "_SingleProcessDataLoaderIter._next_data")), timeline.StatePython, DataLoading, 1},
		{"own dataset inside the loader", append([]timeline.Frame{{Function: "D.__getitem__", File: cellFile, Line: 6}}, at(1, lib(site+"torch/utils/data/_utils/fetch.py", "fetch"))...), timeline.StatePython, DataLoading, 6},
		{"own loader function, sleeping", append([]timeline.Frame{{Function: "load_batch", File: cellFile, Line: 5}}, at(1)...), timeline.StateWaiting, DataLoading, 5},
		{"own function that only sounds like one", append([]timeline.Frame{{Function: "payload_batches", File: cellFile, Line: 5}}, at(1)...), timeline.StateWaiting, Waiting, 5},
		{"a library's function of that name", at(6, lib(site+"some/cache.py", "get_item")), timeline.StatePython, PythonCPU, 6},
		{"waiting for workers", at(1, lib("/usr/lib/python3.12/multiprocessing/queues.py", "Queue.get")), timeline.StateWaiting, DataLoading, 1},
		{".item() in the cell", at(2), timeline.StateNative, Transfer, 2},
		{".item() text, but deeper in a library", at(2, lib(site+"numpy/core/fromnumeric.py", "sum")), timeline.StatePython, PythonCPU, 2},
		{"synchronize in Python", at(6, lib(site+"simulated_gpu.py", "SimulatedGPU.synchronize")), timeline.StateWaiting, Transfer, 6},
		{"copy", at(3), timeline.StateNative, Transfer, 3},
		{"checkpoint by text", at(4), timeline.StateIO, Checkpoint, 4},
		{"checkpoint by frame", at(6, lib(site+"torch/serialization.py", "_save")), timeline.StateNative, Checkpoint, 6},
		{"compiling", at(6, lib(site+"torch/_dynamo/convert_frame.py", "_compile")), timeline.StatePython, Compilation, 6},
		{"running what was compiled", at(6, lib(site+"torch/_dynamo/eval_frame.py", "_fn")), timeline.StatePython, PythonCPU, 6},
		{"collective", at(6, lib(site+"torch/distributed/distributed_c10d.py", "all_reduce")), timeline.StateWaiting, Communicate, 6},
		{"sleep", at(5), timeline.StateWaiting, Waiting, 5},
		{"download", at(6, lib("/usr/lib/python3.12/ssl.py", "SSLSocket.read")), timeline.StateWaiting, InputOutput, 6},
		{"GIL before all else", at(1, lib(site+"torch/utils/data/dataloader.py", "_SingleProcessDataLoaderIter._next_data")), timeline.StateGIL, GILWait, 1},
		{"preempted", at(6), timeline.StateOff, NoCPU, 6},
		{"no frames", nil, timeline.StateNative, UnknownCause, 0},
	} {
		cause, _, where := s.classify(c.frames, c.state)
		if cause != c.cause || where.number != c.line {
			t.Errorf("%s: %q in line %d, want %q in line %d", c.name, cause, where.number, c.cause, c.line)
		}
	}
}

func TestNoTransferWithoutDevice(t *testing.T) {
	s := scene{acts: []act{{sec, 1, "", "", timeline.StatePython, 0}, {100 * ms, 2, "", "", timeline.StatePython, 0}}, times: 3, cell: "rows = table.tolist()\nprint(rows[0])"}
	if got := ids(Run(s.record()).Findings); len(got) != 1 || got[0] != "one-line" {
		t.Errorf("findings %v of a program that makes lists, want that one line stands out", got)
	}
}

func TestPlaceNamesOtherCells(t *testing.T) {
	s := recorded(&timeline.Recording{
		Target:  timeline.Target{Cell: &timeline.Cell{File: cellFile, ExecutionCount: 7, Text: "f()"}},
		Sources: []timeline.Source{{File: "/tmp/other.py", ExecutionCount: 3, Text: "def f():\n    pass"}},
	})
	for at, want := range map[line]string{{cellFile, 1}: "line 1", {"/tmp/other.py", 2}: "Cell [3]:2"} {
		if got := s.place(at); got != want {
			t.Errorf("place %q, want %q", got, want)
		}
	}
}

func TestARestingEventLoopIsNoSleep(t *testing.T) {
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	main := b.Thread(timeline.Thread{PID: 1, NativeID: 1, Main: true, RunsCell: true})
	loop := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "BaseEventLoop._run_once", File: "/usr/lib/python3.12/asyncio/base_events.py", Line: 1948}))
	rest := b.Child(loop, b.Frame(timeline.Frame{Function: "EpollSelector.select", File: "/usr/lib/python3.12/selectors.py", Line: 468}))
	b.Set(main, 0, rest, timeline.StateWaiting, false)
	rec := b.Snapshot(3 * sec)
	found := Run(rec).Findings
	if len(found) == 0 || !strings.Contains(found[0].Text, "event loop") || found[0].Hint != hintAwait {
		t.Errorf("findings %+v of a program that awaits", found)
	}
}

func TestChargedLineOfAScript(t *testing.T) {
	s := recorded(&timeline.Recording{})
	frames := []timeline.Frame{
		{Function: "wait", File: "/usr/lib/python3.12/threading.py", Line: 300},
		{Function: "load", File: "/home/u/project/data.py", Line: 12},
		{Function: "main", File: "/home/u/project/train.py", Line: 40},
	}
	if at := s.charged(frames); at.file != "/home/u/project/data.py" || at.number != 12 {
		t.Errorf("charged to %+v, want data.py:12", at)
	}
	if at := s.charged(frames[:1]); at.number != 300 {
		t.Errorf("library code alone is charged to %+v, want its leaf", at)
	}
}
