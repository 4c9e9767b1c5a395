package program

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/omni-perf/omni-perf/jupyter"
	"github.com/omni-perf/omni-perf/sidecar/doors/profiler"
	"github.com/omni-perf/omni-perf/sidecar/measure/recorder"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// errEnded says that the process of the kernel has ended.
var errEnded = errors.New("the kernel has ended")

// follower turns the cells of one process of a kernel into reports. One goroutine.
type follower struct {
	toolsOf  func(pid int) Tools
	tools    Tools
	options  Options
	file     jupyter.ConnectionFile
	pid      int
	restarts int                // of the kernel before this process
	recorder *recorder.Recorder // nil until the process can be read
	observer *jupyter.Observer
	journal  *journal
	names    func(code string) string
	queue    queue // of the process's threads
	levels   *levels
	ran      time.Time // until when a cell is known to have run
	events   <-chan jupyter.Event
	gone     <-chan struct{}
	begun    bool                // that it is followed was said
	refused  bool                // and that its messages cannot be read
	glimpsed string              // file of a cell that ran at the last look though no start was seen
	running  map[string]*watched // by msg_id
	// announced are cells that are about to be executed; nil: nobody announces them.
	announced <-chan announcement
	expected  *announcement // one that is to be recorded when the cell before it has ended; nil: there is none
	started   time.Time     // the cell that began last, by the kernel's message
	count     int           // its number
	used      time.Duration // of a CPU, by the process's main thread, at the last glance; 0: not known
	cut       []*watched
	stop      context.CancelFunc // of the observer
}

// attachKernel begins to follow a process, which may have just been started. What it returns
// is to be closed, with an error too.
func attachKernel(ctx context.Context, tools func(pid int) Tools, pid, restarts int, file jupyter.ConnectionFile, o Options, j *journal) (*follower, error) {
	k := &follower{
		toolsOf: tools, options: o, file: file, pid: pid, restarts: restarts, journal: j,
		running: make(map[string]*watched), levels: levelsOf(pid),
	}
	ctx, k.stop = context.WithCancel(ctx)
	var err error
	if k.gone, err = watch(ctx, pid); err != nil {
		return k, err
	}
	if k.observer, err = jupyter.Observe(ctx, file.Connection); err != nil {
		return k, err
	}
	k.events = k.levels.heard(k.observer.Events())
	j.process(pid)
	// A process that has just been started may yet become the kernel by exec: it is read when
	// its address answers. One that was there may hang: it is read first.
	if restarts == 0 && k.read() == nil {
		if at, ok := k.position(); ok {
			if err := k.meet(at); err != nil {
				return k, err
			}
		}
	}
	return k, nil
}

// read prepares to record the process.
func (k *follower) read() error {
	target := describe(k.pid)
	target.Restarts = k.restarts
	k.tools, k.names = k.toolsOf(k.pid), cellNames(k.pid)
	r := k.tools.Recorder(target)
	if err := r.Attach(); err != nil {
		r.Close()
		if k.hasEnded() {
			return errEnded
		}
		return fmt.Errorf("the kernel (process %d) cannot be profiled: %w", k.pid, err)
	}
	k.recorder = r
	return nil
}

func (k *follower) hasEnded() bool {
	select {
	case <-k.gone:
		return true
	default:
		return false
	}
}

func (k *follower) close() {
	k.stop()
	if k.recorder != nil {
		k.recorder.Close()
	}
}

// follow returns errEnded when the process has ended; then showCut is due.
func (k *follower) follow(ctx context.Context) error {
	connected := true
	patience := readyWait
	if k.restarts > 0 {
		patience = startWait
	}
	answers, welcomed := k.observer.Connected(), k.observer.Ready()
	silent := time.After(patience)
	var unwelcome <-chan time.Time
	tick, glance := time.NewTicker(time.Second), time.NewTicker(glances)
	defer tick.Stop()
	defer glance.Stop()
	for {
		var err error
		events := k.events
		if k.recorder == nil {
			events = nil // they are taken when the process can be read
		}
		select {
		case <-ctx.Done():
			return k.endAll("still running")
		case <-k.gone:
			at := timeline.Monotonic()
			if connected {
				if err := k.takeLast(); err != nil {
					return err
				}
			}
			if err := k.cutAll(at); err != nil {
				return err
			}
			return errEnded
		case <-answers:
			answers, silent = nil, nil
			unwelcome = time.After(welcomeWait)
		case <-welcomed:
			welcomed, unwelcome = nil, nil
			err = k.begin(true)
		case <-unwelcome:
			err = k.begin(false)
		case <-silent:
			err = k.unreadable()
		case <-tick.C:
			k.queue.read(k.pid)
			err = k.look()
		case <-glance.C:
			if len(k.running) == 0 {
				k.levels.read()
			}
			err = k.glance()
		case a := <-k.announced:
			err = k.expect(a)
		case e, ok := <-events:
			if !ok {
				return k.endAll("still running")
			}
			connected = e.Kind != jupyter.Disconnected
			err = k.take(e)
		}
		if err != nil {
			return err
		}
	}
}

func (k *follower) take(e jupyter.Event) error {
	k.queue.read(k.pid)
	switch e.Kind {
	case jupyter.CellStarted:
		k.count = e.ExecutionCount
		if k.started = e.Sent; k.started.IsZero() {
			k.started = e.At
		}
		if g := k.options.gathered; g != nil {
			g.begins(k.started)
		}
		if id, w := k.inShell(); id != "" && !e.Subshell {
			if k.hasBegun(id, w, e) {
				k.adopt(id, w, e)
				return nil
			}
			if err := k.endUnseen(id); err != nil { // the shell runs one at a time
				return err
			}
		}
		cell := &timeline.Cell{ExecutionCount: e.ExecutionCount, File: k.names(e.Code), Text: e.Code}
		return k.record(e.MsgID, &watched{cell: cell, began: e.At, sent: e.Sent, subshell: e.Subshell})
	case jupyter.CellEnded:
		switch {
		case k.running[e.MsgID] != nil:
			w := k.running[e.MsgID]
			w.ended = e.Sent
			w.queued = k.queue.within(k.pid, w.sent, w.ended)
			return errors.Join(k.end(e.MsgID, e.MsgID, e.Outcome), k.expectNow())
		case k.running[met] != nil && e.Unseen && !e.Subshell:
			return errors.Join(k.end(met, e.MsgID, e.Outcome), k.expectNow())
		}
	}
	return nil
}

func (k *follower) record(id string, w *watched) error {
	spec := recorder.Spec{
		ID: id, Interval: k.options.Interval, FigureInterval: k.options.FigureInterval, Children: k.options.Children,
		Cell: w.cell, Sources: w.sources(k.names),
	}
	if _, err := k.recorder.Begin(spec); err != nil {
		return err
	}
	w.recording, w.beside = id, len(k.running) > 0
	k.running[id] = w
	if k.options.Audience != nil {
		w.looks = newLooks(k.tools, k.recorder, id)
	}
	w.pause = firstPause
	w.next = time.Now().Add(w.pause)
	w.row = k.journal.add(k.restarts, w)
	return nil
}

// takeLast takes what the process said before its end: of several cells that ended then, and of those that began and ended
// while the ones before were put away. The connection breaks behind its last message.
func (k *follower) takeLast() error {
	timeout := time.After(lastWait)
	for {
		select {
		case <-timeout:
			return nil
		case e, ok := <-k.events:
			if !ok || e.Kind == jupyter.Disconnected {
				return nil
			}
			if err := k.take(e); err != nil {
				return err
			}
		}
	}
}

func (k *follower) endAll(outcome string) error {
	var errs []error
	for id := range k.running {
		errs = append(errs, k.end(id, id, outcome))
	}
	return errors.Join(errs...)
}

// cutAll ends the recordings of the cells that were running when the process ended.
func (k *follower) cutAll(at int64) error {
	for id, w := range k.running {
		seen, err := k.recorded(id, id, recorder.Ending{At: at})
		if err != nil {
			return err
		}
		w.rec = seen()
		k.cut = append(k.cut, w)
	}
	return nil
}

// end ends the recording of a cell, which put out what msgID did.
func (k *follower) end(id, msgID, outcome string) error {
	w := k.running[id]
	seen, err := k.recorded(id, msgID, recorder.Ending{Outcome: outcome})
	if err != nil {
		return err
	}
	if g := k.options.gathered; g != nil {
		g.add(k.tools, w, seen)
		return nil
	}
	k.show(w, seen())
	return nil
}

// recorded stops the recording of a cell, which a function returns as soon as it is known.
func (k *follower) recorded(id, msgID string, ending recorder.Ending) (seen func() *timeline.Recording, err error) {
	w := k.running[id]
	delete(k.running, id)
	ending.Sources = w.sources(k.names)
	if out, ok := k.observer.Output(msgID); ok {
		ending.Output = &timeline.Output{Messages: out.Messages, Bytes: out.Bytes, AtLeast: out.AtLeast}
	}
	if !w.sent.IsZero() && !w.already {
		ending.Began = monotonic(w.sent)
	}
	if !w.ended.IsZero() { // what the kernel does until the message is read is not the cell's
		ending.At = monotonic(w.ended)
	}
	stopped, err := k.recorder.Stop(w.recording, ending)
	if err != nil {
		return nil, err
	}
	w.edges = k.edgesOf(w)
	return func() *timeline.Recording {
		rec := stopped()
		if rec.Target.Cell != nil {
			rec.Target.Cell.ExecutionCount = w.cell.ExecutionCount // of one that was recorded before its message came
		}
		switch length := w.length(); {
		case length > 0:
			profiler.MarkLate(rec, max(w.late(), length-time.Duration(rec.Duration)), length)
		case w.already:
			rec.Notes = append(rec.Notes, metNote)
		}
		return rec
	}, nil
}

// monotonic is the CLOCK_MONOTONIC of a time by the wall clock, of a moment ago.
func monotonic(wall time.Time) int64 { return timeline.Monotonic() - int64(time.Since(wall)) }
