package chart

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/report"
)

// script builds a synthetic report the way a sampler would see a program: one
// thread at a time, call by call.
type script struct {
	r      *report.Report
	frames map[report.Frame]int
	nodes  map[report.Node]int
}

func newScript(duration float64) *script {
	return &script{
		r: &report.Report{
			SchemaVersion: report.SchemaVersion, Generator: "omni_perf test", StartedAt: time.Unix(1_790_000_000, 0).UTC(),
			DurationS: duration,
			Target:    report.Target{PID: 100, PythonVersion: "3.12.1", Interpreter: "/usr/bin/python3"},
			Sampling: report.Sampling{
				Method: "process_vm_readv, read twice", IntervalS: 0.001, ResolutionS: 0.001,
				Samples: int64(duration * 1000), Truncated: 3,
			},
			Processes: []report.Process{{PID: 100, Role: "kernel"}},
			Stacks:    report.Stacks{Nodes: []report.Node{{}}},
		},
		frames: make(map[report.Frame]int), nodes: make(map[report.Node]int),
	}
}

func frame(function, file string, line int, kind report.Kind) report.Frame {
	return report.Frame{Function: function, File: file, Line: line, FirstLine: line, Kind: kind}
}

func (s *script) node(stack ...report.Frame) int {
	at := 0
	for _, f := range stack {
		id, ok := s.frames[f]
		if !ok {
			id = len(s.r.Stacks.Frames)
			s.frames[f] = id
			s.r.Stacks.Frames = append(s.r.Stacks.Frames, f)
		}
		key := report.Node{Parent: at, Frame: id}
		n, ok := s.nodes[key]
		if !ok {
			n = len(s.r.Stacks.Nodes)
			s.nodes[key] = n
			s.r.Stacks.Nodes = append(s.r.Stacks.Nodes, key)
		}
		at = n
	}
	return at
}

func (s *script) thread(name string) int {
	s.r.Threads = append(s.r.Threads, report.Thread{
		NativeID: 100 + len(s.r.Threads), PID: 100, Name: name, IsMain: len(s.r.Threads) == 0, RunsCell: len(s.r.Threads) == 0,
		StateS: make(map[string]float64),
	})
	return len(s.r.Threads) - 1
}

// span appends to a thread's history; zero lengths are left out.
func (s *script) span(thread int, start, end float64, st state, stack ...report.Frame) {
	if end <= start {
		return
	}
	sp := &s.r.Stacks.Spans
	sp.Thread = append(sp.Thread, thread)
	sp.StartS = append(sp.StartS, start)
	sp.EndS = append(sp.EndS, end)
	sp.Node = append(sp.Node, s.node(stack...))
	sp.State = append(sp.State, stateNames[st])
	sp.Truncated = append(sp.Truncated, false)
	s.r.Threads[thread].StateS[stateNames[st]] += end - start
}

func (s *script) line(start, end float64, line int) {
	s.r.LineSpans = append(s.r.LineSpans, report.LineSpan{StartS: start, EndS: end, Line: line})
}

func (s *script) track(id, kind, unit, source string, resolution, limit float64, at func(t float64) float64) {
	t := report.Track{ID: id, Kind: kind, Unit: unit, Source: source, ResolutionS: resolution, Limit: limit,
		Mean: report.Figure(math.NaN()), Peak: report.Figure(math.NaN())}
	for k := 1; float64(k)*resolution <= s.r.DurationS; k++ {
		t.T = append(t.T, float64(k)*resolution)
		t.Value = append(t.Value, report.Figure(at((float64(k)-0.5)*resolution)))
	}
	s.r.Tracks = append(s.r.Tracks, t)
}

// cellOf sets the recorded cell and derives the times per line and function as
// report.Build would, simply.
func (s *script) cellOf(count int, source ...string) *report.Report {
	s.r.LineFile = fmt.Sprintf("Cell [%d]", count)
	s.r.Target.Cell = &report.Cell{ExecutionCount: count, Source: source, Outcome: "ok"}
	lines := make(map[int]float64)
	for _, l := range s.r.LineSpans {
		lines[l.Line] += l.EndS - l.StartS
	}
	for i, text := range source {
		if t := lines[i+1]; t > 0 {
			s.r.CellLines = append(s.r.CellLines, report.CellLine{File: s.r.LineFile, Line: i + 1, Text: text, SelfS: t, TotalS: t * 1.2})
		}
	}
	type times struct{ self, total float64 }
	byFrame := make(map[report.Frame]times)
	sp := &s.r.Stacks.Spans
	for i, n := range sp.Node {
		d := sp.EndS[i] - sp.StartS[i]
		seen := make(map[report.Frame]bool)
		for k := n; k > 0; k = s.r.Stacks.Nodes[k].Parent {
			f := s.r.Stacks.Frames[s.r.Stacks.Nodes[k].Frame]
			t := byFrame[f]
			if k == n {
				t.self += d
			}
			if !seen[f] {
				t.total += d
			}
			seen[f] = true
			byFrame[f] = t
		}
	}
	for _, f := range s.r.Stacks.Frames {
		t := byFrame[f]
		s.r.Functions = append(s.r.Functions, report.Function{
			Function: f.Function, File: f.File, Line: f.FirstLine, Kind: f.Kind, SelfS: t.self, TotalS: t.total,
		})
	}
	return s.r
}

var trainSource = []string{
	"model = Model().cuda()", "for epoch in range(3):", "    for x, y in loader:", "        x, y = x.cuda(), y.cuda()",
	"        loss = model(x, y)", "        loss.backward()", "        opt.step()", "        total += loss.item()", "",
	"    torch.save(model.state_dict(), path)",
}

// trainingCell is a cell whose GPU waits for its loader: the picture of the look.
func trainingCell() *report.Report {
	const torchFile, loaderFile = "~/venv/lib/python3.12/site-packages/torch/nn/modules/module.py", "~/venv/lib/python3.12/site-packages/torch/utils/data/dataloader.py"
	s := newScript(13.4)
	rnd := rand.New(rand.NewPCG(1, 2))
	main, pin, worker := s.thread("MainThread"), s.thread("pin_memory"), s.thread("Thread-4 (prefetch)")
	cell := frame("<module>", "Cell [7]", 1, report.KindCell)
	epoch := frame("train_epoch", "Cell [5]", 2, report.KindCell)
	in := func(fs ...report.Frame) []report.Frame { return append([]report.Frame{cell, epoch}, fs...) }
	next := frame("_BaseDataLoaderIter.__next__", loaderFile, 628, report.KindData)
	nextData := frame("_SingleProcessDataLoaderIter._next_data", loaderFile, 671, report.KindData)
	fetch := frame("_MapDatasetFetcher.fetch", "~/torch/utils/data/_utils/fetch.py", 46, report.KindData)
	getitem := frame("Images.__getitem__", "Cell [3]", 14, report.KindCell)
	load := frame("load", "~/project/images.py", 20, report.KindUser)
	read := frame("read_bytes", "/usr/lib/python3.12/pathlib.py", 1000, report.KindIO)
	collate := frame("default_collate", "~/torch/utils/data/_utils/collate.py", 300, report.KindFramework)
	call := frame("Module._call_impl", torchFile, 1500, report.KindFramework)
	forward := frame("Model.forward", "Cell [4]", 9, report.KindCell)
	linear := frame("linear", "~/torch/nn/functional.py", 30, report.KindFramework)
	backward := frame("Tensor.backward", "~/torch/_tensor.py", 500, report.KindFramework)
	cuda := frame("Tensor.cuda", "~/torch/_tensor.py", 90, report.KindDevice)
	adam := frame("Adam.step", "~/torch/optim/adam.py", 150, report.KindFramework)
	item := frame("Tensor.item", "~/torch/_tensor.py", 700, report.KindDevice)
	save := frame("save", "~/torch/serialization.py", 600, report.KindIO)
	pickle := frame("dumps", "/usr/lib/python3.12/pickle.py", 10, report.KindOther)
	write := frame("PyTorchFileWriter.write", "~/torch/serialization.py", 800, report.KindIO)

	s.span(main, 0, 0.31, python, cell, frame("Model.__init__", "Cell [4]", 2, report.KindCell))
	s.span(main, 0.31, 0.35, native, cell, cuda)
	s.line(0, 0.35, 1)
	var idle [][2]float64
	idle = append(idle, [2]float64{0, 1.3})
	t := 0.35
	for step := 0; t < 12.6; step++ {
		begin := t
		wait := 0.55 + 0.25*rnd.Float64()
		if step == 0 {
			wait = 0.95
		}
		for end := t + wait; t < end; {
			d := 0.09 + 0.02*rnd.Float64()
			s.span(main, t, t+0.045, python, in(next, nextData, fetch, getitem, load)...)
			s.span(main, t+0.045, t+0.07, inIO, in(next, nextData, fetch, getitem, load, read)...)
			s.span(main, t+0.07, t+d, python, in(next, nextData, fetch, getitem)...)
			t += d
		}
		s.span(main, t, t+0.06, native, in(next, nextData, fetch, collate)...)
		t += 0.06
		s.line(begin, t, 3)
		if step > 0 {
			idle = append(idle, [2]float64{begin + 0.02, t + 0.02})
		}
		s.span(main, t, t+0.03, waiting, in(cuda)...)
		s.line(t, t+0.03, 4)
		t += 0.03
		start := t
		for range 4 {
			s.span(main, t, t+0.02, python, in(call, call, forward)...)
			s.span(main, t+0.02, t+0.04, native, in(call, call, forward, linear)...)
			t += 0.04
		}
		s.line(start, t, 5)
		s.span(main, t, t+0.24, native, in(backward)...)
		s.line(t, t+0.24, 6)
		t += 0.24
		s.span(main, t, t+0.05, python, in(adam)...)
		s.line(t, t+0.05, 7)
		t += 0.05
		s.span(main, t, t+0.03, waiting, in(item)...)
		s.line(t, t+0.03, 8)
		t += 0.03
		s.r.Steps = append(s.r.Steps, report.Step{StartS: begin, EndS: t, DataWaitS: wait})
		if step == 5 {
			idle = append(idle, [2]float64{t, t + 0.47})
			s.span(main, t, t+0.2, python, in(save, pickle)...)
			s.span(main, t+0.2, t+0.47, inIO, in(save, pickle, write)...)
			s.line(t, t+0.47, 10)
			t += 0.47
		}
	}
	s.span(main, t, 13.4, python, cell)
	s.line(t, 13.4, 2)
	for _, th := range []int{pin, worker} {
		for t := 0.1; t < 13.2; {
			d := 0.02 + 0.15*rnd.Float64()
			s.span(th, t, t+d, []state{python, native, inIO}[rnd.IntN(3)], frame("run", "threading.py", 900, report.KindOther))
			s.span(th, t+d, t+d+0.4, waiting, frame("wait", "threading.py", 300, report.KindOther))
			t += d + 0.4
		}
	}
	busy := func(t float64) float64 {
		for _, iv := range idle {
			if t >= iv[0] && t < iv[1] {
				return 0
			}
		}
		return 88 + 8*math.Sin(40*t)
	}
	s.track("gpu0.util", "rate", "%", "GPM", 0.1, 100, busy)
	s.track("gpu0.mem", "gauge", "B", "NVML", 0.1, 80<<30, func(t float64) float64 { return min(t/1.2, 1)*10*(1<<30) + busy(t)/80*(1<<30) })
	s.track("gpu0.sm", "rate", "%", "GPM", 0.1, 100, func(t float64) float64 { return busy(t) * 0.4 })
	s.track("cpu", "rate", "cores", "/proc/PID/stat", 0.1, 8, func(t float64) float64 { return 1.02 + 0.3*math.Sin(5*t) - busy(t)/250 })
	s.track("rss", "gauge", "B", "/proc/PID/statm", 0.1, 0, func(t float64) float64 { return (2.2 + min(t/3, 0.9)) * (1 << 30) })
	s.track("disk.read", "rate", "B/s", "/proc/PID/io", 0.1, 0, func(t float64) float64 { return max(0, math.Sin(17*t)) * 90e6 })
	s.track("disk.write", "rate", "B/s", "/proc/PID/io", 0.1, 0, func(float64) float64 { return 0 })
	r := s.cellOf(7, trainSource...)
	r.GPUs = []report.GPU{{Index: 0, Used: true, Name: "NVIDIA H100 80GB HBM3", BusyS: 4.8, IdleS: 8.6, Source: "GPM", ResolutionS: 0.1}}
	cause := func(name string, sec float64, line int, hint string) report.Cause {
		return report.Cause{Cause: name, Seconds: sec, Share: sec / 8.6, File: "Cell [7]", Line: line, SourceText: trainSource[line-1], Hint: hint}
	}
	causes := []report.Cause{
		cause("data loading", 6.51, 3, "num_workers=4, pin_memory=True"),
		cause("checkpoint or serialisation", 0.47, 10, "save in a thread, or less often"),
		cause("set-up before the first GPU work", 0.47, 1, ""),
		cause("host–device copy or synchronisation", 0.45, 4, "pin_memory=True and non_blocking=True"),
		cause("Python on the CPU", 0.36, 5, "torch.compile, or CUDA graphs"),
		cause("synchronisation", 0.34, 8, "keep the sum on the GPU, call .item() after the loop"),
	}
	r.Idle = &report.Idle{GPUIdleS: 8.6, Certainty: "idle 8.6 s · resolved below the 100 ms window by 12 repeated steps, R² 0.97", Causes: causes,
		Devices: []report.DeviceIdle{{Device: 0, IdleS: 8.6, Causes: causes, Intervals: idle}}}
	r.Headline = "The GPU waited 6.5 of 13.4 s for data, loaded in the training's own thread in line 3."
	r.HeadlineFinding = new(int)
	r.Findings = []report.Finding{
		{ID: "dataloader-bound", Severity: "warning", Text: r.Headline, File: "Cell [7]", Line: 3, SourceText: trainSource[2],
			Hint: "It loads in this process. Try num_workers=4, pin_memory=True."},
		{ID: "sync-in-loop", Severity: "info", Text: "The loop waited for the GPU 9 times, 0.34 s of 13.4 s in line 8; the GPU was idle 64 % of the time.", File: "Cell [7]", Line: 8, Hint: "Sum on the GPU and call .item() after the loop."},
	}
	r.Notes = []report.Note{{What: "PCIe throughput", Reason: "not offered by this driver"}}
	return r
}

// cpuCell is a cell without a GPU: pandas and a slow loop, some of it waiting.
func cpuCell() *report.Report {
	s := newScript(6.2)
	main := s.thread("MainThread")
	cell := frame("<module>", "Cell [3]", 1, report.KindCell)
	parse := frame("parse_rows", "Cell [3]", 4, report.KindCell)
	strptime := frame("_strptime", "/usr/lib/python3.12/_strptime.py", 309, report.KindOther)
	get := frame("get", "~/venv/lib/python3.12/site-packages/requests/api.py", 62, report.KindIO)
	recv := frame("SSLSocket.recv_into", "/usr/lib/python3.12/ssl.py", 1200, report.KindIO)
	group := frame("DataFrame.groupby", "~/venv/lib/python3.12/site-packages/pandas/core/frame.py", 8800, report.KindFramework)
	agg := frame("GroupBy.mean", "~/venv/lib/python3.12/site-packages/pandas/core/groupby/groupby.py", 2300, report.KindFramework)
	s.span(main, 0, 0.4, python, cell, get)
	s.span(main, 0.4, 2.1, inIO, cell, get, recv)
	s.line(0, 2.1, 1)
	for t := 2.1; t < 4.9; t += 0.02 {
		s.span(main, t, t+0.007, python, cell, parse)
		s.span(main, t+0.007, t+0.02, python, cell, parse, strptime)
	}
	s.line(2.1, 4.9, 2)
	s.span(main, 4.9, 5.1, python, cell, group)
	s.span(main, 5.1, 5.9, native, cell, group, agg)
	s.line(4.9, 5.9, 3)
	s.span(main, 5.9, 6.2, waiting, cell)
	s.line(5.9, 6.2, 4)
	s.track("cpu", "rate", "cores", "/proc/PID/stat", 0.1, 2, func(t float64) float64 {
		switch {
		case t < 2.1:
			return 0.15
		case t < 4.9:
			return 0.99
		case t < 5.9:
			return 1.7
		}
		return 0.02
	})
	s.track("rss", "gauge", "B", "/proc/PID/statm", 0.1, 0, func(t float64) float64 { return (310 + 60*max(t-2, 0)) * (1 << 20) })
	s.track("net.recv", "rate", "B/s", "/proc/net/dev", 0.1, 0, func(t float64) float64 {
		if t < 2.1 {
			return 4e6 + 2e6*math.Sin(9*t)
		}
		return 0
	})
	r := s.cellOf(3, `raw = requests.get(url).text`, `rows = parse_rows(raw)`, `means = pd.DataFrame(rows).groupby("station").mean()`, `time.sleep(0.3)`)
	r.Headline = "Spent 2.8 of 6.2 s in line 2, in _strptime (_strptime)."
	r.HeadlineFinding = new(int)
	r.Findings = []report.Finding{{ID: "hot-line", Severity: "info", Text: r.Headline, File: "Cell [3]", Line: 2, SourceText: "rows = parse_rows(raw)",
		Hint: "Parse the whole column at once: pd.to_datetime(column, format=…)."}}
	r.Output = &report.Output{Messages: 12, Bytes: 4096, AtLeast: true}
	return r
}

// longCell has about n spans of ever-changing stacks over a minute.
func longCell(n int) *report.Report {
	s := newScript(60)
	rnd := rand.New(rand.NewPCG(3, 4))
	main := s.thread("MainThread")
	kinds := []report.Kind{report.KindCell, report.KindUser, report.KindData, report.KindFramework, report.KindDevice, report.KindIO, report.KindOther}
	var pool []report.Frame
	for i := range 300 {
		pool = append(pool, frame(fmt.Sprintf("Class%d.method_%d", i%40, i), fmt.Sprintf("~/venv/lib/python3.12/site-packages/package%d/module.py", i%25), i, kinds[rnd.IntN(len(kinds))]))
	}
	stack := []report.Frame{frame("<module>", "Cell [9]", 1, report.KindCell)}
	for i := range n {
		depth := min(max(len(stack)+rnd.IntN(7)-3, 2), 20)
		stack = stack[:min(len(stack), depth)]
		for len(stack) < depth {
			stack = append(stack, pool[rnd.IntN(len(pool))])
		}
		stack[len(stack)-1] = pool[rnd.IntN(len(pool))]
		s.span(main, 60*float64(i)/float64(n), 60*float64(i+1)/float64(n), state(rnd.IntN(4)), stack...)
		s.line(60*float64(i)/float64(n), 60*float64(i+1)/float64(n), 1+rnd.IntN(9))
	}
	for _, id := range []string{"cpu", "rss", "disk.read", "disk.write", "net.recv", "net.sent"} {
		s.track(id, "rate", "B/s", "/proc", 0.01, 0, func(float64) float64 { return 1e9 * rnd.Float64() })
	}
	src := make([]string, 9)
	for i := range src {
		src[i] = fmt.Sprintf("result_%d = compute(%d)", i, i)
	}
	return s.cellOf(9, src...)
}

func emptyCell() *report.Report {
	s := newScript(0.0004)
	s.thread("MainThread")
	r := s.cellOf(1)
	r.Headline = "Too short to profile: no samples. Run again with -p 0.0001."
	return r
}

func manyThreads() *report.Report {
	s := newScript(5)
	rnd := rand.New(rand.NewPCG(5, 6))
	for i := range 200 {
		th := s.thread(fmt.Sprintf("ThreadPoolExecutor-0_%d", i))
		for t := 0.0; t < 4.8; {
			d := 0.3 * rnd.Float64()
			st := []state{waiting, waiting, python, native, gil, inIO}[rnd.IntN(6)]
			if i > 100 {
				st = waiting
			}
			s.span(th, t, t+d, st, frame("worker", "thread.py", 80, report.KindOther), frame("job", "Cell [2]", 3, report.KindCell))
			t += d
		}
	}
	s.track("cpu", "rate", "cores", "/proc/PID/stat", 0.05, 16, func(float64) float64 { return 1 })
	s.track("gil.wait", "rate", "threads", "futexes of waiting threads", 0.05, 0, func(t float64) float64 { return 2 + math.Sin(7*t) })
	s.line(0, 5, 1)
	return s.cellOf(2, "list(pool.map(job, range(1000)))")
}

func deepRecursion() *report.Report {
	s := newScript(2)
	main := s.thread("MainThread")
	cell := frame("<module>", "Cell [4]", 1, report.KindCell)
	fib, odd := frame("fib", "Cell [4]", 1, report.KindCell), frame("is_odd", "Cell [4]", 5, report.KindCell)
	even := frame("is_even", "Cell [4]", 9, report.KindCell)
	for i := range 900 {
		stack := []report.Frame{cell}
		for k := range i {
			switch {
			case i < 450:
				stack = append(stack, fib)
			case k%2 == 0:
				stack = append(stack, odd)
			default:
				stack = append(stack, even)
			}
		}
		s.span(main, float64(i)/450, float64(i+1)/450, python, stack...)
	}
	s.line(0, 2, 1)
	return s.cellOf(4, "fib(900)")
}

func uglyNames() *report.Report {
	s := newScript(3)
	main := s.thread("<script>alert(1)</script>\x00")
	ugly := []string{
		"<lambda>", `a"b'c&d`, "nul\x00nul", "sur\xed\xa0\x80gate", "\xff\xfe", strings.Repeat("x", 10_000), "שלום עולם",
		"\u202egnirts desrever", "]]><script>", "a\u0300\u0301\u0302\u0303\u0304\u0305", "\uFDFD", "日本語の関数名", "👩‍👩‍👧‍👦", "\x1b[31mred", "line\nbreak", "",
	}
	for i, name := range ugly {
		d := 3 / float64(len(ugly))
		s.span(main, float64(i)*d, float64(i+1)*d, state(i%numStates), frame(name, name, i, report.Kind(name)), frame(name, "f.py", 3, report.KindCell))
		s.line(float64(i)*d, float64(i+1)*d, i+1)
	}
	r := s.cellOf(1, ugly...)
	r.Name, r.Headline, r.Target.Cell.Outcome = ugly[0]+ugly[1], ugly[6]+ugly[8], ugly[2]
	r.HeadlineFinding, r.HeadlineLimits = new(int), []int{1, -1, 1 << 40}
	for _, u := range ugly {
		r.Notes = append(r.Notes, report.Note{What: u, Reason: u})
		r.Findings = append(r.Findings, report.Finding{ID: u, Severity: u, Text: u, Hint: u, File: u, Line: 3, SourceText: u})
		r.Regions = append(r.Regions, report.Region{Name: u, Count: 3, TotalS: 1, P50S: 0.3, P95S: 0.4})
		r.Tracks = append(r.Tracks, report.Track{ID: u, Unit: u, Source: u, Kind: u, T: []float64{1}, Value: []report.Figure{1}})
	}
	r.Tracks = append(r.Tracks, report.Track{ID: "cpu", Unit: ugly[1], Source: ugly[8], Kind: "rate", Ended: ugly[0], T: []float64{1, 2}, Value: []report.Figure{1, 2}})
	r.Sampling.Method, r.Sampling.FallbackReason, r.Target.PythonVersion = ugly[0], ugly[7], ugly[2]
	return r
}

func eightGPUs() *report.Report {
	s := newScript(30)
	main := s.thread("MainThread")
	s.span(main, 0, 30, native, frame("<module>", "Cell [6]", 1, report.KindCell), frame("DataParallel.forward", "~/torch/nn/parallel/data_parallel.py", 160, report.KindFramework))
	s.line(0, 30, 1)
	r := s.r
	r.Idle = &report.Idle{GPUIdleS: 8 * 15, Certainty: "averaged over 167 ms: shares are estimates, bounds in brackets"}
	bound := 2.5
	for g := range 8 {
		s.track(fmt.Sprintf("gpu%d.util", g), "rate", "%", "NVML sample buffer", 0.167, 100, func(t float64) float64 {
			if int(t/2+float64(g)/8)%2 == 0 {
				return 80
			}
			return 0
		})
		s.track(fmt.Sprintf("gpu%d.mem", g), "gauge", "B", "NVML", 1, 24<<30, func(t float64) float64 { return float64(4+g) * (1 << 30) })
		r.GPUs = append(r.GPUs, report.GPU{Index: g, Used: true, Name: "NVIDIA GeForce RTX 4090", BusyS: 15, IdleS: 15, Source: "NVML sample buffer", ResolutionS: 0.167, Simulated: true})
		d := report.DeviceIdle{Device: g, IdleS: 15, Causes: []report.Cause{{Cause: "communication between ranks", Seconds: 15, Share: 1, Line: 1, SourceText: "train(model)"}}}
		for t := 2 - float64(g)/4; t < 30; t += 4 {
			d.Intervals = append(d.Intervals, [2]float64{t, min(t+2, 30)})
		}
		r.Idle.Devices = append(r.Idle.Devices, d)
	}
	for i := range 12 {
		r.Idle.Causes = append(r.Idle.Causes, report.Cause{Cause: "communication between ranks", Seconds: 10, Share: 1. / 12, File: "~/project/train.py", Line: 10 + i,
			SourceText: "out = torch.nn.parallel.data_parallel(model, inputs, device_ids=list(range(8)), output_device=0)", Hint: "use DistributedDataParallel: one process per GPU, gradients overlap with backward", BoundS: &bound})
	}
	r.Headline = "GPU 0 works alone for 40 % of the time: DataParallel copies serially"
	return s.cellOf(6, "train(model)")
}

func weekLong() *report.Report {
	const week = 7 * 86400
	s := newScript(week)
	main := s.thread("MainThread")
	for i := range 2000 {
		st := python
		if i%3 == 0 {
			st = waiting
		}
		s.span(main, week*float64(i)/2000, week*float64(i+1)/2000, st, frame("<module>", "Cell [1]", 1, report.KindCell), frame(fmt.Sprintf("f%d", i%5), "Cell [1]", 3, report.KindUser))
	}
	s.r.Sampling.ResolutionS = 64
	s.track("cpu", "rate", "cores", "/proc/PID/stat", 100, 64, func(t float64) float64 { return 30 + 20*math.Sin(t/9000) })
	s.line(0, week, 1)
	return s.cellOf(1, "while True: step()")
}

// aMinute is not to be changed.
var aMinute = sync.OnceValue(func() *report.Report { return longCell(140_000) })

// samples are the reports every form is tested with.
func samples() map[string]*report.Report {
	return map[string]*report.Report{
		"training": trainingCell(), "cpu": cpuCell(), "long": aMinute(), "empty": emptyCell(), "threads": manyThreads(),
		"recursion": deepRecursion(), "ugly": uglyNames(), "gpus": eightGPUs(), "week": weekLong(), "zero": {},
		"streams": manyStreams(),
	}
}
