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
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/jupyter"
	"github.com/omni-perf/omni-perf/sidecar/doors/python"
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
	Interpreter string        // that has nbclient; empty: the user's, else the one beside this program
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
	interpreter, err := n.interpreter(o.Messages)
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
	case said.Problem != "":
		return exit, &Refused{exit.Code, words.Clean(said.Problem, 4*words.MaxName)}
	case said.Missing != "":
		return exit, &Refused{exit.Code, fmt.Sprintf("%s has no %s, which executes notebooks; %s -m pip install nbclient ipykernel installs it", interpreter, said.Missing, interpreter)}
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
	Missing string  // what it lacks: a module, or the notebook's kernel
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

// interpreter is the Python that executes the notebook: the user's, unless it lacks nbclient or the notebook's kernel and the
// one beside this program does not.
func (n Notebook) interpreter(messages io.Writer) (string, error) {
	candidates, err := python.Candidates(n.Interpreter)
	if err != nil || len(candidates) == 1 {
		return candidates[0], err
	}
	lacking := n.lacking(candidates[0])
	if lacking == "" || n.lacking(candidates[1]) != "" {
		return candidates[0], nil
	}
	fmt.Fprintf(messages, "omni-perf: %s has no %s; %s, beside omni-perf, executes the notebook; --interpreter names another\n",
		candidates[0], words.Clean(lacking, words.MaxName), candidates[1])
	return candidates[1], nil
}

// lacking is what a Python has not that executing the notebook takes; empty: nothing, or what no other Python changes.
func (n Notebook) lacking(interpreter string) string {
	notices, notify, err := os.Pipe()
	if err != nil {
		return ""
	}
	defer notices.Close()
	cmd := exec.Command(interpreter, "-c", executor, n.given(true))
	cmd.ExtraFiles = []*os.File{notify} // 3
	err = cmd.Run()
	notify.Close()
	var said notice
	if json.NewDecoder(notices).Decode(&said) != nil && err != nil {
		return "nbclient that starts" // nor does it, or is too old
	}
	return said.Missing
}

// given is what the executor is given, to execute the notebook or to try only whether it could.
func (n Notebook) given(onlyTry bool) string {
	text, _ := json.Marshal(map[string]any{ // text, numbers and booleans
		"notebook": n.Path, "allow_errors": n.AllowErrors, "kernel_name": n.Kernel, "executed": n.Executed, "timeout": timeoutOf(n.Timeout), "only_try": onlyTry,
	})
	return string(text)
}

// start starts the executor.
func (n Notebook) start(interpreter string, o Options) (*execution, error) {
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
	e := &execution{cmd: exec.Command(interpreter, "-c", executor, n.given(false)), relay: newRelay(o.Waiter), notices: notices, goes: goes, ended: make(chan struct{})}
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
