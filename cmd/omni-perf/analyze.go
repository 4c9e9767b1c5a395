package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/omni-perf/omni-perf/sidecar/doors/signals"
	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/changes"
	"github.com/omni-perf/omni-perf/sidecar/traces/page"
	"github.com/omni-perf/omni-perf/sidecar/traces/request"
	"github.com/omni-perf/omni-perf/sidecar/traces/snapshot"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
	"github.com/omni-perf/omni-perf/sidecar/understand/significance"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

func analyzeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "analyze PATH… [options]",
		Short: "analyse traces of torch.profiler and other tools, and CUDA memory snapshots",
		Long:  "PATH is a trace of torch.profiler (.json, .json.gz) or of another tool, a folder of them or a\nquoted glob.",
	}
	q := &request.Request{Version: version}
	mode, flags := modeValue{&q.Analyses.Mode}, c.Flags()
	flags.Var(mode, "mode", "rules of the analyses: exact (default), hta (HolisticTraceAnalysis's) or hta-ns (the same, not rounded to microseconds)")
	flags.StringVar(&q.JSON, "json", "", "write all tables as JSON to `FILE`, - for standard output")
	flags.StringVar(&q.CSV, "csv", "", "write a CSV file per table into `FOLDER`")
	flags.StringVar(&q.HTML, "html", "", "write a self-contained page with charts to `FILE`")
	flags.StringVar(&q.SVG, "svg", "", "write every chart as SVG into `FOLDER`")
	flags.StringVar(&q.Merged, "merged", "", "write one Chrome trace of all ranks, clocks aligned, to `FILE` (.json or .json.gz)")
	flags.StringVar(&q.Summary, "summary", "", "write operators by device time and memory peaks as text to `FILE`, such as "+page.SummaryName)
	flags.StringVar(&q.Display, "display", "", "write what a notebook shows, as JSON, to `FILE`")
	flags.StringVar(&q.Snapshot, "memory-snapshot", "", "read a `FILE` of torch.cuda.memory._dump_snapshot as well")
	flags.StringVar(&q.SnapshotAgainst, "memory-against", "", "compare the memory snapshot with another one in `FILE`")
	flags.Var(windowValue{&q.SnapshotOptions.Window}, "memory-window", "list what came and went in a `WINDOW` of the memory snapshot's history, as in 1.2s-1.5s")
	flags.StringArrayVar(&q.Against, "against", nil, "compare steps, idle time, operators, kernels and collectives with those of another run's traces in `PATH`; may be repeated")
	var most limit
	flags.Var(limitValue{&most}, "fail-if", "with --against, end with status 4 if a step is slower by more than `slower=LIMIT`, as in slower=5% or slower=2ms, and beyond noise")
	complete(c, "fail-if", []string{"slower=5%"})
	flags.Var(numbersValue{&q.Load.Ranks}, "ranks", "only these `RANKS`, as in 0,2-5")
	flags.Var(numbersValue{&q.Analyses.Steps}, "steps", "only these profiler `STEPS`, as in 3,4 or 3-7")
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
		if most.text != "" {
			if len(q.Against) == 0 {
				return misuse("--fail-if needs --against, the run to compare with")
			}
			q.Judge = func(changed *table.Table) error { return most.judgeSteps(changed, q.Against) }
		}
		return analyze(q)
	}
	return c
}

// judgeSteps ends with the status of a run whose steps are slower than another's by more than the limit.
func (l limit) judgeSteps(changed *table.Table, others []string) error {
	unjudged := slices.Clone(others)
	slower := false
	for r := range changed.Len() {
		if changed.TextAt("kind", r) != changes.Step {
			continue
		}
		const us = 1000 // ns
		run, before, change := changed.TextAt("run", r), changed.FloatAt("before_us", r), changed.FloatAt("change_us", r)
		unjudged = slices.DeleteFunc(unjudged, func(name string) bool { return name == run })
		if l.below(significance.Verdict(changed.TextAt("verdict", r)), before*us, change*us) {
			fmt.Fprintf(messages, "omni-perf: a step is slower by %s (%s) than in %s, beyond the limit of %s and beyond noise.\n",
				words.Seconds(change/1e6), words.SignedPercent(change/before), run, l.text)
			slower = true
		}
	}
	switch {
	case slower:
		return exitStatus(exitExceeded)
	case len(unjudged) > 0:
		return fmt.Errorf("--fail-if compares profiler steps, which this run and %s do not both have: call prof.step() in the training loop", unjudged[0])
	}
	return nil
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
	q.Columns = 120
	if columns, ok := columnsOf(os.Stdout); ok {
		q.Columns = columns
	}
	if _, ok := columnsOf(os.Stderr); ok && !q.Quiet {
		q.Load.Progress = progressBar(os.Stderr)
	}
	err := q.Run(ctx, os.Stdout, messages)
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted; nothing more was written")
	}
	return err
}

// modeValue is an option that is one of the analyses' modes.
type modeValue struct{ to *analyses.Mode }

func (modeValue) Type() string   { return "MODE" }
func (modeValue) String() string { return "" }
func (m modeValue) Set(text string) (err error) {
	*m.to, err = analyses.ParseMode(text)
	return err
}

// numbersValue is an option that is a list of numbers and ranges, as in 0,2-5.
type numbersValue struct{ to *[]int }

func (numbersValue) Type() string   { return "NUMBERS" }
func (numbersValue) String() string { return "" }
func (n numbersValue) Set(text string) (err error) {
	*n.to, err = parseNumbers(text)
	return err
}

// parseNumbers reads "0,2-5".
func parseNumbers(text string) ([]int, error) {
	var list []int
	if text == "" {
		return nil, nil
	}
	for _, part := range strings.Split(text, ",") {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		from, err1 := strconv.Atoi(strings.TrimSpace(low))
		to, err2 := strconv.Atoi(strings.TrimSpace(high))
		if err1 != nil || err2 != nil || from < 0 || to < from || to-from > 1<<16 {
			return nil, fmt.Errorf("%q is neither a number nor a range such as 2-5", part)
		}
		for n := from; n <= to; n++ {
			list = append(list, n)
		}
	}
	return list, nil
}

// windowValue is an option that is a part of a history, as in 1.2s-1.5s, or a moment of it.
type windowValue struct{ to **snapshot.Window }

func (windowValue) Type() string   { return "WINDOW" }
func (windowValue) String() string { return "" }
func (w windowValue) Set(text string) error {
	first, last, isRange := strings.Cut(text, "-")
	if !isRange {
		last = first
	}
	from, err1 := time.ParseDuration(strings.TrimSpace(first))
	to, err2 := time.ParseDuration(strings.TrimSpace(last))
	if err1 != nil || err2 != nil || from < 0 || to < from {
		return fmt.Errorf("%q is neither a time nor a range such as 1.2s-1.5s", text)
	}
	*w.to = &snapshot.Window{From: from.Microseconds(), To: to.Microseconds()}
	return nil
}
