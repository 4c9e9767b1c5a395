package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/chart"
	"github.com/omni-perf/omni-perf/sidecar/export"
	"github.com/omni-perf/omni-perf/sidecar/program"
	"github.com/omni-perf/omni-perf/sidecar/recorder"
	"github.com/omni-perf/omni-perf/sidecar/report"
	"github.com/omni-perf/omni-perf/sidecar/server"
	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

const runUsage = `usage: omni-perf run [options] SCRIPT [ARG…]
       omni-perf run [options] -m MODULE [ARG…]

Runs a Python script as if it had been started without omni-perf (arguments,
streams, signals, exit code) and writes what was recorded.

options:
`

func runCommand() command {
	return command{"run", "run a Python script and profile it", run}
}

func run(args []string) int {
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	options := recordingFlags(flags, "perf_output", time.Second)
	module := flags.String("m", "", "run a module, as python -m does; what follows are its arguments")
	interpreter := flags.String("interpreter", "", "the Python to run it with (default $VIRTUAL_ENV's, else python3 on PATH)")
	if code, done := parse(flags, runUsage, args); done {
		return code
	}
	script := program.Script{Interpreter: *interpreter, Args: flags.Args()}
	switch {
	case *module != "":
		script.Args = append([]string{"-m", *module}, script.Args...)
	case len(script.Args) == 0:
		return usageProblem(flags, "there is no script to run")
	}
	o, err := options()
	if err != nil {
		return usageProblem(flags, err.Error())
	}
	// The script has ended when its source is read: its files are ours.
	exit, err := program.Run(context.Background(), programTools("script", analyser(os.Getpid())), script, o)
	if err != nil {
		fmt.Fprintf(os.Stderr, "omni-perf: %s\n", server.Sentence(err))
		if exit == exitOK {
			return exitFailed
		}
	}
	return exit
}

// programTools makes the recordings of programs outside a notebook.
func programTools(role string, analyse func(*timeline.Recording) *report.Report) program.Tools {
	return program.Tools{
		Recorder: func(target timeline.Target) *recorder.Recorder {
			return recorder.ForProcess(target, role, openGPUs)
		},
		Analyse: analyse,
		Formats: formats(),
		Summary: func(r *report.Report) []byte { return []byte(chart.Text(r, 100)) },
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

// recordingFlags defines what run and attach share. The returned function
// checks and gathers it after parsing.
func recordingFlags(flags *flag.FlagSet, name string, figures time.Duration) func() (program.Options, error) {
	o := program.Options{Messages: os.Stderr}
	stacks, every, list := 0.001, figures.Seconds(), "svg,html"
	for _, f := range []string{"o", "output"} {
		flags.StringVar(&o.Output, f, name, "name of the result files, without extension")
	}
	for _, f := range []string{"p", "prof_interval"} {
		flags.Float64Var(&stacks, f, stacks, "stack sampling interval in seconds")
	}
	for _, f := range []string{"s", "sys_interval"} {
		flags.Float64Var(&every, f, every, "interval of system and GPU figures in seconds")
	}
	flags.StringVar(&list, "format", list, "result formats, separated by commas: "+formatNames())
	return func() (program.Options, error) {
		if !(stacks > 0) || !(every > 0) || stacks > 3600 || every > 3600 {
			return o, errors.New("an interval is a number of seconds above 0 and up to 3600")
		}
		if o.Output == "" {
			return o, errors.New("the name of the result files is empty")
		}
		o.Interval, o.FigureInterval = seconds(stacks), seconds(every)
		o.Formats = strings.Split(list, ",")
		return o, nil
	}
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
	fmt.Fprintf(os.Stderr, "omni-perf %s: %s; see omni-perf %s -h.\n", flags.Name(), problem, flags.Name())
	return exitUsage
}
