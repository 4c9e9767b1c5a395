package program

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/doors/program/marks"
	"github.com/omni-perf/omni-perf/sidecar/doors/signals"
	"github.com/omni-perf/omni-perf/sidecar/measure/cupti"
	"github.com/omni-perf/omni-perf/sidecar/measure/procfs"
	"github.com/omni-perf/omni-perf/sidecar/measure/recorder"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/traces/addtrace"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// Exit is how a script ended.
type Exit struct {
	Code   int            // of a script that a signal ended, 128 and the signal, as a shell has it
	Signal syscall.Signal // that ended it; 0 for none
}

// ExitNotStarted is the exit code when the script could not be run, as a shell
// has it.
const ExitNotStarted = 127

var notStarted = Exit{Code: ExitNotStarted}

// Script is a program to run; see Resolve.
type Script struct {
	Interpreter string   // empty: the active environment's, else python3 on PATH
	Program     string   // executed as it is, in place of an interpreter: a launcher whose descendants run Python
	Args        []string // the interpreter's: "train.py", "--epochs", "3", or "-m", "package.train"; or the program's
	file        string   // of the script, where it is one that can be looked into
	missing     bool     // there is no such script

	Stdin          io.Reader // nil: ours
	Stdout, Stderr io.Writer // nil: ours
}

// Run runs the script as if it had been started without us, same arguments,
// streams, signals and exit code, and writes what was recorded. The exit is the
// script's; err says what is wrong with our part.
func Run(ctx context.Context, t Tools, s Script, o Options) (exit Exit, err error) {
	files := o.Results.Files(suffixOf(o.Rank))
	if err := Check(files); err != nil {
		return notStarted, err
	}
	command, err := s.command()
	if err != nil {
		return notStarted, err
	}
	if err := s.check(command[0], s.stderr()); err != nil {
		return notStarted, err
	}
	if o.Nsys != nil {
		command = o.Nsys.around(command, o.Results.Base()+suffixOf(o.Rank))
	}
	defer outliveReaders()()
	defer spareCPUs()()
	relay := newRelay(o.Waiter)
	defer relay.stop()

	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, s.stderr()
	if s.Stdin != nil {
		cmd.Stdin = s.Stdin
	}
	if s.Stdout != nil {
		cmd.Stdout = s.Stdout
	}
	receiver, rings, end := t.receiveFrom(cmd, o)
	defer end()
	started := timeline.Monotonic()
	if o.Waiter != nil {
		o.Waiter.Starting()
	}
	if err := cmd.Start(); err != nil {
		return notStarted, fmt.Errorf("start %s: %w", command[0], err)
	}
	launcher := peakOf(unix.RUSAGE_SELF)
	memory := watchMemory(cmd.Process.Pid)
	if o.Waiter != nil {
		o.Waiter.Started(cmd.Process.Pid)
	}
	ended := make(chan int64, 1)
	go func() {
		awaitExit(cmd.Process.Pid)
		ended <- timeline.Monotonic()
	}()
	target := timeline.Target{
		PID: cmd.Process.Pid, Interpreter: command[0], Argv: command, Rank: o.Rank,
	}
	r := t.Recorder(target)
	defer r.Close()
	if receiver != nil {
		go receiver.Serve(into(r))
	}
	soFar := newPartial(t, o, files, r, cmp.Or(o.PartialEvery, partialEvery))
	done, idle := make(chan struct{}), make(chan struct{})
	go func() { soFar.run(done); close(idle) }()
	at := record(ctx, r, cmd.Process, o, started, ended, relay, soFar, rings)
	relay.end()
	close(done)
	<-idle // no older report replaces the last one
	if receiver != nil {
		receiver.Drain()
	}
	rec, err := r.End(recordingID, recorder.Ending{At: at})
	reaped := hasReaped(cmd.Process.Pid)
	cmd.Wait() // its error is the exit status
	if err == nil {
		noteExit(rec, cmd.ProcessState)
		noteRaised(rec, receiver)
		noteGoingOn(rec)
		noteNoCUDA(rec, rings)
		keepPeak(rec, cmd.ProcessState, launcher, reaped)
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && o.Waiter != nil {
		o.Waiter.Ended(status)
	}
	if err != nil {
		return exitOf(cmd.ProcessState), err
	}
	if err := r.Refusal(); err != nil && len(rec.Threads) == 0 {
		fmt.Fprintf(o.Messages, "omni-perf: the script's stacks are not recorded: %v\n", err)
	}
	var found traced
	if o.Torch != nil && receiver != nil {
		found = o.Torch.tracesOf(rec, receiver, o.Messages)
	}
	if o.Nsys != nil {
		found.leading = o.Nsys.recorded(o.Messages)
	}
	report, _, err := t.shown(rec, found.leading, files, o)
	if report != nil {
		t.keepTraces(ctx, report, found.files, o.Messages)
		memory.sayDied(o.Messages, rec, report, false)
	}
	return exitOf(cmd.ProcessState), err
}

// receiveFrom listens to the steps and regions of a program and gives it the environment to send them; with the step
// hook, unless that is not wanted, and with the library that records GPUs where it is. What fails is left out: the program
// is none the worse. rings is where that library leaves its records; empty: nowhere.
func (t Tools) receiveFrom(cmd *exec.Cmd, o Options) (receiver *marks.Receiver, rings string, end func()) {
	if t.Folder == nil {
		return nil, "", func() {}
	}
	private, err := t.Folder()
	if err != nil {
		return nil, "", func() {}
	}
	environment := os.Environ()
	if receiver, err = marks.Listen(private.Socket); err == nil {
		environment = append(environment, marks.Variable+"="+private.Socket)
		if !o.NoStepHook && marks.WriteStepHook(private.StepHook) == nil {
			environment = marks.WithStepHook(environment, private.StepHook)
		}
	}
	if o.Torch != nil && receiver != nil {
		if variable, err := o.Torch.variable(private.Rings); err == nil {
			environment = append(environment, variable)
		}
	}
	if o.Exact != "" {
		rings = private.Rings
		environment = append(environment, injection+"="+o.Exact, cupti.Variable+"="+rings)
	}
	cmd.Env = environment
	return receiver, rings, func() {
		if receiver != nil {
			receiver.Close()
		}
		private.Remove()
	}
}

// injection names a library that the NVIDIA driver loads where CUDA starts.
const injection = "CUDA_INJECTION64_PATH"

// Injected reports whether the user has a library of that kind already, as profilers do: there can be one.
func Injected() (library string, ok bool) {
	library = os.Getenv(injection)
	return library, library != ""
}

// keepPeak adds to a recording the most memory that the program had resident, as the kernel
// says of it once it was waited for. Until its exec the program had our memory, so that what
// the kernel says is never less than what we had then: a program that needs less than that is
// not known so well. Nor is one that has waited for a child, whose peak may be the one that the
// kernel says, unless the program was itself seen to need as much.
func keepPeak(rec *timeline.Recording, state *os.ProcessState, launcher int64, reaped bool) {
	usage, ok := state.SysUsage().(*syscall.Rusage)
	if !ok || usage.Maxrss<<10 <= launcher {
		return
	}
	for i := range rec.Processes {
		p := &rec.Processes[i]
		if p.PID != rec.Target.PID {
			continue
		}
		seen := rec.Resident(i)
		if peak := usage.Maxrss << 10; !reaped || peak <= max(seen.Largest, seen.Mark)+timeline.InexactMark {
			p.Memory.Peak = peak
		}
		return
	}
}

// hasReaped reports whether a process that has ended, and was not waited for yet, had waited for a child: the kernel
// then counts the child's page faults with it.
func hasReaped(pid int) bool {
	proc := procfs.New("/proc")
	stat, err := proc.Stat(pid)
	return err != nil || stat.ReapedMinor > 0
}

// peakOf is the ru_maxrss of whom unix.Getrusage takes, in bytes.
func peakOf(who int) int64 {
	var usage unix.Rusage
	if unix.Getrusage(who, &usage) != nil {
		return math.MaxInt64
	}
	return usage.Maxrss << 10
}

// outliveReaders lets us live on when nobody reads our messages any more, as behind
// "2>&1 | head": there are files to write. A program that is started meanwhile is
// not concerned.
func outliveReaders() (stop func()) {
	broken := make(chan os.Signal, 1)
	signals.Notify(broken, unix.SIGPIPE)
	return func() { signal.Stop(broken) }
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
// time of that. A signal that is passed on asks for a report at once.
func record(ctx context.Context, r *recorder.Recorder, p *os.Process, o Options, started int64, ended <-chan int64, relay *relay, soFar *partial, rings string) int64 {
	_, err := r.Begin(recorder.Spec{
		ID: recordingID, Started: started, Interval: o.Interval, FigureInterval: o.FigureInterval, FigureLater: o.FigureLater, Children: o.Children, Patient: true, Rings: rings,
	})
	if err != nil {
		fmt.Fprintf(o.Messages, "omni-perf: nothing is recorded: %v\n", err)
	}
	for {
		select {
		case at := <-ended:
			return at
		case s := <-relay.got:
			if s.pass {
				_ = p.Signal(s.Signal)
			}
			soFar.soon()
		case <-ctx.Done():
			_ = p.Signal(unix.SIGTERM)
			ctx = context.Background()
		}
	}
}

func (s Script) stderr() io.Writer {
	if s.Stderr != nil {
		return s.Stderr
	}
	return os.Stderr
}

// suffixOf distinguishes the results of ranks.
func suffixOf(r *timeline.Rank) string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf(".rank%d", r.Global)
}

func exitOf(state *os.ProcessState) Exit {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return Exit{128 + int(status.Signal()), status.Signal()}
	}
	return Exit{Code: state.ExitCode()}
}

// noteExit writes how the script ended: whoever waits for it knows for sure.
func noteExit(rec *timeline.Recording, state *os.ProcessState) {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || len(rec.Processes) == 0 || rec.Processes[0].PID != rec.Target.PID {
		return
	}
	p := &rec.Processes[0]
	code := exitOf(state).Code
	p.Exit, p.Signal, p.End = &code, 0, rec.Duration
	if status.Signaled() {
		p.Signal = int(status.Signal())
	}
}

// noteRaised writes which exceptions ended the program and its descendants, as far as these have sent them.
func noteRaised(rec *timeline.Recording, receiver *marks.Receiver) {
	if receiver == nil {
		return
	}
	for i := range rec.Processes {
		p := &rec.Processes[i]
		p.Raised = receiver.Raised(p.PID)
	}
}

// noteNoCUDA says that no process has left a file of what its GPUs did, where that is wanted.
func noteNoCUDA(rec *timeline.Recording, rings string) {
	if rings == "" {
		return
	}
	entries, err := os.ReadDir(rings)
	if err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return cupti.IsFile(e.Name()) }) {
		return
	}
	rec.Notes = append(rec.Notes, timeline.Note{
		ID: timeline.NoteUnavailable, What: cupti.What, Reason: "no process used CUDA, whose driver would have loaded the library that records it",
	})
}

// noteGoingOn names the processes that outlive the script, as a daemon does.
func noteGoingOn(rec *timeline.Recording) {
	for i := range rec.Processes {
		p := &rec.Processes[i]
		if i > 0 && p.End == 0 && (p.IsWorker() || p.Role == timeline.RoleChild) && unix.Kill(p.PID, 0) != unix.ESRCH {
			rec.Notes = append(rec.Notes, timeline.Note{
				ID: timeline.NoteGoesOn, What: p.Command, Reason: fmt.Sprintf("process %d runs on after the script has ended; what it does now is recorded by omni-perf attach %d", p.PID, p.PID),
			})
		}
	}
}

// shown writes the result files and reports where they are, after the summary, and returns the report, unless there
// is none, and what was written where it was asked for. Its error says which are not where they were asked for, and
// where they are.
func (t Tools) shown(rec *timeline.Recording, traced addtrace.Traced, files []File, o Options) (r *report.View, written []string, err error) {
	defer func() {
		if p := recover(); p != nil { // the exit code of a script is not to be lost by it
			err = fmt.Errorf("the report cannot be made, a bug of omni_perf: %v", p)
		}
	}()
	if len(traced.Files) > 0 && t.AnalyseTraced != nil {
		r, err = t.AnalyseTraced(rec, traced)
	} else {
		r, err = t.Analyse(rec)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the report cannot be made, a bug of omni_perf: %w", err)
	}
	written, err = Show(r, files, t.Summary(r), o.Messages)
	if o.Judge != nil {
		o.Judge(r)
	}
	if o.Open != nil {
		for _, f := range files {
			if f.Format.Name == "html" && slices.Contains(written, f.Path) {
				o.Open(f.Path)
			}
		}
	}
	if o.Send != nil {
		o.Send(r, written)
	}
	return r, written, err
}
