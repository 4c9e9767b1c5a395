package profiler

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/targetfs"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

// waitingFor records a main thread that stays in a line of a file while the
// device is idle, every other 100 ms.
func waitingFor(target timeline.Target, frames ...timeline.Frame) *timeline.Recording {
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	b.Describe(func(r *timeline.Recording) {
		r.Target = target
		r.GPUs = []timeline.GPU{{Index: 0, PIDs: []int{target.PID}}}
	})
	main := b.Thread(timeline.Thread{PID: target.PID, NativeID: 1, Main: true})
	util := b.Track(timeline.TrackSpec{ID: "gpu0.util", Kind: timeline.KindRate, Unit: "%", Device: 0})
	node := timeline.RootNode
	for _, f := range frames {
		node = b.Child(node, b.Frame(f))
	}
	b.Set(main, 0, node, timeline.StateWaiting, false)
	const step = timeline.Nanos(100 * time.Millisecond)
	for at := timeline.Nanos(0); at < 20*step; at += 2 * step {
		util.AddWindow(at, at+step, 100)
		util.AddWindow(at+step, at+2*step, 0)
	}
	return b.Snapshot(20 * step)
}

func TestEveryFrontDoorNamesCausesByTheTextOfFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "metrics.py")
	const text = "def accuracy(good):\n    return good.sum().item()\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	leaf := timeline.Frame{Function: "accuracy", File: file, Line: 2}
	cell := timeline.Cell{ExecutionCount: 3, File: "/tmp/ipykernel_1/3.py", Text: "accuracy(good)"}
	for _, c := range []struct {
		name   string
		target timeline.Target
		frames []timeline.Frame
		text   string // of the line that is charged
	}{
		{"a script or a process", timeline.Target{PID: os.Getpid()}, []timeline.Frame{leaf}, "return good.sum().item()"},
		{"a kernel's cell that calls a module", timeline.Target{PID: os.Getpid(), Cell: &cell},
			[]timeline.Frame{{Function: "<module>", File: cell.File, Line: 1}, leaf}, "return good.sum().item()"},
	} {
		r, err := Analyser(targetfs.New(os.Getpid()), "")(waitingFor(c.target, c.frames...))
		if err != nil {
			t.Fatal(err)
		}
		got := r.Idle.Causes[0]
		if got.ID != string(activity.Sync) || r.LineText(got.File, got.Line) != c.text {
			t.Errorf("%s: %q at %q, want %q at %q", c.name, got.ID, r.LineText(got.File, got.Line), activity.Sync, c.text)
		}
	}
}

func TestFilesAreReadForEachRecording(t *testing.T) {
	file := filepath.Join(t.TempDir(), "metrics.py")
	target := timeline.Target{PID: os.Getpid()}
	analyse := Analyser(targetfs.New(target.PID), "")
	for _, c := range []struct{ text, cause string }{
		{"good.sum().item()", string(activity.Sync)},
		{"lock.acquire()", string(activity.Lock)},
		{"", string(activity.Waiting)},
	} {
		var err error
		if c.text == "" {
			err = os.Remove(file)
		} else {
			err = os.WriteFile(file, []byte(c.text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		r, err := analyse(waitingFor(target, timeline.Frame{Function: "accuracy", File: file, Line: 1}))
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Idle.Causes[0]; got.ID != c.cause || r.LineText(got.File, got.Line) != c.text {
			t.Errorf("%q at %q, want %q at %q", got.ID, r.LineText(got.File, got.Line), c.cause, c.text)
		}
	}
}
