// Package marks takes in the training steps and regions that a program under
// `omni-perf run`, or one of its descendants, marks itself.
//
// In flow lines of JSON by a private unix socket (0600, in a 0700 folder), which
// descendants know by an environment variable; out flow Marks with the id of the
// process that the kernel says has sent them. Whether that is a descendant is for the
// caller to say. A sender that is another user's is cut off, and so is one that sends
// what is no mark.
package marks

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Variable names the socket to descendants.
const Variable = "OMNI_PERF_RUN"

const (
	maxLine        = 1 << 15
	maxRaised      = 1024 // processes whose last exception is kept
	maxConnections = 1024 // at a time
	// drainTime is how long the end of a recording waits for marks under way: their
	// senders have ended, so that what they sent lies in the socket.
	drainTime = 100 * time.Millisecond
)

// Mark is a step or region in CLOCK_MONOTONIC.
type Mark struct {
	Kind, Name string
	Start, End int64 // a step's Start: that of the step before ended, or the sender began
	Source     timeline.MarkSource
	Thread     int            // native id of the thread that a region is of; 0: it is of the process
	Batch      timeline.Batch // of a step
	Anew       bool           // as in timeline.Mark
	Optimizer  int64          // likewise
}

// Receiver listens to marks.
type Receiver struct {
	listener *net.UnixListener
	open     sync.WaitGroup

	mu     sync.Mutex
	peers  map[*net.UnixConn]bool
	raised map[int]*timeline.Raised
	sent   map[int]*FromTorch
	closed bool
}

// Listen makes the socket.
func Listen(path string) (*Receiver, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return &Receiver{listener: l, peers: make(map[*net.UnixConn]bool), raised: make(map[int]*timeline.Raised), sent: make(map[int]*FromTorch)}, nil
}

// Serve hands what a process sends to the function that from returns for it, until Close. That reports whether the process is one
// whose marks are wanted. Both are called from several goroutines, the function of one process from one.
func (r *Receiver) Serve(from func(pid int) (take func(Mark) bool)) {
	for {
		c, err := r.listener.AcceptUnix()
		if err != nil {
			return
		}
		pid, err := peer(c)
		r.mu.Lock()
		if err != nil || r.closed || len(r.peers) >= maxConnections {
			r.mu.Unlock()
			c.Close()
			continue
		}
		r.peers[c] = true
		r.open.Add(1)
		r.mu.Unlock()
		go func() {
			defer func() {
				r.mu.Lock()
				delete(r.peers, c)
				r.mu.Unlock()
				c.Close()
				r.open.Done()
			}()
			sent := &stream{c: c}
			defer sent.close()
			receive(sent, from(pid), func(raised *timeline.Raised, of int) { r.keep(cmp.Or(of, pid), raised) }, func(d *decoder) { r.keepTorch(pid, d) })
		}()
	}
}

// keep keeps the exception that has ended a process, as that says, or the one that started it: what a rank of mp.spawn has raised
// only its launcher knows.
func (r *Receiver) keep(pid int, raised *timeline.Raised) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.raised[pid] != nil || len(r.raised) < maxRaised {
		r.raised[pid] = raised
	}
}

// Raised returns the exception that has ended a process, as that has sent it; nil: none was sent.
func (r *Receiver) Raised(pid int) *timeline.Raised {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.raised[pid]
}

var errStranger = errors.New("another user's process")

// peer is who has connected, as the kernel has it: the process that called connect.
func peer(c *net.UnixConn) (pid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) { cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return 0, err
	}
	if credErr != nil {
		return 0, credErr
	}
	if uid := int(cred.Uid); uid != os.Geteuid() && uid != 0 {
		return 0, errStranger
	}
	return int(cred.Pid), nil
}

// receive reads one sender's lines.
func receive(c io.Reader, take func(Mark) bool, keep func(raised *timeline.Raised, of int), torch func(*decoder)) {
	lines := bufio.NewScanner(c)
	lines.Buffer(make([]byte, 0, 1024), maxLine)
	var d decoder
	for lines.Scan() {
		m, ok, err := d.decode(lines.Bytes())
		if err != nil || ok && !take(m) {
			return
		}
		if d.raised != nil {
			keep(d.raised, d.of)
		}
		if d.trace.Path != "" || d.remark != "" {
			torch(&d)
		}
	}
}

// decoder turns lines into marks.
type decoder struct {
	// A program may mark its steps while a hook finds others, whose ends lie within its own.
	marked steps
	hooked steps
	raised *timeline.Raised // the last line was this …
	of     int              // … of this process; 0: of the sender
	trace  Trace            // or this
	remark string           // or this
}

var errNoMark = errors.New("this is no mark")

// decode reads one line: {"begin":NS}, {"step":NS,"samples":32,"tokens":8192,"epoch":1} with what is known of the last three, {"hook":NS,"called":NS}
// with when the optimizer was called, and "anew":true for the first step of another optimizer than before, or
// {"other":"Adam","at":NS} for another one that steps besides, or
// {"region":[START,END],"name":"load"}, with "thread":ID for a region of one thread; or
// {"trace":PATH,"cycle":"ep0-ba5-rank0","rank":0,"window":[START,END]} or {"remark":"…"}, or
// {"raised":"ValueError","message":"no rows","stack":[["train.py",31]]}, with "pid":PID for another process than the sender. ok reports whether it is a mark.
func (d *decoder) decode(line []byte) (m Mark, ok bool, err error) {
	var sent struct {
		Begin, Step, Hook int64
		Called            int64
		Region            []int64
		Name              string
		Thread            int
		Samples, Tokens   int64
		Epoch             *int
		Anew              bool
		Other             string
		At                int64
		Raised, Message   string
		PID               int
		Trace, Cycle      string
		Remark            string
		Rank              int
		Window            []int64
		Stack             []calledAt
	}
	d.raised, d.trace, d.remark = nil, Trace{}, ""
	if err := json.Unmarshal(line, &sent); err != nil {
		return m, false, errNoMark
	}
	switch {
	case sent.Raised != "":
		d.raised, d.of = &timeline.Raised{Type: sent.Raised, Message: sent.Message}, max(sent.PID, 0)
		for _, at := range sent.Stack {
			d.raised.Stack = append(d.raised.Stack, timeline.RaisedAt(at))
		}
		return m, false, nil
	case sent.Remark != "":
		d.remark = sent.Remark
		return m, false, nil
	case sent.Trace != "":
		d.trace = Trace{Path: sent.Trace, Cycle: sent.Cycle, Rank: sent.Rank}
		if len(sent.Window) == 2 {
			d.trace.Start, d.trace.End = sent.Window[0], sent.Window[1]
		}
		return m, false, nil
	case sent.Begin > 0:
		d.marked.began, d.hooked.began = sent.Begin, sent.Begin
		return m, false, nil
	case sent.Step > 0:
		m = Mark{Kind: "step", Source: timeline.StepMarked, Batch: timeline.NewBatch(sent.Samples, sent.Tokens, sent.Epoch)}
		ok, err = d.marked.end(&m, sent.Step)
		return m, ok, err
	case sent.Hook > 0:
		m = Mark{Kind: "step", Source: timeline.StepOptimizer, Anew: sent.Anew, Optimizer: sent.Called}
		ok, err = d.hooked.end(&m, sent.Hook)
		return m, ok, err
	case sent.Other != "" && sent.At > 0:
		return Mark{Kind: "optimizer", Name: sent.Other, Start: sent.At, End: sent.At}, true, nil
	case len(sent.Region) == 2 && sent.Region[0] > 0 && sent.Region[0] <= sent.Region[1]:
		return Mark{Kind: "region", Name: sent.Name, Start: sent.Region[0], End: sent.Region[1], Thread: max(sent.Thread, 0)}, true, nil
	}
	return m, false, errNoMark
}

// steps are those of one source: one begins where the one before it ended.
type steps struct {
	began int64
	known bool // began is the end of one; before the first one there is all that was set up
}

// end gives a step its times; ok is false for the first one.
func (s *steps) end(m *Mark, at int64) (ok bool, err error) {
	if at < s.began {
		return false, errNoMark
	}
	m.Start, m.End, ok = s.began, at, s.known
	s.began, s.known = at, true
	return ok, nil
}

// calledAt is a line of a traceback, sent as [FILE, LINE].
type calledAt timeline.RaisedAt

func (c *calledAt) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&c.File, &c.Line})
}

// Drain takes in what senders that have ended have left behind.
func (r *Receiver) Drain() {
	r.mu.Lock()
	for c := range r.peers {
		_ = c.SetReadDeadline(time.Now().Add(drainTime))
	}
	r.mu.Unlock()
	r.open.Wait()
}

// Close ends everything and removes the socket.
func (r *Receiver) Close() {
	r.mu.Lock()
	r.closed = true
	for c := range r.peers {
		c.Close()
	}
	r.mu.Unlock()
	r.listener.Close()
	r.open.Wait()
}
