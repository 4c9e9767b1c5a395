package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/chart"
	"github.com/omni-perf/omni-perf/sidecar/export"
	"github.com/omni-perf/omni-perf/sidecar/program"
	"github.com/omni-perf/omni-perf/sidecar/pystack"
	"github.com/omni-perf/omni-perf/sidecar/rank"
	"github.com/omni-perf/omni-perf/sidecar/recorder"
	"github.com/omni-perf/omni-perf/sidecar/report"
	"github.com/omni-perf/omni-perf/sidecar/server"
	"github.com/omni-perf/omni-perf/sidecar/signals"
	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

const runUsage = `usage: omni-perf run [options] SCRIPT [ARG…]
       omni-perf run [options] -m MODULE [ARG…]
       omni-perf run [options] -c CODE [ARG…]
       omni-perf run [options] [-] < SCRIPT

Runs a Python program as if it had been started without omni-perf (arguments,
streams, signals, exit code) and writes what was recorded. Options of python, such
as -I, -u, -X dev and -W error, are passed on.

options:
`

func runCommand() command {
	return command{"run", "run a Python script and profile it", run}
}

func run(args []string) int {
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	options := recordingFlags(flags, "perf_output", time.Second)
	interpreter := flags.String("interpreter", "", "the Python to run it with (default $VIRTUAL_ENV's, else python3 on PATH)")
	open := flags.Bool("open", false, "show the page when it is written")
	ours, python, what := splitRun(flags, args)
	if code, done := parse(flags, runUsage, ours); done {
		return code
	}
	if _, terminal := columnsOf(os.Stdin); len(what) == 0 && terminal {
		return usageProblem(flags, "there is no script to run")
	}
	o, err := options()
	if err != nil {
		return usageProblem(flags, err.Error())
	}
	_, o.Terminal = columnsOf(os.Stderr)
	if r, ok := rank.Of(os.Environ()); ok {
		o.Rank = &r
	}
	if *open {
		o.Open = openPage
	}
	script, err := program.Resolve(*interpreter, slices.Clone(python), what)
	if err != nil {
		return refused(err)
	}
	// The script has ended when its source is read: its files are ours.
	exit, err := program.Run(context.Background(), programTools("script", analyser(os.Getpid())), script, o)
	if as := new(program.Refused); errors.As(err, &as) {
		return refused(err)
	}
	if err != nil {
		complain(err)
	}
	if exit.Signal != 0 {
		signals.DieBy(exit.Signal)
	}
	return exit.Code // the script's, whatever became of the report
}

// refused tells why nothing was run, and how to exit.
func refused(err error) int {
	var why *program.Refused
	if !errors.As(err, &why) {
		complain(err)
		return exitFailed
	}
	if why.Error() != "" {
		complain(err)
	}
	return why.Code
}

// openPage shows a page in the user's browser, which outlives us.
func openPage(path string) {
	if err := exec.Command("xdg-open", path).Start(); err != nil {
		complain(fmt.Errorf("%s cannot be opened in a browser: %w", path, err))
	}
}

// privateFolder makes a folder for the socket by which a program tells its steps.
func privateFolder() (socket string, remove func(), err error) {
	folder, err := server.NewFolder()
	if err != nil {
		return "", nil, err
	}
	return folder.Socket(), func() { _ = folder.Remove() }, nil
}

// programTools makes the recordings of programs outside a notebook.
func programTools(role timeline.Role, analyse func(*timeline.Recording) *report.Report) program.Tools {
	return program.Tools{
		Recorder: func(target timeline.Target) *recorder.Recorder {
			return recorder.ForProcess(target, role, openGPUs)
		},
		Readable: readable,
		Analyse:  analyse,
		Folder:   privateFolder,
		Summary:  func(r *report.Report) []byte { return []byte(chart.Text(r, 100)) },
	}
}

// formats are the result files, in the order of the usage.
func formats() []program.Format {
	return []program.Format{
		{Name: "svg", Extension: ".svg", Encode: func(r *report.Report) ([]byte, error) { return chart.SVG(r, chart.Options{}) }},
		{Name: "html", Extension: ".html", Encode: func(r *report.Report) ([]byte, error) { return chart.Page(r, chart.Options{}) }},
		{Name: "speedscope", Extension: ".speedscope.json", Encode: export.Speedscope},
		{Name: "chrome", Extension: ".trace.json.gz", Encode: export.ChromeTrace},
		{Name: "pprof", Extension: ".pb.gz", Encode: export.Pprof},
		{Name: "collapsed", Extension: ".collapsed.txt", Encode: export.Collapsed},
		{Name: "json", Extension: ".json", Encode: func(r *report.Report) ([]byte, error) { return json.Marshal(r) }},
	}
}

// readable tells whether a process has come so far that it runs Python code.
func readable(pid int) error {
	p, err := pystack.Attach(pid, pystack.Options{})
	if err == nil {
		p.Close()
		return nil
	}
	if errors.Is(err, pystack.ErrStarting) || errors.Is(err, pystack.ErrNotPython) {
		return program.ErrNotYet
	}
	return err
}

// recordingFlags defines what run and attach share. The returned function
// checks and gathers it after parsing.
func recordingFlags(flags *flag.FlagSet, name string, figures time.Duration) func() (program.Options, error) {
	stacks, every, list, children := 0.001, figures.Seconds(), "", "stacks"
	for _, f := range []string{"o", "output"} {
		flags.StringVar(&name, f, name, "name of the result files without extension; or of one file, by its extension")
	}
	for _, f := range []string{"p", "prof_interval"} {
		flags.Float64Var(&stacks, f, stacks, "stack sampling interval in seconds")
	}
	for _, f := range []string{"s", "sys_interval"} {
		flags.Float64Var(&every, f, every, "interval of system and GPU figures in seconds")
	}
	flags.StringVar(&children, "children", children, "what to record of child processes: none, tracks or stacks")
	flags.StringVar(&list, "format", list, "result formats, separated by commas: "+formatNames()+" (default "+strings.Join(program.DefaultFormats, ",")+")")
	return func() (o program.Options, err error) {
		if !(stacks > 0) || !(every > 0) || stacks > 3600 || every > 3600 {
			return o, errors.New("an interval is a number of seconds above 0 and up to 3600")
		}
		o.Messages, o.Interval, o.FigureInterval = messages, seconds(stacks), seconds(every)
		if o.Children, err = recorder.ParseChildren(children); err != nil {
			return o, err
		}
		o.Results, err = program.Name(formats(), name, listed(list))
		return o, err
	}
}

// listed splits a list at its commas; none is empty.
func listed(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func formatNames() string {
	var names []string
	for _, f := range formats() {
		names = append(names, f.Name)
	}
	return strings.Join(names, ", ")
}

// parse reads options; done says that there is nothing more to do, with the
// exit code of that.
func parse(flags *flag.FlagSet, usage string, args []string) (code int, done bool) {
	flags.SetOutput(messages)
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return exitOK, true
	case err != nil:
		return exitUsage, true
	}
	return exitOK, false
}

// usageProblem says what is wrong with a command line.
func usageProblem(flags *flag.FlagSet, problem string) int {
	fmt.Fprintf(messages, "omni-perf %s: %s; see omni-perf %s -h.\n", flags.Name(), problem, flags.Name())
	return exitUsage
}
