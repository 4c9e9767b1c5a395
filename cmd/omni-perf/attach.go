package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/omni-perf/omni-perf/jupyter"
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
omni-perf in it. KERNEL is its connection file, its id or the beginning of it, or
its notebook's name. Without either, the running kernels are listed.

The cells of a kernel become results of their own, in a folder with a page that
lists them: perf_output/index.html, perf_output/cell-1.html and so on, and after a
restart of the kernel perf_output/cell.2-1.html; -o FOLDER/ names another one. With
-o NAME they are NAME-1, NAME-2 and NAME.2-1, without a page. A cell that runs
already is recorded from then on.`,
		Args: atMost("a process or a kernel"),
	}
	options := recordingFlags(c, 0)
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
		pid, file, err := targetOf(args[0])
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
		if o.Worker, err = workerOf(*worker); err != nil {
			return err
		}
		if o.Sources, err = sourcesIn(*cells); err != nil {
			return err
		}
		o.Marks = *marks
		ctx, stop := signals.Context(context.Background())
		defer stop()
		if pid != 0 {
			return program.Attach(ctx, programTools(timeline.RoleProcess, pid), pid, duration, o)
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

// workerOf reads the option --worker.
func workerOf(text string) (*program.Worker, error) {
	if text == "" {
		return nil, nil
	}
	role, number, numbered := strings.Cut(text, ":")
	w := &program.Worker{Role: timeline.Role(role)}
	if !slices.Contains(timeline.EngineRoles, w.Role) {
		return nil, misuse("--worker %s is none of %v", role, timeline.EngineRoles)
	}
	if numbered {
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 {
			return nil, misuse("--worker %s has no number behind the colon", text)
		}
		w.Number = &n
	}
	return w, nil
}

// sourcesIn reads the option --cells: the cells as the extension sends them to a sidecar.
func sourcesIn(file string) (out []timeline.Source, err error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var cells []struct {
		File, Text     string
		ExecutionCount int
		Lines          []int
		Nested         bool
	}
	if err := json.Unmarshal(text, &cells); err != nil {
		return nil, fmt.Errorf("read the cells in %s: %w", file, err)
	}
	for _, c := range cells {
		out = append(out, timeline.Source{File: c.File, ExecutionCount: c.ExecutionCount, Text: c.Text, Lines: c.Lines, Nested: c.Nested})
	}
	return out, nil
}

// targetOf returns the process that a user means, or the kernel; pid is then 0. A number is a
// process, unless there is none and a kernel's id begins with it.
func targetOf(name string) (pid int, file jupyter.ConnectionFile, err error) {
	running := program.Kernels()
	if pid, err := strconv.Atoi(name); err == nil && pid > 0 {
		_, gone := os.Stat("/proc/" + name)
		if gone == nil || !slices.ContainsFunc(running, func(k program.Kernel) bool { return strings.HasPrefix(k.ID(), name) }) {
			return pid, file, nil
		}
	}
	file, err = program.FindKernel(name, running)
	return 0, file, err
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
