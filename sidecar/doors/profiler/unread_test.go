package profiler

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/proctree"
	"github.com/omni-perf/omni-perf/sidecar/measure/recorder"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// watchOf is a run in which some processes were seen, the target first.
func watchOf(children recorder.Children, processes ...timeline.Process) *watch {
	b := timeline.NewBuilder(timeline.Options{Origin: timeline.Monotonic() - int64(10*time.Second)})
	b.Describe(func(r *timeline.Recording) {
		r.Processes = append([]timeline.Process{{Role: timeline.RoleScript, Stacks: timeline.StackReading{Reason: timeline.StacksRead}}}, processes...)
	})
	return &watch{run: recorder.Run{Builder: b, Children: children}, tree: proctree.New(os.Getpid(), b, proctree.Options{})}
}

func child(reason timeline.NoStacks, start, end time.Duration) timeline.Process {
	return timeline.Process{Start: timeline.Nanos(start), End: timeline.Nanos(end), Stacks: timeline.StackReading{Reason: reason}}
}

// Who is missing from the picture is reported, unless nobody can expect to see it.
func TestChildrenThatWereNeverReadAreReported(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		children  recorder.Children
		processes []timeline.Process
		want      string // empty: nothing
	}{
		"all were read":       {processes: []timeline.Process{child(timeline.StacksRead, s, 2*s)}},
		"no child":            {},
		"only figures":        {children: recorder.ChildrenTracks, processes: []timeline.Process{child(timeline.StacksUnknown, s, 4*s)}},
		"another program":     {processes: []timeline.Process{child(timeline.StacksNotPython, s, 4*s)}},
		"a moment":            {processes: []timeline.Process{child(timeline.StacksTooShort, s, s+50*time.Millisecond)}},
		"one of two":          {processes: []timeline.Process{child(timeline.StacksTooShort, s, 4*s), child(timeline.StacksRead, s, 4*s)}, want: "missing of 1 of 2 that run Python; they lived up to 3.0 s"},
		"since before":        {processes: []timeline.Process{child(timeline.StacksTooShort, -5*s, s)}, want: "missing of 1 of 1 that run Python; they lived up to 1.0 s"},
		"it lives":            {processes: []timeline.Process{child(timeline.StacksUnknown, 9*s, 0)}, want: "missing of 1 of 1 that run Python; they lived up to 1.0 s"},
		"it began just now":   {processes: []timeline.Process{child(timeline.StacksUnknown, 9950*time.Millisecond, 0)}},
		"may not be read":     {processes: []timeline.Process{child(timeline.StacksDenied, s, 4*s)}},
		"a Python of its own": {processes: []timeline.Process{child(timeline.StacksUnsupported, s, 4*s)}},
	} {
		w := watchOf(c.children, c.processes...)
		w.noteUnread()
		notes := w.run.Builder.Snapshot(timeline.Nanos(10 * s)).Notes
		switch {
		case c.want == "" && len(notes) > 0:
			t.Errorf("%s: %v, want no note", name, notes)
		case c.want != "" && (len(notes) != 1 || notes[0].ID != timeline.NoteLeftOut || !strings.HasPrefix(notes[0].Reason, c.want)):
			t.Errorf("%s: %v, want %q", name, notes, c.want)
		}
	}
}

// An interpreter that shuts down cannot be read any more: what was read of it was read.
func TestWhatWasReadStaysRead(t *testing.T) {
	w := watchOf(recorder.ChildrenStacks, child(timeline.StacksRead, 0, 0))
	m := proctree.Member{Index: 1}
	reason := func() timeline.NoStacks { return w.run.Builder.Snapshot(1).Processes[1].Stacks.Reason }
	w.refuse(m, timeline.StacksFailed, "its threads are gone")
	if got := reason(); got != timeline.StacksRead {
		t.Errorf("reason %q after its end", got)
	}
	w.refuse(m, timeline.StacksDenied, "not permitted")
	if got := reason(); got != timeline.StacksDenied {
		t.Errorf("reason %q where the system refuses it from now on", got)
	}
}
