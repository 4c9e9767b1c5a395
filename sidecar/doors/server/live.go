package server

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/omni-perf/omni-perf/jupyter"
	"github.com/omni-perf/omni-perf/sidecar/api"
	"github.com/omni-perf/omni-perf/sidecar/measure/recorder"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/show/live"
)

const (
	livePause = time.Second
	// liveShare bounds what looks at a cell cost, as a share of a core.
	liveShare = 0.02
)

// liveCell is who looks at a cell in progress. The zero value is usable.
type liveCell struct {
	mu       sync.Mutex
	follower *live.Follower // made at the first look
}

func (s *kernelSession) Live(_ context.Context, req *api.LiveRequest) (*api.LiveResponse, error) {
	s.mu.Lock()
	cell := s.cells[req.CellId]
	s.mu.Unlock()
	if cell == nil || s.Follower == nil {
		return nil, callError(fmt.Errorf("%w: %q", recorder.ErrUnknown, req.CellId))
	}
	now, cost, err := cell.live.look(s.Tools, req)
	if err != nil {
		return nil, callError(err)
	}
	resp := &api.LiveResponse{PauseNs: int64(max(livePause, time.Duration(float64(cost)/liveShare)))}
	if s.Present == nil {
		return resp, nil
	}
	data, metadata, transient, err := s.Present.Live(now, jupyter.Place{Form: "notebook"}).Parts()
	resp.Bundle = &api.Bundle{DataJson: data, MetadataJson: metadata, TransientJson: transient}
	return resp, err
}

// look looks at the cell and returns the CPU time that it cost.
func (l *liveCell) look(t Tools, req *api.LiveRequest) (now *live.Now, cost time.Duration, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	runtime.LockOSThread() // its clock is read
	defer runtime.UnlockOSThread()
	began := timeline.ThreadCPU()
	if l.follower == nil {
		l.follower = t.Follower()
	}
	rec, start, err := t.Recorder.Recent(req.CellId, l.follower.From(timeline.Monotonic()))
	if err != nil {
		return nil, 0, err
	}
	look := l.follower.Look(rec, start, live.Progress{Steps: req.Steps, Total: req.TotalSteps, LastNS: req.LastStepNs})
	return &look, timeline.ThreadCPU() - began, nil
}
