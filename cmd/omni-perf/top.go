package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/doors/program"
	"github.com/omni-perf/omni-perf/sidecar/doors/signals"
	"github.com/omni-perf/omni-perf/sidecar/measure/recorder"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

func topCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "top [PID|KERNEL] [options]",
		Short: "show what a running process or kernel does, each second",
		Long: `Shows what a running Python process does, or each cell of a running notebook kernel:
the line it is in, the hottest lines so far, steps, CPU, memory, and what the GPU waits
for. It ends with the process or by Ctrl-C and writes no files; omni-perf attach does.
KERNEL is its connection file, its id or the beginning of it, its notebook's name, or its
process. Without either, the running kernels are listed.

On a terminal one picture is drawn anew in its place; elsewhere each look is a line.`,
		Args: atMost("a process or a kernel"),
	}
	o := program.Options{Interval: timeline.DefaultInterval, FigureInterval: timeline.DefaultFigureInterval}
	var duration time.Duration
	c.Flags().Var(secondsValue{&duration, true}, "duration", "`SECONDS` to watch; 0: until it ends or Ctrl-C")
	c.Flags().VarP(secondsValue{to: &o.Interval}, "prof-interval", "p", "stack sampling interval in `SECONDS`")
	c.Flags().VarP(secondsValue{to: &o.FigureInterval}, "sys-interval", "s", "interval of system and GPU figures in `SECONDS`")
	children := c.Flags().String("children", "stacks", "`WHAT` to record of child processes: "+strings.Join(recorder.ChildrenWords(), ", "))
	complete(c, "children", recorder.ChildrenWords())
	displays := c.Flags().Bool("displays", false, "write each look as the data of a notebook's display")
	if err := c.Flags().MarkHidden("displays"); err != nil { // it is the extension's
		panic(err)
	}
	c.RunE = func(_ *cobra.Command, args []string) (err error) {
		if len(args) == 0 {
			return listKernels("top")
		}
		pid, file, err := program.Find(args[0])
		pid, file = program.CellsOf(pid, file)
		var wrong error
		if o.Children, wrong = recorder.ParseChildren(*children); wrong != nil {
			return usageError{wrong}
		}
		if err != nil {
			return err
		}
		if *displays && program.IsOf(os.Getppid(), pid, file) { // it would wait for the cell that waits for it
			return errors.New("this is the kernel that the cell runs in; %%omni_perf --live as a cell's first line shows that cell while it runs")
		}
		ctx, stop := signals.Context(context.Background())
		defer stop()
		if *displays {
			shown := &program.Displays{To: os.Stdout}
			o.Audience, o.Messages = shown, shown
		} else {
			closeAudience := audience(ctx, &o)
			defer closeAudience()
		}
		if pid != 0 {
			return program.Top(ctx, programTools(timeline.RoleProcess, pid), pid, duration, o)
		}
		tools := func(pid int) program.Tools { return programTools(timeline.RoleKernel, pid) }
		return program.AttachKernel(ctx, tools, file, duration, o)
	}
	return c
}

// audience shows on standard output: a picture on a terminal, else lines.
func audience(ctx context.Context, o *program.Options) (closed func()) {
	_, terminal := columnsOf(os.Stdout)
	if !terminal || cmp.Or(os.Getenv("TERM"), "dumb") == "dumb" {
		o.Audience, o.Messages = program.Lines{To: plainText{os.Stdout}}, messages
		return func() {}
	}
	screen := &program.Screen{To: os.Stdout, Size: terminalSize, Colour: os.Getenv("NO_COLOR") == ""}
	o.Audience, o.Messages = screen, io.Writer(screen)
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, unix.SIGWINCH)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-resized:
				screen.Redraw()
			}
		}
	}()
	return func() {
		signal.Stop(resized)
		screen.Close()
	}
}

// terminalSize is that of standard output's terminal.
func terminalSize() (columns, rows int) {
	size, err := unix.IoctlGetWinsize(int(os.Stdout.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 || size.Row == 0 {
		return 80, 24
	}
	return int(size.Col), int(size.Row)
}
