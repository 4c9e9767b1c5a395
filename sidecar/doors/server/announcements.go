package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/api"
)

// An Announcement is what the thread that runs a cell says of it without waiting: that it begins, or that it is over.
type Announcement struct {
	Begin *api.BeginRequest // nil: it is over
	Delay time.Duration     // after which it is recorded
	Over  string            // the id of the cell that is
}

const (
	maxAnnouncement = 64 << 10
	// maxAnnounced bounds the cells whose Begin is still to come: there is one of each thread that runs cells.
	maxAnnounced = 64
	maxDelay     = time.Second
)

// listenForCells makes the socket of announcements in our folder, which nobody else may enter.
func listenForCells(path string) (*net.UnixConn, error) {
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("the sidecar could not make its socket: %w", err)
	}
	return c, protect(path, c)
}

// hear passes announcements on until the socket is closed.
func hear(c net.Conn, token string, announced func(Announcement)) {
	text := make([]byte, maxAnnouncement)
	for {
		n, err := c.Read(text)
		if err != nil {
			return
		}
		if a, ok := parseAnnouncement(text[:n], token); ok {
			announced(a)
		}
	}
}

// parseAnnouncement reads a datagram; see the package's page.
func parseAnnouncement(text []byte, token string) (Announcement, bool) {
	var m struct {
		Token   string          `json:"token"`
		Begin   json.RawMessage `json:"begin"`
		DelayNS int64           `json:"delay_ns"`
		Over    string          `json:"over"`
	}
	if json.Unmarshal(text, &m) != nil || !sameToken(m.Token, token) {
		return Announcement{}, false
	}
	a := Announcement{Over: m.Over, Delay: min(max(time.Duration(m.DelayNS), 0), maxDelay)}
	if len(m.Begin) > 0 {
		a.Begin = new(api.BeginRequest)
		if api.Decode(m.Begin, a.Begin) != nil || a.Begin.CellId == "" {
			return Announcement{}, false
		}
	}
	return a, a.Begin != nil || a.Over != ""
}

// announced is a cell that was announced and whose Begin is still to come: code that keeps the GIL keeps the
// extension's thread from calling.
type announced struct {
	timer *time.Timer
	taken atomic.Bool   // by the timer, or by who stops it
	done  chan struct{} // closed when it was begun, could not be or was stopped
	resp  *api.BeginResponse
}

// stopped keeps it from beginning, and reports whether it came in time; else it waits until it has begun.
func (a *announced) stopped() bool {
	a.timer.Stop()
	if a.taken.CompareAndSwap(false, true) {
		close(a.done)
		return true
	}
	<-a.done
	return false
}

// Announced begins a cell that was announced a little later, or stops what has begun so.
func (s *kernelSession) Announced(a Announcement) {
	if a.Begin == nil {
		s.over(a.Over)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.announced) >= maxAnnounced || s.announced[a.Begin.CellId] != nil || s.cells[a.Begin.CellId] != nil {
		return
	}
	waiting := &announced{done: make(chan struct{})}
	s.announced[a.Begin.CellId] = waiting
	waiting.timer = time.AfterFunc(a.Delay, func() {
		if !waiting.taken.CompareAndSwap(false, true) {
			return
		}
		defer close(waiting.done)
		if s.givenUp(a.Begin.CellId) {
			return
		}
		err := guard(func() (err error) {
			waiting.resp, err = s.begin(context.Background(), a.Begin)
			return err
		})
		if err != nil { // Begin says so
			s.Log.Warn("a cell that was announced is not recorded", "error", err)
		}
	})
}

// begun returns what Begin answers for a cell whose announcement has begun it; nil where there is none.
func (s *kernelSession) begun(req *api.BeginRequest) *api.BeginResponse {
	s.mu.Lock()
	a := s.announced[req.CellId]
	delete(s.announced, req.CellId)
	s.mu.Unlock()
	if a == nil || a.stopped() {
		return nil
	}
	if a.resp != nil {
		s.Recorder.Know(sources(req.Sources), numbers(req.OwnThreads))
	}
	return a.resp
}

// over ends the recording of a cell that is over and was too short to be shown, so that the next one does not share
// it; what is to be known of it comes with its End.
func (s *kernelSession) over(id string) {
	s.mu.Lock()
	a := s.announced[id]
	s.mu.Unlock()
	if a != nil && a.stopped() {
		return
	}
	s.mu.Lock()
	cell := s.cells[id]
	if cell == nil || !cell.begin.Automatic || cell.over {
		s.mu.Unlock()
		return
	}
	cell.over = true
	s.mu.Unlock()
	_ = s.Recorder.Discard(id)
}
