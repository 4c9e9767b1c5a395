package main

import (
	"context"
	"errors"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/omni-perf/omni-perf/sidecar/doors/signals"
	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/page"
	"github.com/omni-perf/omni-perf/sidecar/traces/request"
	"github.com/omni-perf/omni-perf/sidecar/traces/snapshot"
)

func analyzeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "analyze PATH… [options]",
		Short: "analyse traces of torch.profiler and other tools, and CUDA memory snapshots",
		Long:  "PATH is a trace of torch.profiler (.json, .json.gz) or of another tool, a folder of them or a\nquoted glob.",
	}
	q := &request.Request{Version: version}
	flags := c.Flags()
	flags.Var(parsedValue[analyses.Mode]{&q.Analyses.Mode, analyses.ParseMode, "MODE"}, "mode", "rules of the analyses: exact (default), hta (HolisticTraceAnalysis's) or hta-ns (the same, not rounded to microseconds)")
	flags.StringVar(&q.JSON, "json", "", "write all tables as JSON to `FILE`, - for standard output")
	flags.StringVar(&q.CSV, "csv", "", "write a CSV file per table into `FOLDER`")
	flags.StringVar(&q.HTML, "html", "", "write a self-contained page with charts to `FILE`")
	flags.StringVar(&q.SVG, "svg", "", "write every chart as SVG into `FOLDER`")
	flags.StringVar(&q.Merged, "merged", "", "write one Chrome trace of all ranks, clocks aligned, to `FILE` (.json or .json.gz)")
	flags.StringVar(&q.Summary, "summary", "", "write operators by device time and memory peaks as text to `FILE`, such as "+page.SummaryName)
	flags.StringVar(&q.Display, "display", "", "write what a notebook shows, as JSON, to `FILE`")
	flags.StringVar(&q.Snapshot, "memory-snapshot", "", "read a `FILE` of torch.cuda.memory._dump_snapshot as well")
	flags.StringVar(&q.SnapshotAgainst, "memory-against", "", "compare the memory snapshot with another one in `FILE`")
	flags.Var(parsedValue[*snapshot.Window]{&q.SnapshotOptions.Window, snapshot.ParseWindow, "WINDOW"}, "memory-window", "list what came and went in a `WINDOW` of the memory snapshot's history, as in 1.2s-1.5s")
	flags.StringArrayVar(&q.Against, "against", nil, "compare steps, idle time, operators, kernels and collectives with those of another run's traces in `PATH`; may be repeated")
	flags.Var(limitValue(&q.Limit), "fail-if", "with --against, end with status 4 if a step is slower by more than `slower=LIMIT`, as in slower=5% or slower=2ms, and beyond noise")
	complete(c, "fail-if", []string{"slower=5%"})
	flags.Var(parsedValue[[]int]{&q.Load.Ranks, request.ParseNumbers, "NUMBERS"}, "ranks", "only these `RANKS`, as in 0,2-5")
	flags.Var(parsedValue[[]int]{&q.Analyses.Steps, request.ParseNumbers, "NUMBERS"}, "steps", "only these profiler `STEPS`, as in 3,4 or 3-7")
	flags.Var(listValue{&q.Analyses.Tables}, "tables", "only these `TABLES`, by name, separated by commas")
	flags.BoolVar(&q.Analyses.IncludeLastStep, "last-step", false, "count the last profiler step too, which usually is cut off")
	flags.BoolVar(&q.Analyses.GroupByShape, "shapes", false, "split operators by their input shapes")
	flags.BoolVar(&q.CriticalPath, "critical-path", false, "find what the length of the steps depends on, and how much shorter they were without it")
	flags.DurationVar(&q.Analyses.KernelWait, "kernel-wait", 0, "treat gaps up to `DURATION` as launch latency, such as 30us (the default)")
	flags.Int64Var(&q.SnapshotOptions.MinBytes, "min-bytes", 0, "combine blocks of a memory snapshot that are smaller than `BYTES`")
	flags.BoolVar(&q.Quiet, "quiet", false, "no report and no progress, only the files asked for")
	complete(c, "tables", analyses.AllTables())
	complete(c, "mode", []string{"exact", "hta", "hta-ns"})
	c.RunE = func(_ *cobra.Command, args []string) error {
		q.Paths = args
		if err := q.Check(); err != nil {
			return usageError{err}
		}
		return analyze(q)
	}
	return c
}

func analyze(q *request.Request) error {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		// Columns of events hold no pointers, so that collecting often costs
		// next to nothing and saves a quarter of the peak. The limit is soft:
		// what needs more gets it and is collected more often.
		debug.SetGCPercent(30)
		debug.SetMemoryLimit(2560 << 20)
	}
	ctx, stop := signals.Context(context.Background())
	defer stop()
	q.Columns = columnsOr(os.Stdout, 120)
	if _, ok := columnsOf(os.Stderr); ok && !q.Quiet {
		q.Load.Progress = progressBar(os.Stderr)
	}
	err := q.Run(ctx, os.Stdout, messages)
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted; nothing more was written")
	}
	return err
}
