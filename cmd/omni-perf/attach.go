package main

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/omni-perf/omni-perf/jupyter"
	"github.com/omni-perf/omni-perf/sidecar/program"
	"github.com/omni-perf/omni-perf/sidecar/signals"
)

func attachCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "attach PID|CONNECTION_FILE|KERNEL_ID [options]",
		Short: "profile a running process, or a running kernel's cells",
		Long: `Watches a running Python process for --duration seconds, or until it ends or
Ctrl-C; or follows the cells of a running notebook kernel, each of which becomes
a result of its own: NAME-1, NAME-2 and so on, and after a restart of the kernel
NAME.2-1, NAME.2-2.`,
		Args: exactly("a process, a connection file or a kernel's id"),
	}
	options := recordingFlags(c, 100*time.Millisecond)
	var duration time.Duration
	c.Flags().Var(secondsValue{&duration, true}, "duration", "`SECONDS` to watch; 0: until it ends or Ctrl-C")
	c.RunE = func(_ *cobra.Command, args []string) error {
		o, err := options()
		if err != nil {
			return err
		}
		ctx, stop := signals.Context(context.Background())
		defer stop()
		return attachTo(ctx, args[0], duration, o)
	}
	return c
}

func attachTo(ctx context.Context, target string, d time.Duration, o program.Options) error {
	if pid, err := strconv.Atoi(target); err == nil {
		return program.Attach(ctx, programTools("process", pid), pid, d, o)
	}
	path, err := jupyter.FindConnection(target)
	if err != nil {
		return err
	}
	file, err := jupyter.ReadConnection(path)
	if err != nil {
		return err
	}
	tools := func(pid int) program.Tools { return programTools("kernel", pid) }
	return program.AttachKernel(ctx, tools, file, d, o)
}
