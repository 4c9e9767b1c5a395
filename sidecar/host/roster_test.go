package host

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

func TestCommandOf(t *testing.T) {
	for line, want := range map[string]string{
		"pip install x":                              "pip",
		"/usr/bin/ffmpeg -i a":                       "ffmpeg",
		"-bash":                                      "bash",
		"/v/bin/python /v/bin/pip install x":         "pip",
		"python3.12 -m pip install x":                "pip",
		"python -X importtime -W ignore /p/train.py": "train.py",
		"python -c import":                           "python",
		"python3":                                    "python3",
		"":                                           "",
	} {
		if got := commandOf(strings.Fields(line)); got != want {
			t.Errorf("%q runs %q, want %q", line, got, want)
		}
	}
}

func TestExitOf(t *testing.T) {
	for status, want := range map[uint64]int{0: 0, 1 << 8: 1, 9: 137, 0x8b: 139} {
		if got := exitOf(status); *got != want {
			t.Errorf("wait status %#x is exit %d, want %d", status, *got, want)
		}
	}
}

// A child is listed from its start to its end, under what it executed since.
func TestRoster(t *testing.T) {
	p := newFakeProc(t)
	parent := fakeProcess{pid: 10, start: 1, children: []int{20}}
	p.set(parent)
	p.write("10/cmdline", "python\x00train.py\x00")
	p.set(fakeProcess{pid: 20, parent: 10, start: 150})
	p.write("20/cmdline", "python\x00train.py\x00")
	now := int64(0)
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	c := New(10, Options{Proc: p.root, Sys: p.root, Clock: func() int64 { return now }})
	s := newSampler(c, b, 0)
	s.roster.zero = int64(100 * tick) // the recording began one second after the boot
	read := func(at time.Duration) []timeline.Process {
		now = int64(at)
		s.read(now, kin)
		return b.Snapshot(timeline.Nanos(now)).Processes
	}
	s.read(now, usual)

	first := read(time.Second)
	if got := fmt.Sprintf("%s %v %s", first[1].Command, first[1].Start.Duration(), first[1].Role); got != "train.py 500ms child" {
		t.Errorf("a fork is %s", got) // its executable cannot be seen here
	}
	p.write("20/stat", strings.Replace(p.read("20/stat"), "(x)", "(ffmpeg)", 1))
	p.write("20/cmdline", "/usr/bin/ffmpeg\x00-i\x00a\x00")
	if got := read(2 * time.Second)[1]; got.Command != "ffmpeg" || got.End != 0 {
		t.Errorf("after exec %+v", got)
	}
	if first[1].Command != "train.py" {
		t.Error("an earlier snapshot has changed")
	}
	p.write("20/stat", strings.Replace(p.read("20/stat"), ") S", ") Z", 1)+" 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 256\n")
	p.write("20/cmdline", "")
	if got := read(3 * time.Second)[1]; got.End.Duration().Round(time.Millisecond) != 3*time.Second || got.Command != "ffmpeg" || got.Exit == nil || *got.Exit != 1 {
		t.Errorf("a zombie is %+v, exit %v", got, got.Exit)
	}
	p.kill(20)
	parent.children = nil
	p.set(parent)
	if got := read(4 * time.Second)[1]; got.End.Duration().Round(time.Millisecond) != 3*time.Second {
		t.Errorf("the end moved to %v", got.End.Duration())
	}
}

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
