package chart

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/testkit/sketch"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

func TestIdleTableAddsUp(t *testing.T) {
	for name, r := range map[string]*report.View{"training": sketch.TrainingCell().View(), "gpus": sketch.EightGPUs().View()} {
		var want, got, share float64
		for _, c := range r.Idle.Causes {
			want += report.Seconds(c.NS)
		}
		tb := idleTable(r)
		for _, row := range tb.rows {
			got += row.seconds
			share += row.share
		}
		if math.Abs(got-want) > 1e-9 || math.Abs(share-1) > 1e-6 {
			t.Errorf("%s: rows add up to %v s and %v, want %v s and 1", name, got, share, want)
		}
		if len(tb.rows) > maxCauses {
			t.Errorf("%s: %d rows", name, len(tb.rows))
		}
		if !strings.Contains(tb.note, r.Idle.Text) {
			t.Errorf("%s: the heading does not say how certain it is: %q", name, tb.note)
		}
	}
}

func TestIdleTableSaysBoundsOfEstimates(t *testing.T) {
	if got := idleTable(sketch.EightGPUs().View()).rows[0].aside; got != "8 % [7.5 s – 12.5 s]" {
		t.Errorf("got %q", got)
	}
}

func TestUnusedGPUIsNotCalledIdle(t *testing.T) {
	r := sketch.CpuCell()
	r.Causes = []sketch.Cause{{Text: "no GPU work launched in this cell", Seconds: 6.2}}
	r.GPUs = []sketch.GPU{{Name: "NVIDIA A100", IdleS: 6.2}}
	r.Idle = []sketch.Idle{{Causes: r.Causes, Intervals: [][2]float64{{0, 6.2}}}}
	d := digestOf(r.View())
	if title := scene.Join(d.title, " "); !strings.Contains(title, "GPU 0 not used") || strings.Contains(title, "idle") {
		t.Errorf("title: %q", title)
	}
	if len(d.idle) != 0 || d.tables[0].heading != "Where the time went" {
		t.Errorf("%d shades, first table %q", len(d.idle), d.tables[0].heading)
	}
}

func TestThreadsAreSortedAndCounted(t *testing.T) {
	d := digestOf(sketch.ManyThreads().View())
	if len(d.threads) != maxThreads || d.more != "+ 88 more threads, and 99 that only waited" {
		t.Errorf("%d threads, %q", len(d.threads), d.more)
	}
}

func TestSharesAreDrawnToScale(t *testing.T) {
	if got := topOf(36, 100, "%"); got != 100 {
		t.Errorf("a lane of 36 %% reaches to %v", got)
	}
	if got := topOf(1, 80, "B"); got != 1.1 {
		t.Errorf("1 of 80 B: %v", got)
	}
}

func TestLanes(t *testing.T) {
	track := func(id string, kind report.TrackKind, unit string, limit float64, values ...float64) sketch.Track {
		tr := sketch.Track{ID: id, Device: -1, Kind: kind, Unit: unit, Limit: limit, Source: "/proc/1/io", Resolution: 0.1, Value: values}
		for i := range values {
			tr.T = append(tr.T, float64(i+1))
		}
		return tr
	}
	r := &sketch.Sketch{DurationS: 3, Nodes: []sketch.Node{{}}, Tracks: []sketch.Track{
		track("net.recv", report.Rate, "B/s", 0, 10, 20, 30), // next to nothing
		track("disk.read", report.Rate, "B/s", 0, 1e6, math.NaN(), 3e6),
		track("disk.write", report.Rate, "B/s", 0, 0, 240e3, 0), // a high rate, of few bytes
		track("rss", report.Gauge, "B", 16<<30, 1<<30, 2<<30, 1<<30),
		track("cpu", report.Rate, "cores", 8, 1, 2, 3),
		track("swap", report.Gauge, "B", 0, 0, 0, 0),
		track("thread.cpu", report.Rate, "cores", 1, 1, 1, 1),
	}}
	type lane struct{ name, value, aside string }
	var got []lane
	for _, l := range tracksOf(r.View(), gpuSummary{}, 3) {
		got = append(got, lane{l.name, l.value, l.aside})
	}
	want := []lane{{"CPU", "2 cores", "of 8"}, {"RSS", "2 GiB", "peak, of 16 GiB"}, {"disk read", "2 MB/s", "peak 3 MB/s"}}
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %v, want %v", got[i], want[i])
		}
	}
}

func TestUnknownStretchesAreGaps(t *testing.T) {
	nan := math.NaN()
	l := &layouter{Sheet: scene.Sheet{Scene: &scene.Scene{Plot: scene.Box{X0: 0, Y0: 0, X1: 100, Y1: 100}}}, d: &digest{duration: 10}, dt: fullDetail}
	lane := &trackLane{top: 10, points: []scene.Point{{From: 0, To: 2, Value: 5}, {From: 2, To: 4, Value: nan}, {From: 4, To: 10, Value: 10}}}
	got := l.areas(lane, scene.Box{X0: 0, Y0: 0, X1: 100, Y1: 20})
	if len(got) != 2 || got[0].X[len(got[0].X)-1] != 20 || got[1].X[0] != 40 || got[1].Y[0] != 0 || got[0].Y[0] != 10 {
		t.Errorf("got %+v", got)
	}
}

func TestThinKeepsMeansAndPeaks(t *testing.T) {
	var points []scene.Point
	for i := range 1000 {
		points = append(points, scene.Point{From: float64(i), To: float64(i + 1), Value: float64(i % 10)})
	}
	mean := func(ps []scene.Point) float64 {
		sum := 0.0
		for _, p := range ps {
			sum += p.Value * (p.To - p.From)
		}
		return sum / 1000
	}
	if got := mean(thin(points, 7, true)); math.Abs(got-mean(points)) > 1e-9 {
		t.Errorf("mean %v, want %v", got, mean(points))
	}
	for _, p := range thin(points, 20, false) {
		if p.Value != 9 {
			t.Fatalf("a gauge's peak is lost: %+v", p)
		}
	}
}

func TestEndedLanesSayWhy(t *testing.T) {
	lost := sketch.Track{ID: "gpu.util", Kind: report.Rate, Unit: "%", T: []float64{1, 2}, Value: []float64{50, 50}, Ended: "the GPU is lost"}
	other := lost
	other.ID = "gpu.sm"
	r := &sketch.Sketch{DurationS: 10, Nodes: []sketch.Node{{}}, GPUs: []sketch.GPU{{Used: true, BusyS: 1, IdleS: 1}}, Tracks: []sketch.Track{lost, other}}
	d := digestOf(r.View())
	if got, want := d.notes[len(d.notes)-1], "gpu0.util, gpu0.sm ended at 2.0 s: the GPU is lost"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	r.DurationS = 2.05 // it ended with the program
	if notes := strings.Join(digestOf(r.View()).notes, " "); strings.Contains(notes, "ended") {
		t.Errorf("got %q", notes)
	}
}

// The sentence on all of the GPU's idle time has nothing to add where one cause was
// nearly all of it.
func TestRemarksDoNotRepeatTheHeadline(t *testing.T) {
	text, err := os.ReadFile("../../understand/report/testdata/kernel.json")
	if err != nil {
		t.Fatal(err)
	}
	r, err := report.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	if got := remarksOf(r); len(r.Findings) != 2 || len(got) != 0 {
		t.Errorf("of %d findings also %v, want none", len(r.Findings), got)
	}
	elsewhere := *r.Findings[1].Line + 1
	r.Findings[1].Line = &elsewhere
	if got := remarksOf(r); len(got) != 1 {
		t.Errorf("of another line: %v", got)
	}
}

// A line whose callee was cut is not said to have taken all of its time itself; a stray cut
// sample is no news.
func TestCutCalleesAreShownBesideTheirCallers(t *testing.T) {
	r := sketch.CpuCell().View()
	line, function := &r.Lines[0], &r.FunctionTimes[0] // those that took most
	for i := range r.Lines {
		if r.Lines[i].SelfNS > line.SelfNS {
			line = &r.Lines[i]
		}
	}
	for i := range r.FunctionTimes {
		if r.FunctionTimes[i].SelfNS > function.SelfNS {
			function = &r.FunctionTimes[i]
		}
	}
	for _, c := range []struct {
		share float64
		shown bool
	}{{0.04, false}, {0.06, true}, {1, true}} {
		line.IncompleteNS, function.IncompleteNS = int64(c.share*float64(line.SelfNS)), int64(c.share*float64(function.SelfNS))
		for of, row := range map[string]row{
			"of it " + words.Seconds(report.Seconds(line.IncompleteNS)) + " with its callee cut":     linesTable(r, durationOf(r)).rows[0],
			"of it " + words.Seconds(report.Seconds(function.IncompleteNS)) + " with its callee cut": functionsTable(r, durationOf(r)).rows[0],
		} {
			if got := strings.Contains(row.remark(), of); got != c.shown {
				t.Errorf("%v of its time cut: the row says %q, %q in it is %v, want %v", c.share, row.remark(), of, got, c.shown)
			}
		}
		text := Text(r, 110)
		if got := strings.Count(text, "with its callee cut"); got != 2*btoi(c.shown) {
			t.Errorf("%v of a line's and a function's time cut: the terminal says so %d times\n%s", c.share, got, text)
		}
		picture, err := SVG(r, scene.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(picture), "with its callee cut"); got != c.shown {
			t.Errorf("%v of its time cut: in the picture: %v, want %v", c.share, got, c.shown)
		}
	}
}

// The sampling is shown as it was: the mean interval where the budget slowed it down, and an
// interval that was not to be had.
func TestTheSamplingIsToldAsItWas(t *testing.T) {
	const ms, s = int64(1e6), int64(1e9)
	for name, c := range map[string]struct {
		sampling report.Sampling
		want     string
	}{
		"as asked for": {report.Sampling{AskedNS: ms, Kept: [][2]int64{{0, ms}}, ResolutionNS: ms, Ticks: 10_000}, "10,000 samples, one every 1 ms"},
		"slowed down after 2 of 10 s": {
			report.Sampling{AskedNS: ms, Kept: [][2]int64{{0, ms}, {2 * s, 40 * ms}}, ResolutionNS: 4545454, Ticks: 2200}, "2,200 samples, one every 4.5 ms",
		},
		"slow from the beginning on": {report.Sampling{AskedNS: ms, Kept: [][2]int64{{0, ms}, {0, 30 * ms}}, ResolutionNS: 30 * ms, Ticks: 333}, "333 samples, one every 30 ms"},
		"of which nothing is known":  {report.Sampling{AskedNS: 5 * ms, ResolutionNS: 5 * ms, Ticks: 1}, "1 sample, one every 5 ms"},
		"clamped": {
			report.Sampling{AskedNS: 50_000, Kept: [][2]int64{{0, 50_000}}, ResolutionNS: 50_000, Ticks: 200_000, Clamped: []report.Clamp{{Option: "interval", AskedNS: 1000, KeptNS: 50_000}}},
			"200,000 samples, one every 50 µs",
		},
		"figures clamped": {
			report.Sampling{AskedNS: ms, Kept: [][2]int64{{0, ms}}, ResolutionNS: ms, Ticks: 10_000, Clamped: []report.Clamp{{Option: "figure_interval", AskedNS: 1000, KeptNS: 20 * ms}}},
			"10,000 samples, one every 1 ms",
		},
		"slowed down, clamped and stored more coarsely": {
			report.Sampling{
				AskedNS: 50_000, Kept: [][2]int64{{0, 50_000}, {5 * s, 200_000}}, ResolutionNS: 16 * ms, Ticks: 125_000,
				Clamped: []report.Clamp{{Option: "interval", AskedNS: 10_000, KeptNS: 50_000}},
			},
			"125,000 samples, one every 80 µs · stored at 16 ms",
		},
	} {
		got, _, ok := strings.Cut(strings.Join(samplingParts(&c.sampling, 10*s), " · "), " · 0 incomplete")
		if !ok || got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// The same cases as in the viewer's words.test.ts.
func TestBoundsAreWrittenWhereTheyAreTwoFigures(t *testing.T) {
	for want, ms := range map[string][2]int64{" [0.21 s – 0.26 s]": {210, 260}, " [0 s – 0.24 s]": {0, 240}, "": {240, 241}} {
		low, high := ms[0]*1e6, ms[1]*1e6
		if got := bounds(report.Cause{LowNS: &low, HighNS: &high}); got != want {
			t.Errorf("%v ms: %q, want %q", ms, got, want)
		}
	}
	if got := bounds(report.Cause{}); got != "" {
		t.Errorf("no estimate: %q", got)
	}
}

// Lines at which several tasks waited at once have a table; single awaits are lines as others are.
func TestWhereTasksWaited(t *testing.T) {
	const s = timeline.Nanos(time.Second)
	for most, want := range map[int]string{18: "2.0 s", 1: ""} {
		b := recordedScript()
		node := func(function string, line int) timeline.NodeID {
			return b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: function, File: "app.py", Line: line, FirstLine: line - 1}))
		}
		main := b.Thread(timeline.Thread{PID: 7, NativeID: 7, Main: true, RunsCell: true, OnCPU: -1})
		b.Set(main, 0, node("main", 7), timeline.StateWaiting, false)
		b.AddAwaits(0, 0, 2*s, timeline.AwaitsOther, map[timeline.NodeID]int{node("fetch", 3): most}, nil)
		b.AddAwaits(0, 2*s, 4*s, timeline.AwaitsOther, map[timeline.NodeID]int{node("main", 7): 1}, nil)
		r, err := report.Build(b.Snapshot(4*s), nil, report.Options{})
		if err != nil {
			t.Fatal(err)
		}
		rows := awaitsTable(r, durationOf(r)).rows
		text := Text(r, 110)
		if got := strings.Contains(text, "Where tasks waited"); got != (want != "") || got != (len(rows) > 0) {
			t.Fatalf("%d tasks: the terminal has the table: %v\n%s", most, got, text)
		}
		if got := strings.Contains(text, "fetch waiting") && strings.Contains(text, "9.0 tasks"); got != (most > 1) {
			t.Errorf("%d tasks: there are lanes of them: %v\n%s", most, got, text)
		}
		if want == "" {
			continue
		}
		if got := rows[0]; got.place+got.name != "app.py:3" || got.time() != want || got.share != 0.5 || got.aside != "18 tasks at once" || got.hint != "36.0 s over all tasks" {
			t.Errorf("got %+v", got)
		}
		if len(rows) != 2 || rows[1].aside != "1 task" || rows[1].hint != "" {
			t.Errorf("got %+v", rows)
		}
	}
}

// Lines of child processes follow, each once, with the process in which tasks waited most; so do their lanes.
func TestWhereTasksOfChildProcessesWaited(t *testing.T) {
	const s = timeline.Nanos(time.Second)
	b := recordedScript()
	b.Describe(func(r *timeline.Recording) {
		for n := range 3 {
			number := n + 1
			r.Processes = append(r.Processes, timeline.Process{PID: 8 + n, Parent: 7, Role: timeline.RoleWorker, Number: &number})
		}
	})
	fetch := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "fetch", File: "app.py", Line: 3, FirstLine: 2}))
	main := b.Thread(timeline.Thread{PID: 7, NativeID: 7, Main: true, RunsCell: true, OnCPU: -1})
	b.Set(main, 0, fetch, timeline.StateWaiting, false)
	for process, tasks := range map[int]int{1: 5, 2: 9, 3: 1} {
		b.AddAwaits(process, 0, 2*s, timeline.AwaitsOther, map[timeline.NodeID]int{fetch: tasks}, nil)
	}
	r, err := report.Build(b.Snapshot(4*s), nil, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rows := awaitsTable(r, durationOf(r)).rows
	if len(rows) != 1 || rows[0].aside != "9 tasks at once, in worker process 2 + 2 more" {
		t.Errorf("%+v", rows)
	}
	text := Text(r, 110)
	for _, want := range []string{"peak 5, worker process 1", "peak 9, worker process 2"} {
		if !strings.Contains(text, want) {
			t.Errorf("the terminal does not have %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "peak 1, worker process 3") {
		t.Errorf("a lane has a single task:\n%s", text)
	}
}

// recordedScript is the beginning of a recording of app.py.
func recordedScript() *timeline.Builder {
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	b.Describe(func(r *timeline.Recording) {
		r.Target = timeline.Target{PID: 7, Argv: []string{"app.py"}}
		r.Processes = []timeline.Process{{PID: 7, ParentIndex: -1, Role: timeline.RoleScript, CPU: -1}}
	})
	return b
}

// What the main thread was blocked on comes first; what took little of the time is left out.
func TestWhatSystemCallsWaitedFor(t *testing.T) {
	const s = timeline.Nanos(time.Second)
	b := recordedScript()
	node := func(line int) timeline.NodeID {
		return b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "load", File: "app.py", Line: line, FirstLine: 1}))
	}
	connection := func(number int) timeline.ObjectID {
		return b.Object(timeline.Object{Call: "recv", Kind: timeline.ObjectSocket, Name: "10.0.0.5:5432 (PostgreSQL)", Connection: number})
	}
	file := b.Object(timeline.Object{Call: "fsync", Kind: timeline.ObjectFile, Name: "/home/ann/ckpt.pt"})
	main := b.Thread(timeline.Thread{PID: 7, NativeID: 7, Main: true, RunsCell: true, OnCPU: -1})
	other := b.Thread(timeline.Thread{PID: 7, NativeID: 8, OnCPU: -1})
	blocked := func(id timeline.ThreadID, at timeline.Nanos, line int, on timeline.ObjectID) {
		b.Set(id, at, node(line), timeline.StateIO, false)
		b.SetWait(id, at, timeline.WaitSocket, on)
	}
	blocked(main, 0, 3, file)
	b.Set(main, 2*s, node(5), timeline.StatePython, false)
	blocked(main, 9*s, 4, connection(1))
	b.Set(main, 9*s+s/100, node(5), timeline.StatePython, false)
	blocked(other, 0, 8, connection(1))
	b.Set(other, 4*s, node(9), timeline.StatePython, false)
	blocked(other, 5*s, 8, connection(2))
	r, err := report.Build(b.Snapshot(10*s), nil, report.Options{Home: "/home/ann"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range blockedTable(r, 10).rows {
		got = append(got, row.name+" | "+row.time()+" | "+row.aside+" | "+row.hint)
	}
	want := []string{"fsync of ~/ckpt.pt | 2.0 s | app.py:3 | ", "recv from 10.0.0.5:5432 (PostgreSQL) | 9.0 s | app.py:8 | other threads · 2 connections · 2 times, 5.0 s at once"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if text := Text(r, 110); !strings.Contains(text, "What threads were blocked on") {
		t.Errorf("the terminal does not say it:\n%s", text)
	}
}

// Of a lock it is said who had it, and at which line that thread was meanwhile.
func TestWhoHadALock(t *testing.T) {
	const s = timeline.Nanos(time.Second)
	b := recordedScript()
	line := func(n int) timeline.NodeID {
		return b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "f", File: "/home/ann/app.py", Line: n, FirstLine: 1}))
	}
	main := b.Thread(timeline.Thread{PID: 7, Main: true, OnCPU: -1})
	other := b.Thread(timeline.Thread{PID: 7, NativeID: 8, Name: "loader", OnCPU: -1})
	b.Set(main, 0, line(2), timeline.StateWaiting, false)
	b.SetWait(main, 0, timeline.WaitLock, b.Object(timeline.Object{Call: "lock", Kind: timeline.ObjectLock, Holder: other}))
	b.Set(other, 0, line(4), timeline.StateWaiting, false)
	b.Set(other, 7*s, line(3), timeline.StatePython, false)
	r, err := report.Build(b.Snapshot(10*s), nil, report.Options{Home: "/home/ann"})
	if err != nil {
		t.Fatal(err)
	}
	rows := blockedTable(r, 10).rows
	if len(rows) != 1 || rows[0].name != "lock held by 'loader'" || rows[0].aside != "app.py:2" || rows[0].hint != "it was mostly at app.py:4" || rows[0].time() != "10.0 s" {
		t.Errorf("%+v", rows)
	}
	w, text := &r.Blocked[0], "step()"
	r.Files[w.File].Lines = slices.Repeat([]*string{&text}, 4)
	if got := heldAt(r, w); got != "it was mostly at app.py:4 · step()" {
		t.Errorf("at another line: %q", got)
	}
	if w.Holder.Line = w.Line; heldAt(r, w) != "it was mostly at app.py:2" {
		t.Errorf("at the line that waits, whose text the row has: %q", heldAt(r, w))
	}
}

// Of the lock of a file or a database it is said which process had it.
func TestWhichProcessHadALock(t *testing.T) {
	const s = timeline.Nanos(time.Second)
	b := recordedScript()
	main := b.Thread(timeline.Thread{PID: 7, Main: true, OnCPU: -1})
	number := 2
	b.Describe(func(r *timeline.Recording) {
		worker := timeline.Process{PID: 9, ParentIndex: 0, Role: timeline.RoleWorker, Number: &number, CPU: -1}
		r.Processes = append(r.Processes, worker)
	})
	for i, owner := range []int{8, 7, 9} {
		at := timeline.Nanos([]int{0, 4, 7}[i]) * s // of 10
		b.Set(main, at, b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "f", File: "/home/ann/app.py", Line: 2 + i, FirstLine: 1})), timeline.StateWaiting, false)
		b.SetWait(main, at, timeline.WaitSleep, b.Object(timeline.Object{Call: "sleep", Kind: timeline.ObjectDatabase, Name: "/home/ann/x.db", Owner: owner}))
	}
	r, err := report.Build(b.Snapshot(10*s), nil, report.Options{Home: "/home/ann"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range blockedTable(r, 10).rows {
		got = append(got, row.name+" | "+row.aside+" | "+row.hint)
	}
	want := []string{"lock of ~/x.db (SQLite) | app.py:2 | process 8 had it", "lock of ~/x.db (SQLite) | app.py:3 | the process itself had it",
		"lock of ~/x.db (SQLite) | app.py:4 | process 9 (worker process 2) had it"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Lines while which ran the memory grew by much have a table; a program that only imports has none.
func TestGrowthOfResidentMemory(t *testing.T) {
	const s, mb = timeline.Nanos(time.Second), int64(1 << 20)
	for grown, want := range map[int64]string{600 * mb: "400 MiB", 6 * mb: ""} {
		b := timeline.NewBuilder(timeline.Options{Origin: 1})
		b.Describe(func(r *timeline.Recording) {
			r.Target = timeline.Target{PID: 7, Argv: []string{"app.py"}}
			r.Processes = []timeline.Process{{PID: 7, ParentIndex: -1, Role: timeline.RoleScript, CPU: -1, Memory: timeline.ProcessMemory{Peak: 2 * grown}}}
		})
		node := func(line int) timeline.NodeID {
			return b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "load", File: "app.py", Line: line, FirstLine: 1}))
		}
		library := b.Child(node(5), b.Frame(timeline.Frame{Function: "read_csv", File: "/usr/lib/python3/dist-packages/pandas/io.py", Line: 9, FirstLine: 8}))
		main := b.Thread(timeline.Thread{PID: 7, NativeID: 7, Main: true, RunsCell: true, OnCPU: -1})
		b.Set(main, 0, node(3), timeline.StatePython, false)
		b.AddGrowth(timeline.Growth{Start: 0, End: s, Before: node(3), After: node(3), Bytes: grown / 2})
		b.AddGrowth(timeline.Growth{Start: s, End: 2 * s, Before: node(3), After: node(4), Bytes: grown / 2})
		b.AddGrowth(timeline.Growth{Start: 2 * s, End: 3 * s, Bytes: -grown / 4})
		r, err := report.Build(b.Snapshot(4*s), nil, report.Options{})
		if err != nil {
			t.Fatal(err)
		}
		made := memoryTable(r)
		marks := growthMarks(r)
		if (len(marks) > 0) != (want != "") {
			t.Errorf("%d bytes: %d marks", grown, len(marks))
		} else if want != "" && (marks[0].from != 0 || marks[0].to != 2 || !strings.HasPrefix(marks[0].about, "app.py:3  ")) {
			t.Errorf("%d bytes: the first mark is %+v", grown, marks[0])
		}
		if got := strings.Contains(Text(r, 110), "Growth of resident memory"); got != (want != "") || got != (len(made.rows) > 0) {
			t.Fatalf("%d bytes: the terminal has the table: %v", grown, got)
		}
		if want == "" {
			continue
		}
		if got := made.rows[0]; got.place+got.name != "app.py:3" || got.time() != want || got.aside != "67 %" || got.hint != "of it 100 MiB perhaps of a line before or after" || !got.keeps {
			t.Errorf("got %+v", got)
		}
		if functions := memoryFunctionsTable(r, memoryTable(r)); len(functions.rows) != 0 {
			t.Errorf("a table of the one function: %+v", functions)
		}
		b.AddGrowth(timeline.Growth{Start: 3 * s, End: 4 * s, Before: library, After: library, Bytes: grown / 2})
		if r, err = report.Build(b.Snapshot(4*s), nil, report.Options{}); err != nil {
			t.Fatal(err)
		}
		if functions := memoryFunctionsTable(r, memoryTable(r)); len(functions.rows) != 2 || functions.rows[1].name != "read_csv" || functions.rows[1].time() != "300 MiB" || functions.rows[0].hint != "900 MiB with what it called" {
			t.Errorf("functions %+v", functions.rows)
		}
		if want := "peak 1.2 GiB · 150 MiB given back · 450 MiB kept · by your own lines"; made.note != want {
			t.Errorf("got %q, want %q", made.note, want)
		}
	}
}

// What grew in worker processes is in the table, too: a line once, with how many processes it grew in.
func TestGrowthInWorkerProcesses(t *testing.T) {
	const mib, s = int64(1 << 20), timeline.Nanos(1e9)
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	b.Describe(func(r *timeline.Recording) {
		r.Target = timeline.Target{PID: 7, Argv: []string{"app.py"}}
		r.Processes = []timeline.Process{{PID: 7, ParentIndex: -1, Role: timeline.RoleScript, CPU: -1}}
		for pid := 8; pid < 10; pid++ {
			r.Processes = append(r.Processes, timeline.Process{PID: pid, ParentIndex: 0, Role: timeline.RoleWorker, CPU: -1})
		}
	})
	node := func(line int) timeline.NodeID {
		return b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "work", File: "app.py", Line: line, FirstLine: 1}))
	}
	for process := range 3 {
		th := b.Thread(timeline.Thread{PID: 7 + process, NativeID: 7 + process, Process: process, Main: true, RunsCell: process == 0, OnCPU: -1})
		b.Set(th, 0, node(3+min(process, 1)), timeline.StatePython, false)
		b.AddGrowth(timeline.Growth{Process: process, Start: 0, End: s, Before: node(3 + min(process, 1)), After: node(3 + min(process, 1)), Bytes: []int64{100, 70, 80}[process] * mib})
	}
	r, err := report.Build(b.Snapshot(2*s), nil, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rows := memoryTable(r).rows
	if len(rows) != 2 || rows[0].time() != "150 MiB" || rows[0].hint != "in 2 worker processes, at most 80 MiB in one" || !rows[0].keeps || rows[1].time() != "100 MiB" || rows[1].hint != "" || rows[1].aside != "40 %" {
		t.Errorf("%+v", rows)
	}
}

// What a line takes and gives back again and again is not what the peak was made of.
func TestWhatMadeThePeakLeadsWhereMostWasGivenBack(t *testing.T) {
	const mib, s = int64(1 << 20), timeline.Nanos(1e9)
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	b.Describe(func(r *timeline.Recording) {
		r.Target = timeline.Target{PID: 7, Argv: []string{"app.py"}}
		r.Processes = []timeline.Process{{PID: 7, ParentIndex: -1, Role: timeline.RoleScript, CPU: -1, Memory: timeline.ProcessMemory{Peak: 160 * mib}}}
	})
	node := func(line int) timeline.NodeID {
		return b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "work", File: "app.py", Line: line, FirstLine: 1}))
	}
	keeps, temporary := node(3), node(5)
	main := b.Thread(timeline.Thread{PID: 7, NativeID: 7, Main: true, RunsCell: true, OnCPU: -1})
	b.Set(main, 0, keeps, timeline.StatePython, false)
	for i := range timeline.Nanos(10) {
		b.AddGrowth(timeline.Growth{Start: 3 * i * s, End: (3*i + 1) * s, Before: keeps, After: keeps, Bytes: 10 * mib})
		b.AddGrowth(timeline.Growth{Start: (3*i + 1) * s, End: (3*i + 2) * s, Before: temporary, After: temporary, Bytes: 40 * mib})
		b.AddGrowth(timeline.Growth{Start: (3*i + 2) * s, End: (3*i + 3) * s, Bytes: -40 * mib})
	}
	r, err := report.Build(b.Snapshot(30*s), nil, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	made := memoryTable(r)
	if made.heading != "What the peak of resident memory was made of" || len(made.rows) != 2 {
		t.Fatalf("%+v", made)
	}
	if first, second := made.rows[0], made.rows[1]; first.time() != "100 MiB" || first.hint != "" || second.time() != "40 MiB" || second.hint != "400 MiB in all, given back and grown anew" {
		t.Errorf("%+v, %+v", first, second)
	}
}

func TestOneAllocationIsOne(t *testing.T) {
	r := sketch.TrainingCell().View()
	r.Allocations = &report.Allocations{Tool: "memray", PeakBytes: 3 << 20, Lines: []report.AllocationLine{
		{Line: 1, PeakBytes: 2 << 20, PeakAllocations: 1, Function: "zeros"}, {Line: 2, PeakBytes: 1 << 20, PeakAllocations: 1200, Function: "list"},
	}}
	for i, want := range []string{"1 allocation, most in zeros", "1,200 allocations, most in list"} {
		if rows := allocationsTable(r).rows; len(rows) != 2 || rows[i].hint != want {
			t.Errorf("%+v, want %q", rows, want)
		}
	}
}
