package chart

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/labels"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

func nanoseconds(s float64) int64 { return int64(math.Round(s * 1e9)) }

func times(of map[report.State]float64) report.StateTimes {
	t := make(report.StateTimes, report.NumStates)
	for s, d := range of {
		t[s] = nanoseconds(d)
	}
	return t
}

func TestSplitText(t *testing.T) {
	for _, c := range []struct {
		of   map[report.State]float64
		want string
	}{
		{map[report.State]float64{report.StatePython: 2, report.StateNative: 0.9, report.StateGIL: 2.1}, "waiting for the GIL 2.1 s · Python 2.0 s · native code 0.90 s"},
		{map[report.State]float64{report.StatePython: 2, report.StateNative: 3}, ""}, // the bar shows it
		{map[report.State]float64{report.StateWaiting: 5}, "waiting"},
		{map[report.State]float64{report.StatePython: 10, report.StateGIL: 0.1}, ""},
		{map[report.State]float64{report.StateOff: 1, report.StatePython: 1.5}, "Python 1.5 s · no free CPU 1.0 s"},
		{nil, ""},
	} {
		if got := labels.Split(times(c.of)); got != c.want {
			t.Errorf("%v: got %q, want %q", c.of, got, c.want)
		}
	}
	if got := labels.Split(nil); got != "" {
		t.Errorf("a time that is not divided: %q", got)
	}
}

// The parts of a bar fill it, each as long as its share.
func TestStateBars(t *testing.T) {
	whole := scene.Box{X0: 100, Y0: 0, X1: 200, Y1: 10}
	for _, c := range []struct {
		of   report.StateTimes
		want []scene.Bar
	}{
		{nil, []scene.Bar{{Box: whole, Paint: scene.PaintBar}}},
		{times(nil), []scene.Bar{{Box: whole, Paint: scene.PaintBar}}},
		{times(map[report.State]float64{report.StatePython: 1, report.StateGIL: 3}), []scene.Bar{{Box: scene.Box{X0: 100, Y0: 0, X1: 125, Y1: 10}, Paint: scene.PaintPython}, {Box: scene.Box{X0: 125, Y0: 0, X1: 200, Y1: 10}, Paint: scene.PaintGIL}}},
		{times(map[report.State]float64{report.StateNative: 1, report.StateOff: 1, report.StateUnknown: 2}), []scene.Bar{{Box: scene.Box{X0: 100, Y0: 0, X1: 125, Y1: 10}, Paint: scene.PaintNative}, {Box: scene.Box{X0: 125, Y0: 0, X1: 150, Y1: 10}, Paint: scene.PaintWait}, {Box: scene.Box{X0: 150, Y0: 0, X1: 200, Y1: 10}, Paint: scene.PaintGap}}},
	} {
		got := stateBars(whole, c.of)
		if len(got) != len(c.want) {
			t.Errorf("%v: got %v, want %v", c.of, got, c.want)
			continue
		}
		for i := range got {
			if got[i].Paint != c.want[i].Paint || math.Abs(got[i].X0-c.want[i].X0) > slack || math.Abs(got[i].X1-c.want[i].X1) > slack {
				t.Errorf("%v: got %v, want %v", c.of, got[i], c.want[i])
			}
		}
	}
}

// A row's text says what its bar shows, in every width of terminal.
func TestTextSaysStates(t *testing.T) {
	split := times(map[report.State]float64{report.StatePython: 2.9, report.StateGIL: 2.1})
	d := &digest{duration: 3, tables: []table{{heading: "Busiest functions", rows: []row{
		{name: "hasher", seconds: 5, share: 1, code: "hashing.py:8", states: split, hint: "5.2 s in all"},
		{name: "main", seconds: 1, share: 0.3, code: strings.Repeat("x", 40), states: times(map[report.State]float64{report.StatePython: 1})},
	}}}}
	for _, width := range []int{words.MinWidth, 80, 100, words.MaxWidth} {
		text := strings.Join(strings.Fields(textOf(d, width)), " ")
		if want := "Python 2.9 s · waiting for the GIL 2.1 s · 5.2 s in all"; !strings.Contains(text, want) {
			t.Errorf("in %d columns %q is missing from\n%s", width, want, text)
		}
	}
}

// What a machine has none of is in the document, and in what doctor and status print: not under each picture.
func TestPicturesLeaveOutWhatTheMachineHasNoneOf(t *testing.T) {
	view := func(notes ...report.Note) *report.View {
		return &report.View{Document: &report.Document{Targets: []report.Target{{}}, Processes: []report.Process{{}}, Subject: &report.Subject{}, DurationNS: nanoseconds(3), Notes: notes}}
	}
	broken := report.Note{ID: string(timeline.NoteUnavailable), Text: "disk.read: not allowed"}
	absent := report.Note{ID: string(timeline.NoteAbsent), Text: "GPU lanes: no NVIDIA driver"}
	if got, want := Text(view(absent, broken), 80), Text(view(broken), 80); got != want || !strings.Contains(got, broken.Text) {
		t.Errorf("the terminal says\n%s\nwant\n%s", got, want)
	}
	if notes := digestOf(view(absent, broken)).notes; slices.Contains(notes, absent.Text) || !slices.Contains(notes, broken.Text) {
		t.Errorf("the picture's notes are %q", notes)
	}
}

// What is only waited in is no busy function; the user's own may be, for they say at what.
func TestAFunctionThatOnlyWaitsIsNotBusy(t *testing.T) {
	waiting := map[report.State]float64{report.StateWaiting: 2, report.StateOff: 0.5}
	r := &report.View{Document: &report.Document{
		Targets: []report.Target{{}}, Processes: []report.Process{{}}, Subject: &report.Subject{}, DurationNS: nanoseconds(3),
		Files: []report.File{{Name: "threading.py", Code: report.CodeOther}, {Name: "own.py", Code: report.CodeUser}},
		Functions: []report.Function{
			{Name: "wait", File: 0, Code: report.CodeOther}, {Name: "compute", File: 0, Code: report.CodeOther}, {Name: "pause", File: 1, Code: report.CodeUser},
		},
		FunctionTimes: []report.FunctionTime{
			{Function: 0, SelfNS: nanoseconds(2.5), TotalNS: nanoseconds(2.5), StateNS: times(waiting)},
			{Function: 1, SelfNS: nanoseconds(1), TotalNS: nanoseconds(1), StateNS: times(map[report.State]float64{report.StatePython: 0.2, report.StateOff: 0.8})},
			{Function: 2, SelfNS: nanoseconds(0.9), TotalNS: nanoseconds(0.9), StateNS: times(map[report.State]float64{report.StateWaiting: 0.9})},
		},
	}}
	var names []string
	for _, rw := range functionsTable(r, 3).rows {
		names = append(names, rw.name)
	}
	if want := []string{"compute", "pause"}; !slices.Equal(names, want) {
		t.Errorf("busiest are %q, want %q", names, want)
	}
}

// Waiting for the GIL has the names of who waited; where only the notebook's machinery did, it is not shown.
func TestWaitingForTheGILSaysWho(t *testing.T) {
	lanes := func(waits ...float64) []trackLane {
		d := &report.Document{Targets: []report.Target{{}}, Processes: []report.Process{{}}, Subject: &report.Subject{}, DurationNS: nanoseconds(10)}
		for i, wait := range waits {
			d.Threads = append(d.Threads, report.Thread{
				Name: []string{"MainThread", "hash-0", "IOPub"}[i], Internal: i == 2, StateNS: times(map[report.State]float64{report.StateGIL: wait}),
			})
		}
		d.Tracks = []report.Track{{ID: gilWaitTrack, Kind: report.Rate, Unit: "threads", AtUS: []int64{10_000_000}, Value: []float64{0.9}}}
		return tracksOf(&report.View{Document: d}, gpuSummary{}, 10)
	}
	if got := lanes(0.01, 0, 9); len(got) != 0 {
		t.Errorf("of the notebook's threads alone: %+v", got)
	}
	for _, c := range []struct {
		waits []float64
		want  string
	}{{[]float64{1, 0, 8}, "of MainThread"}, {[]float64{1, 4, 0}, "of hash-0 + 1 more"}} {
		got := lanes(c.waits...)
		if len(got) != 1 || got[0].sources[0][0] != c.want || !strings.Contains(got[0].about, c.want) {
			t.Errorf("%v: got %+v, want %q", c.waits, got, c.want)
		}
	}
}

// The rate of what sampling took is of a second at least: the first looks at a process, made once, are most of it before.
func TestShortRecordingsHaveNoRateOfSampling(t *testing.T) {
	cpu := int64(14e6)
	s := &report.Sampling{Ticks: 50, CPUNS: &cpu, ResolutionNS: 1e6}
	for duration, want := range map[int64]string{53e6: "sampling took 14 ms of CPU", 2e9: "sampling took 14 ms of CPU (0.7 % of a core)"} {
		if got := samplingParts(s, duration); got[len(got)-1] != want {
			t.Errorf("of %d ns: %q, want %q", duration, got, want)
		}
	}
}

// The parts of bars that waited are hatched as the legend's patch is.
func TestWaitingIsHatchedInBars(t *testing.T) {
	waited := scene.Box{X0: 10, X1: 30, Y1: 10}
	s := &scene.Scene{Bars: []scene.Bar{{Box: scene.Box{X1: 10, Y1: 10}, Paint: scene.PaintPython}, {Box: waited, Paint: scene.PaintWait}}}
	if got, want := s.WaitingBars(), []scene.Box{waited}; !slices.Equal(got, want) {
		t.Errorf("hatched are %v, want %v", got, want)
	}
}

func TestThreadsTable(t *testing.T) {
	r := func(threads ...report.Thread) *report.View {
		return &report.View{Document: &report.Document{Targets: []report.Target{{}}, Processes: []report.Process{{}}, Threads: threads, Subject: &report.Subject{}, DurationNS: nanoseconds(3)}}
	}
	thread := func(name string, onCPU float64, of map[report.State]float64) report.Thread {
		th := report.Thread{Name: name, StateNS: times(of)}
		if onCPU >= 0 {
			cpu := nanoseconds(onCPU)
			th.OnCPUNS = &cpu
		}
		return th
	}
	main := thread("MainThread", 0.4, map[report.State]float64{report.StatePython: 0.4, report.StateOff: 0.6, report.StateWaiting: 2})
	hasher := thread("hasher", -1, map[report.State]float64{report.StatePython: 0.9, report.StateGIL: 2.1})
	parked := thread("parked", 0, map[report.State]float64{report.StateWaiting: 3})
	if got := threadsTable(r(main, parked), 3); len(got.rows) != 0 {
		t.Errorf("one thread that does something: %+v", got.rows)
	}
	rows := threadsTable(r(main, hasher, parked), 3).rows
	if len(rows) != 2 {
		t.Fatalf("got %+v, want main and hasher", rows)
	}
	// In the terminal a bar has one colour, so it is as long as its figure is: 0.4 of 3 s.
	text := textOf(&digest{duration: 3, tables: []table{threadsTable(r(main, hasher), 3)}}, 100)
	if want := "MainThread  0.40 s  ██           13 % busy"; !strings.Contains(text, want) || strings.Contains(text, "all of their time") {
		t.Errorf("the terminal says\n%s\nwant %q", text, want)
	}
	if got, want := rows[0].remark(), "waiting 2.0 s · no free CPU 0.60 s · Python 0.40 s"; got != want {
		t.Errorf("main: %q, want %q", got, want)
	}
	if got, want := rows[1].remark(), "waiting for the GIL 2.1 s · Python 0.90 s"; got != want || rows[1].aside != "30 % busy" {
		t.Errorf("hasher: %q (%s), want %q", got, rows[1].aside, want)
	}
}

// The legend says of the hatching that it is want of a CPU, too, where it is.
func TestTheLegendOfWhatIsHatched(t *testing.T) {
	for want, of := range map[string]map[report.State]float64{
		"waiting":                 {report.StatePython: 1, report.StateWaiting: 1},
		"waiting, or no free CPU": {report.StatePython: 1, report.StateOff: 1},
	} {
		l := &layouter{Sheet: scene.NewSheet(1120, ""), d: &digest{tables: []table{{rows: []row{{states: times(of)}}}}}, paints: make(map[scene.Paint]bool)}
		l.legend()
		if !slices.ContainsFunc(l.Legend, func(e scene.Entry) bool { return e.Means == want }) {
			t.Errorf("the legend is %+v, want %q in it", l.Legend, want)
		}
	}
}
