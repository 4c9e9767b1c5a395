package server

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/omni-perf/omni-perf/sidecar/api"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/show/live"
)

// liveSession is a session without stacks whose cells may be looked at.
func liveSession() *kernelSession {
	s := sessionOn(&grantable{}).(*kernelSession)
	s.Follower = func() *live.Follower { return live.New(live.Options{}) }
	return s
}

// shownLive is what a look's bundle shows.
func shownLive(t *testing.T, resp *api.LiveResponse) (html, text string) {
	t.Helper()
	if resp.Bundle == nil {
		t.Fatal("a look without a bundle")
	}
	var data struct {
		HTML string `json:"text/html"`
		Text string `json:"text/plain"`
	}
	if err := json.Unmarshal([]byte(resp.Bundle.DataJson), &data); err != nil {
		t.Fatal(err)
	}
	return data.HTML, data.Text
}

func TestACellInProgressIsLookedAt(t *testing.T) {
	for _, codec := range []string{"proto", "json"} {
		t.Run(codec, func(t *testing.T) {
			c, ctx, run := ranCell(t, codec)
			first, err := c.Live(ctx, &api.LiveRequest{CellId: "a"})
			if err != nil {
				t.Fatal(err)
			}
			html, text := shownLive(t, first)
			for _, want := range []string{"Cell [42] first", "n += sum(range(50))"} {
				if !strings.Contains(html, want) || !strings.Contains(text, want) {
					t.Errorf("the first look has no %q:\n%s\n%s", want, text, html)
				}
			}
			if strings.Contains(text, "step") {
				t.Errorf("steps that nobody marked:\n%s", text)
			}
			run(300)
			second, err := c.Live(ctx, &api.LiveRequest{CellId: "a", Steps: 30, TotalSteps: 100, LastStepNs: timeline.Monotonic()})
			if err != nil {
				t.Fatal(err)
			}
			if _, text := shownLive(t, second); !strings.Contains(text, "step 30 of 100") || !strings.Contains(text, " left") {
				t.Errorf("the second look does not show the steps:\n%s", text)
			}
			resp, err := c.End(ctx, &api.EndRequest{CellId: "a", EndedNs: timeline.Monotonic(), Outcome: "ok"})
			if err != nil {
				t.Fatal(err)
			}
			if r := readReport(t, resp.ReportGzip); r.DurationNS < 6e8 || r.Target().Sampling.Ticks < 100 {
				t.Errorf("looks took something of the report: %d ns, %d samples", r.DurationNS, r.Target().Sampling.Ticks)
			}
			if _, err := c.Live(ctx, &api.LiveRequest{CellId: "a"}); status.Code(err) != codes.NotFound {
				t.Errorf("a look at a cell that has ended: %v, want NotFound", err)
			}
		})
	}
}

func TestOnlyCellsInProgressAreLookedAt(t *testing.T) {
	ctx := context.Background()
	s := liveSession()
	if _, err := s.Live(ctx, &api.LiveRequest{CellId: "none"}); status.Code(err) != codes.NotFound {
		t.Errorf("a cell that is none: %v, want NotFound", err)
	}
	if _, err := s.Begin(ctx, &api.BeginRequest{CellId: "a"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Live(ctx, &api.LiveRequest{CellId: "a"}); err != nil {
		t.Error(err)
	}
	s.Follower = nil
	if _, err := s.Live(ctx, &api.LiveRequest{CellId: "a"}); status.Code(err) != codes.NotFound {
		t.Errorf("where nothing is shown live: %v, want NotFound", err)
	}
}

// Where nothing is drawn, the answer says when to ask again all the same.
func TestALookWithoutAPresenterHasNoBundle(t *testing.T) {
	ctx := context.Background()
	s := liveSession()
	s.Present = nil
	if _, err := s.Begin(ctx, &api.BeginRequest{CellId: "a"}); err != nil {
		t.Fatal(err)
	}
	resp, err := s.Live(ctx, &api.LiveRequest{CellId: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if resp.Bundle != nil || resp.PauseNs < int64(livePause) {
		t.Errorf("bundle %v, pause %d ns", resp.Bundle, resp.PauseNs)
	}
}

// burn takes as much CPU time of its thread.
func burn(cost time.Duration) {
	for began := timeline.ThreadCPU(); timeline.ThreadCPU()-began < cost; {
	}
}

// A look may cost 2 % of a core: who asks is asked to wait fifty times what it took.
func TestADearLookAsksForALongerPause(t *testing.T) {
	const cost = 60 * time.Millisecond
	ctx := context.Background()
	s := liveSession()
	s.Follower = func() *live.Follower {
		burn(cost)
		return live.New(live.Options{})
	}
	if _, err := s.Begin(ctx, &api.BeginRequest{CellId: "a"}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ least, most time.Duration }{{50 * cost, time.Hour}, {livePause, 50 * cost}} {
		resp, err := s.Live(ctx, &api.LiveRequest{CellId: "a"})
		if err != nil {
			t.Fatal(err)
		}
		if got := time.Duration(resp.PauseNs); got < want.least || got >= want.most {
			t.Errorf("look %d: a pause of %v, want at least %v, less than %v", i+1, got, want.least, want.most)
		}
	}
}

// A notebook that asks twice at once, and a cell that ends meanwhile, get an answer each.
func TestLooksAtOnceAndWhileTheCellEnds(t *testing.T) {
	ctx := context.Background()
	s := liveSession()
	made := 0
	s.Follower = func() *live.Follower {
		made++ // under the cell's lock: the race detector sees to it
		return live.New(live.Options{})
	}
	if _, err := s.Begin(ctx, &api.BeginRequest{CellId: "a"}); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	looked := make(chan struct{}, 100)
	for range 8 {
		all.Go(func() {
			for range 10 {
				_, err := s.Live(ctx, &api.LiveRequest{CellId: "a"})
				if err != nil && status.Code(err) != codes.NotFound {
					t.Errorf("a look: %v", err)
				}
				looked <- struct{}{}
			}
		})
	}
	for range 20 {
		<-looked
	}
	if _, err := s.End(ctx, &api.EndRequest{CellId: "a"}); err != nil {
		t.Error(err)
	}
	all.Wait()
	if made != 1 {
		t.Errorf("%d followers of one cell, want one", made)
	}
}
