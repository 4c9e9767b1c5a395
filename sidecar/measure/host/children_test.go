package host

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

func TestAnEndedProcessIsNoError(t *testing.T) {
	p := newFakeProc(t)
	p.set(fakeProcess{pid: 10, start: 1})
	now := int64(1e9)
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	s := newSampler(New(10, Options{Proc: p.root, Sys: p.root, Clock: func() int64 { return now }}), b, 0)
	s.read(now, usual)
	now += 1e8
	p.write("10/stat", strings.Replace(p.read("10/stat"), ") S", ") Z", 1))
	if err := os.Remove(p.root + "/10/net/dev"); err != nil {
		t.Fatal(err)
	}
	s.read(now, usual)
	p.kill(10)
	now += 1e8
	s.read(now, usual)
	rec := b.Snapshot(timeline.Nanos(now))
	if len(rec.Notes) != 0 {
		t.Errorf("notes %v", rec.Notes)
	}
	for _, tr := range rec.Tracks {
		if tr.Ended != "" {
			t.Errorf("%s ended: %s", tr.ID, tr.Ended)
		}
	}
}

// A process that begins to end while it is read has no network any more, and is not yet a zombie by the look before.
func TestAProcessThatEndsWhileItIsRead(t *testing.T) {
	p := newFakeProc(t)
	p.set(fakeProcess{pid: 10, start: 1})
	now := int64(1e9)
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	s := newSampler(New(10, Options{Proc: p.root, Sys: p.root, Clock: func() int64 { return now }}), b, 0)
	s.read(now, usual)
	p.write("10/stat", strings.Replace(p.read("10/stat"), ") S", ") Z", 1))
	for _, gone := range []string{"10/net/dev", "10/status"} {
		if err := os.Remove(p.root + "/" + gone); err != nil {
			t.Fatal(err)
		}
	}
	s.reportTarget(timeline.Nanos(now))
	s.machine.read(timeline.Nanos(now), false)
	if notes := b.Snapshot(timeline.Nanos(now)).Notes; len(notes) != 0 {
		t.Errorf("notes %v", notes)
	}
}

func TestCollectListsChildren(t *testing.T) {
	pid, run := shell(t, "sleep 0.4; echo done")
	rec := record(t, New(pid, Options{}), time.Hour, run)
	var child timeline.Process
	for _, p := range rec.Processes {
		if p.Command == "sleep" {
			child = p
		}
	}
	if child.PID == 0 || child.Role != "child" || child.Start < -tick || child.End < child.Start+2e8 || child.End > rec.Duration {
		t.Errorf("processes %+v, want a sleep of 0.4 s among them", rec.Processes)
	}
}
