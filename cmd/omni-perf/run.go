package main

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/omni-perf/omni-perf/sidecar/program"
	"github.com/omni-perf/omni-perf/sidecar/signals"
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
		exit, err := program.Run(context.Background(), programTools("script", os.Getpid()), program.Script{Interpreter: *interpreter, Args: args}, o)
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

// recordingFlags defines what run and attach share. The returned function gathers
// it after parsing.
func recordingFlags(c *cobra.Command, figures time.Duration) func() (program.Options, error) {
	o := program.Options{Messages: messages, Interval: time.Millisecond, FigureInterval: figures}
	var list []string
	name := c.Flags().StringP("output", "o", "perf_output", "`NAME` of the result files, without extension; with one, of that single file")
	c.Flags().VarP(secondsValue{to: &o.Interval}, "prof-interval", "p", "stack sampling interval in `SECONDS`")
	c.Flags().VarP(secondsValue{to: &o.FigureInterval}, "sys-interval", "s", "interval of system and GPU figures in `SECONDS`")
	c.Flags().Var(listValue{&list}, "format", "`FORMATS` of the results, separated by commas: "+strings.Join(formatNames(), ", ")+" (default "+strings.Join(program.DefaultFormats, ",")+")")
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
