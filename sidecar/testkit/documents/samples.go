package documents

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/show/viewer"
)

// Samples are the made-up recordings by name.
func Samples() map[string]func() *Document {
	return map[string]func() *Document{
		"training": Training, "cpu": CPU, "workers": Workers, "hour": Hour, "hostile": Hostile, "imports": Imports, "short": ShortCalls, "traced": Traced, "ranks": Ranks,
	}
}

const (
	venv        = "~/venv/lib/python3.12/site-packages/"
	loaderFile  = venv + "torch/utils/data/dataloader.py"
	fetchFile   = venv + "torch/utils/data/_utils/fetch.py"
	moduleFile  = venv + "torch/nn/modules/module.py"
	convFile    = venv + "torch/nn/modules/conv.py"
	tensorFile  = venv + "torch/_tensor.py"
	sgdFile     = venv + "torch/optim/sgd.py"
	saveFile    = venv + "torch/serialization.py"
	imageFile   = venv + "PIL/Image.py"
	cellFile    = "Cell [7]"
	epochFile   = "Cell [5]"
	datasetFile = "~/project/dataset.py"
)

var (
	cellModule = fn{"<module>", cellFile, 1, Cell}
	trainEpoch = fn{"train_epoch", epochFile, 1, Cell}
	next       = fn{"_BaseDataLoaderIter.__next__", loaderFile, 628, Data}
	nextData   = fn{"_SingleProcessDataLoaderIter._next_data", loaderFile, 671, Data}
	fetch      = fn{"_MapDatasetFetcher.fetch", fetchFile, 46, Data}
	getItem    = fn{"Images.__getitem__", datasetFile, 18, Data}
	decode     = fn{"decode_jpeg", datasetFile, 40, User}
	open_      = fn{"open", imageFile, 3280, InputOutput}
	resize     = fn{"Image.resize", imageFile, 2145, Other}
	forward    = fn{"Module._call_impl", moduleFile, 1511, Framework}
	model      = fn{"Net.forward", epochFile, 12, Cell}
	conv       = fn{"Conv2d._conv_forward", convFile, 450, Framework}
	backward   = fn{"Tensor.backward", tensorFile, 480, Framework}
	engine     = fn{"_engine_run_backward", venv + "torch/autograd/graph.py", 744, DeviceCall}
	step       = fn{"SGD.step", sgdFile, 76, Framework}
	item       = fn{"Tensor.item", tensorFile, 900, DeviceCall}
	cuda       = fn{"Tensor.cuda", tensorFile, 910, DeviceCall}
	save       = fn{"save", saveFile, 600, InputOutput}
)

var cellSource = []string{
	"model = Net().cuda()", "opt = torch.optim.SGD(model.parameters(), lr=0.1)", "for epoch in range(2):", "    loss = train_epoch(model, loader, opt)",
	"    print(epoch, loss)", "torch.save(model.state_dict(), path)",
}

var epochSource = []string{
	"def train_epoch(model, loader, opt):", "    total = 0.0", "    for x, y in loader:", "        x, y = x.cuda(), y.cuda()",
	"        loss = model(x, y)", "        loss.backward()", "        opt.step(); opt.zero_grad()", "        total += loss.item()", "    return total / len(loader)",
	"", "class Net(nn.Module):", "    def forward(self, x, y):", "        return F.cross_entropy(self.head(self.body(x)), y)",
}

// Training is a cell whose GPU waits for its loader: the picture of the look.
func Training() *Document { return trainingFor(13.4, 1) }

// trainingFor is such a cell of so many seconds, whose loader takes a multiple of the time.
func trainingFor(duration, loader float64) *Document {
	p := newProgram(duration)
	p.source(cellFile, 7, cellSource...)
	p.source(epochFile, 5, epochSource...)
	rnd := rand.New(rand.NewPCG(1, 2))
	main, pin, prefetch := p.thread(0, "MainThread"), p.thread(0, "pin_memory"), p.thread(0, "Thread-4 (prefetch)")
	var idle, waits [][2]float64
	in := func(line int, calls ...call) []call {
		return append([]call{cellModule.at(4), trainEpoch.at(line)}, calls...)
	}
	p.run(main, 0, 0.36, Native, cellModule.at(1), fn{"Module.cuda", moduleFile, 900, DeviceCall}.at(920))
	idle = append(idle, [2]float64{0, 0.36})
	t := 0.36
	for i := 0; t < duration-0.8; i++ {
		load := (0.55 + 0.25*rnd.Float64()) * loader
		if i == 5 {
			p.run(main, t, t+0.47, IO, cellModule.at(6), save.at(620), fn{"_save", saveFile, 760, InputOutput}.at(860))
			idle = append(idle, [2]float64{t, t + 0.47})
			t += 0.47
		}
		start := t
		for k := 0; k < 8; k++ {
			d := load / 8
			base := in(3, next.at(630), nextData.at(673), fetch.at(48), getItem.at(20))
			p.run(main, t, t+d*0.45, IO, append(base, decode.at(41), open_.at(3300))...)
			p.run(main, t+d*0.45, t+d*0.8, Native, append(base, decode.at(42))...)
			p.run(main, t+d*0.8, t+d*0.95, Native, append(base, resize.at(2160))...)
			p.run(main, t+d*0.95, t+d, Python, base...)
			t += d
		}
		idle, waits = append(idle, [2]float64{start, t}), append(waits, [2]float64{start, t})
		p.run(main, t, t+0.02, Native, in(4, cuda.at(915))...)
		t += 0.02
		for k := 0; k < 6; k++ {
			p.run(main, t, t+0.012, Native, in(5, forward.at(1520), model.at(13), conv.at(456))...)
			p.run(main, t+0.012, t+0.02, Python, in(5, forward.at(1520), model.at(13))...)
			t += 0.02
		}
		p.run(main, t, t+0.2, Native, in(6, backward.at(492), engine.at(768))...)
		t += 0.2
		p.run(main, t, t+0.05, Native, in(7, step.at(80))...)
		t += 0.05
		p.run(main, t, t+0.12, Waiting, in(8, item.at(905))...)
		t += 0.12
		busy := int64(0.5e9)
		p.d.Steps = append(p.d.Steps, Step{int64(start * 1e9), int64(t * 1e9), int64((load) * 1e9), &busy})
	}
	p.run(main, t, duration, Native, cellModule.at(6), save.at(620))
	idle = append(idle, [2]float64{t, duration})
	for at := 0.3; at < duration; at += 0.02 {
		p.run(pin, at, at+0.015, Waiting, fn{"_pin_memory_loop", venv + "torch/utils/data/_utils/pin_memory.py", 18, Data}.at(30))
		if rnd.IntN(3) == 0 {
			p.run(pin, at+0.015, at+0.02, Native, fn{"_pin_memory_loop", venv + "torch/utils/data/_utils/pin_memory.py", 18, Data}.at(34))
		}
		state := []State{Python, Native, GIL, Waiting, Waiting}[rnd.IntN(5)]
		p.run(prefetch, at, at+0.02, state, fn{"prefetch", epochFile, 30, Cell}.at(33))
	}
	busyAt := func(t float64) float64 {
		for _, s := range idle {
			if t >= s[0] && t < s[1] {
				return 0
			}
		}
		return 1
	}
	util := p.track("gpu.util", "rate", "%", 0, 0.1, func(t float64) float64 { return 100 * (busyAt(t-0.03) + busyAt(t) + busyAt(t+0.03)) / 3 })
	mem := p.track("gpu.mem", "gauge", "B", 0, 0.1, func(t float64) float64 { return math.Min(t, 1.2)/1.2*10*(1<<30) + 1.2*(1<<30)*busyAt(t) })
	cpu := p.track("cpu", "rate", "cores", -1, 0.1, func(t float64) float64 { return 1 + 0.6*math.Sin(5*t) - 0.4*busyAt(t) })
	rss := p.track("rss", "gauge", "B", -1, 0.1, func(t float64) float64 { return (2.6 + 0.04*t + 0.3*math.Max(0, math.Sin(t/2))) * (1 << 30) })
	disk := p.track("disk.read", "rate", "B/s", -1, 0.1, func(t float64) float64 { return 48e6 * (1 - busyAt(t)) * rnd.Float64() * 2 })
	cause := func(kind, text, hint string, s float64, file, line int, evidence ...[2]float64) Cause {
		return Cause{Kind: kind, Text: text, Hint: hint, NS: int64(s * 1e9), File: &file, Line: &line, Evidence: nanos(evidence)}
	}
	low, high := int64(0.2e9), int64(0.6e9)
	copyCause := cause("copy", "copy to the GPU", "pin_memory + non_blocking=True", 0.35, 1, 4)
	copyCause.LowNS, copyCause.HighNS = &low, &high
	p.idle(idle,
		cause("data", "waiting for data", "It loads in this process: num_workers=4, pin_memory=True.", 7.1, 1, 3, waits...),
		cause("checkpoint", "checkpoint", "save in a thread, or less often", 0.47, 0, 6, [2]float64{idle[6][0], idle[6][1]}),
		cause("start", "before the first launch", "", 0.36, 0, 1, [2]float64{0, 0.36}), copyCause)
	one, three := 1, 3
	p.d.Findings = []Finding{
		{Severity: "warning", Text: "The GPU waited for the DataLoader for 7.1 s, 53 % of the time", Hint: "It loads in this process. Try num_workers=4, pin_memory=True.", File: &one, Line: &three, CostNS: 7.1e9, Evidence: nanos(waits)},
		{Severity: "info", Text: "Thread-4 (prefetch) waited for the GIL for 2.1 s", Hint: "pure Python in two threads takes turns: a process, or code that lets the GIL go", Evidence: nanos([][2]float64{{2, 4}})},
	}
	d := p.document()
	d.Chart = lay(1120, &Chart{
		Title:   [][3]string{{"Cell [7]", "tp", "b"}, {"13.4 s", "tm", ""}, {"GPU 0 busy 36 %", "tg", "b"}, {"idle 8.3 s", "tw", "b"}},
		Finding: [][3]string{{"86 % of the idle time: waiting for the DataLoader", "tp", "b"}, {"Cell [5]:3", "tm", ""}, {"for x, y in loader:", "tp", "code"}, {"It loads in this process. Try num_workers=4.", "tm", ""}},
		Legend:  legend("cell", "your cells", "user", "your modules", "data", "data loading", "frame", "framework", "dev", "device calls", "io", "input/output", "other", "other Python", "idle", "GPU idle"),
		Notes:   []string{"13,390 stacks at 1 ms, read from outside · 0 lost, 2 incomplete · Python 3.12.1", "GPU: GPM windows of 100 ms, idle resolved by 20 like steps (R² 0.99)"},
		Threads: []string{"MainThread", "pin_memory", "Thread-4 (prefetch)"},
		Tables: []viewer.Table{{Heading: "Steps", Note: "shares of their time · 60 steps, median 0.21 s", Rows: []viewer.Row{
			{Name: "waiting for data", Figure: "7.1 s", Share: 0.54, Aside: "54 %"}, {Name: "GPU busy", Figure: "4.8 s", Share: 0.37, Aside: "37 %"},
		}}},
		Lanes: []Lane{
			{Kind: "track", Index: util, Paint: "gpu", Top: 100, Name: "GPU 0", Sources: []string{"H100", "GPM 100 ms"}, Value: "36 %", Aside: "engine active"},
			{Kind: "track", Index: mem, Paint: "gmem", Top: 16 << 30, Name: "memory", Sources: []string{"NVML · 100 ms"}, Value: "11.2 GiB", Aside: "peak, of 80 GiB"},
			{Kind: "track", Index: cpu, Paint: "cpu", Top: 2, Name: "CPU", Sources: []string{"process · 100 ms"}, Value: "1.02 cores", Aside: "of 8"},
			{Kind: "track", Index: rss, Paint: "mem", Top: 4 << 30, Name: "RSS", Sources: []string{"/proc · 100 ms"}, Value: "3.4 GiB", Aside: "peak, of 32 GiB"},
			{Kind: "track", Index: disk, Paint: "disk", Top: 100e6, Name: "disk read", Sources: []string{"/proc · 100 ms"}, Value: "36 MB/s", Aside: "peak 95 MB/s"},
			{Kind: "lines", Index: 1, Name: epochFile},
			{Kind: "flame", Index: main, Rows: 9, Name: "MainThread", Sources: []string{"waiting 60 %"}},
			{Kind: "thread", Index: prefetch, Name: "Thread-4 (prefetch)", Value: "38 % busy"},
			{Kind: "thread", Index: pin, Name: "pin_memory", Value: "8 % busy"},
		},
	})
	return d
}

// Traced is such a cell whose GPU's work is known: in each step three kernels, each launched 40 ms before it began, while the
// main thread ran backward().
func Traced() *Document {
	d := Training()
	k := Kernels{Names: []string{"gemm_tn", "reduce_kernel"}}
	last := int64(0)
	for _, s := range d.Steps {
		for i := range int64(3) {
			begin := s.EndNS - 320e6 + i*40e6
			k.Gap, k.Length = append(k.Gap, begin-last), append(k.Length, 30e6)
			k.Name, k.Count = append(k.Name, int(i%2)), append(k.Count, 1)
			k.Launch, k.Launcher = append(k.Launch, 40e6), append(k.Launcher, 0)
			last = begin + 30e6
		}
	}
	d.Kernels = []Kernels{k}
	d.Chart.Lanes = append(d.Chart.Lanes, Lane{Kind: "stream", Name: "GPU 0 stream 7"})
	d.Chart = lay(d.Chart.Width, d.Chart)
	return d
}

// Ranks is such a cell with the strip of three ranks that train in step, of which rank 1 is late in each step and rank 2
// in one; rank 1 is the thread that prefetches.
func Ranks() *Document {
	d := Training()
	c := &viewer.Cells{Ranks: []string{"rank 0", "rank 1", "rank 2"}, Threads: []int{0, 2, -1}, First: []int{0}}
	for rank := range c.Ranks {
		for i, s := range d.Steps {
			length := (s.EndNS - s.StartNS) / 1000
			own, level := length/4, 0
			if rank == 1 {
				own, level = length, 3
			}
			if rank == 2 && i == 4 {
				own, level = length/2, 2
			}
			c.AtUS, c.LengthUS = append(c.AtUS, s.StartNS/1000), append(c.LengthUS, length)
			c.Level, c.Rank, c.Step = append(c.Level, level), append(c.Rank, rank), append(c.Step, i+1)
			c.StepUS, c.OwnUS, c.MedianUS = append(c.StepUS, length), append(c.OwnUS, own), append(c.MedianUS, length/4)
		}
		c.First = append(c.First, len(c.AtUS))
	}
	d.Chart.Lanes = append(d.Chart.Lanes, Lane{Kind: "ranks", Index: -1, Name: "steps by rank", Sources: []string{"3 ranks, own time"}, Value: "rank 1", Aside: "all steps", Cells: c})
	d.Chart = lay(d.Chart.Width, d.Chart)
	return d
}

func legend(pairs ...string) (out [][2]string) {
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, [2]string{pairs[i], pairs[i+1]})
	}
	return out
}

// CPU is a cell without a GPU: numbers, a few threads that fight for the GIL.
func CPU() *Document {
	const duration = 3.2
	p := newProgram(duration)
	p.source("Cell [3]", 3, "def mandel(c):", "    z = 0", "    for n in range(100):", "        z = z * z + c", "        if abs(z) > 2: return n", "    return 100", "",
		"with ThreadPoolExecutor(2) as pool:", "    hashes = pool.map(digest, files)", "    rows = [mandel(c) for c in grid]", "table = pd.DataFrame(rows).describe()")
	module := fn{"<module>", "Cell [3]", 1, Cell}
	mandel := fn{"mandel", "Cell [3]", 1, Cell}
	describe := fn{"NDFrame.describe", venv + "pandas/core/generic.py", 11000, Framework}
	quantile := fn{"quantile", venv + "numpy/lib/_function_base_impl.py", 4200, Framework}
	digest := fn{"digest", "~/project/hashing.py", 8, User}
	rnd := rand.New(rand.NewPCG(3, 4))
	main := p.thread(0, "MainThread")
	pool := []int{p.thread(0, "ThreadPoolExecutor-0_0"), p.thread(0, "ThreadPoolExecutor-0_1")}
	for t := 0.0; t < 2.4; t += 0.001 {
		s := Python
		if rnd.IntN(4) == 0 {
			s = GIL
		}
		p.run(main, t, t+0.001, s, module.at(10), mandel.at(4+rnd.IntN(2)))
		for _, th := range pool {
			p.run(th, t, t+0.001, []State{GIL, GIL, Python, Native}[rnd.IntN(4)], digest.at(11))
		}
	}
	p.run(main, 2.4, 2.9, Native, module.at(11), describe.at(11050), quantile.at(4300))
	p.run(main, 2.9, duration, Waiting, module.at(11))
	cpu := p.track("cpu", "rate", "cores", -1, 0.05, func(t float64) float64 { return 1.1 + 0.2*math.Sin(9*t) })
	rss := p.track("rss", "gauge", "B", -1, 0.05, func(t float64) float64 { return (0.4 + 0.1*t) * (1 << 30) })
	p.d.Findings = []Finding{{Severity: "warning", Text: "Two threads waited for the GIL for 2.4 s", Hint: "use processes for pure Python", Evidence: nanos([][2]float64{{0.5, 1.5}})}}
	p.d.Memory = []Growth{{Line: 4, GrownBytes: 168 << 20, Evidence: nanos([][2]float64{{0.2, 2.2}})}, {Line: 11, GrownBytes: 96 << 20, Evidence: nanos([][2]float64{{2.4, 2.41}})}}
	d := p.document()
	d.Chart = lay(1120, &Chart{
		Title:   [][3]string{{"Cell [3]", "tp", "b"}, {"3.2 s", "tm", ""}, {"computing 72 %", "tg", "b"}, {"waiting 28 %", "tw", "b"}},
		Finding: [][3]string{{"75 % of the time in line 10", "tp", "b"}, {"rows = [mandel(c) for c in grid]", "tp", "code"}},
		Legend:  legend("cell", "your cells", "user", "your modules", "frame", "framework", "py", "thread in Python", "nat", "in native code", "gil", "waits for the GIL"),
		Notes:   []string{"3,200 stacks at 1 ms, read from outside · 0 lost · Python 3.12.1"},
		Lanes: []Lane{
			{Kind: "track", Index: cpu, Paint: "cpu", Top: 2, Name: "CPU", Sources: []string{"process · 50 ms"}, Value: "1.1 cores", Aside: "of 8"},
			{Kind: "track", Index: rss, Paint: "mem", Top: 1 << 30, Name: "RSS", Sources: []string{"/proc · 50 ms"}, Value: "740 MiB", Aside: "peak"},
			{Kind: "lines", Index: 0, Name: "cell line"},
			{Kind: "flame", Index: main, Rows: 3, Name: "MainThread", Sources: []string{"Python 56 %"}},
			{Kind: "thread", Index: pool[0], Name: "ThreadPoolExecutor-0_0", Value: "50 % busy"},
			{Kind: "thread", Index: pool[1], Name: "ThreadPoolExecutor-0_1", Value: "50 % busy"},
		},
	})
	return d
}

// Workers is a cell whose loader has processes of its own.
func Workers() *Document {
	const duration = 8.0
	p := newProgram(duration)
	p.source(cellFile, 7, cellSource...)
	p.source(epochFile, 5, epochSource...)
	rnd := rand.New(rand.NewPCG(5, 6))
	main := p.thread(0, "MainThread")
	var workers []int
	for w := range 4 {
		workers = append(workers, p.thread(p.process("loader-worker", w), "MainThread"))
	}
	var idle [][2]float64
	poll := fn{"_poll", "/usr/lib/python3.12/multiprocessing/connection.py", 930, Other}
	for t := 0.0; t < duration; t += 0.4 {
		wait := 0.1 + 0.2*rnd.Float64()
		p.run(main, t, t+wait, Waiting, cellModule.at(4), trainEpoch.at(3), next.at(630), fn{"_MultiProcessingDataLoaderIter._next_data", loaderFile, 1320, Data}.at(1325), poll.at(940))
		p.run(main, t+wait, t+0.4, Native, cellModule.at(4), trainEpoch.at(6), backward.at(492), engine.at(768))
		idle = append(idle, [2]float64{t, t + wait})
	}
	for _, w := range workers {
		for t := 0.05 * rnd.Float64(); t < duration; {
			d := 0.1 + 0.1*rnd.Float64()
			loop := fn{"_worker_loop", venv + "torch/utils/data/_utils/worker.py", 230, Data}
			p.run(w, t, t+d*0.7, Native, loop.at(308), fetch.at(48), getItem.at(20), decode.at(42))
			p.run(w, t+d*0.7, t+d*0.85, IO, loop.at(308), fetch.at(48), getItem.at(20), open_.at(3300))
			p.run(w, t+d*0.85, t+d, Waiting, loop.at(320))
			t += d
		}
	}
	util := p.track("gpu.util", "rate", "%", 0, 0.1, func(t float64) float64 { return 40 + 40*math.Sin(15*t) })
	cpu := p.track("cpu.children", "rate", "cores", -1, 0.1, func(t float64) float64 { return 3.4 + 0.3*math.Sin(3*t) })
	zero, three := 1, 3
	p.idle(idle, Cause{Kind: "data", Text: "waiting for data", Hint: "more workers, or less work per image", NS: 4e9, File: &zero, Line: &three, Evidence: nanos(idle)})
	d := p.document()
	d.Chart = lay(1120, &Chart{
		Title:   [][3]string{{"Cell [7]", "tp", "b"}, {"8.0 s", "tm", ""}, {"GPU 0 busy 50 %", "tg", "b"}, {"idle 4.0 s", "tw", "b"}},
		Finding: [][3]string{{"All of the idle time: waiting for the 4 workers, which decode", "tp", "b"}},
		Legend:  legend("cell", "your cells", "data", "data loading", "frame", "framework", "dev", "device calls", "idle", "GPU idle"),
		Notes:   []string{"8,000 stacks at 1 ms, read from outside · 4 child processes"},
		Threads: []string{"MainThread", "worker 0", "worker 1", "worker 2", "worker 3"},
		Lanes: []Lane{
			{Kind: "track", Index: util, Paint: "gpu", Top: 100, Name: "GPU 0", Sources: []string{"H100", "GPM 100 ms"}, Value: "50 %", Aside: "engine active"},
			{Kind: "track", Index: cpu, Paint: "cpu", Top: 8, Name: "CPU, children", Sources: []string{"/proc · 100 ms"}, Value: "3.4 cores", Aside: "of 8"},
			{Kind: "lines", Index: 1, Name: epochFile},
			{Kind: "flame", Index: main, Rows: 5, Name: "MainThread", Sources: []string{"waiting 50 %"}},
			{Kind: "thread", Index: 1, By: "code", Name: "worker 0", Value: "85 % busy"},
			{Kind: "thread", Index: 2, By: "code", Name: "worker 1", Value: "85 % busy"},
			{Kind: "thread", Index: 3, By: "code", Name: "worker 2", Value: "85 % busy"},
			{Kind: "thread", Index: 4, By: "code", Name: "worker 3", Value: "85 % busy"},
		},
	})
	return d
}

// Imports is a cell that imports for seconds.
func Imports() *Document {
	const duration = 2.0
	p := newProgram(duration)
	p.source("Cell [1]", 1, "import sklearn.ensemble", "import pandas as pd", "pd.read_csv('x.csv')")
	module := fn{"<module>", "Cell [1]", 1, Cell}
	main := p.thread(0, "MainThread")
	t := 0.0
	enter := func(d float64, s State, stack []call) {
		p.run(main, t, t+d, s, stack...)
		t += d
	}
	for k, names := range [][]string{{"sklearn/__init__", "sklearn/ensemble/__init__", "scipy/__init__", "scipy/stats/__init__"}, {"pandas/__init__", "numpy/__init__", "pandas/core/api"}} {
		stack := []call{module.at(k + 1)}
		for i, name := range names {
			enter(0.02, IO, stack)
			called := "import " + strings.ReplaceAll(strings.TrimSuffix(name, "/__init__"), "/", ".")
			stack = append(stack, fn{called, venv + name + ".py", 1, Other}.at(i+1))
			enter(0.2, Python, stack)
		}
	}
	for k := 0; t < duration; k++ {
		enter(0.0011, []State{Python, Native}[k%2], []call{module.at(3), fn{"read_csv", venv + "pandas/io/parsers/readers.py", 900, Framework}.at(950),
			fn{[]string{"_read", "_validate", "_convert"}[k%3], venv + "pandas/io/parsers/readers.py", 500 + k%3, Framework}.at(510 + k%7)})
	}
	cpu := p.track("cpu", "rate", "cores", -1, 0.05, func(t float64) float64 { return 0.9 + 0.1*math.Sin(9*t) })
	d := p.document()
	d.Chart = lay(1120, &Chart{
		Folded:  true,
		Title:   [][3]string{{"Cell [1]", "tp", "b"}, {"2.0 s", "tm", ""}, {"computing 94 %", "tg", "b"}},
		Finding: [][3]string{{"0.88 s, 44 % of the time, in line 1", "tp", "b"}, {"import sklearn.ensemble", "tp", "code"}},
		Legend:  legend("cell", "your cells", "frame", "framework", "other", "other Python"),
		Notes:   []string{"2,000 stacks at 1 ms"},
		Lanes: []Lane{
			{Kind: "track", Index: cpu, Paint: "cpu", Top: 2, Name: "CPU", Sources: []string{"process · 50 ms"}, Value: "0.9 cores", Aside: "of 8"},
			{Kind: "lines", Index: 0, Name: "cell line"},
			{Kind: "flame", Index: main, Rows: 4, Name: "MainThread", Sources: []string{"Python 80 %"}},
		},
	})
	return d
}

// ShortCalls is a loop of calls that are too short to be distinguished, between some that are not, and
// deeper than there are rows.
func ShortCalls() *Document {
	const duration = 3.0
	p := newProgram(duration)
	p.source("Cell [4]", 4, "for row in rows:", "    store(parse(row))")
	module := fn{"<module>", "Cell [4]", 1, Cell}
	own := func(name string) call { return fn{name, "~/project/rows.py", 10, User}.at(12) }
	loads := fn{"loads", "/usr/lib/python3.12/json/__init__.py", 299, Other}.at(346)
	rnd := rand.New(rand.NewPCG(9, 10))
	main := p.thread(0, "MainThread")
	t := 0.0
	enter := func(d float64, s State, stack ...call) {
		p.run(main, t, t+d, s, append([]call{module.at(2)}, stack...)...)
		t += d
	}
	for k := 0; t < duration; k++ {
		if k%700 == 699 {
			enter(0.3, Waiting, own("flush"))
		}
		enter(0.001+0.001*rnd.Float64(), Python, own("parse"), own("fields"), loads)
		enter(0.0005, Python, own("parse"))
		enter(0.0005+0.001*rnd.Float64(), Native, own("store"), own("check"), own("rule"), own(fmt.Sprintf("rule_%d", k%3)))
		if k%3 == 0 {
			enter(0.0004, Python)
		}
	}
	d := p.document()
	d.Chart = lay(1120, &Chart{
		Folded:  true,
		Title:   [][3]string{{"Cell [4]", "tp", "b"}, {"3.0 s", "tm", ""}, {"computing 90 %", "tg", "b"}},
		Finding: [][3]string{{"All of the time in line 2", "tp", "b"}, {"store(parse(row))", "tp", "code"}},
		Legend:  legend("cell", "your cells", "user", "your modules", "other", "other Python"),
		Notes:   []string{"3,000 stacks at 1 ms"},
		Lanes: []Lane{
			{Kind: "lines", Index: 0, Name: "cell line"},
			{Kind: "flame", Index: main, Rows: 4, Limit: 3, Name: "MainThread", Sources: []string{"Python 60 %"}},
		},
	})
	return d
}

// Hour is an hour at 1 kHz, thinned to 200,000 spans.
func Hour() *Document {
	d := Random(200_000, 2, 3600, 12)
	d.Chart.Title = [][3]string{{"Cell [2]", "tp", "b"}, {"1 h", "tm", ""}, {"computing 80 %", "tg", "b"}}
	return d
}

// Random is the worst case for a viewer: so many spans over so many threads, each of a random stack so
// many calls deep.
func Random(spans, threads int, duration float64, depth int) *Document {
	p := newProgram(duration)
	rnd := rand.New(rand.NewPCG(7, 8))
	var stacks []int
	for i := range 2000 {
		stack := []call{fn{"<module>", "Cell [2]", 1, Cell}.at(i%40 + 1)}
		for k := 1; k < depth; k++ {
			n := rnd.IntN(20)
			stack = append(stack, fn{fmt.Sprintf("function_%d_%d", k, n), fmt.Sprintf(venv+"package%d/module%d.py", n%7, n), 10 * n, Code(rnd.IntN(7))}.at(10*n+3))
		}
		stacks = append(stacks, p.node(stack...))
	}
	c := &Chart{
		Title: [][3]string{{"Cell [2]", "tp", "b"}}, Finding: [][3]string{{"Every stack is another", "tp", "b"}},
		Legend: legend("cell", "your cells", "frame", "framework", "other", "other Python"), Notes: []string{fmt.Sprintf("%d spans", spans)},
	}
	each := spans / threads
	length := duration * 1e6 / float64(each)
	for t := range threads {
		th := p.thread(0, fmt.Sprintf("thread %d", t))
		out := make([]span, each)
		for i := range out {
			out[i] = span{int64(float64(i) * length), int64(float64(i+1) * length), stacks[rnd.IntN(len(stacks))], State(rnd.IntN(3))}
		}
		p.threads[th] = out
		c.Lanes = append(c.Lanes, Lane{Kind: "flame", Index: th, Rows: depth, Name: fmt.Sprintf("thread %d", t)})
	}
	cpu := p.track("cpu", "rate", "cores", -1, duration/20000, func(t float64) float64 { return 4 + 3*math.Sin(t) })
	c.Lanes = append([]Lane{{Kind: "track", Index: cpu, Paint: "cpu", Top: 8, Name: "CPU", Value: "4 cores"}, {Kind: "lines", Index: -1, Name: "line"}}, c.Lanes...)
	d := p.document()
	d.Chart = lay(1120, c)
	return d
}

// Hostile has names that want to be markup, scripts, directions and towers.
func Hostile() *Document {
	ugly := []string{
		"<script>alert(1)</script>", "<img src=x onerror=alert(1)>", `a"b'c&d`, "nul\x00nul", strings.Repeat("x", 10_000), "שלום עולם", "\u202egnirts desrever", "]]><script>",
		"a\u0300\u0301\u0302\u0303\u0304\u0305", "\uFDFD", "日本語の関数名", "👩‍👩‍👧‍👦", "\x1b[31mred", "line\nbreak", "", "${alert(1)}", "__proto__", "constructor", "javascript:alert(1)", "</style><b>", "var(--cell);}*{display:none",
	}
	p := newProgram(3)
	p.source("Cell [1]", 1, ugly...)
	main := p.thread(0, ugly[0])
	for i, name := range ugly {
		d := 3 / float64(len(ugly))
		p.run(main, float64(i)*d, float64(i+1)*d, State(i%7), fn{"<module>", "Cell [1]", 1, Cell}.at(i+1), fn{name, name, i, Code(i % 7)}.at(i))
	}
	cpu := p.track(ugly[1], "rate", ugly[0], -1, 0.1, func(t float64) float64 { return t })
	p.idle([][2]float64{{0, 1}}, Cause{Kind: ugly[0], Text: ugly[1], Hint: ugly[6], NS: 1e9, Evidence: nanos([][2]float64{{0, 1}})})
	for _, name := range ugly {
		p.d.Findings = append(p.d.Findings, Finding{Severity: name, Text: name, Hint: name})
	}
	d := p.document()
	d.Name = ugly[0]
	d.Chart = lay(1120, &Chart{
		Title: [][3]string{{ugly[0], ugly[0], ugly[0]}, {ugly[6], "tp", "b"}}, Finding: [][3]string{{ugly[1], "tp", "code"}}, Legend: [][2]string{{ugly[0], ugly[1]}, {"cell", ugly[6]}},
		Notes: ugly, Threads: ugly,
		Lanes: []Lane{
			{Kind: "track", Index: cpu, Paint: ugly[0], Top: 3, Name: ugly[6], Sources: ugly[:2], Value: ugly[0], Aside: ugly[6]},
			{Kind: "lines", Index: -1, Name: ugly[4]}, {Kind: "flame", Index: main, Rows: 3, Name: ugly[0]}, {Kind: ugly[0], Index: -5, Name: ugly[3]},
		},
	})
	return d
}
