package sketch

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// Script writes a sketch down the way a sampler would see a program: one thread at a
// time, call by call.
type Script struct {
	r      *Sketch
	frames map[Frame]int
	nodes  map[Node]int
}

// NewScript begins a sketch of so many seconds.
func NewScript(duration float64) *Script {
	return &Script{
		r: &Sketch{
			DurationS: duration, Python: "3.12.1", Method: "process_vm_readv, read twice", Stored: 0.001, Samples: int64(duration * 1000),
			Nodes: []Node{{}},
		},
		frames: make(map[Frame]int), nodes: make(map[Node]int),
	}
}

// Call is a frame of a stack, at a line.
func Call(function, file string, line int, code report.Code) Frame {
	return Frame{Function: function, File: file, Line: line, FirstLine: line, Code: code}
}

func (s *Script) node(stack ...Frame) int {
	at := 0
	for _, f := range stack {
		id, ok := s.frames[f]
		if !ok {
			id = len(s.r.Frames)
			s.frames[f] = id
			s.r.Frames = append(s.r.Frames, f)
		}
		key := Node{Parent: at, Frame: id}
		n, ok := s.nodes[key]
		if !ok {
			n = len(s.r.Nodes)
			s.nodes[key] = n
			s.r.Nodes = append(s.r.Nodes, key)
		}
		at = n
	}
	return at
}

// Thread adds a thread and returns its index.
func (s *Script) Thread(name string) int {
	s.r.Threads = append(s.r.Threads, Thread{Name: name})
	return len(s.r.Threads) - 1
}

// Span appends to a thread's history; zero lengths are left out.
func (s *Script) Span(thread int, start, end float64, st report.State, stack ...Frame) {
	if end <= start {
		return
	}
	s.r.Spans = append(s.r.Spans, Span{thread, start, end, s.node(stack...), st})
	s.r.Threads[thread].Times[st] += end - start
}

func (s *Script) line(start, end float64, line int) {
	s.r.LineSpans = append(s.r.LineSpans, Line{start, end, line})
}

// track adds a figure; of a GPU it is called "gpu0.util".
func (s *Script) track(id string, kind report.TrackKind, unit, source string, resolution, limit float64, at func(t float64) float64) {
	t := Track{ID: id, Device: -1, Kind: kind, Unit: unit, Source: source, Resolution: resolution, Limit: limit}
	if n, _ := fmt.Sscanf(id, "gpu%d.%s", &t.Device, &t.ID); n == 2 {
		t.ID = "gpu." + t.ID
	}
	for k := 1; float64(k)*resolution <= s.r.DurationS; k++ {
		t.T = append(t.T, float64(k)*resolution)
		t.Value = append(t.Value, at((float64(k)-0.5)*resolution))
	}
	s.r.Tracks = append(s.r.Tracks, t)
}

// CellOf sets the recorded cell and derives the times per line and function as
// report.Build would, simply.
func (s *Script) CellOf(count int, source ...string) *Sketch {
	s.r.LineFile = fmt.Sprintf("Cell [%d]", count)
	s.r.Cell = &Cell{Count: count, Source: source, Outcome: "ok"}
	lines := make(map[int]float64)
	for _, l := range s.r.LineSpans {
		lines[l.Line] += l.End - l.Start
	}
	for i, text := range source {
		if t := lines[i+1]; t > 0 {
			s.r.CellLines = append(s.r.CellLines, Time{File: s.r.LineFile, Line: i + 1, Text: text, Self: t, Total: t * 1.2})
		}
	}
	type times struct{ self, total float64 }
	byFrame := make(map[Frame]times)
	for _, sp := range s.r.Spans {
		d := sp.End - sp.Start
		seen := make(map[Frame]bool)
		for k := sp.Node; k > 0; k = s.r.Nodes[k].Parent {
			f := s.r.Frames[s.r.Nodes[k].Frame]
			t := byFrame[f]
			if k == sp.Node {
				t.self += d
			}
			if !seen[f] {
				t.total += d
			}
			seen[f] = true
			byFrame[f] = t
		}
	}
	for _, f := range s.r.Frames {
		t := byFrame[f]
		s.r.Functions = append(s.r.Functions, Time{Name: f.Function, File: f.File, Line: f.FirstLine, Code: f.Code, Self: t.self, Total: t.total})
	}
	return s.r
}

var trainSource = []string{
	"model = Model().cuda()", "for epoch in range(3):", "    for x, y in loader:", "        x, y = x.cuda(), y.cuda()",
	"        loss = model(x, y)", "        loss.backward()", "        opt.step()", "        total += loss.item()", "",
	"    torch.save(model.state_dict(), path)",
}

// TrainingCell is a cell whose GPU waits for its loader: the picture of the look.
func TrainingCell() *Sketch {
	const torchFile, loaderFile = "~/venv/lib/python3.12/site-packages/torch/nn/modules/module.py", "~/venv/lib/python3.12/site-packages/torch/utils/data/dataloader.py"
	s := NewScript(13.4)
	rnd := rand.New(rand.NewPCG(1, 2))
	main, pin, worker := s.Thread("MainThread"), s.Thread("pin_memory"), s.Thread("Thread-4 (prefetch)")
	cell := Call("<module>", "Cell [7]", 1, report.CodeCell)
	epoch := Call("train_epoch", "Cell [7]", 2, report.CodeCell)
	in := func(fs ...Frame) []Frame { return append([]Frame{cell, epoch}, fs...) }
	next := Call("_BaseDataLoaderIter.__next__", loaderFile, 628, report.CodeData)
	nextData := Call("_SingleProcessDataLoaderIter._next_data", loaderFile, 671, report.CodeData)
	fetch := Call("_MapDatasetFetcher.fetch", "~/torch/utils/data/_utils/fetch.py", 46, report.CodeData)
	getitem := Call("Images.__getitem__", "Cell [7]", 14, report.CodeCell)
	load := Call("load", "~/project/images.py", 20, report.CodeUser)
	read := Call("read_bytes", "/usr/lib/python3.12/pathlib.py", 1000, report.CodeIO)
	collate := Call("default_collate", "~/torch/utils/data/_utils/collate.py", 300, report.CodeFramework)
	call := Call("Module._call_impl", torchFile, 1500, report.CodeFramework)
	forward := Call("Model.forward", "Cell [7]", 9, report.CodeCell)
	linear := Call("linear", "~/torch/nn/functional.py", 30, report.CodeFramework)
	backward := Call("Tensor.backward", "~/torch/_tensor.py", 500, report.CodeFramework)
	cuda := Call("Tensor.cuda", "~/torch/_tensor.py", 90, report.CodeDevice)
	adam := Call("Adam.step", "~/torch/optim/adam.py", 150, report.CodeFramework)
	item := Call("Tensor.item", "~/torch/_tensor.py", 700, report.CodeDevice)
	save := Call("save", "~/torch/serialization.py", 600, report.CodeIO)
	pickle := Call("dumps", "/usr/lib/python3.12/pickle.py", 10, report.CodeOther)
	write := Call("PyTorchFileWriter.write", "~/torch/serialization.py", 800, report.CodeIO)

	s.Span(main, 0, 0.31, report.StatePython, cell, Call("Model.__init__", "Cell [7]", 2, report.CodeCell))
	s.Span(main, 0.31, 0.35, report.StateNative, cell, cuda)
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
			s.Span(main, t, t+0.045, report.StatePython, in(next, nextData, fetch, getitem, load)...)
			s.Span(main, t+0.045, t+0.07, report.StateIO, in(next, nextData, fetch, getitem, load, read)...)
			s.Span(main, t+0.07, t+d, report.StatePython, in(next, nextData, fetch, getitem)...)
			t += d
		}
		s.Span(main, t, t+0.06, report.StateNative, in(next, nextData, fetch, collate)...)
		t += 0.06
		s.line(begin, t, 3)
		if step > 0 {
			idle = append(idle, [2]float64{begin + 0.02, t + 0.02})
		}
		s.Span(main, t, t+0.03, report.StateWaiting, in(cuda)...)
		s.line(t, t+0.03, 4)
		t += 0.03
		start := t
		for range 4 {
			s.Span(main, t, t+0.02, report.StatePython, in(call, call, forward)...)
			s.Span(main, t+0.02, t+0.04, report.StateNative, in(call, call, forward, linear)...)
			t += 0.04
		}
		s.line(start, t, 5)
		s.Span(main, t, t+0.24, report.StateNative, in(backward)...)
		s.line(t, t+0.24, 6)
		t += 0.24
		s.Span(main, t, t+0.05, report.StatePython, in(adam)...)
		s.line(t, t+0.05, 7)
		t += 0.05
		s.Span(main, t, t+0.03, report.StateWaiting, in(item)...)
		s.line(t, t+0.03, 8)
		t += 0.03
		s.r.Steps = append(s.r.Steps, Step{StartS: begin, EndS: t, DataWaitS: wait})
		if step == 5 {
			idle = append(idle, [2]float64{t, t + 0.47})
			s.Span(main, t, t+0.2, report.StatePython, in(save, pickle)...)
			s.Span(main, t+0.2, t+0.47, report.StateIO, in(save, pickle, write)...)
			s.line(t, t+0.47, 10)
			t += 0.47
		}
	}
	s.Span(main, t, 13.4, report.StatePython, cell)
	s.line(t, 13.4, 2)
	for _, th := range []int{pin, worker} {
		for t := 0.1; t < 13.2; {
			d := 0.02 + 0.15*rnd.Float64()
			s.Span(th, t, t+d, []report.State{report.StatePython, report.StateNative, report.StateIO}[rnd.IntN(3)], Call("run", "threading.py", 900, report.CodeOther))
			s.Span(th, t+d, t+d+0.4, report.StateWaiting, Call("wait", "threading.py", 300, report.CodeOther))
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
	s.track("gpu0.util", report.Rate, "%", "GPM", 0.1, 100, busy)
	s.track("gpu0.mem", report.Gauge, "B", "NVML", 0.1, 80<<30, func(t float64) float64 { return min(t/1.2, 1)*10*(1<<30) + busy(t)/80*(1<<30) })
	s.track("gpu0.sm", report.Rate, "%", "GPM", 0.1, 100, func(t float64) float64 { return busy(t) * 0.4 })
	s.track("cpu", report.Rate, "cores", "/proc/PID/stat", 0.1, 8, func(t float64) float64 { return 1.02 + 0.3*math.Sin(5*t) - busy(t)/250 })
	s.track("rss", report.Gauge, "B", "/proc/PID/statm", 0.1, 0, func(t float64) float64 { return (2.2 + min(t/3, 0.9)) * (1 << 30) })
	s.track("disk.read", report.Rate, "B/s", "/proc/PID/io", 0.1, 0, func(t float64) float64 { return max(0, math.Sin(17*t)) * 90e6 })
	s.track("disk.write", report.Rate, "B/s", "/proc/PID/io", 0.1, 0, func(float64) float64 { return 0 })
	r := s.CellOf(7, trainSource...)
	r.GPUs = []GPU{{Used: true, Name: "NVIDIA H100 80GB HBM3", BusyS: 4.8, IdleS: 8.6, Source: "GPM"}}
	cause := func(name string, sec float64, line int, hint string) Cause {
		return Cause{Text: name, Seconds: sec, File: "Cell [7]", Line: line, Hint: hint}
	}
	r.Causes = []Cause{
		cause("data loading", 6.51, 3, "num_workers=4, pin_memory=True"),
		cause("checkpoint or serialisation", 0.47, 10, "save in a thread, or less often"),
		cause("set-up before the first GPU work", 0.47, 1, ""),
		cause("host–device copy or synchronisation", 0.45, 4, "pin_memory=True and non_blocking=True"),
		cause("Python on the CPU", 0.36, 5, "torch.compile, or CUDA graphs"),
		cause("synchronisation", 0.34, 8, "keep the sum on the GPU, call .item() after the loop"),
	}
	r.Certainty, r.Idle = "idle 8.6 s · resolved below the 100 ms window by 12 repeated steps, R² 0.97", []Idle{{Device: 0, Causes: r.Causes, Intervals: idle}}
	r.Headline = "The GPU waited 6.5 of 13.4 s for data, loaded in the training's own thread in line 3."
	r.Main = new(int)
	r.Findings = []Finding{
		{ID: "dataloader-bound", Severity: "warning", Text: r.Headline, File: "Cell [7]", Line: 3,
			Hint: "It loads in this process. Try num_workers=4, pin_memory=True."},
		{ID: "sync-in-loop", Severity: "info", Text: "The loop waited for the GPU 9 times, 0.34 s of 13.4 s in line 8; the GPU was idle 64 % of the time.", File: "Cell [7]", Line: 8, Hint: "Sum on the GPU and call .item() after the loop."},
	}
	r.Notes = []string{"PCIe throughput: not offered by this driver"}
	return r
}

// CpuCell is a cell without a GPU: pandas and a slow loop, some of it waiting.
func CpuCell() *Sketch {
	s := NewScript(6.2)
	main := s.Thread("MainThread")
	cell := Call("<module>", "Cell [3]", 1, report.CodeCell)
	parse := Call("parse_rows", "Cell [3]", 4, report.CodeCell)
	strptime := Call("_strptime", "/usr/lib/python3.12/_strptime.py", 309, report.CodeOther)
	get := Call("get", "~/venv/lib/python3.12/site-packages/requests/api.py", 62, report.CodeIO)
	recv := Call("SSLSocket.recv_into", "/usr/lib/python3.12/ssl.py", 1200, report.CodeIO)
	group := Call("DataFrame.groupby", "~/venv/lib/python3.12/site-packages/pandas/core/frame.py", 8800, report.CodeFramework)
	agg := Call("GroupBy.mean", "~/venv/lib/python3.12/site-packages/pandas/core/groupby/groupby.py", 2300, report.CodeFramework)
	s.Span(main, 0, 0.4, report.StatePython, cell, get)
	s.Span(main, 0.4, 2.1, report.StateIO, cell, get, recv)
	s.line(0, 2.1, 1)
	for t := 2.1; t < 4.9; t += 0.02 {
		s.Span(main, t, t+0.007, report.StatePython, cell, parse)
		s.Span(main, t+0.007, t+0.02, report.StatePython, cell, parse, strptime)
	}
	s.line(2.1, 4.9, 2)
	s.Span(main, 4.9, 5.1, report.StatePython, cell, group)
	s.Span(main, 5.1, 5.9, report.StateNative, cell, group, agg)
	s.line(4.9, 5.9, 3)
	s.Span(main, 5.9, 6.2, report.StateWaiting, cell)
	s.line(5.9, 6.2, 4)
	s.track("cpu", report.Rate, "cores", "/proc/PID/stat", 0.1, 2, func(t float64) float64 {
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
	s.track("rss", report.Gauge, "B", "/proc/PID/statm", 0.1, 0, func(t float64) float64 { return (310 + 60*max(t-2, 0)) * (1 << 20) })
	s.track("net.recv", report.Rate, "B/s", "/proc/net/dev", 0.1, 0, func(t float64) float64 {
		if t < 2.1 {
			return 4e6 + 2e6*math.Sin(9*t)
		}
		return 0
	})
	r := s.CellOf(3, `raw = requests.get(url).text`, `rows = parse_rows(raw)`, `means = pd.DataFrame(rows).groupby("station").mean()`, `time.sleep(0.3)`)
	r.Headline = "Spent 2.8 of 6.2 s in line 2, in _strptime (_strptime)."
	r.Main = new(int)
	r.Findings = []Finding{{ID: "hot-line", Severity: "info", Text: r.Headline, File: "Cell [3]", Line: 2,
		Hint: "Parse the whole column at once: pd.to_datetime(column, format=…)."}}
	r.Growth = []Growth{{2, 168 << 20, 2.1, 4.9}, {3, 60 << 20, 4.9, 5.9}}
	r.Output = &report.Output{Messages: 12, Bytes: 4096, AtLeast: true}
	return r
}

// LongCell has about n spans of ever-changing stacks over a minute.
func LongCell(n int) *Sketch {
	s := NewScript(60)
	rnd := rand.New(rand.NewPCG(3, 4))
	main := s.Thread("MainThread")
	kinds := []report.Code{report.CodeCell, report.CodeUser, report.CodeData, report.CodeFramework, report.CodeDevice, report.CodeIO, report.CodeOther}
	var pool []Frame
	for i := range 300 {
		pool = append(pool, Call(fmt.Sprintf("Class%d.method_%d", i%40, i), fmt.Sprintf("~/venv/lib/python3.12/site-packages/package%d/module.py", i%25), i, kinds[rnd.IntN(len(kinds))]))
	}
	stack := []Frame{Call("<module>", "Cell [9]", 1, report.CodeCell)}
	for i := range n {
		depth := min(max(len(stack)+rnd.IntN(7)-3, 2), 20)
		stack = stack[:min(len(stack), depth)]
		for len(stack) < depth {
			stack = append(stack, pool[rnd.IntN(len(pool))])
		}
		stack[len(stack)-1] = pool[rnd.IntN(len(pool))]
		s.Span(main, 60*float64(i)/float64(n), 60*float64(i+1)/float64(n), report.State(rnd.IntN(4)), stack...)
		s.line(60*float64(i)/float64(n), 60*float64(i+1)/float64(n), 1+rnd.IntN(9))
	}
	for _, id := range []string{"cpu", "rss", "disk.read", "disk.write", "net.recv", "net.sent"} {
		s.track(id, report.Rate, "B/s", "/proc", 0.01, 0, func(float64) float64 { return 1e9 * rnd.Float64() })
	}
	src := make([]string, 9)
	for i := range src {
		src[i] = fmt.Sprintf("result_%d = compute(%d)", i, i)
	}
	return s.CellOf(9, src...)
}

// EmptyCell is a cell in which nothing was seen.
func EmptyCell() *Sketch {
	s := NewScript(0.0004)
	s.Thread("MainThread")
	r := s.CellOf(1)
	r.Headline = "Too short to profile: no samples. Run again with -p 0.0001."
	return r
}

// ManyThreads has more threads than a picture has lanes.
func ManyThreads() *Sketch {
	s := NewScript(5)
	rnd := rand.New(rand.NewPCG(5, 6))
	for i := range 200 {
		th := s.Thread(fmt.Sprintf("ThreadPoolExecutor-0_%d", i))
		for t := 0.0; t < 4.8; {
			d := 0.3 * rnd.Float64()
			st := []report.State{report.StateWaiting, report.StateWaiting, report.StatePython, report.StateNative, report.StateGIL, report.StateIO}[rnd.IntN(6)]
			if i > 100 {
				st = report.StateWaiting
			}
			s.Span(th, t, t+d, st, Call("worker", "thread.py", 80, report.CodeOther), Call("job", "Cell [2]", 3, report.CodeCell))
			t += d
		}
	}
	s.track("cpu", report.Rate, "cores", "/proc/PID/stat", 0.05, 16, func(float64) float64 { return 1 })
	s.track("gil.wait", report.Rate, "threads", "futexes of waiting threads", 0.05, 0, func(t float64) float64 { return 2 + math.Sin(7*t) })
	s.line(0, 5, 1)
	return s.CellOf(2, "list(pool.map(job, range(1000)))")
}

func deepRecursion() *Sketch {
	s := NewScript(2)
	main := s.Thread("MainThread")
	cell := Call("<module>", "Cell [4]", 1, report.CodeCell)
	fib, odd := Call("fib", "Cell [4]", 1, report.CodeCell), Call("is_odd", "Cell [4]", 5, report.CodeCell)
	even := Call("is_even", "Cell [4]", 9, report.CodeCell)
	for i := range 900 {
		stack := []Frame{cell}
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
		s.Span(main, float64(i)/450, float64(i+1)/450, report.StatePython, stack...)
	}
	s.line(0, 2, 1)
	return s.CellOf(4, "fib(900)")
}

// UglyNames has names that are long, hostile or not text.
func UglyNames() *Sketch {
	s := NewScript(3)
	main := s.Thread("<script>alert(1)</script>\x00")
	ugly := []string{
		"<lambda>", `a"b'c&d`, "nul\x00nul", "sur\xed\xa0\x80gate", "\xff\xfe", strings.Repeat("x", 10_000), "שלום עולם",
		"\u202egnirts desrever", "]]><script>", "a\u0300\u0301\u0302\u0303\u0304\u0305", "\uFDFD", "日本語の関数名", "👩‍👩‍👧‍👦", "\x1b[31mred", "line\nbreak", "",
	}
	for i, name := range ugly {
		d := 3 / float64(len(ugly))
		s.Span(main, float64(i)*d, float64(i+1)*d, report.State(i%report.NumStates), Call("<module>", "Cell [1]", 1, report.CodeCell), Call(name, name, i, report.CodeOther), Call(name, "f.py", 3, report.CodeCell))
		s.line(float64(i)*d, float64(i+1)*d, i+1)
	}
	r := s.CellOf(1, ugly...)
	r.Name, r.Headline, r.Cell.Outcome = ugly[0]+ugly[1], ugly[6]+ugly[8], ugly[2]
	r.Main, r.Limits = new(int), []int{1}
	for _, u := range ugly {
		r.Notes = append(r.Notes, u+": "+u)
		r.Findings = append(r.Findings, Finding{ID: u, Severity: u, Text: u, Hint: u, File: u, Line: 3, Code: u})
		r.Regions = append(r.Regions, report.Region{Name: u, Count: 3, TotalNS: 1e9, P50NS: 3e8, P95NS: 4e8})
		r.Tracks = append(r.Tracks, Track{ID: u, Device: -1, Unit: u, Source: u, Kind: report.Rate, T: []float64{1}, Value: []float64{1}})
	}
	r.Tracks = append(r.Tracks, Track{ID: "cpu", Device: -1, Unit: ugly[1], Source: ugly[8], Kind: report.Rate, Ended: ugly[0], T: []float64{1, 2}, Value: []float64{1, 2}})
	r.Method, r.Fallback, r.Python = ugly[0], ugly[7], ugly[2]
	return r
}

// EightGPUs has eight devices.
func EightGPUs() *Sketch {
	s := NewScript(30)
	main := s.Thread("MainThread")
	s.Span(main, 0, 30, report.StateNative, Call("<module>", "Cell [6]", 1, report.CodeCell), Call("DataParallel.forward", "~/torch/nn/parallel/data_parallel.py", 160, report.CodeFramework))
	s.line(0, 30, 1)
	r := s.r
	r.Certainty = "averaged over 167 ms: shares are estimates, bounds in brackets"
	for g := range 8 {
		s.track(fmt.Sprintf("gpu%d.util", g), report.Rate, "%", "NVML sample buffer", 0.167, 100, func(t float64) float64 {
			if int(t/2+float64(g)/8)%2 == 0 {
				return 80
			}
			return 0
		})
		s.track(fmt.Sprintf("gpu%d.mem", g), report.Gauge, "B", "NVML", 1, 24<<30, func(t float64) float64 { return float64(4+g) * (1 << 30) })
		r.GPUs = append(r.GPUs, GPU{Number: g, Used: true, Name: "NVIDIA GeForce RTX 4090", BusyS: 15, IdleS: 15, Source: "NVML sample buffer", Simulated: true})
		d := Idle{Device: g, Causes: []Cause{{Text: "communication between ranks", Seconds: 15, Line: 1, Code: "train(model)"}}}
		for t := 2 - float64(g)/4; t < 30; t += 4 {
			d.Intervals = append(d.Intervals, [2]float64{t, min(t+2, 30)})
		}
		r.Idle = append(r.Idle, d)
	}
	for i := range 12 {
		r.Causes = append(r.Causes, Cause{Text: "communication between ranks", Seconds: 10, Low: 7.5, High: 12.5, File: "~/project/train.py", Line: 10 + i,
			Code: "out = torch.nn.parallel.data_parallel(model, inputs, device_ids=list(range(8)), output_device=0)", Hint: "use DistributedDataParallel: one process per GPU, gradients overlap with backward"})
	}
	r.Headline = "GPU 0 works alone for 40 % of the time: DataParallel copies serially"
	return s.CellOf(6, "train(model)")
}

// WeekLong lasts a week.
func WeekLong() *Sketch {
	const week = 7 * 86400
	s := NewScript(week)
	main := s.Thread("MainThread")
	for i := range 2000 {
		st := report.StatePython
		if i%3 == 0 {
			st = report.StateWaiting
		}
		s.Span(main, week*float64(i)/2000, week*float64(i+1)/2000, st, Call("<module>", "Cell [1]", 1, report.CodeCell), Call(fmt.Sprintf("f%d", i%5), "Cell [1]", 3, report.CodeUser))
	}
	s.r.Stored = 64
	s.track("cpu", report.Rate, "cores", "/proc/PID/stat", 100, 64, func(t float64) float64 { return 30 + 20*math.Sin(t/9000) })
	s.line(0, week, 1)
	return s.CellOf(1, "while True: step()")
}

// AMinute is not to be changed.
var AMinute = sync.OnceValue(func() *report.View { return LongCell(140_000).View() })

// Samples are the reports every form is tested with.
func Samples() map[string]*report.View {
	all := map[string]*report.View{"long": AMinute()}
	for name, s := range All() {
		all[name] = s.View()
	}
	return all
}

// All are the sketches by name.
func All() map[string]*Sketch {
	return map[string]*Sketch{
		"training": TrainingCell(), "cpu": CpuCell(), "empty": EmptyCell(), "threads": ManyThreads(),
		"recursion": deepRecursion(), "ugly": UglyNames(), "gpus": EightGPUs(), "week": WeekLong(),
		"zero": {DurationS: 1e-6, Nodes: []Node{{}}}, "streams": ManyStreams(), "traced": TracedCell(),
	}
}

const (
	Gemm      = "ampere_sgemm_128x64_tn"
	gelu      = "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl>(int)"
	AllReduce = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)"
	ToDevice  = "Memcpy HtoD (Pinned -> Device)"
)

// Stream makes a lane of blocks given as start, end, index into names.
func Stream(device int, number int64, names []string, blocks ...[3]float64) Lane {
	return Lane{Device: device, Stream: number, Names: names, Blocks: blocks}
}

// TracedCell is the training cell with a trace of its GPU: many short kernels
// while it was busy, gradients summed up on a stream of their own.
func TracedCell() *Sketch {
	r := TrainingCell()
	r.Name = "traced"
	r.GPUs[0].Source = "torch.profiler trace"
	r.Certainty = "resolved by the 40 µs windows: the causes last longer"
	rnd := rand.New(rand.NewPCG(3, 4))
	var compute, reduce, copies [][3]float64
	for _, step := range r.Steps {
		begin := step.StartS + step.DataWaitS + 0.06
		copies = append(copies, [3]float64{begin, begin + 0.02, 0})
		for t := begin + 0.03; t < step.EndS; {
			d := 2e-5 + 2e-3*rnd.Float64()
			compute = append(compute, [3]float64{t, t + d, float64(rnd.IntN(2))})
			t += d + 2e-5
		}
		for t := step.EndS - 0.3; t < step.EndS-0.1; t += 0.07 {
			reduce = append(reduce, [3]float64{t, t + 0.06, 0})
		}
	}
	r.Kernels = []Lane{
		Stream(0, 7, []string{Gemm, gelu}, compute...), Stream(0, 20, []string{AllReduce}, reduce...), Stream(0, 24, []string{ToDevice}, copies...),
	}
	return r
}

// ManyStreams is a report whose lanes of kernels are as large as they get.
func ManyStreams() *Sketch {
	r := TrainingCell()
	r.Name = "many streams"
	rnd := rand.New(rand.NewPCG(5, 6))
	names := []string{Gemm, gelu, AllReduce, ToDevice, strings.Repeat("template<", 100), "<script>\x00\u202e"}
	for s := range 12 {
		var blocks [][3]float64
		for t := rnd.Float64(); t < r.DurationS; {
			d := 0.05 * math.Pow(rnd.Float64(), 3)
			blocks = append(blocks, [3]float64{t, t + d, float64(rnd.IntN(len(names)))})
			t += d + 0.02*rnd.Float64()
		}
		r.Kernels = append(r.Kernels, Stream(s%2, int64(s), names, blocks...))
	}
	return r
}
