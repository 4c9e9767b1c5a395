package report_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// long is a cell of a minute whose stack changes at each sample, half of the time in
// one function.
func long(t *testing.T) *report.View {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	b := timeline.NewBuilder(timeline.Options{Origin: 1, StartedAt: time.Unix(0, 0)})
	var nodes []timeline.NodeID
	for i := range 400 {
		at := b.Child(timeline.RootNode, b.Frame(cellAt(1+i%3)))
		nodes = append(nodes, b.Child(at, b.Frame(timeline.Frame{Function: fmt.Sprintf("f%d", i), File: "/home/u/train.py", Line: 3 * i, FirstLine: max(3*i-2, 1)})))
	}
	b.Thread(timeline.Thread{PID: 1, NativeID: 1, Name: "main", Main: true, RunsCell: true})
	for at := timeline.Nanos(0); at < 60_000*ms; at += ms {
		node := nodes[7]
		if random.IntN(2) == 0 {
			node = nodes[random.IntN(len(nodes))]
		}
		b.Set(0, at, node, timeline.StatePython, false)
	}
	b.Thread(timeline.Thread{PID: 1, NativeID: 2, Name: "writer"})
	b.Thread(timeline.Thread{PID: 1, NativeID: 3, Name: "loader"})
	lock := b.Object(timeline.Object{Call: "lock", Kind: timeline.ObjectLock, Holder: 2})
	b.Set(1, 0, b.Child(timeline.RootNode, b.Frame(cellAt(2))), timeline.StateWaiting, false)
	b.SetWait(1, 0, timeline.WaitLock, lock)
	b.Set(2, 0, b.Child(timeline.RootNode, b.Frame(cellAt(3))), timeline.StateWaiting, false)
	w := b.Track(timeline.TrackSpec{ID: "cpu", Kind: timeline.KindRate, Unit: "cores", Device: -1})
	for at := 10 * ms; at <= 60_000*ms; at += 10 * ms {
		w.Add(at, random.Float64())
	}
	b.Describe(func(r *timeline.Recording) {
		r.Host.Name = "secret"
		r.Target = timeline.Target{PID: 1, Cell: &timeline.Cell{ExecutionCount: 7, File: cellFile, Text: "a = 1\nb = 2\nc = 3\n"}}
	})
	return built(t, b.Snapshot(60_000*ms), report.Options{})
}

func TestThinnedReportsAreBoundedAndKeepTheirShares(t *testing.T) {
	v := long(t)
	whole, err := report.Pack(v.Document)
	if err != nil {
		t.Fatal(err)
	}
	before, _ := json.Marshal(v.Document)
	s := schema(t)
	for _, budget := range []int{100_000, 30_000, 8_000} {
		e, err := v.Thin(budget)
		if err != nil {
			t.Fatal(err)
		}
		d, packed := e.Document, e.Packed
		thin, err := report.Read(packed)
		if err != nil {
			t.Fatal(err)
		}
		if len(packed) > budget || len(whole) <= budget || len(packed) < budget/8 {
			t.Errorf("%d of %d bytes for a budget of %d", len(packed), len(whole), budget)
		}
		text, _ := json.Marshal(d)
		validate(t, s, text)
		if strings.Contains(string(text), "secret") {
			t.Error("it is shown to others, and names the machine")
		}
		if th := thin.Thinned; th == nil || th.BudgetBytes != budget || th.SpansStepNS == nil || th.TracksPoints == nil || len(thin.Tracks[0].AtUS) > *th.TracksPoints {
			t.Errorf("budget %d: %+v does not say what was left out", budget, th)
		}
		// The share of one function is that of independent draws.
		share, all := int64(0), int64(0)
		for _, span := range thin.History(0) {
			all += span.End - span.Start
			if frames := thin.Stack(span.Node, 10); thin.FunctionName(thin.FunctionOf(frames[1])) == "f7" {
				share += span.End - span.Start
			}
		}
		draws := float64(60e9) / float64(*thin.Thinned.SpansStepNS)
		if got := float64(share) / float64(all); math.Abs(got-0.5) > 4*0.5/math.Sqrt(draws)+0.02 {
			t.Errorf("budget %d: f7 has %.3f of the time, want half", budget, got)
		}
		if thin.Text(thin.Target().Cell.File, 2) != "b = 2" || thin.Headline.Text != v.Headline.Text || len(thin.Lines) == 0 {
			t.Errorf("budget %d: what is read first is lost", budget)
		}
		if w := thin.Blocked; len(w) != 1 || w[0].Object != "loader" || w[0].Holder == nil || w[0].Holder.Line != 3 || thin.Text(w[0].Holder.File, w[0].Holder.Line) != "c = 3" {
			t.Errorf("budget %d: who had the lock is lost: %+v", budget, w)
		}
		whole = packed // each is smaller than the one before
	}
	if after, _ := json.Marshal(v.Document); string(after) != string(before) {
		t.Error("the whole document was changed")
	}
}

func TestAReportThatFitsStaysAsItIs(t *testing.T) {
	v := goldens(t)["merged"]
	e, err := v.Thin(1 << 20)
	if err != nil || e.Document != v.Document || e.Thinned != nil || len(e.Packed) == 0 {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestKernelsAreJoined(t *testing.T) {
	v := goldens(t)["merged"]
	whole, err := report.Pack(v.Document)
	if err != nil {
		t.Fatal(err)
	}
	d, err := v.Thin(len(whole) - 1)
	if err != nil {
		t.Fatal(err)
	}
	count := int64(0)
	for _, n := range d.Kernels[0].Count {
		count += n
	}
	if count != 5 || d.Kernels[0].ResolutionNS < *d.Thinned.SpansStepNS {
		t.Errorf("%d kernels in %+v, want 5", count, d.Kernels[0])
	}
}

// What refers to a document's lists by index can refer to the thinned one's.
func TestAnExcerptTellsWhereThingsAre(t *testing.T) {
	for name, v := range goldens(t) {
		whole, err := report.Pack(v.Document)
		if err != nil {
			t.Fatal(err)
		}
		e, err := v.Thin(len(whole) - 1)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if e.Thinned == nil || len(e.Tracks) != len(v.Tracks) || len(e.Files) != len(v.Files) {
			t.Fatalf("%s: %d tracks and %d files are there, want %d and %d", name, len(e.Tracks), len(e.Files), len(v.Tracks), len(v.Files))
		}
		for i, at := range e.Tracks {
			if at >= 0 && e.Document.Tracks[at].ID != v.Tracks[i].ID {
				t.Errorf("%s: track %s became %s", name, v.Tracks[i].ID, e.Document.Tracks[at].ID)
			}
		}
		for i, at := range e.Files {
			if at >= 0 && e.Document.Files[at].Name != v.Files[i].Name {
				t.Errorf("%s: file %s became %s", name, v.Files[i].Name, e.Document.Files[at].Name)
			}
		}
		for i := range e.Threads {
			if e.Threads[i].Name != v.Threads[i].Name {
				t.Errorf("%s: thread %d is %q, was %q", name, i, e.Threads[i].Name, v.Threads[i].Name)
			}
		}
	}
}

// What names a machine is in no smaller document, nor in a whole one for others, and stays in the report itself.
func TestWithoutMachinesNothingNamesThem(t *testing.T) {
	name, run := "node7", "ranks of node7:29500"
	d := &report.Document{
		Hosts:   []report.Host{{Name: &name, Readings: []report.ClockReading{{BootID: "another", LowNS: 1, HighNS: 2}}}},
		Targets: []report.Target{{Run: &run}},
	}
	shown := d.WithoutMachines()
	if shown.Hosts[0].Name != nil || shown.Hosts[0].Readings != nil || shown.Targets[0].Run != nil {
		t.Errorf("it has %+v and %+v", shown.Hosts[0], shown.Targets[0])
	}
	if d.Hosts[0].Name == nil || d.Hosts[0].Readings == nil || d.Targets[0].Run == nil {
		t.Error("the report itself has lost them")
	}
}
