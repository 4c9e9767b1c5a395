package program

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/jupyter"
	"github.com/omni-perf/omni-perf/sidecar/doors/python"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/show/glance"
	"github.com/omni-perf/omni-perf/sidecar/show/output"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// executor is what executes a notebook, in the user's Python.
//
//go:embed executor.py
var executor string

// NotebookEnding is what the name of a notebook ends in.
const NotebookEnding = ".ipynb"

// IsNotebook reports whether what is to be run is a notebook.
func IsNotebook(name string) bool { return strings.EqualFold(filepath.Ext(name), NotebookEnding) }

// Notebook is a notebook to execute.
type Notebook struct {
	Path        string
	Interpreter string        // that has nbclient; empty: $VIRTUAL_ENV's python, else python3 on PATH
	Kernel      string        // name of the kernel; empty: the notebook's own
	AllowErrors bool          // go on behind a cell that fails
	Timeout     time.Duration // of a cell; 0: none
	Executed    string        // where the executed notebook is written; empty: nowhere
	Page        string        // where the page of all cells is written; empty: nowhere
	Document    string        // where their figures are written as JSON, to be compared; empty: nowhere
}

// RunNotebook executes a notebook as nbclient does, and follows its kernel's cells from outside: nothing of ours
// is in the kernel, and the outputs are nbclient's. What was recorded becomes one page. The exit is that
// of the execution; err says what is wrong with our part.
func RunNotebook(ctx context.Context, tools func(pid int) Tools, n Notebook, o Options) (exit Exit, err error) {
	for _, file := range []string{n.Page, n.Document, n.Executed} {
		if file == "" {
			continue
		}
		if err := output.Check(file); err != nil {
			return notStarted, err
		}
	}
	if _, err := os.Stat(n.Path); err != nil {
		return notStarted, &Refused{exitNoScript, fmt.Sprintf("the notebook %s cannot be opened: %v", n.Path, errors.Unwrap(err))}
	}
	interpreter, err := python.OfUser(n.Interpreter)
	if err != nil {
		return notStarted, err
	}
	defer outliveReaders()()
	defer spareCPUs()()
	e, err := n.start(interpreter, o)
	if err != nil {
		return notStarted, err
	}
	defer e.relay.stop()
	g := gather(tools, o)
	o.gathered = g
	said, trouble := e.follow(ctx, tools, o)
	exit = e.wait(o)
	cells := g.cells()
	switch {
	case said.Missing != "":
		module, _, _ := strings.Cut(said.Missing, ".")
		return exit, &Refused{exit.Code, fmt.Sprintf("%s has no %s, which executes notebooks; %s -m pip install nbclient ipykernel installs it", interpreter, module, interpreter)}
	case said.Problem != "":
		return exit, &Refused{exit.Code, words.Clean(said.Problem, 4*words.MaxName)}
	case trouble != nil:
		trouble = fmt.Errorf("the cells are not profiled: %w", trouble)
	}
	page := glance.Notebook{Name: filepath.Base(n.Path), Cells: cells, Kept: g.kept()}
	if trouble != nil {
		page.Note = words.Sentence(trouble.Error())
	}
	if len(cells) > 0 {
		fmt.Fprintf(o.Messages, "%s", page.Text())
	}
	var results output.Results
	if n.Page != "" {
		results.PutBytes(n.Page, func() ([]byte, error) { return page.Page(), nil })
	}
	if n.Document != "" {
		results.PutBytes(n.Document, page.Document().JSON)
	}
	if n.Executed != "" {
		results.Written = append(results.Written, n.Executed)
	}
	if len(results.Written) > 0 {
		fmt.Fprintf(o.Messages, "omni-perf: wrote %s\n", strings.Join(results.Written, ", "))
	}
	if o.Open != nil && n.Page != "" && len(results.Failed) == 0 {
		o.Open(n.Page)
	}
	return exit, errors.Join(trouble, results.Err())
}

// notice is what the executor reports: one of these.
type notice struct {
	Kernel  string  // the connection file of the kernel it has started
	Missing string  // the module that it lacks
	Problem string  // why it cannot execute the notebook
	Cell    *string // the text of the cell that it is about to have executed
	At      int64   // then, in nanoseconds since 1970
	Late    bool    // that a cell took longer than it may
}

// execution is a notebook that is executed.
type execution struct {
	cmd     *exec.Cmd
	relay   *relay
	notices io.ReadCloser  // lines of JSON
	goes    io.WriteCloser // closed: it may go on
	ended   chan struct{}  // closes when the process has ended

	interrupted atomic.Bool // it got a signal that ends it
}

// start starts the executor.
func (n Notebook) start(interpreter string, o Options) (*execution, error) {
	given, err := json.Marshal(map[string]any{
		"notebook": n.Path, "allow_errors": n.AllowErrors, "kernel_name": n.Kernel, "executed": n.Executed, "timeout": timeoutOf(n.Timeout),
	})
	if err != nil {
		return nil, err
	}
	notices, notify, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer notify.Close()
	wait, goes, err := os.Pipe()
	if err != nil {
		notices.Close()
		return nil, err
	}
	defer wait.Close()
	e := &execution{cmd: exec.Command(interpreter, "-c", executor, string(given)), relay: newRelay(o.Waiter), notices: notices, goes: goes, ended: make(chan struct{})}
	e.cmd.Stdin, e.cmd.Stdout, e.cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	e.cmd.ExtraFiles = []*os.File{notify, wait} // 3 and 4
	if o.Waiter != nil {
		o.Waiter.Starting()
	}
	if err := e.cmd.Start(); err != nil {
		e.relay.stop()
		notices.Close()
		goes.Close()
		return nil, fmt.Errorf("start %s: %w", interpreter, err)
	}
	if o.Waiter != nil {
		o.Waiter.Started(e.cmd.Process.Pid)
	}
	go func() {
		awaitExit(e.cmd.Process.Pid)
		close(e.ended)
	}()
	go e.passOn()
	return e, nil
}

// timeoutOf is nbclient's: whole seconds, or nothing.
func timeoutOf(d time.Duration) any {
	if d <= 0 {
		return nil
	}
	return int(math.Ceil(d.Seconds()))
}

// passOn gives the executor the signals that are meant for it.
func (e *execution) passOn() {
	for {
		select {
		case s := <-e.relay.got:
			if s.Signal == unix.SIGINT || s.Signal == unix.SIGTERM { // these two nbclient takes
				e.interrupted.Store(true)
			}
			if s.pass {
				_ = e.cmd.Process.Signal(s.Signal)
			}
		case <-e.ended:
			return
		}
	}
}

// follow waits for the kernel and follows its cells until the execution has ended. It returns what the executor
// has reported; trouble is why the cells could not be followed.
func (e *execution) follow(ctx context.Context, tools func(pid int) Tools, o Options) (said notice, trouble error) {
	defer e.notices.Close()
	defer e.goes.Close() // it executes the notebook, whether it is followed or not
	notices := bufio.NewReader(e.notices)
	line, err := notices.ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &said) != nil || said.Kernel == "" {
		return said, nil
	}
	file, err := jupyter.ReadConnection(said.Kernel)
	if err != nil {
		return said, err
	}
	pid, err := KernelProcess(file)
	if err != nil {
		return said, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		<-e.ended
		stop()
	}()
	o.gathered.ready = func() { e.goes.Close() }
	k, err := attachKernel(ctx, tools, pid, 0, file, o, newJournal(o, "", pid))
	defer k.close()
	late, announced := make(chan bool, 1), make(chan announcement)
	go func() { late <- passCells(ctx, notices, announced, k.levels.announced) }()
	if err == nil {
		k.announced = announced
		err = k.follow(ctx)
	}
	if errors.Is(err, errEnded) {
		err = nil
	}
	e.goes.Close()
	cut := e.whatCut(late)
	k.showCut(cut)
	o.gathered.endedBy(cut)
	return said, err
}

// passCells passes on the texts of cells that the executor is about to have executed, until ctx ends, and calls arrived when
// one has arrived. It returns, when the executor ends, whether that was since a cell took too long.
func passCells(ctx context.Context, notices *bufio.Reader, to chan<- announcement, arrived func(at time.Time)) (late bool) {
	for {
		line, err := notices.ReadBytes('\n')
		if err != nil {
			return late
		}
		var said notice
		if json.Unmarshal(line, &said) != nil {
			continue
		}
		late = late || said.Late
		if said.Cell == nil {
			continue
		}
		at := time.Unix(0, said.At)
		arrived(at)
		select {
		case to <- announcement{*said.Cell, at}:
		case <-ctx.Done():
		}
	}
}

// whatCut is why the kernel's process ended in a cell: the executor ends it where the cell takes too long or itself is to end.
func (e *execution) whatCut(late <-chan bool) string {
	<-e.ended
	select {
	case is := <-late:
		if is {
			return timedOut
		}
	case <-time.After(time.Second): // a process of the notebook's holds the descriptor
	}
	if e.interrupted.Load() {
		return interrupted
	}
	return kernelDied
}

// wait returns when the execution has ended.
func (e *execution) wait(o Options) Exit {
	<-e.ended
	e.relay.end()
	_ = e.cmd.Wait() // its error is the exit status
	if status, ok := e.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && o.Waiter != nil {
		o.Waiter.Ended(status)
	}
	return exitOf(e.cmd.ProcessState)
}

// gathered takes the cells of an executed notebook. What each of them was is found out by goroutines of their own, since the
// one that follows the kernel has the next cell to begin, and mostly when the notebook has ended: to analyse and to draw a
// short cell takes more CPU time than the cell, which the next ones would lack on a machine without a free CPU.
type gathered struct {
	tools    func(pid int) Tools
	ready    func() // the cells are followed
	terminal bool   // each cell is shown when it has ended
	to       io.Writer
	cut      string       // why the last cell was interrupted, if that is known; before cells is called
	mu       sync.Mutex   // of what follows
	last     *stoppedCell // until the next one begins, it is not known what it has kept
	began    bool         // there was a cell
	before   int64        // bytes that the kernel had resident when the first cell began; 0: not known
	after    int64        // likewise, when the last one had ended

	stopped  chan stoppedCell
	waiting  chan []endedCell   // those to be analysed later, when stopped is closed
	ended    chan endedCell     // to be analysed
	analysed chan []glance.Cell // all of them, when ended is closed
}

// stoppedCell is a cell of an executed notebook whose recording comes to rest.
type stoppedCell struct {
	tools Tools
	watched
	seen func() *timeline.Recording
}

// endedCell is a cell of an executed notebook that is to be analysed.
type endedCell struct {
	tools Tools
	watched
	rec *timeline.Recording
}

// Recordings wait until they are so many or so long together, so that memory is bounded.
const (
	maxWaiting       = 64
	maxWaitingLength = timeline.Nanos(30 * time.Second)
)

func gather(tools func(pid int) Tools, o Options) *gathered {
	g := &gathered{
		tools: tools, terminal: o.Terminal, to: o.Messages, stopped: make(chan stoppedCell, maxWaiting), waiting: make(chan []endedCell, 1),
		ended: make(chan endedCell, maxWaiting), analysed: make(chan []glance.Cell, 1),
	}
	go g.take()
	go func() {
		var cells []glance.Cell
		for e := range g.ended {
			cells = append(cells, g.analyse(e))
		}
		g.analysed <- cells
	}()
	return g
}

func (g *gathered) add(t Tools, w *watched, seen func() *timeline.Recording) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.last != nil { // this one's begin was not seen
		if w.sent.IsZero() {
			g.last.edges.levels = nil
		}
		g.settle(w.sent)
	}
	if !g.began {
		g.began, g.before = true, w.edges.before
	}
	last := &stoppedCell{t, *w, seen}
	g.last, g.after = last, 0
	if g.terminal {
		time.AfterFunc(nextWait, func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.last == last {
				last.edges.levels = nil
				g.settle(time.Time{})
			}
		})
	}
}

// nextWait is how long the line of a cell waits on a terminal for the begin of the next one, until which it is not known
// what it has kept.
const nextWait = 500 * time.Millisecond

// begins hands on the cell before one that begins.
func (g *gathered) begins(at time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.settle(at)
}

// settle finds what the last cell has kept, now that it is known when the next one began, and hands it on.
func (g *gathered) settle(next time.Time) {
	if g.last == nil {
		return
	}
	g.after = g.last.edges.settle(next)
	g.stopped <- *g.last
	g.last = nil
}

// kept is what all cells have kept together, each of which may not be known; nil: that is not, too.
func (g *gathered) kept() *int64 {
	if g.before == 0 || g.after == 0 {
		return nil
	}
	kept := g.after - g.before
	return &kept
}

// take takes the recordings in the order of the cells.
func (g *gathered) take() {
	var waiting []endedCell
	var length timeline.Nanos // of their recordings
	for s := range g.stopped {
		e := endedCell{s.tools, s.watched, s.seen()}
		e.edges.describe(e.rec)
		waiting = append(waiting, e)
		if e.rec.Target.Cell.Outcome == interrupted {
			continue // why is known later: cut
		}
		if length += e.rec.Duration; g.terminal || len(waiting) >= maxWaiting || length > maxWaitingLength {
			g.hand(waiting)
			waiting, length = nil, 0
		}
	}
	g.waiting <- waiting
}

// endedBy says why the last cell was interrupted, if it was.
func (g *gathered) endedBy(cut string) { g.cut = cut }

// hand hands cells to the goroutine that analyses them.
func (g *gathered) hand(cells []endedCell) {
	for _, e := range cells {
		g.ended <- e
	}
}

// cells are all cells; none is added afterwards.
func (g *gathered) cells() []glance.Cell {
	g.mu.Lock()
	g.settle(time.Time{})
	g.mu.Unlock()
	close(g.stopped)
	waiting := <-g.waiting
	if n := len(waiting); n > 0 && waiting[n-1].rec.Target.Cell.Outcome == interrupted && g.cut == timedOut {
		waiting[n-1].rec.Target.Cell.Outcome = timedOut
	}
	g.hand(waiting)
	close(g.ended)
	return <-g.analysed
}

// mostlyMissed is the share of a cell's time from which on it had run before its recording began that nothing is said of it:
// what is left would be taken for the cell.
const mostlyMissed = 0.9

func (g *gathered) analyse(e endedCell) glance.Cell {
	rec := e.rec
	c := glance.Cell{Number: e.cell.ExecutionCount, Code: glance.FirstLine(e.cell.Text), Duration: time.Duration(rec.Duration), Outcome: rec.Target.Cell.Outcome}
	if length := e.length(); length > 0 && float64(rec.Duration) <= (1-mostlyMissed)*float64(length) {
		c.Duration, c.Missing = length, "it had ended when its recording began"
		return c
	}
	err := func() (err error) {
		defer func() {
			if p := recover(); p != nil { // the next cell may fare better
				err = fmt.Errorf("a bug of omni_perf: %v", p)
			}
		}()
		r, err := e.tools.Analyse(rec)
		if err != nil {
			return err
		}
		c.SetReport(r)
		if c.Figures.Kept == nil {
			c.Figures.Kept = e.edges.kept()
		}
		traceback := time.Duration(int64(rec.Duration) - r.DurationNS) // which the report leaves out of the recording
		if traceback > 0 {
			c.Figures.Traceback = &traceback
		}
		if length := e.length(); length > 0 {
			c.Duration = max(length-traceback, 0)
			*c.Figures.NoCPU = min(max(*c.Figures.NoCPU, e.queued), length)
		}
		return c.Draw(r)
	}()
	if err != nil {
		c.Missing = err.Error()
	}
	if g.terminal {
		fmt.Fprintf(g.to, "omni-perf: %s %s\n", cellTitle(&e.watched), c.InShort())
	}
	return c
}
