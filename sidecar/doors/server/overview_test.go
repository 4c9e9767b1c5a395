package server

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/api"
)

// ran records a cell of this length.
func ran(t *testing.T, s Session, id string, number int32, length time.Duration, automatic bool) *api.EndResponse {
	t.Helper()
	begin := &api.BeginRequest{CellId: id, ExecutionCount: number, Text: "step(" + id + ")", Automatic: automatic, ThresholdNs: int64(time.Second)}
	if _, err := s.Begin(context.Background(), begin); err != nil {
		t.Fatal(err)
	}
	time.Sleep(length)
	resp, err := s.End(context.Background(), &api.EndRequest{CellId: id, Form: "notebook", Outcome: "ok"})
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func TestTheOverviewHasEveryCell(t *testing.T) {
	s := sessionOn(&grantable{})
	empty, err := s.Overview(context.Background(), &api.OverviewRequest{Form: "notebook"})
	if err != nil || empty.Bundle != nil || empty.Written != "" {
		t.Errorf("of no cell there is %v, %v", empty, err)
	}
	ran(t, s, "a", 3, 30*time.Millisecond, false)
	ran(t, s, "b", 4, time.Millisecond, true) // below the threshold
	resp, err := s.Overview(context.Background(), &api.OverviewRequest{Form: "notebook", Name: "n.ipynb"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"[3]", "[4]", "step(a)", "step(b)", "2 cells"} {
		if !strings.Contains(resp.Bundle.DataJson, want) {
			t.Errorf("%q is missing in %s", want, resp.Bundle.DataJson)
		}
	}
	page := filepath.Join(t.TempDir(), "all.html")
	if resp, err = s.Overview(context.Background(), &api.OverviewRequest{Name: "n.ipynb", File: page}); err != nil || resp.Written != page {
		t.Fatalf("%v, %v", resp, err)
	}
	text, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(text), "below the threshold") {
		t.Errorf("the page (%v) has to say why the short cell has no picture:\n%s", err, text)
	}
}

func TestAPageThatCannotBeWrittenIsASentence(t *testing.T) {
	s := sessionOn(&grantable{})
	ran(t, s, "a", 1, time.Millisecond, false)
	for _, file := range []string{filepath.Join(t.TempDir(), "nowhere", "all.html"), "all.html"} {
		if _, err := s.Overview(context.Background(), &api.OverviewRequest{File: file}); err == nil || !strings.HasSuffix(Sentence(err), ".") {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestARowLeadsToTheCellsOutput(t *testing.T) {
	s := sessionOn(&grantable{})
	resp := ran(t, s, "a", 1, 60*time.Millisecond, false)
	id := s.(*kernelSession).shelf.Entries()[0].Output
	if strings.Contains(resp.Bundle.DataJson, "text/html") != (id != "") || id != "" && !strings.Contains(resp.Bundle.DataJson, id) {
		t.Errorf("the link %q leads nowhere in %s", id, resp.Bundle.DataJson)
	}
}
