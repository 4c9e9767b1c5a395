package main

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"time"

	"github.com/omni-perf/omni-perf/jupyter"
	"github.com/omni-perf/omni-perf/sidecar/program"
	"github.com/omni-perf/omni-perf/sidecar/signals"
)

const attachUsage = `usage: omni-perf attach [options] PID|CONNECTION_FILE|KERNEL_ID

Watches a running Python process for --duration seconds, or until it ends or
Ctrl-C; or follows the cells of a running notebook kernel, each of which becomes
a result of its own.

options:
`

func attachCommand() command {
	return command{"attach", "profile a running process, or a running kernel's cells", attach}
}

func attach(args []string) int {
	flags := flag.NewFlagSet("attach", flag.ContinueOnError)
	options := recordingFlags(flags, "perf_output", 100*time.Millisecond)
	duration := flags.Float64("duration", 0, "seconds to watch; 0 = until it ends or Ctrl-C")
	if code, done := parse(flags, attachUsage, args); done {
		return code
	}
	if flags.NArg() == 0 {
		return usageProblem(flags, "there is no process, connection file or kernel id")
	}
	target := flags.Arg(0)
	if code, done := parse(flags, attachUsage, flags.Args()[1:]); done { // options after the target
		return code
	}
	o, err := options()
	switch {
	case err != nil:
		return usageProblem(flags, err.Error())
	case flags.NArg() > 0:
		return usageProblem(flags, fmt.Sprintf("%q is one argument too many", flags.Arg(0)))
	case !(*duration >= 0):
		return usageProblem(flags, "the duration is a number of seconds")
	}
	ctx, stop := signals.Context(context.Background())
	defer stop()
	if err := attachTo(ctx, target, seconds(*duration), o); err != nil {
		complain(err)
		return exitOf(err)
	}
	return exitOK
}

func attachTo(ctx context.Context, target string, d time.Duration, o program.Options) error {
	if pid, err := strconv.Atoi(target); err == nil {
		return program.Attach(ctx, programTools("process", analyser(pid)), pid, d, o)
	}
	path, err := jupyter.FindConnection(target)
	if err != nil {
		return err
	}
	file, err := jupyter.ReadConnection(path)
	if err != nil {
		return err
	}
	pid, err := program.KernelProcess(file)
	if err != nil {
		return err
	}
	return program.AttachKernel(ctx, programTools("kernel", analyser(pid)), pid, file.Connection, d, o)
}
