package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/omni-perf/omni-perf/sidecar/doors/profiler"
	"github.com/omni-perf/omni-perf/sidecar/doors/program"
	"github.com/omni-perf/omni-perf/sidecar/doors/signals"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

func attachCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "attach [PID|KERNEL] [options]",
		Short: "profile a running process, or a running kernel's cells",
		Long: `Watches a running Python process for --duration seconds, or until it ends or
Ctrl-C; or follows the cells of a running notebook kernel, which needs nothing of
omni-perf in it. KERNEL is its connection file, its id or the beginning of it, its
notebook's name, or its process. Without either, the running kernels are listed.

The cells of a kernel become results of their own, in a folder with a page that
lists them: perf_output/index.html, perf_output/cell-1.html and so on, and after a
restart of the kernel perf_output/cell.2-1.html; -o FOLDER/ names another one. With
-o NAME they are NAME-1, NAME-2 and NAME.2-1, without a page. A cell that runs
already is recorded from then on.`,
		Args: atMost("a process or a kernel"),
	}
	options := recordingFlags(c, 0)
	push := pushFlag(c)
	var duration time.Duration
	c.Flags().Var(secondsValue{&duration, true}, "duration", "`SECONDS` to watch; 0: until it ends or Ctrl-C")
	worker := c.Flags().String("worker", "", "what the process is to the engine that hands tasks to it: `ROLE`, or ROLE:NUMBER")
	marks := c.Flags().String("marks", "", "make a `SOCKET` on which the process sends its steps and regions")
	cells := c.Flags().String("cells", "", "a `FILE` with the cells of the notebook whose functions the process runs, as JSON")
	for _, flag := range []string{"worker", "marks", "cells"} { // for adapters of engines: omni_perf.engines
		_ = c.Flags().MarkHidden(flag)
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		name := c.Flags().Lookup("output")
		if len(args) == 0 {
			return listKernels("attach")
		}
		pid, file, err := program.Find(args[0])
		if *worker == "" && *marks == "" && *cells == "" { // an engine's worker, which may be a kernel, is watched as one
			pid, file = program.CellsOf(pid, file)
		}
		folder := ""
		if pid == 0 && !name.Changed {
			folder = name.DefValue
		} else if pid == 0 && strings.HasSuffix(name.Value.String(), "/") {
			folder = filepath.Clean(name.Value.String())
		}
		if folder != "" {
			if err := name.Value.Set(program.Base(folder)); err != nil {
				return err
			}
		}
		o, wrong := options()
		if err = cmp.Or(wrong, err); err != nil {
			return err
		}
		if *worker != "" {
			if o.Worker, err = program.ParseWorker(*worker); err != nil {
				return usageError{fmt.Errorf("--worker %w", err)}
			}
		}
		if _, err = program.ReadSources(*cells); err != nil {
			return err
		}
		o.Cells = *cells
		o.Marks = *marks
		ctx, stop := signals.Context(context.Background())
		defer stop()
		if pid != 0 {
			o.Send = push.send()
			return program.Attach(ctx, programTools(timeline.RoleProcess, pid), pid, duration, o)
		}
		if push.asked() {
			return misuse("--push is for processes; of a cell it is omni-perf export CELL.json --push URL")
		}
		if folder != "" {
			if o.Folder, err = program.OpenFolder(folder); err != nil {
				return err
			}
			defer o.Folder.Close()
		}
		tools := func(pid int) program.Tools { return programTools(timeline.RoleKernel, pid) }
		return program.AttachKernel(ctx, tools, file, duration, o)
	}
	return c
}

func listKernels(command string) error {
	kernels := program.Kernels()
	if len(kernels) == 0 {
		fmt.Fprintln(messages, "omni-perf: no notebook kernel of yours runs on this machine")
		return nil
	}
	if err := program.ListKernels(plainText{os.Stdout}, kernels, profiler.MainStack); err != nil {
		return err
	}
	fmt.Fprintf(messages, "omni-perf: omni-perf %s KERNEL follows the cells of one; the beginning of the id or the notebook's name will do\n", command)
	return nil
}
