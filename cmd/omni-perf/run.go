package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/omni-perf/omni-perf/sidecar/doors/program"
	"github.com/omni-perf/omni-perf/sidecar/doors/signals"
	"github.com/omni-perf/omni-perf/sidecar/doors/waiter"
	"github.com/omni-perf/omni-perf/sidecar/measure/recorder"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/show/output"
	"github.com/omni-perf/omni-perf/sidecar/understand/significance"
)

func runCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "run [options] SCRIPT [ARG…]",
		Short: "run a Python script and profile it",
		Long: `Runs a Python program as if it had been started without omni-perf (arguments,
streams, signals, exit code) and writes what was recorded. Options of python, such
as -I, -u, -X dev and -W error, are passed on. What is no file here is looked up on
PATH and executed as it is, as torchrun is: the Python processes that it starts are
profiled.

A notebook is executed by nbclient, as "jupyter execute" does, and becomes one page: a
table of its cells, and a picture of each. Options may follow its name; --format json
writes the cells' figures, which omni-perf compare takes.`,
		Annotations: map[string]string{formsNote: `omni-perf run [options] -m MODULE [ARG…]
omni-perf run [options] -c CODE [ARG…]
omni-perf run [options] [-] < SCRIPT
omni-perf run [options] PROGRAM [ARG…]
omni-perf run [options] NOTEBOOK.ipynb [options]`},
	}
	c.Flags().SetInterspersed(false)
	options := recordingFlags(c, timeline.LaterFigureInterval)
	push := pushFlag(c)
	interpreter := c.Flags().String("interpreter", "", "the `PYTHON` to run it with (default the active environment's, else python3 on PATH)")
	open := c.Flags().Bool("open", false, "show the page when it is written")
	noHook := c.Flags().Bool("no-step-hook", false, "do not hook torch's optimizers to find training steps")
	exact := c.Flags().Bool("exact", false, "record each kernel, copy and fill of the program's NVIDIA GPUs, and so when exactly they were idle")
	nsys := c.Flags().String("nsys", "", "run it under Nsight Systems, too, and take its kernels; `OPTIONS` of nsys profile after an =: --nsys=\"--trace=cuda,nvtx,cublas\"")
	c.Flags().Lookup("nsys").NoOptDefVal = " "
	torch := torchFlags(c)
	notebook := notebookFlags(c)
	var asked program.Pace
	c.Flags().Var(parsedValue[program.Pace]{&asked, program.ParsePace, "steps_per_s=N"}, "fail-if", "end with status 4 if the program ends with 0 and makes fewer than `steps_per_s=N` training steps in a second, or samples_per_s=N, tokens_per_s=N")
	complete(c, "fail-if", program.PaceNames())
	c.RunE = func(_ *cobra.Command, args []string) error {
		python, what := partProgram(args)
		if _, terminal := columnsOf(os.Stdin); terminal && len(what) == 0 {
			return misuse("there is no script to run")
		}
		if len(what) > 1 && what[0] == "--" {
			what = what[1:]
		}
		if len(what) > 0 && program.IsNotebook(what[0]) {
			return runNotebook(c, notebook, what, interpreter, open, options)
		}
		if name := firstChanged(c, notebookOptions); name != "" {
			return misuse("--%s is for notebooks", name)
		}
		o, err := options()
		if err != nil {
			return err
		}
		_, o.Terminal = columnsOf(os.Stderr)
		if r, ok := timeline.RankOf(os.Environ()); ok {
			o.Rank = &r
		}
		if w := waiter.Of(); w != nil {
			o.Waiter = w
		}
		o.NoStepHook = *noHook
		o.Judge, o.Send = asked.Judge, push.send()
		if o.Torch, err = torch(o.Results); err != nil {
			return err
		}
		switch {
		case o.Torch != nil && *noHook:
			return misuse("--torch counts steps by the hook that --no-step-hook leaves out")
		case o.Torch != nil && *exact:
			return misuse("--torch records when exactly GPUs worked, too, and cannot be used with --exact")
		case *nsys != "" && (*exact || o.Torch != nil):
			return misuse("--nsys cannot be used with --exact or --torch: one program at a time records a process's kernels")
		}
		if *nsys != "" {
			if o.Nsys, err = program.ParseNsys(*nsys); err != nil {
				return usageError{err}
			}
		}
		if *exact {
			if other, is := program.Injected(); is {
				return misuse("--exact cannot be used where CUDA_INJECTION64_PATH names another library (%s)", other)
			}
			if o.Exact, err = exactLibrary(); err != nil {
				complain(err)
			}
		}
		if *open {
			o.Open = openPage
		}
		script, err := program.Resolve(*interpreter, python, what)
		if err != nil {
			return refused(err)
		}
		// The script has ended when its source is read: its files are ours.
		exit, err := program.Run(context.Background(), programTools(timeline.RoleScript, os.Getpid()), script, o)
		if as := new(program.Refused); errors.As(err, &as) {
			return refused(err)
		}
		if err != nil {
			complain(err)
		}
		dieAs(exit)
		missed := asked.Err()
		if exit.Code == 0 {
			return missed
		}
		if slow := significance.Exceeded(""); errors.As(missed, &slow) {
			complain(missed)
		}
		return exitStatus(exit.Code) // the script's, whatever became of the report
	}
	return c
}

// torchFlags defines what has torch.profiler run in the program. The returned function gives it, nil where nobody asked for it;
// the folder of --ptensorboard is named by the results.
func torchFlags(c *cobra.Command) func(program.Naming) (*program.Torch, error) {
	var asked, also program.Torch
	given := parsedValue[program.Torch]{&asked, program.ParseTorch, "windows"}
	flags := c.Flags()
	flags.Var(given, "torch", "run torch.profiler (also --profiling) in `WINDOWS` of the program's steps: wait=0,warmup=1,active=3,repeat=1,skip_first=0, or whole; with shapes, stack, memory, flops, modules; always after an =, and separated by commas")
	flags.Var(parsedValue[program.Torch]{&also, program.ParseTorch, "windows"}, "profiling", "the same as --torch")
	for _, name := range []string{"torch", "profiling"} {
		flags.Lookup(name).NoOptDefVal = "default"
	}
	_ = flags.MarkHidden("profiling")
	folder := flags.String("prof-dir", "", "keep the traces of --torch in `FOLDER`, with one of all, tables and more")
	tensorboard := flags.Bool("ptensorboard", false, "--torch, and a folder for TensorBoard: that of --prof-dir, or the results' name and .torch")
	return func(results program.Naming) (*program.Torch, error) {
		if !flags.Changed("torch") {
			asked = also
		}
		if !flags.Changed("torch") && !flags.Changed("profiling") && !*tensorboard {
			if *folder != "" {
				return nil, misuse("--prof-dir belongs to --torch, which is missing")
			}
			return nil, nil
		}
		asked.Folder = *folder
		if asked.Folder == "" && *tensorboard {
			asked.Folder = results.Base() + ".torch"
		}
		if asked.Folder != "" {
			path, err := filepath.Abs(asked.Folder)
			if err == nil {
				err = output.MakeFolder(path)
			}
			if err != nil {
				return nil, err
			}
			asked.Folder = path
		}
		return &asked, nil
	}
}

// dieAs ends this process by the signal that ended the program, if one did.
func dieAs(exit program.Exit) {
	if exit.Signal != 0 {
		waiter.Concluded()
		signals.DieBy(exit.Signal)
	}
}

// refused returns why nothing was run, and how to exit.
func refused(err error) error {
	var why *program.Refused
	if !errors.As(err, &why) {
		return err
	}
	if why.Error() != "" {
		complain(err)
	}
	return exitStatus(why.Code)
}

// openPage shows a page in the user's browser, which outlives us.
func openPage(path string) {
	if err := exec.Command("xdg-open", path).Start(); err != nil {
		complain(fmt.Errorf("%s cannot be opened in a browser: %w", path, err))
	}
}

// recordingFlags defines what run and attach share. The returned function gathers
// it after parsing. Unless an interval of figures is asked for, they are read at intervals of
// later from the end of timeline.FirstFigures on; 0: at one interval.
func recordingFlags(c *cobra.Command, later time.Duration) func() (program.Options, error) {
	o := program.Options{Messages: messages, Interval: timeline.DefaultInterval, FigureInterval: timeline.DefaultFigureInterval, FigureLater: later}
	var list []string
	name := &onceValue{value: "perf_output"}
	c.Flags().VarP(name, "output", "o", "`NAME` of the result files, without extension; with one, of that single file")
	c.Flags().VarP(secondsValue{to: &o.Interval}, "prof-interval", "p", "stack sampling interval in `SECONDS`")
	usage := "interval of system and GPU figures in `SECONDS`"
	if later > 0 {
		usage += fmt.Sprintf("; unless it is given, %v after the first minute", later)
	}
	c.Flags().VarP(secondsValue{to: &o.FigureInterval}, "sys-interval", "s", usage)
	children := c.Flags().String("children", "stacks", "`WHAT` to record of child processes: "+strings.Join(recorder.ChildrenWords(), ", "))
	complete(c, "children", recorder.ChildrenWords())
	c.Flags().Var(listValue{&list}, "format", "`FORMATS` of the results, separated by commas: "+strings.Join(formatNames(), ", ")+" (default "+strings.Join(program.DefaultFormats, ",")+")")
	complete(c, "format", formatNames())
	return func() (program.Options, error) {
		if c.Flags().Changed("sys-interval") {
			o.FigureLater = 0
		}
		var err error
		if o.Children, err = recorder.ParseChildren(*children); err != nil {
			return o, usageError{err}
		}
		if o.Results, err = program.Name(formats(), name.value, list); err != nil {
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
