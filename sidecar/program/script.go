package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/recorder"
	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// ExitNotStarted is the exit code when the script could not be run, as a shell
// has it.
const ExitNotStarted = 127

// Script is a Python program to run.
type Script struct {
	Interpreter string   // empty: $VIRTUAL_ENV's python, else python3 on PATH
	Args        []string // the interpreter's: "train.py", "--epochs", "3", or "-m", "package.train"

	Stdin          io.Reader // nil: ours
	Stdout, Stderr io.Writer // nil: ours
}

// Run runs the script as if it had been started without us, same arguments,
// streams, signals and exit code, and writes what was recorded. The exit code is
// the script's; err says what is wrong with our part.
func Run(ctx context.Context, t Tools, s Script, o Options) (exit int, err error) {
	formats, err := t.Choose(o.Formats)
	if err != nil {
		return ExitNotStarted, err
	}
	interpreter, err := s.interpreter()
	if err != nil {
		return ExitNotStarted, err
	}
	// Signals of the terminal reach the script by itself. Taking them here only
	// keeps us alive; ignoring them would be inherited by the script.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP, unix.SIGUSR1, unix.SIGUSR2)
	defer signal.Stop(signals)

	cmd := exec.Command(interpreter, s.Args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if s.Stdin != nil {
		cmd.Stdin = s.Stdin
	}
	if s.Stdout != nil {
		cmd.Stdout = s.Stdout
	}
	if s.Stderr != nil {
		cmd.Stderr = s.Stderr
	}
	started := timeline.Monotonic()
	if err := cmd.Start(); err != nil {
		return ExitNotStarted, fmt.Errorf("start %s: %w", interpreter, err)
	}
	ended := make(chan int64, 1)
	go func() {
		awaitExit(cmd.Process.Pid)
		ended <- timeline.Monotonic()
	}()
	target := timeline.Target{
		PID: cmd.Process.Pid, Interpreter: interpreter, Argv: append([]string{interpreter}, s.Args...),
	}
	r := t.Recorder(target)
	defer r.Close()
	at := record(ctx, r, cmd.Process, o, started, ended, signals)
	rec, err := r.End(recordingID, recorder.Ending{At: at})
	cmd.Wait() // its error is the exit status
	if err != nil {
		return exitCode(cmd.ProcessState), err
	}
	if err := r.Refusal(); err != nil && len(rec.Threads) == 0 {
		fmt.Fprintf(o.Messages, "omni-perf: the script's stacks are not recorded: %v\n", err)
	}
	return exitCode(cmd.ProcessState), t.show(rec, o.Output, formats, o)
}

// awaitExit returns when the process has ended, which leaves it to be read once
// more: until it is waited for, /proc still has its figures.
func awaitExit(pid int) {
	for {
		var info unix.Siginfo
		if err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, nil); err != unix.EINTR {
			return
		}
	}
}

const recordingID = "program"

// record records from the program's start and returns when it has ended, with the
// time of that.
func record(ctx context.Context, r *recorder.Recorder, p *os.Process, o Options, started int64, ended <-chan int64, signals <-chan os.Signal) int64 {
	_, err := r.Begin(recorder.Spec{
		ID: recordingID, Started: started, Interval: o.Interval, FigureInterval: o.FigureInterval, Patient: true,
	})
	if err != nil {
		fmt.Fprintf(o.Messages, "omni-perf: nothing is recorded: %v\n", err)
	}
	for {
		select {
		case at := <-ended:
			return at
		case s := <-signals:
			if s != unix.SIGINT && s != unix.SIGQUIT { // those of the terminal the script has got itself
				_ = p.Signal(s)
			}
		case <-ctx.Done():
			_ = p.Signal(unix.SIGTERM)
			ctx = context.Background()
		}
	}
}

func (s Script) interpreter() (string, error) {
	if s.Interpreter != "" {
		path, err := exec.LookPath(s.Interpreter)
		if err != nil {
			return "", fmt.Errorf("there is no interpreter %s: %w", s.Interpreter, err)
		}
		return path, nil
	}
	if env := os.Getenv("VIRTUAL_ENV"); env != "" {
		path := filepath.Join(env, "bin", "python")
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath("python3")
	if err != nil {
		return "", errors.New("no python3 on PATH; name the interpreter with --interpreter")
	}
	return path, nil
}

// exitCode is what a shell would say: of a program that a signal killed, 128
// and the signal.
func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// show writes the result files and tells where they are, after the summary.
func (t Tools) show(rec *timeline.Recording, base string, formats []Format, o Options) error {
	r := t.Analyse(rec)
	o.Messages.Write(t.Summary(r))
	files, err := encode(r, base, formats)
	if len(files) > 0 {
		fmt.Fprintf(o.Messages, "omni-perf: wrote %s\n", strings.Join(files, ", "))
	}
	return err
}
