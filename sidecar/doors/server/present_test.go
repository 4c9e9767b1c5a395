package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/jupyter"
	"github.com/omni-perf/omni-perf/sidecar/api"
	"github.com/omni-perf/omni-perf/sidecar/doors/display"
	"github.com/omni-perf/omni-perf/sidecar/measure/recorder"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// grantable are stacks that may be read once the target permits it.
type grantable struct{ refusal error }

func (g *grantable) Attach(int) error { return g.refusal }
func (g *grantable) Close()           {}
func (g *grantable) Collect(ctx context.Context, _ recorder.Run) error {
	<-ctx.Done()
	return nil
}

// permissionRefused is what reading gives under Yama.
type permissionRefused struct{}

func (permissionRefused) Error() string        { return "the kernel refuses it" }
func (permissionRefused) Is(target error) bool { return target == fs.ErrPermission }

func sessionOn(stacks recorder.Stacks) Session {
	return NewSession(Start{KernelPID: 7, Log: slog.New(slog.DiscardHandler)}, Tools{
		Version:  "1.2.3",
		Recorder: recorder.New(recorder.Options{Target: timeline.Target{PID: 7}, Stacks: stacks}),
		Analyse: func(rec *timeline.Recording) (*report.View, error) {
			d := diagnose.Run(rec)
			return report.Build(rec, &d, report.Options{})
		},
		Present: display.Charts{},
	})
}

// broken charts have a bug.
type broken struct{ display.Charts }

func (broken) Bundle(*report.View, jupyter.Place) (jupyter.Bundle, error) { panic("no such lane") }

func TestABugInAChartIsASentence(t *testing.T) {
	s := sessionOn(&grantable{}).(*kernelSession)
	s.Present = broken{}
	if _, err := s.Begin(context.Background(), &api.BeginRequest{CellId: "a"}); err != nil {
		t.Fatal(err)
	}
	_, err := s.End(context.Background(), &api.EndRequest{CellId: "a"})
	if want := "The cell was recorded but its chart could not be made: a bug of omni_perf: no such lane."; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	if list, err := s.List(context.Background(), nil); err != nil || len(list.Entries) != 1 {
		t.Errorf("list %v, %v; want the cell's record", list, err)
	}
}

func TestPermissionIsAskedForOnce(t *testing.T) {
	ctx := context.Background()
	ask := func(s Session) string {
		t.Helper()
		resp, err := s.Hello(ctx, hello(7))
		if err != nil {
			t.Fatal(err)
		}
		if (resp.Reason == "") != (resp.Outside == outsideOK) {
			t.Errorf("outside %q because of %q", resp.Outside, resp.Reason)
		}
		return resp.Outside
	}
	stacks := &grantable{refusal: permissionRefused{}}
	s := sessionOn(stacks)
	if got := ask(s); got != outsidePermission {
		t.Errorf("first Hello: %q, want to ask for permission", got)
	}
	stacks.refusal = nil // PR_SET_PTRACER
	if got := ask(s); got != outsideOK {
		t.Errorf("after it was granted: %q", got)
	}

	s = sessionOn(&grantable{refusal: permissionRefused{}})
	if first, second := ask(s), ask(s); first != outsidePermission || second != outsideFallback {
		t.Errorf("a grant that does not help: %q, then %q; want the fallback", first, second)
	}
	begin, err := s.Begin(ctx, &api.BeginRequest{CellId: "a"})
	if err != nil || begin.Outside != outsideFallback || begin.Reason != "The kernel refuses it." {
		t.Errorf("Begin %v, %v", begin, err)
	}
}

// ended runs a cell of 5 ms through a session and returns End's answer.
func ended(t *testing.T, begin *api.BeginRequest, end *api.EndRequest) (Session, *api.EndResponse) {
	t.Helper()
	return endedAfter(t, 5*time.Millisecond, begin, end)
}

func endedAfter(t *testing.T, length time.Duration, begin *api.BeginRequest, end *api.EndRequest) (Session, *api.EndResponse) {
	t.Helper()
	s := sessionOn(&grantable{})
	begin.CellId, end.CellId = "a", "a"
	if _, err := s.Begin(context.Background(), begin); err != nil {
		t.Fatal(err)
	}
	time.Sleep(length)
	resp, err := s.End(context.Background(), end)
	if err != nil {
		t.Fatal(err)
	}
	return s, resp
}

func TestBundlesSuitTheirPlace(t *testing.T) {
	for _, c := range []struct {
		name      string
		length    time.Duration
		begin     *api.BeginRequest
		end       *api.EndRequest
		html      bool
		contains  string
		wantsNone bool
		most      int // bytes; 0: any number
	}{
		{"whole", 210 * time.Millisecond, &api.BeginRequest{}, &api.EndRequest{Form: "notebook", Outcome: "ok"}, true, "<style>", false, 160_000},
		{"short", 50 * time.Millisecond, &api.BeginRequest{}, &api.EndRequest{Form: "notebook", Outcome: "ok"}, true, "<img", false, 40_000},
		{"at once", 5 * time.Millisecond, &api.BeginRequest{}, &api.EndRequest{Form: "notebook", Outcome: "ok"}, false, "Too short to profile", false, 2_000},
		{"automatic", 50 * time.Millisecond, &api.BeginRequest{Automatic: true, ThresholdNs: 1}, &api.EndRequest{Form: "notebook", Outcome: "ok"}, true, "<details><summary", false, 60_000},
		{"terminal", 50 * time.Millisecond, &api.BeginRequest{}, &api.EndRequest{Form: "terminal", Outcome: "ok"}, false, "ms", false, 0},
		{"quiet", 50 * time.Millisecond, &api.BeginRequest{}, &api.EndRequest{Form: "notebook", Outcome: "ok", Quiet: true}, false, "", true, 0},
	} {
		s, resp := endedAfter(t, c.length, c.begin, c.end)
		again, err := s.Report(context.Background(), &api.ReportRequest{Format: "bundle", ReportGzip: resp.ReportGzip})
		if err != nil || !bytes.Contains(again.Content, []byte(`o-head`)) {
			t.Errorf("%s: asked for by itself, its chart has no viewer (%v)", c.name, err)
		}
		if c.wantsNone {
			if resp.Bundle != nil || len(resp.ReportGzip) == 0 {
				t.Errorf("%s: bundle %v, %d bytes of report", c.name, resp.Bundle, len(resp.ReportGzip))
			}
			continue
		}
		var data struct {
			Text    string    `json:"text/plain"`
			HTML    string    `json:"text/html"`
			Figures displayed `json:"application/vnd.omni-perf+json"`
		}
		if err := json.Unmarshal([]byte(resp.Bundle.DataJson), &data); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if f := data.Figures; f.Document != displayDocument || f.Version != 2 || f.WallNS <= 0 || f.Headline.Text != resp.Headline {
			t.Errorf("%s: figures %+v", c.name, f)
		}
		shown := data.Text
		if c.html {
			shown = data.HTML
		}
		if (data.HTML != "") != c.html || !strings.Contains(shown, c.contains) {
			t.Errorf("%s: %.80q, want %q", c.name, shown, c.contains)
		}
		if n := len(resp.Bundle.DataJson); c.most > 0 && n > c.most {
			t.Errorf("%s: %d bytes, want at most %d", c.name, n, c.most)
		}
	}
}

func TestReportsAreWrittenInEveryFormat(t *testing.T) {
	s, resp := ended(t, &api.BeginRequest{Name: "first", Text: "x = 1"}, &api.EndRequest{Outcome: "ok"})
	for format, want := range map[string]struct{ mediaType, begins string }{
		"":       {"application/json", `{"document":"omni_perf.report","version":2,`},
		"json":   {"application/json", `{"document":"omni_perf.report","version":2,`},
		"svg":    {"image/svg+xml", "<?xml"},
		"html":   {"text/html", "<!doctype html>"},
		"text":   {"text/plain", ""},
		"bundle": {"application/json", `{"data":{"application/vnd.omni-perf+json":{"document":`},
	} {
		for _, req := range []*api.ReportRequest{{Format: format}, {Format: format, ReportId: resp.ReportId}, {Format: format, ReportGzip: resp.ReportGzip}} {
			got, err := s.Report(context.Background(), req)
			if err != nil {
				t.Errorf("%q: %v", format, err)
			} else if got.MediaType != want.mediaType || !strings.HasPrefix(string(got.Content), want.begins) || len(got.Content) == 0 {
				t.Errorf("%q: %s, %.40q", format, got.MediaType, got.Content)
			}
		}
	}
	if _, err := s.Report(context.Background(), &api.ReportRequest{Format: "png"}); err == nil || !strings.Contains(err.Error(), "svg") {
		t.Errorf("png: %v, want a sentence with the formats there are", err)
	}
}

func TestMarksAndOutputReachTheReport(t *testing.T) {
	s := sessionOn(&grantable{}).(*kernelSession)
	s.output = fixedOutput{}
	asked := timeline.Monotonic() - 1e9 // the call took a second: no part of the cell
	if _, err := s.Begin(context.Background(), &api.BeginRequest{CellId: "a", ParentMsgId: "m", StartedNs: asked}); err != nil {
		t.Fatal(err)
	}
	start := timeline.Monotonic()
	time.Sleep(20 * time.Millisecond)
	resp, err := s.End(context.Background(), &api.EndRequest{CellId: "a", EndedNs: timeline.Monotonic(), Marks: []*api.Mark{
		{Kind: "step", Name: "s", StartNs: start, EndNs: start + 15e6},
		{Kind: "region", Name: "load", StartNs: start + 1e6, EndNs: start + 11e6},
	}})
	if err != nil {
		t.Fatal(err)
	}
	r := readReport(t, resp.ReportGzip)
	if len(r.Steps) != 1 || r.Steps[0].Source != string(timeline.StepMarked) || len(r.Regions) != 1 || r.Regions[0].TotalNS < 99e5 || r.Regions[0].TotalNS > 101e5 {
		t.Errorf("steps %+v, regions %+v", r.Steps, r.Regions)
	}
	if r.DurationNS > 9e8 {
		t.Errorf("the cell lasts %d ns with the call that began it", r.DurationNS)
	}
	if o := r.Target().Output; o == nil || o.Messages != 3 || !o.AtLeast {
		t.Errorf("output %+v", o)
	}
}

type fixedOutput struct{}

func (fixedOutput) Close()         {}
func (fixedOutput) Shutdown() bool { return false }
func (fixedOutput) Output(id string) (timeline.Output, bool) {
	return timeline.Output{Messages: 3, Bytes: 50, AtLeast: true}, id == "m"
}

func TestRecordingsAreCompared(t *testing.T) {
	ctx := context.Background()
	s := sessionOn(&grantable{}).(*kernelSession)
	var ids []string
	var packed []byte
	for _, id := range []string{"a", "b"} {
		if _, err := s.Begin(ctx, &api.BeginRequest{CellId: id, ExecutionCount: 3, Name: id}); err != nil {
			t.Fatal(err)
		}
		resp, err := s.End(ctx, &api.EndRequest{CellId: id, Quiet: true})
		if err != nil {
			t.Fatal(err)
		}
		ids, packed = append(ids, resp.ReportId), resp.ReportGzip
	}
	kept := &api.Compared{ReportId: ids[0]}
	for form, wanted := range map[string]bool{"notebook": true, "terminal": false} {
		resp, err := s.Compare(ctx, &api.CompareRequest{Before: []*api.Compared{kept}, After: []*api.Compared{{ReportGzip: packed, Name: "b.json"}}, Form: form})
		if err != nil {
			t.Fatal(err)
		}
		var data struct {
			Plain string `json:"text/plain"`
			HTML  string `json:"text/html"`
			Mark  *any   `json:"application/vnd.omni-perf.chart.v1+json"` // that the extension goes by
		}
		if err := json.Unmarshal([]byte(resp.Bundle.DataJson), &data); err != nil {
			t.Fatal(err)
		}
		if (data.Mark != nil) != wanted || !strings.HasPrefix(data.Plain, "a → b") || strings.Contains(data.HTML, "<img") != wanted || resp.Headline == "" {
			t.Errorf("%s: %.200s, headline %q", form, resp.Bundle.DataJson, resp.Headline)
		}
	}
	for _, c := range []struct {
		after *api.Compared
		says  string
	}{
		{&api.Compared{ReportId: "77"}, "There is no report 77 any more"},
		{&api.Compared{ReportGzip: []byte(`{"schema_version": 1}`), Name: "old.json"}, "old.json cannot be compared: it was recorded by an older version"},
		{&api.Compared{ReportGzip: []byte("x"), Name: "x.json"}, "x.json cannot be compared: it is no report of omni_perf"},
	} {
		_, err := s.Compare(ctx, &api.CompareRequest{Before: []*api.Compared{kept}, After: []*api.Compared{c.after}})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("got %v, want %s", err, c.says)
		}
	}
	if _, err := s.Compare(ctx, &api.CompareRequest{}); err == nil {
		t.Error("nothing was compared")
	}
}

func TestARecordingThatBeganLateSaysSo(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name  string
		late  time.Duration
		shown bool
		says  string
	}{
		{"it waited", 0, false, ""},
		{"as under on", 5 * time.Millisecond, false, ""},
		{"late, and long enough", 2 * time.Second, true, "Nearly all of the cell was not recorded, the first 2.0 s"},
	} {
		s := sessionOn(&grantable{}).(*kernelSession)
		if _, err := s.Begin(ctx, &api.BeginRequest{CellId: "a", Automatic: true, ThresholdNs: int64(time.Second)}); err != nil {
			t.Fatal(err)
		}
		end := &api.EndRequest{CellId: "a", EndedNs: timeline.Monotonic(), Form: "terminal"}
		if c.late > 0 {
			end.BeganNs = s.cells["a"].started - int64(c.late)
		}
		resp, err := s.End(ctx, end)
		if err != nil {
			t.Fatal(err)
		}
		if shown := resp.Bundle != nil; shown != c.shown || shown && !strings.Contains(resp.Bundle.DataJson, c.says) {
			t.Errorf("%s: shown %v, %.2000s; want %v with %q", c.name, shown, resp.GetBundle().GetDataJson(), c.shown, c.says)
		}
	}
}
