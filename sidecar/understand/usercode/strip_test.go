package usercode

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

const (
	second   = timeline.Nanos(1e9)
	site     = "/v/lib/python3.12/site-packages/"
	stdlib   = "/usr/lib/python3.12/"
	shell    = site + "IPython/core/interactiveshell.py"
	cellFile = "/tmp/ipykernel_1/222.py"
)

func frame(function, file string, line int) timeline.Frame {
	return timeline.Frame{Function: function, File: file, Line: line, FirstLine: 1}
}

// What is above a cell, as ipykernel 7 and IPython 9 have it.
var (
	loop = []timeline.Frame{
		frame("_run_module_as_main", "<frozen runpy>", 198),
		frame("<module>", site+"ipykernel_launcher.py", 18),
		frame("Application.launch_instance", site+"traitlets/config/application.py", 1080),
		frame("BaseAsyncIOLoop.start", site+"tornado/platform/asyncio.py", 203),
		frame("BaseEventLoop.run_forever", stdlib+"asyncio/base_events.py", 638),
		frame("BaseEventLoop._run_once", stdlib+"asyncio/base_events.py", 1971),
		frame("Handle._run", stdlib+"asyncio/events.py", 84),
	}
	runCell = []timeline.Frame{
		frame("IPythonKernel.do_execute", site+"ipykernel/ipkernel.py", 460),
		frame("ZMQInteractiveShell.run_cell", site+"ipykernel/zmqshell.py", 686),
		frame("InteractiveShell.run_cell", shell, 3248),
	}
	runCode = []timeline.Frame{
		frame("_pseudo_sync_runner", site+"IPython/core/async_helpers.py", 140),
		frame("InteractiveShell.run_cell_async", shell, 3518),
		frame("InteractiveShell.run_ast_nodes", shell, 3762),
		frame("InteractiveShell.run_code", shell, 3823),
	}
	cellMagic   = frame("InteractiveShell.run_cell_magic", shell, 2644)
	lineMagic   = frame("InteractiveShell.run_line_magic", shell, 2583)
	timeMagic   = frame("ExecutionMagics.time", site+"IPython/core/magics/execution.py", 1426)
	displayHook = []timeline.Frame{
		frame("DisplayHook.__call__", site+"IPython/core/displayhook.py", 283),
		frame("DisplayFormatter.format", site+"IPython/core/formatters.py", 243),
		frame("RepresentationPrinter.pretty", site+"IPython/lib/pretty.py", 414),
	}
	trigger = frame("EventManager.trigger", site+"IPython/core/events.py", 101)
	ours_   = frame("Session.begun", site+"omni_perf/session.py", 339)
	sleep   = frame("wait", stdlib+"threading.py", 355)
)

func stack(parts ...any) []timeline.Frame {
	var out []timeline.Frame
	for _, part := range parts {
		switch part := part.(type) {
		case timeline.Frame:
			out = append(out, part)
		case []timeline.Frame:
			out = append(out, part...)
		}
	}
	return out
}

func inCell(parts ...any) []timeline.Frame { return stack(loop, runCell, runCode, stack(parts...)) }

func cell(line int) timeline.Frame { return frame("<module>", cellFile, line) }

// record makes a recording of a cell whose thread had each stack for a second.
func record(text string, stacks ...[]timeline.Frame) *timeline.Recording {
	b := timeline.NewBuilder(timeline.Options{Origin: 1, StartedAt: time.Unix(0, 0)})
	main := b.Thread(timeline.Thread{PID: 1, NativeID: 1, Name: "MainThread", Main: true, RunsCell: true})
	for i, s := range stacks {
		b.Set(main, timeline.Nanos(i)*second, node(b, s), timeline.StatePython, false)
	}
	rec := b.Snapshot(timeline.Nanos(len(stacks)) * second)
	rec.Target = timeline.Target{PID: 1, Cell: &timeline.Cell{ExecutionCount: 7, File: cellFile, Text: text}}
	rec.Sources = []timeline.Source{{File: cellFile, ExecutionCount: 7, Text: text}}
	return rec
}

func node(b *timeline.Builder, s []timeline.Frame) timeline.NodeID {
	n := timeline.RootNode
	for _, f := range s {
		n = b.Child(n, b.Frame(f))
	}
	return n
}

// history is a thread's history: each stack from its root on, "file:line function".
func history(rec *timeline.Recording, thread int) []string {
	var out []string
	for _, span := range rec.Threads[thread].Spans {
		var names []string
		for n := span.Node; n != timeline.RootNode; n = rec.Nodes[n].Parent {
			f := rec.Frames[rec.Nodes[n].Frame]
			name := fmt.Sprintf("%s:%d %s", f.File[strings.LastIndexByte(f.File, '/')+1:], f.Line, f.Function)
			if f.Phase != timeline.PhaseNone {
				name = f.Phase.String()
			}
			names = append([]string{name}, names...)
		}
		out = append(out, fmt.Sprintf("%gs %s", (span.End-span.Start).Seconds(), strings.Join(names, " > ")))
	}
	return out
}

func TestStacks(t *testing.T) {
	helper := frame("load", "/home/u/helpers.py", 4)
	library := frame("DataFrame.sum", site+"pandas/core/frame.py", 100)
	for _, c := range []struct {
		name, text string
		stack      []timeline.Frame
		want       string
	}{
		{"a cell", "x = 1\nload()", inCell(cell(2), helper), "222.py:2 <module> > helpers.py:4 load"},
		{"a library below a cell", "x.sum()", inCell(cell(1), library), "222.py:1 <module> > frame.py:100 DataFrame.sum"},
		{"an awaiting cell's task", "await x", stack(loop, frame("fetch", cellFile, 1)), "222.py:1 fetch"},
		{"the event loop at rest", "await x", stack(loop[:6], frame("EpollSelector.select", stdlib+"selectors.py", 468)), "selectors.py:468 EpollSelector.select"},
		{"a thread of a subshell", "x\ny", stack(frame("Thread._bootstrap", stdlib+"threading.py", 1030), frame("SubshellThread.run", site+"ipykernel/subshell.py", 30), loop[4:], runCell, runCode, cell(2)), "222.py:2 <module>"},
		{"compiling", "x", inCell(), "prepare"},
		{"parsing", "x", stack(loop, runCell, runCode[:2], frame("parse", stdlib+"ast.py", 50)), "prepare > ast.py:50 parse"},
		{"the display of the last value", "1\ndf", inCell(cell(2), displayHook, frame("DataFrame._repr_html_", site+"pandas/core/frame.py", 1100)), "display > frame.py:1100 DataFrame._repr_html_"},
		{"a repr of the user's own", "A()", inCell(cell(1), displayHook, frame("A.__repr__", "/home/u/a.py", 3)), "display > a.py:3 A.__repr__"},
		{"display() on a line", "display(A())", inCell(cell(1), frame("display", site+"IPython/core/display_functions.py", 277), frame("A.__repr__", "/home/u/a.py", 3)), "222.py:1 <module> > a.py:3 A.__repr__"},
		{"a traceback", "1/0", inCell(frame("InteractiveShell.showtraceback", shell, 2279), frame("getlines", stdlib+"linecache.py", 40)), "traceback > linecache.py:40 getlines"},
		{"a traceback by a printer of somebody else's", "1/0", inCell(frame("install.<locals>.ipy_show_traceback", site+"rich/traceback.py", 170), frame("Console.print", site+"rich/console.py", 1700)), "traceback > traceback.py:170 install.<locals>.ipy_show_traceback > console.py:1700 Console.print"},
		{"a traceback by a printer of the user's own", "1/0", inCell(frame("InteractiveShell.set_custom_exc.<locals>.wrapped", shell, 1990), helper, frame("InteractiveShell.showtraceback", shell, 2279)), "traceback > helpers.py:4 load > interactiveshell.py:2279 InteractiveShell.showtraceback"},
		{"the traceback of a script by %run", "%run bad.py", inCell(cell(1), lineMagic, frame("InteractiveShell.safe_execfile", shell, 3045), frame("InteractiveShell.showtraceback", shell, 2279), frame("getlines", stdlib+"linecache.py", 40)), "traceback > linecache.py:40 getlines"},
		{"the traceback of the body of a magic", "%%capture\n1/0", inCell(cell(1), cellMagic, runCell[1:], runCode, frame("install.<locals>.ipy_show_traceback", site+"rich/traceback.py", 170)), "traceback > traceback.py:170 install.<locals>.ipy_show_traceback"},
		{"figures drawn after the cell", "plt.plot()", stack(loop, runCell, trigger, frame("flush_figures", site+"matplotlib_inline/backend_inline.py", 200), frame("Figure.savefig", site+"matplotlib/figure.py", 10)), "figures > figure.py:10 Figure.savefig"},
		{"figures drawn before they are shown", "plt.plot()", stack(loop, runCell, trigger, frame("_draw_all_if_interactive", site+"matplotlib/pyplot.py", 1), frame("FigureCanvasAgg.draw", site+"matplotlib/backends/backend_agg.py", 10)), "figures > pyplot.py:1 _draw_all_if_interactive > backend_agg.py:10 FigureCanvasAgg.draw"},
		{"another callback", "x", stack(loop, runCell, trigger, helper), "callbacks > helpers.py:4 load"},
		{"our extension before the cell", "x", stack(loop, runCell, runCode[:2], trigger, ours_, sleep), ""},
		{"step() in the cell", "x = 1\nomni_perf.step()", inCell(cell(2), ours_, sleep), "222.py:2 <module>"},
		{"step() in a function", "load()", inCell(cell(1), helper, ours_, frame("dumps", stdlib+"json/__init__.py", 180), frame("JSONEncoder.encode", stdlib+"json/encoder.py", 200)), "222.py:1 <module> > helpers.py:4 load"},
		{"our extension writes torch.profiler's trace at the end of a step", "train()", inCell(cell(1), helper, frame("SGD.step", site+"torch/optim/sgd.py", 80), ours_,
			frame("TorchProfile._run_profiler", site+"omni_perf/torchprofile.py", 190), frame("profile.stop_trace", site+"torch/profiler/profiler.py", 620)), "torch-trace"},
		{"a function that it then calls", "train()", inCell(cell(1), ours_, frame("TorchProfile._run_profiler", site+"omni_perf/torchprofile.py", 190), helper), "torch-trace > helpers.py:4 load"},
		{"a task of an engine, in a library", "", stack(frame("Worker.main_loop", site+"ray/_private/worker.py", 1059), frame("run_task", site+"omni_perf/engines/rayworker.py", 220), library),
			"worker.py:1059 Worker.main_loop > rayworker.py:220 run_task > frame.py:100 DataFrame.sum"},
		{"our loader calls torch's own, and then what is ours", "import torch", inCell(cell(1), frame("AfterImport._after.<locals>.exec_module", site+"omni_perf/torchwatch.py", 50), library), "222.py:1 <module> > frame.py:100 DataFrame.sum"},
		{"what is ours behind it", "x = 1\nimport torch", inCell(cell(2), frame("AfterImport._after.<locals>.exec_module", site+"omni_perf/torchwatch.py", 52), ours_, sleep), "222.py:2 <module>"},
		{"a function that our extension was given", "load()", inCell(cell(1), ours_, sleep, helper, library), "222.py:1 <module> > helpers.py:4 load > frame.py:100 DataFrame.sum"},
		{"%%time", "%%omni_perf\n%%time\n\nx = 1\ny = 2", inCell(cell(1), cellMagic, timeMagic, frame("<module>", "<timed exec>", 2)), "222.py:5 <module>"},
		{"%%time of one expression", "%%omni_perf\n%%time\nf()", inCell(cell(1), cellMagic, timeMagic, frame("<module>", "<timed eval>", 1), helper), "222.py:3 <module> > helpers.py:4 load"},
		{"%%time's own work", "%%omni_perf\n%%time\nf()", inCell(cell(1), cellMagic, timeMagic), "222.py:2 <module> > interactiveshell.py:2644 InteractiveShell.run_cell_magic > execution.py:1426 ExecutionMagics.time"},
		{"a function defined under %%time", "%%time\ndef f():\n    g()\nf()", inCell(cell(1), cellMagic, timeMagic, frame("<module>", "<timed exec>", 3), timeline.Frame{Function: "f", File: "<timed exec>", Line: 2, FirstLine: 1}), "222.py:4 <module> > 222.py:3 f"},
		{"our magic below %%time", "%%time\n%%omni_perf\nx = 1\ny = 2", inCell(cell(1), cellMagic, timeMagic, frame("<module>", "<timed exec>", 3)), "222.py:4 <module>"},
		{"%%timeit", "%%omni_perf\n%%timeit -n 3\nx = 1\ny = 2", inCell(cell(1), cellMagic, frame("ExecutionMagics.timeit", site+"IPython/core/magics/execution.py", 1239), frame("Timer.repeat", stdlib+"timeit.py", 208), frame("inner", "<magic-timeit>", 2)), "222.py:4 <module>"},
		{"the set-up of %%timeit", "%%omni_perf\n%%timeit -n 3 load()\nx = 1\ny = 2", inCell(cell(1), cellMagic, frame("ExecutionMagics.timeit", site+"IPython/core/magics/execution.py", 1239), frame("Timer.repeat", stdlib+"timeit.py", 208), frame("inner", "<magic-timeit>", 0), helper), "222.py:2 <module> > helpers.py:4 load"},
		{"%%prun", "%%omni_perf\n%%prun\nx = 1\ny = 2", inCell(cell(1), cellMagic, frame("ExecutionMagics._run_with_profiler", site+"IPython/core/magics/execution.py", 334), frame("Profile.runctx", stdlib+"cProfile.py", 102), frame("<module>", "<string>", 2)), "222.py:4 <module>"},
		{"%time on a line", "x = 1\n%time load()", inCell(cell(2), lineMagic, timeMagic, frame("<module>", "<timed eval>", 1), helper), "222.py:2 <module> > helpers.py:4 load"},
		{"%run", "%run helpers.py", inCell(cell(1), lineMagic, frame("InteractiveShell.safe_execfile", shell, 3045), frame("<module>", "/home/u/helpers.py", 9), helper), "222.py:1 <module> > helpers.py:9 <module> > helpers.py:4 load"},
		{"exec", "exec('load()')", inCell(cell(1), frame("<module>", "<string>", 1), helper), "222.py:1 <module> > <string>:1 <module> > helpers.py:4 load"},
		{"empty lines at the top", "\n\nx = 1\ny = 2", inCell(cell(2)), "222.py:4 <module>"},
	} {
		rec := record(c.text, inCell(cell(1)), c.stack, inCell(cell(1)))
		got := history(Strip(rec), 0)
		if want := strings.TrimRight("1s "+c.want, " "); len(got) != 3 || strings.TrimRight(got[1], " ") != want {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got[1:min(2, len(got))], want)
		}
	}
}

// What lets event loops run within one another is above the cells; ipykernel 7 brings nest_asyncio2.
func TestTheEventLoopsOfNestAsyncio(t *testing.T) {
	for _, name := range []string{"nest_asyncio", "nest_asyncio2"} {
		nested := stack(loop[:4], frame("run_forever", site+name+".py", 81), frame("_run_once", site+name+".py", 115), loop[6:], runCell)
		figures := stack(nested, trigger, frame("flush_figures", site+"matplotlib_inline/backend_inline.py", 200))
		rec := record("x = 1", stack(nested, runCode, cell(1)), figures, stack(nested, runCode, cell(1)),
			stack(nested, runCode, frame("InteractiveShell.showtraceback", shell, 2279)))
		if got, want := fmt.Sprintf("%q", history(Strip(rec), 0)), `["1s 222.py:1 <module>" "1s figures" "1s 222.py:1 <module>"]`; got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestTheBodyOfCaptureIsTheCells(t *testing.T) {
	text := "%%omni_perf\n%%capture out\nprint(1)\nx = 2"
	const body = "/tmp/ipykernel_1/333.py"
	capture := frame("ExecutionMagics.capture", site+"IPython/core/magics/execution.py", 1593)
	rec := record(text,
		inCell(cell(1), cellMagic, capture, runCell[1:], runCode, frame("<module>", body, 2)),
		inCell(cell(1), cellMagic, capture, runCell[1:], runCode, frame("<module>", body, 1), displayHook))
	rec.Sources = append(rec.Sources, timeline.Source{File: body, ExecutionCount: 7, Text: "print(1)\nx = 2\n", Nested: true})
	if got, want := fmt.Sprintf("%q", history(Strip(rec), 0)), `["1s 222.py:4 <module>" "1s display"]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAFunctionThatAnEarlierTimedCellDefined(t *testing.T) {
	rec := record("f()", inCell(cell(1), timeline.Frame{Function: "f", File: "<timed exec>", Line: 3, FirstLine: 2}))
	rec.Sources = append(rec.Sources,
		timeline.Source{File: "/tmp/ipykernel_1/1.py", ExecutionCount: 2, Text: "%%time\nx = 1\ndef f():\n    old()"},
		timeline.Source{File: "/tmp/ipykernel_1/2.py", ExecutionCount: 5, Text: "%%time\n# new\n@cache\ndef f():\n    new()"},
		timeline.Source{File: "/tmp/ipykernel_1/3.py", ExecutionCount: 6, Text: "%%time\nx = 1\ndef full():\n    other()"})
	if got, want := fmt.Sprintf("%q", history(Strip(rec), 0)), `["1s 222.py:1 <module> > 2.py:4 f"]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestCellsThatShareOneFile(t *testing.T) {
	rec := record("train()", inCell(cell(1), timeline.Frame{Function: "train", File: cellFile, Line: 2, FirstLine: 1}))
	rec.Sources = append(rec.Sources,
		timeline.Source{File: cellFile, ExecutionCount: 3, Text: "def train():\n    step()"},
		timeline.Source{File: cellFile, ExecutionCount: 4, Text: "def test():\n    step()"})
	out := Strip(rec)
	var files []string
	for _, s := range out.Sources {
		files = append(files, fmt.Sprintf("%d %s", s.ExecutionCount, s.File))
	}
	if got, want := fmt.Sprintf("%q", history(out, 0)), fmt.Sprintf("%q", []string{"1s 222.py#7:1 <module> > 222.py:2 train"}); got != want {
		t.Errorf("got %s, want %s of %v", got, want, files)
	}
	if out.Target.Cell.File != cellFile+"#7" {
		t.Errorf("the cell's file is %q", out.Target.Cell.File)
	}
}

func TestLinesAsTyped(t *testing.T) {
	rec := record("%time f(1, \\\n  2)\ng()", inCell(cell(2)))
	rec.Sources[0].Lines = []int{1, 3}
	if got, want := fmt.Sprintf("%q", history(Strip(rec), 0)), `["1s 222.py:3 <module>"]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The text of a cell that was met running need not be known.
func TestLinesOfACellWithoutText(t *testing.T) {
	rec := record("", inCell(cell(2)))
	if got, want := fmt.Sprintf("%q", history(Strip(rec), 0)), `["1s 222.py:2 <module>"]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestTheLineMagicsStatementBeginsItsStacks(t *testing.T) {
	outer := frame("<module>", "/tmp/ipykernel_1/111.py", 4)
	rec := record("load()",
		inCell(outer, lineMagic, ours_, sleep),
		inCell(outer, lineMagic, ours_, cell(1), frame("load", "/home/u/helpers.py", 4)),
		inCell(outer, lineMagic, ours_))
	rec.Sources = append(rec.Sources, timeline.Source{File: outer.File, ExecutionCount: 7, Text: "a\nb\nc\n%omni_perf load()"})
	if got, want := fmt.Sprintf("%q", history(Strip(rec), 0)), `["1s 222.py:1 <module> > helpers.py:4 load" "1s "]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestTheTimeOfATracebackIsNotTheCells(t *testing.T) {
	traceback := inCell(frame("InteractiveShell.showtraceback", shell, 2279))
	rec := record("f()",
		stack(loop, runCell, runCode[:2], trigger, ours_), // until Begin is answered
		inCell(cell(1)), inCell(cell(1)),
		traceback, traceback, stack(loop, runCell, trigger, frame("flush_figures", site+"matplotlib_inline/backend_inline.py", 200), frame("Figure.savefig", site+"matplotlib/figure.py", 10)))
	out := Strip(rec)
	if got, want := fmt.Sprintf("%v %q", out.Duration.Seconds(), history(out, 0)), `2 ["2s 222.py:1 <module>"]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	// So is that of a script by %run, where it is the last thing that the cell does.
	run := inCell(cell(1), lineMagic, frame("InteractiveShell.safe_execfile", shell, 3045))
	rec = record("%run bad.py", stack(run, frame("<module>", "/home/u/bad.py", 6)), stack(run, frame("InteractiveShell.showtraceback", shell, 2279)))
	if out := Strip(rec); out.Duration != second {
		t.Errorf("%v of 1 s are left", out.Duration.Seconds())
	}
	// The magic may have a little to do then; what another line does is the cell's.
	printed := stack(run, frame("InteractiveShell.showtraceback", shell, 2279))
	rec = record("%run bad.py\n%pip list", inCell(cell(1)), printed, stack(run[:len(run)-1]))
	if out := Strip(rec); out.Duration != second {
		t.Errorf("%v of 1 s are left", out.Duration.Seconds())
	}
	for _, then := range [][]timeline.Frame{inCell(cell(2), lineMagic), inCell(cell(2)), inCell(cell(1))} { // that for long
		rec = record("%run bad.py\n%pip list", inCell(cell(1)), printed, then, stack(run[:len(run)-1]))
		if out := Strip(rec); out.Duration != 4*second {
			t.Errorf("%v of 4 s are left", out.Duration.Seconds())
		}
	}
	// So may the line, for a moment.
	rec = record("%run bad.py", inCell(cell(1)), printed, inCell(cell(1)))
	rec.Duration = 2*second + brief/10
	rec.Threads[0].Spans[2].End = rec.Duration
	if out := Strip(rec); out.Duration != second {
		t.Errorf("%v of 1 s are left", out.Duration.Seconds())
	}
	// A traceback that the cell itself lets IPython print is within its time.
	rec = record("f()", inCell(cell(1)), traceback, inCell(cell(1)))
	if out := Strip(rec); out.Duration != 3*second {
		t.Errorf("%v of 3 s are left", out.Duration)
	}
}

// Where the recording ends when the kernel is idle, that has called something of Python's library behind the traceback.
func TestWhatTheKernelDoesBehindATracebackIsNotTheCells(t *testing.T) {
	traceback := inCell(frame("InteractiveShell.showtraceback", shell, 2279))
	flush := stack(loop, frame("OutStream.flush", site+"ipykernel/iostream.py", 699), frame("Event.wait", stdlib+"threading.py", 629))
	for length, want := range map[timeline.Nanos]timeline.Nanos{ending: second, ending + 1: 2*second + ending + 1} {
		rec := record("f()", inCell(cell(1)), traceback, flush)
		spans := rec.Threads[0].Spans
		spans[len(spans)-1].End = spans[len(spans)-1].Start + length
		rec.Duration = spans[len(spans)-1].End
		if out := Strip(rec); out.Duration != want {
			t.Errorf("%v of the kernel's: %v are left, want %v", length.Duration(), out.Duration.Duration(), want.Duration())
		}
	}
}

// What was counted over the whole recording is apportioned, and the time of the formatting is kept.
func TestTheCPUTimeOfATracebackIsNotTheCells(t *testing.T) {
	traceback := inCell(frame("InteractiveShell.showtraceback", shell, 2279))
	rec := record("f()", inCell(cell(1)), traceback, traceback, traceback)
	rec.Threads[0].OnCPU = 2 * second // of 4 s in which it computed or wanted to
	rec.Sampling.Samples, rec.Sampling.Missed, rec.Sampling.CPU = 4000, 400, second/5
	rec.Processes = []timeline.Process{{PID: 1, CPU: 3 * second}} // one of them of other threads
	out := Strip(rec)
	if got := out.Processes[0].CPU; got != 3*second/2 || rec.Processes[0].CPU != 3*second {
		t.Errorf("the process has %v, want 1.5 s", got.Duration())
	}
	if got := out.Threads[0].OnCPU; out.Duration != second || got != second/2 {
		t.Errorf("%v on a CPU in %v, want half of one second", got.Duration(), out.Duration.Duration())
	}
	if s := out.Sampling; s.Samples != 1000 || s.Missed != 100 || s.CPU != second/20 {
		t.Errorf("sampling %+v, want a quarter of it", s)
	}
	if rec.Threads[0].OnCPU != 2*second {
		t.Error("the recording itself was changed")
	}
	if out.Traceback != 3*second || out.Figures != 0 {
		t.Errorf("a traceback of %v, want 3 s", out.Traceback.Duration())
	}
	rec = record("f()", inCell(cell(1)), traceback, stack(loop, runCell, trigger, frame("flush_figures", site+"matplotlib_inline/backend_inline.py", 200)))
	if out := Strip(rec); out.Duration != second || out.Traceback != second || out.Figures != second {
		t.Errorf("%v, a traceback of %v, figures of %v; want a second each", out.Duration.Duration(), out.Traceback.Duration(), out.Figures.Duration())
	}
}

func TestACellThatWasOverAtOnceKeepsItsTime(t *testing.T) {
	rec := record("1", stack(loop, runCell, runCode[:2], trigger, ours_))
	if out := Strip(rec); out.Duration != second {
		t.Errorf("%v of 1 s are left", out.Duration.Seconds())
	}
}

func TestARecordedBodyIsShownInItsCell(t *testing.T) {
	const outer = "/tmp/ipykernel_1/111.py"
	text := "%%omni_perf\nx = 1\ny = 2"
	rec := record(text, inCell(frame("<module>", outer, 1), cellMagic, runCell[1:], runCode, cell(3)))
	rec.Sources = append(rec.Sources, timeline.Source{File: outer, ExecutionCount: 7, Text: "%%capture\n" + text})
	rec.Sources[0].Nested = true
	out := Strip(rec)
	if got, want := fmt.Sprintf("%q of %q", history(out, 0), out.Target.Cell.Text), `["1s 111.py:4 <module>"] of "%%capture\n%%omni_perf\nx = 1\ny = 2"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestThreads(t *testing.T) {
	b := timeline.NewBuilder(timeline.Options{Origin: 1, StartedAt: time.Unix(0, 0)})
	bootstrap := frame("Thread._bootstrap", stdlib+"threading.py", 1030)
	add := func(name string, stacks ...[]timeline.Frame) {
		id := b.Thread(timeline.Thread{PID: 1, NativeID: len(name), Name: name, Main: name == "MainThread", RunsCell: name == "MainThread"})
		for i, s := range stacks {
			b.Set(id, timeline.Nanos(i)*second, node(b, s), timeline.StateWaiting, false)
		}
	}
	add("MainThread", inCell(cell(1)))
	add("IOPub", stack(bootstrap, frame("IOPubThread._thread_main", site+"ipykernel/iostream.py", 90)), stack(bootstrap))
	add("omni_perf", stack(bootstrap, frame("Looper._run", site+"omni_perf/looper.py", 150), loop[4:6]))
	add("prefetch", stack(bootstrap, frame("load", "/home/u/helpers.py", 4)))
	add("pool", stack(bootstrap, frame("_worker", stdlib+"concurrent/futures/thread.py", 90)))
	forked := b.Thread(timeline.Thread{PID: 2, Process: 1, NativeID: 2, Name: "forked", Main: true})
	b.Set(forked, 0, node(b, stack(inCell(cell(1))[:1], frame("_bootstrap", stdlib+"multiprocessing/process.py", 314))), timeline.StatePython, false)
	rec := b.Snapshot(2 * second)
	rec.Target = timeline.Target{PID: 1, Cell: &timeline.Cell{ExecutionCount: 7, File: cellFile, Text: "x"}}
	var got []string
	for _, th := range Strip(rec).Threads {
		got = append(got, fmt.Sprintf("%s %v", th.Name, th.Internal))
	}
	if want := "[MainThread false IOPub true prefetch false pool false forked false]"; fmt.Sprint(got) != want {
		t.Errorf("threads and whether they are the notebook's own %v, want %s", got, want)
	}
}

func TestAScriptKeepsItsStacks(t *testing.T) {
	b := timeline.NewBuilder(timeline.Options{Origin: 1, StartedAt: time.Unix(0, 0)})
	main := b.Thread(timeline.Thread{PID: 1, NativeID: 1, Main: true, RunsCell: true})
	runpy := []timeline.Frame{frame("_run_module_as_main", "<frozen runpy>", 198), frame("_run_code", "<frozen runpy>", 88)}
	b.Set(main, 0, node(b, runpy), timeline.StatePython, false)
	b.Set(main, second, node(b, stack(runpy, frame("<module>", "/home/u/train.py", 9), frame("run", stdlib+"asyncio/runners.py", 3), frame("main", "/home/u/train.py", 4))), timeline.StatePython, false)
	rec := b.Snapshot(2 * second)
	rec.Target.Argv = []string{"python", "-m", "train"}
	want := `["1s " "1s train.py:9 <module> > runners.py:3 run > train.py:4 main"]`
	if got := fmt.Sprintf("%q", history(Strip(rec), 0)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// What omni-perf run places runs as the interpreter starts: it is no function of the program's. A sitecustomize of the user's own is.
func TestWhatIsPlacedIsNoStackOfTheProgram(t *testing.T) {
	b := timeline.NewBuilder(timeline.Options{Origin: 1, StartedAt: time.Unix(0, 0)})
	main := b.Thread(timeline.Thread{PID: 1, NativeID: 1, Main: true, RunsCell: true})
	start := stack(frame("<module>", "<frozen site>", 616), frame("main", "<frozen site>", 609))
	runs := stack(start, frame("execsitecustomize", "<frozen site>", 548), frame("_find_and_load", "<frozen importlib._bootstrap>", 1176))
	ours := stack(runs, frame("<module>", "/tmp/omni-perf/omni_perf.zip/sitecustomize.py", 14))
	for i, s := range [][]timeline.Frame{
		start, stack(runs, frame("zipimporter.find_spec", "<frozen zipimport>", 169), frame("_compile_source", "<frozen zipimport>", 695)),
		ours, stack(ours, frame("_find_and_load", "<frozen importlib._bootstrap>", 1176), frame("<module>", "/home/u/sitecustomize.py", 3)),
		stack(frame("<module>", "/home/u/train.py", 9)),
	} {
		b.Set(main, timeline.Nanos(i)*second, node(b, s), timeline.StatePython, false)
	}
	rec := b.Snapshot(5 * second)
	rec.Target.Argv = []string{"python", "train.py"}
	want := `["1s <frozen site>:616 <module> > <frozen site>:609 main" "2s " "1s sitecustomize.py:3 <module>" "1s train.py:9 <module>"]`
	if got := fmt.Sprintf("%q", history(Strip(rec), 0)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Recordings are kept in files: whatever is in one, nothing panics and nothing runs forever.
func FuzzStrip(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8}, "%%omni_perf\n%%time\n\nx", "f", "<timed exec>", 3)
	f.Add([]byte{9, 1, 9, 0}, "%%time\n%%capture\n", "<module>", "<string>", -4)
	f.Fuzz(func(t *testing.T, order []byte, text, function, file string, line int) {
		pool := stack(inCell(cell(line)), cellMagic, lineMagic, timeMagic, displayHook, trigger, ours_,
			timeline.Frame{Function: function, File: file, Line: line, FirstLine: line},
			frame("<module>", "<timed exec>", line), frame("f", "<timed exec>", line), frame("<module>", "/tmp/ipykernel_1/333.py", line))
		rec := record(text)
		rec.Frames, rec.Nodes = pool, make([]timeline.Node, 1)
		for i, b := range order {
			rec.Nodes = append(rec.Nodes, timeline.Node{Parent: timeline.NodeID(int(b) / 2 % (i + 2)), Frame: timeline.FrameID(int(b) % (len(pool) + 1))})
		}
		rec.Threads = []timeline.Thread{{RunsCell: true}}
		for i := range order {
			rec.Threads[0].Spans = append(rec.Threads[0].Spans, timeline.Span{Start: timeline.Nanos(i), End: timeline.Nanos(i + 1), Node: timeline.NodeID(i + 1)})
		}
		rec.Duration = timeline.Nanos(len(order))
		rec.Sources = append(rec.Sources, timeline.Source{File: "/tmp/ipykernel_1/333.py", ExecutionCount: 7, Text: text[len(text)/2:], Lines: []int{line, 3}})
		out := Strip(rec)
		for _, s := range out.Threads {
			for _, span := range s.Spans {
				if int(span.Node) >= len(out.Nodes) {
					t.Fatalf("node %d of %d", span.Node, len(out.Nodes))
				}
			}
		}
	})
}

// After a reload a function that nobody replaced runs on: its lines are those of a text that is gone.
func TestAFunctionOfAnEarlierTextHasNoLines(t *testing.T) {
	const file = "/home/u/helpers.py"
	start := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	old := timeline.Frame{Function: "old", File: file, Line: 12, FirstLine: 10}
	again := timeline.Frame{Function: "old", File: file, Line: 13, FirstLine: 10}
	current := timeline.Frame{Function: "current", File: file, Line: 4, FirstLine: 3}
	for name, c := range map[string]struct {
		loaded time.Time
		want   string
	}{
		"the text was loaded":     {start.Add(-time.Minute), "[{old 0 0} {current 4 3}]"},
		"the target had another":  {start.Add(-time.Hour), "[{old 12 10} {old 13 10} {current 4 3}]"},
		"nothing is known of any": {time.Time{}, "[{old 12 10} {old 13 10} {current 4 3}]"},
	} {
		b := timeline.NewBuilder(timeline.Options{Origin: 1, StartedAt: start})
		main := b.Thread(timeline.Thread{PID: 1, NativeID: 1, Main: true, RunsCell: true})
		for i, f := range []timeline.Frame{old, again, current} {
			b.Set(main, timeline.Nanos(i)*second, b.Child(timeline.RootNode, b.Frame(f)), timeline.StatePython, false)
		}
		rec := b.Snapshot(3 * second)
		rec.Target = timeline.Target{PID: 1, Argv: []string{"python", "/home/u/main.py"}, Started: start.Add(-time.Hour)}
		rec.CodeFiles = []timeline.CodeFile{{Name: file, Modified: start.Add(-time.Minute), Placed: start.Add(-time.Minute), Loaded: c.loaded,
			Elsewhere: []timeline.FunctionStart{{Function: "old", FirstLine: 10}}}}
		type place struct {
			function    string
			line, first int
		}
		var got []place
		for _, f := range Strip(rec).Frames {
			got = append(got, place{f.Function, f.Line, f.FirstLine})
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}
