package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/omni-perf/omni-perf/sidecar/chart"
	"github.com/omni-perf/omni-perf/sidecar/export"
	"github.com/omni-perf/omni-perf/sidecar/program"
	"github.com/omni-perf/omni-perf/sidecar/pystack"
	"github.com/omni-perf/omni-perf/sidecar/recorder"
	"github.com/omni-perf/omni-perf/sidecar/report"
	"github.com/omni-perf/omni-perf/sidecar/signals"
	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

func runCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "run [options] SCRIPT [ARG…]",
		Short: "run a Python script and profile it",
		Long: `Runs a Python program as if it had been started without omni-perf (arguments,
streams, signals, exit code) and writes what was recorded. Options of python, such
as -I, -u, -X dev and -W error, are passed on.`,
		Annotations: map[string]string{formsNote: `omni-perf run [options] -m MODULE [ARG…]
omni-perf run [options] -c CODE [ARG…]
omni-perf run [options] [-] < SCRIPT`},
	}
	c.Flags().SetInterspersed(false)
	options := recordingFlags(c, time.Second)
	interpreter := c.Flags().String("interpreter", "", "the `PYTHON` to run it with (default $VIRTUAL_ENV's, else python3 on PATH)")
	c.RunE = func(_ *cobra.Command, args []string) error {
		if _, terminal := columnsOf(os.Stdin); terminal && !namesProgram(args) {
			return misuse("there is no script to run")
		}
		o, err := options()
		if err != nil {
			return err
		}
		// The script has ended when its source is read: its files are ours.
		exit, err := program.Run(context.Background(), programTools("script", analyser(os.Getpid())), program.Script{Interpreter: *interpreter, Args: args}, o)
		if err != nil {
			complain(err)
		}
		if exit.Signal != 0 {
			signals.DieBy(exit.Signal)
		}
		return exitStatus(exit.Code) // the script's, whatever became of the report
	}
	return c
}

// programTools makes the recordings of programs outside a notebook.
func programTools(role string, analyse func(*timeline.Recording) *report.Report) program.Tools {
	return program.Tools{
		Recorder: func(target timeline.Target) *recorder.Recorder {
			return recorder.ForProcess(target, role, openGPUs)
		},
		Readable: readable,
		Analyse:  analyse,
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

// recordingFlags defines what run and attach share. The returned function gathers
// it after parsing.
func recordingFlags(c *cobra.Command, figures time.Duration) func() (program.Options, error) {
	o := program.Options{Messages: messages, Interval: time.Millisecond, FigureInterval: figures}
	var list []string
	name := c.Flags().StringP("output", "o", "perf_output", "`NAME` of the result files without extension; or of one file, by its extension")
	c.Flags().VarP(secondsValue{to: &o.Interval}, "prof-interval", "p", "stack sampling interval in `SECONDS`")
	c.Flags().VarP(secondsValue{to: &o.FigureInterval}, "sys-interval", "s", "interval of system and GPU figures in `SECONDS`")
	c.Flags().Var(listValue{&list}, "format", "result `FORMATS`, separated by commas: "+strings.Join(formatNames(), ", ")+" (default "+strings.Join(program.DefaultFormats, ",")+")")
	complete(c, "format", formatNames())
	return func() (program.Options, error) {
		var err error
		if o.Results, err = program.Name(formats(), *name, list); err != nil {
			return o, usageError{err}
		}
		return o, nil
	}
}

func formatNames() (names []string) {
	for _, f := range formats() {
		names = append(names, f.Name)
	}
	return names
}
