package activity

import (
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// stacksOf are the stacks of a recording whose files cannot be read, and a node for
// each list of frames, leaf first.
func stacksOf(rec *timeline.Recording, lists ...[]timeline.Frame) (*Stacks, [][]timeline.FrameID) {
	var all [][]timeline.FrameID
	for _, frames := range lists {
		var stack []timeline.FrameID
		for _, f := range frames {
			stack = append(stack, timeline.FrameID(len(rec.Frames)))
			rec.Frames = append(rec.Frames, f)
		}
		all = append(all, stack)
	}
	return NewStacks(rec, NewSource(rec, nil)), all
}

func TestRulesFitTheirMask(t *testing.T) {
	if n := len(causeRules); n > 64 {
		t.Errorf("%d rules do not fit the 64 bits of frameFacts.rules", n)
	}
}

func TestClassify(t *testing.T) {
	const std = "/usr/lib/python3.12/"
	cell := "for batch in loader:\n    loss.item()\n    x.to('cuda')\n    torch.save(m, f)\n    time.sleep(1)\n    y = f(x)\n" +
		"name = input()\n    os.system('make')\n    rows = cursor.fetchall()\n    import pandas\n    await gather(a.get(u), a.get(v))\n" +
		"    select.select([s], [], [], 1)\n    frame = frame.select(names)\n    select([child.stdout], [], [])\n    cupy.cuda.runtime.deviceSynchronize()\n    fcntl.flock(f, fcntl.LOCK_EX)"
	at := func(l int, below ...timeline.Frame) []timeline.Frame {
		return append(below, timeline.Frame{Function: "<module>", File: cellFile, Line: l})
	}
	lib := func(file, function string) timeline.Frame {
		return timeline.Frame{File: file, Function: function, Line: 1}
	}
	awaited := func(frames []timeline.Frame) []timeline.Frame {
		for i := range frames {
			frames[i].Suspended = true
		}
		return append(frames, lib(std+"asyncio/base_events.py", "BaseEventLoop._run_once"))
	}
	around := func(phase timeline.Phase, frames ...timeline.Frame) []timeline.Frame {
		return append(frames, timeline.Frame{Phase: phase})
	}
	importlib := lib("<frozen importlib._bootstrap>", "_find_and_load")
	const python, native, waiting, io = timeline.StatePython, timeline.StateNative, timeline.StateWaiting, timeline.StateIO
	cases := []struct {
		name   string
		frames []timeline.Frame
		state  timeline.State
		gpu    Cause // where a GPU was used
		cpu    Cause // where none was; empty: the same
		line   int
	}{
		{"a cell of bash", at(2, lib(std+"threading.py", "Condition.wait"), lib(std+"concurrent/futures/_base.py", "Future.result"),
			lib(site+"IPython/core/magics/script.py", "ScriptMagics.shebang")), waiting, LoadWorker, Child, 2}, // beside workers of a loader a Future is theirs
		{"loader in the main thread", at(1, lib(site+"torch/utils/data/dataloader.py", inline)), python, LoadHere, "", 1},
		{"waiting for the loader's workers", at(1, lib(site+"torch/utils/data/dataloader.py", workers)), waiting, LoadWorker, "", 1},
		{"own dataset inside the loader", append([]timeline.Frame{{Function: "D.__getitem__", File: cellFile, Line: 6}}, at(1, lib(site+"torch/utils/data/_utils/fetch.py", "fetch"))...), python, Load, "", 6},
		{"own loader function, sleeping", append([]timeline.Frame{{Function: "load_batch", File: cellFile, Line: 5}}, at(1)...), waiting, Load, Sleep, 5},
		{"own function that only sounds like one", append([]timeline.Frame{{Function: "payload_batches", File: cellFile, Line: 5}}, at(1)...), waiting, Sleep, "", 5},
		{"a library's function of that name", at(6, lib(site+"some/cache.py", "get_item")), python, Python, "", 6},
		{"a pool is a data loader only where a GPU waits", at(1, lib(std+"multiprocessing/pool.py", "Pool.map")), waiting, LoadWorker, pool, 1},
		{"futures are no data loader", at(6, lib(std+"threading.py", "Condition.wait"), lib(std+"concurrent/futures/_base.py", "Future.result")), waiting, LoadWorker, pool, 6},
		{".item() in the cell", at(2), native, Sync, Native, 2},
		{".item() text, but deeper in a library", at(2, lib(site+"numpy/core/fromnumeric.py", "sum")), python, Python, "", 2},
		{"synchronize in Python", at(6, lib(site+"simulated_gpu.py", "SimulatedGPU.synchronize")), waiting, Sync, Waiting, 6},
		{"synchronizing in C", at(15), native, Sync, Native, 15},
		{"copy", at(3), native, Copy, Native, 3},
		{"a launch", at(6, lib(torchModule, "Module._call_impl")), python, Launch, Python, 6},
		{"a thread of autograd's launches", at(6, lib(site+"torch/autograd/graph.py", "_engine_run_backward")), waiting, Launch, Waiting, 6},
		{"checkpoint by text", at(4), io, Checkpoint, InOut, 4},
		{"checkpoint by frame", at(6, lib(site+"torch/serialization.py", "_save")), native, Checkpoint, "", 6},
		{"compiling", at(6, lib(dynamo, "_compile")), python, Compile, "", 6},
		{"running what was compiled", at(6, lib(site+"torch/_dynamo/eval_frame.py", "_fn")), python, Python, "", 6},
		{"collective", at(6, lib(c10d, "all_reduce")), waiting, Collective, "", 6},
		{"sleep", at(5), waiting, Sleep, "", 5},
		{"download", at(6, lib(std+"ssl.py", "SSLSocket.read")), waiting, Network, "", 6},
		{"computing in a client library", at(6, lib(site+"requests/models.py", "Response.json")), python, Python, "", 6},
		{"a query", at(6, lib(std+"socket.py", "recv"), lib(site+"pymysql/connections.py", "_read")), waiting, Database, "", 6},
		{"a query in C", at(9), waiting, Database, "", 9},
		{"the density of a picture", at(6, lib(site+"scipy/stats/_kde.py", "gaussian_kde.evaluate"), lib(site+"seaborn/_statistics.py", "KDE.__call__"), lib(site+"seaborn/distributions.py", "kdeplot")), native, Native, "", 6},
		{"the picture of a statistic", at(6, lib(site+"matplotlib/axes/_axes.py", "Axes.plot"), lib(site+"scipy/stats/_morestats.py", "probplot")), native, Draw, "", 6},
		{"its bins in Python", at(6, lib(site+"numpy/lib/_histograms_impl.py", "histogram"), lib(site+"matplotlib/axes/_axes.py", "Axes.hist")), python, Python, "", 6},
		{"drawing", at(6, lib(site+"PIL/ImageFile.py", "_save"), lib(site+"matplotlib/figure.py", "Figure.savefig")), native, Draw, "", 6},
		{"decoding a picture is no data loading by itself", at(6, lib(site+"PIL/Image.py", "open")), python, Python, "", 6},
		{"input in a notebook", at(7, lib(site+"ipykernel/kernelbase.py", "Kernel._input_request")), waiting, UserInput, "", 7},
		{"input in a terminal", at(7), io, UserInput, "", 7},
		{"select on a socket", at(12), waiting, Network, "", 12},
		{"columns that are selected", at(13), waiting, Waiting, "", 13},
		{"select on a pipe", at(14), waiting, Waiting, "", 14},
		{"what a coroutine awaits", awaited(at(6)), waiting, EventLoop, "", 6},
		{"requests that are gathered", awaited(at(11)), waiting, EventLoop, "", 11},
		{"a coroutine that sleeps", awaited(at(6, lib(std+"asyncio/tasks.py", "sleep"))), waiting, Sleep, "", 6},
		{"a coroutine's request", awaited(at(6, lib(site+"aiohttp/client.py", "ClientSession._request"))), waiting, Network, "", 6},
		{"a coroutine's child process", awaited(at(6, lib(std+"asyncio/subprocess.py", "Process.wait"))), waiting, Child, "", 6},
		{"subprocess", at(6, lib(std+"selectors.py", "PollSelector.select"), lib(std+"subprocess.py", "Popen.communicate")), waiting, Child, "", 6},
		{"os.system", at(8), waiting, Child, "", 8},
		{"join", at(6, lib(std+"threading.py", "Thread._wait_for_tstate_lock"), lib(std+"threading.py", "Thread.join")), waiting, Thread, "", 6},
		{"a server that is to end", at(6, lib(std+"threading.py", "Event.wait"), lib(std+"socketserver.py", "BaseServer.shutdown")), waiting, Thread, "", 6},
		{"a lock", at(6, lib(std+"threading.py", "Condition.wait")), waiting, Lock, "", 6},
		{"the lock of a file", at(16), waiting, Lock, "", 16},
		{"an event loop at rest", []timeline.Frame{lib(std+"selectors.py", "EpollSelector.select")}, waiting, EventLoop, "", 0},
		{"formatting a traceback", around(timeline.PhaseTraceback, lib(std+"traceback.py", "format_exception")), python, Around, "", 0},
		{"displaying a value", around(timeline.PhaseDisplay, lib(site+"pandas/io/formats/html.py", "render")), python, Display, "", 0},
		{"drawing after the last line", around(timeline.PhaseFigures, lib(site+"matplotlib/figure.py", "Figure.draw")), python, Draw, "", 0},

		{"an import", at(10, lib("<frozen importlib._bootstrap_external>", "get_data"), importlib), python, Import, "", 10},
		{"a module's own code while it is imported", at(10, lib(site+"pandas/__init__.py", "<module>"), importlib), python, Import, "", 10},
		{"importing a loader is no data loading", at(10, lib(site+"torch/utils/data/dataset.py", "<module>"), importlib), io, Import, "", 10},
		{"importing a compiler is no compilation", at(6, lib(site+"torch/_dynamo/convert_frame.py", "<module>"), importlib, lib(site+"torch/optim/optimizer.py", "Optimizer.step")), python, Import, "", 6},
		{"what an imported module computes", at(10, lib(site+"torch/nn/functional.py", "linear"), lib(site+"pkg/__init__.py", "<module>"), importlib), native, Import, "", 10},
		{"own code of a module being imported", at(10, timeline.Frame{Function: "<module>", File: "/home/u/mine.py", Line: 1}, importlib), python, Python, "", 1},

		{"GIL before all else", at(1, lib(site+"torch/utils/data/dataloader.py", inline)), timeline.StateGIL, GIL, "", 1},
		{"preempted", at(6), timeline.StateOff, NoCPU, "", 6},
		{"no frames", nil, native, Unknown, "", 0},
	}
	for _, device := range []bool{true, false} {
		rec := &timeline.Recording{
			Target:    timeline.Target{Cell: &timeline.Cell{File: cellFile, Text: cell}},
			Processes: []timeline.Process{{PID: 2, Role: "worker"}},
		}
		var lists [][]timeline.Frame
		for _, c := range cases {
			lists = append(lists, c.frames)
		}
		s, all := stacksOf(rec, lists...)
		s.UsesGPU = device
		for i, c := range cases {
			want := c.gpu
			if !device && c.cpu != "" {
				want = c.cpu
			}
			if cause, where := s.classify(all[i], c.state, 0); cause != want || where.Line != c.line {
				t.Errorf("%s, GPU used %v: %q in line %d, want %q in line %d", c.name, device, cause, where.Line, want, c.line)
			}
		}
	}
}

// An import that has to wait for a CPU is an import, unless the program itself keeps the CPUs busy.
func TestWhatAThreadThatIsHeldUpWouldDo(t *testing.T) {
	cell := timeline.Frame{Function: "<module>", File: cellFile, Line: 1}
	module := timeline.Frame{Function: "<module>", File: "/x/site-packages/pandas/__init__.py", Line: 1}
	importlib := timeline.Frame{Function: "_find_and_load", File: "<frozen importlib._bootstrap>", Line: 1}
	importing := []timeline.Frame{module, importlib, cell}
	drawing := []timeline.Frame{{Function: "Figure.draw", File: "/x/site-packages/matplotlib/figure.py", Line: 1}, {Phase: timeline.PhaseFigures}}
	for _, c := range []struct {
		name   string
		frames []timeline.Frame
		others bool
		want   Cause
	}{
		{"an import, others have the CPUs", importing, true, Import},
		{"an import, the program has them", importing, false, NoCPU},
		{"a drawing, others have the CPUs", drawing, true, Draw},
		{"a drawing, the program has them", drawing, false, NoCPU},
		{"a line that computes", []timeline.Frame{cell}, true, NoCPU},
	} {
		s, all := stacksOf(&timeline.Recording{Target: timeline.Target{Cell: &timeline.Cell{File: cellFile, Text: "import pandas"}}}, c.frames)
		s.OthersTakeCPUs = c.others
		if cause, _ := s.classify(all[0], timeline.StateOff, 0); cause != c.want {
			t.Errorf("%s: %q, want %q", c.name, cause, c.want)
		}
	}
}

func TestEveryCauseHasAKind(t *testing.T) {
	seen := make(map[Cause]bool)
	for _, c := range Causes() {
		if seen[c] {
			t.Errorf("%s is listed twice", c)
		}
		seen[c] = true
		if c.Kind() == NotKnown && c != Unknown {
			t.Errorf("%s has no kind", c)
		}
	}
	for i := range causeRules {
		if c := causeRules[i].cause; c != pool && c != serve && !seen[c] {
			t.Errorf("rule %d finds %q, which is not listed", i, c)
		}
	}
}

func TestChargedPlaceOfAScript(t *testing.T) {
	frames := []timeline.Frame{
		{Function: "wait", File: "/usr/lib/python3.12/threading.py", Line: 300},
		{Function: "load", File: "/home/u/project/data.py", Line: 12},
		{Function: "main", File: "/home/u/project/train.py", Line: 40},
	}
	s, all := stacksOf(&timeline.Recording{}, frames, frames[:1])
	if at, want := s.Charged(all[0]), (Place{"/home/u/project/data.py", 12}); at != want {
		t.Errorf("charged to %+v, want %+v", at, want)
	}
	if at := s.Charged(all[1]); at.Line != 300 {
		t.Errorf("library code alone is charged to %+v, want its leaf", at)
	}
}

// The system call that a thread waits in is the cause where nothing else is known.
func TestWaitsByTheirSystemCall(t *testing.T) {
	s, all := stacksOf(&timeline.Recording{}, []timeline.Frame{{Function: "main", File: scriptFile, Line: 7}},
		[]timeline.Frame{{Function: "get", File: site + "requests/api.py", Line: 1}, {Function: "main", File: scriptFile, Line: 7}})
	for _, c := range []struct {
		stack int
		state timeline.State
		wait  timeline.Wait
		want  Cause
	}{
		{0, timeline.StateWaiting, timeline.WaitSleep, Sleep}, {0, timeline.StateWaiting, timeline.WaitLock, Lock}, {0, timeline.StateWaiting, timeline.WaitChild, Child},
		{0, timeline.StateIO, timeline.WaitSocket, Network}, {0, timeline.StateIO, timeline.WaitFile, InOut}, {0, timeline.StateWaiting, timeline.WaitPoll, Waiting},
		{0, timeline.StatePython, timeline.WaitSleep, Python}, {1, timeline.StateWaiting, timeline.WaitPoll, Network}, {0, timeline.StateWaiting, 99, Waiting},
	} {
		if got, _ := s.classify(all[c.stack], c.state, c.wait); got != c.want {
			t.Errorf("%v in %d: %q, want %q", c.state, c.wait, got, c.want)
		}
	}
}

// A line that synchronises and then sleeps is charged with what it does.
func TestASleepBesideASynchronisationIsASleep(t *testing.T) {
	rec := &timeline.Recording{Target: timeline.Target{Cell: &timeline.Cell{File: cellFile, Text: "g.synchronize(); time.sleep(.6)\ng.synchronize()"}}}
	s, stacks := stacksOf(rec, []timeline.Frame{{Function: "<module>", File: cellFile, Line: 1}}, []timeline.Frame{{Function: "<module>", File: cellFile, Line: 2}})
	s.UsesGPU = true
	for _, c := range []struct {
		stack int
		wait  timeline.Wait
		want  Cause
	}{{0, timeline.WaitSleep, Sleep}, {0, timeline.WaitLock, Sync}, {1, timeline.WaitSleep, Sync}, {1, timeline.WaitPoll, Sync}} {
		if got, _ := s.classify(stacks[c.stack], timeline.StateWaiting, c.wait); got != c.want {
			t.Errorf("line %d in wait %d: %q, want %q", c.stack+1, c.wait, got, c.want)
		}
	}
}
