package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/api"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// announce sends a datagram to a sidecar, as the thread of a cell does.
func (p *process) announce(t *testing.T, text string) {
	t.Helper()
	c, err := net.Dial("unixgram", filepath.Join(filepath.Dir(p.answer.Socket), cellsName))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

func TestAnAnnouncedCellIsRecordedBeforeItsCallComes(t *testing.T) {
	pid, run := pythonKernel(t)
	p := launch(t, pid, nil)
	c, ctx := p.client(t, "json", testToken)
	if _, err := c.Hello(ctx, hello(pid)); err != nil {
		t.Fatal(err)
	}
	began := timeline.Monotonic()
	for _, token := range []string{"another", testToken} { // nothing is begun for the first
		p.announce(t, fmt.Sprintf(`{"token": %q, "begin": {"cellId": "a", "automatic": true, "text": "work()", "startedNs": "%d", "later": 1}, "delay_ns": 5000000}`, token, began))
	}
	run(400)
	ended := timeline.Monotonic()
	if _, err := c.Begin(ctx, &api.BeginRequest{CellId: "a", Automatic: true, Text: "work()", Sources: []*api.CellSource{{File: "/tmp/ipykernel_1/42.py", Text: cellText}}}); err != nil {
		t.Fatal(err)
	}
	resp, err := c.End(ctx, &api.EndRequest{CellId: "a", EndedNs: ended, BeganNs: began, Quiet: true})
	if err != nil {
		t.Fatal(err)
	}
	r := readReport(t, resp.ReportGzip)
	length := time.Duration(r.DurationNS)
	if late := time.Duration(ended-began) - length; late < 4*time.Millisecond || late > 200*time.Millisecond {
		t.Errorf("%v are missing of the cell, want 5 ms, and not all until the call", late)
	}
	if text, err := json.Marshal(r.Document); err != nil || !strings.Contains(string(text), "n += sum(range(50))") {
		t.Error("the text of its lines is not known, which came with the call")
	}
}

func TestAnAnnouncementAndItsCallInAnyOrder(t *testing.T) {
	ctx := context.Background()
	const soon, later = time.Millisecond, time.Minute
	begin := &api.BeginRequest{CellId: "a", Automatic: true, ThresholdNs: int64(time.Second)}
	call := func(s *kernelSession) { _, _ = s.Begin(ctx, begin) }
	over := func(s *kernelSession) { s.Announced(Announcement{Over: "a"}) }
	after := func(delay time.Duration) func(*kernelSession) {
		return func(s *kernelSession) {
			s.Announced(Announcement{Begin: begin, Delay: delay})
			if a := s.announced["a"]; a != nil && delay == soon {
				<-a.done
			}
		}
	}
	for name, c := range map[string]struct {
		steps    []func(*kernelSession)
		recorded int // by now
		row      bool
	}{
		"the call comes first":                {[]func(*kernelSession){after(later), call}, 1, true},
		"the call comes late":                 {[]func(*kernelSession){after(soon), call}, 1, true},
		"it was called before it was heard":   {[]func(*kernelSession){call, after(soon)}, 1, true},
		"over before it began":                {[]func(*kernelSession){after(later), over, call}, 1, true},
		"over after it began":                 {[]func(*kernelSession){after(soon), over, call}, 0, true},
		"over after its call":                 {[]func(*kernelSession){after(soon), call, over, over}, 0, true},
		"over, and never called":              {[]func(*kernelSession){after(later), over}, 0, false},
		"over without having been announced":  {[]func(*kernelSession){over}, 0, false},
		"announced twice":                     {[]func(*kernelSession){after(soon), after(soon), call}, 1, true},
		"given up before its delay was over":  {[]func(*kernelSession){after(later)}, 0, false},
		"given up after it began, not called": {[]func(*kernelSession){after(soon)}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := sessionOn(&grantable{}).(*kernelSession)
			for _, step := range c.steps {
				step(s)
			}
			if got := len(s.Recorder.Recording()); got != c.recorded {
				t.Errorf("%d recordings in progress, want %d", got, c.recorded)
			}
			_, err := s.End(ctx, &api.EndRequest{CellId: "a", EndedNs: timeline.Monotonic()})
			if got := len(s.shelf.Entries()); (got == 1) != c.row || (err == nil) != c.row {
				t.Errorf("%d rows, error %v; a row is wanted: %v", got, err, c.row)
			}
			if left := s.Recorder.Recording(); len(left) > 0 || len(s.cells) > 0 {
				t.Errorf("still in progress: %v, %v", left, s.cells)
			}
			over(s) // late
			if len(s.announced) > 0 {
				t.Errorf("still announced: %v", s.announced)
			}
		})
	}
}

func TestAnnouncementsAreBounded(t *testing.T) {
	s := sessionOn(&grantable{}).(*kernelSession)
	for i := range 2 * maxAnnounced {
		s.Announced(Announcement{Begin: &api.BeginRequest{CellId: fmt.Sprint(i)}, Delay: time.Minute})
	}
	if len(s.announced) > maxAnnounced {
		t.Errorf("%d are kept, want %d at most", len(s.announced), maxAnnounced)
	}
}

// The end of the short cell before it is still to be called, as it is where the one that runs keeps the GIL.
func TestAKernelThatDiesInAnAnnouncedCellLeavesItsReport(t *testing.T) {
	s := sessionOn(&grantable{}).(*kernelSession)
	s.notebook = aNotebook
	for i, id := range []string{"short", "long"} {
		s.Announced(Announcement{Begin: &api.BeginRequest{CellId: id, Automatic: true, ExecutionCount: int32(i + 1)}})
		<-s.announced[id].done
		if id == "short" {
			s.Announced(Announcement{Over: id})
		}
	}
	parent := t.TempDir()
	s.KernelEnded(Exit{Signal: 11}, &Folder{Path: filepath.Join(parent, "omni_perf-7-1")})
	text, err := os.ReadFile(filepath.Join(parent, lastFolder(), aNotebook+".json"))
	if err != nil || !strings.Contains(string(text), `"cell":2`) {
		t.Errorf("%.300s, %v; want a report of the second cell", text, err)
	}
}
