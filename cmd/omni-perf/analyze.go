package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/output"
	"github.com/omni-perf/omni-perf/sidecar/signals"
	"github.com/omni-perf/omni-perf/sidecar/torchtrace"
	"github.com/omni-perf/omni-perf/sidecar/torchtrace/analyses"
	"github.com/omni-perf/omni-perf/sidecar/torchtrace/kineto"
	"github.com/omni-perf/omni-perf/sidecar/torchtrace/snapshot"
	"github.com/omni-perf/omni-perf/sidecar/torchtrace/table"
	"github.com/omni-perf/omni-perf/sidecar/torchtrace/view"
)

func analyzeCommand() command {
	return command{"analyze", "analyse torch.profiler traces and CUDA memory snapshots", func(args []string) int {
		if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
			// Columns of events hold no pointers, so that collecting often costs
			// next to nothing and saves a quarter of the peak. The limit is soft:
			// what needs more gets it and is collected more often.
			debug.SetGCPercent(30)
			debug.SetMemoryLimit(2560 << 20)
		}
		ctx, stop := signals.Context(context.Background())
		defer stop()
		err := analyze(ctx, args, os.Stdout, os.Stderr)
		var usage usageError
		switch {
		case err == nil:
			return exitOK
		case errors.Is(err, flag.ErrHelp):
			return exitOK
		case errors.As(err, &usage):
			fmt.Fprintf(messages, "omni-perf analyze: %s\n", err)
			return exitUsage
		case errors.Is(err, context.Canceled):
			fmt.Fprintln(messages, "omni-perf analyze: interrupted; nothing more was written.")
			return exitFailed
		}
		fmt.Fprintf(messages, "omni-perf analyze: %s\n", err)
		return exitOf(err)
	}}
}

// usageError is a mistake in the arguments.
type usageError struct{ error }

func misuse(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// analyzeOptions are the arguments of analyze.
type analyzeOptions struct {
	paths                []string
	load                 kineto.Options
	analyses             analyses.Options
	json, csv, html, svg string
	merged, summary      string
	display              string
	snapshot             string
	against              []string
	snapshotOptions      snapshot.Options
	quiet                bool
}

const analyzeUsage = `usage: omni-perf analyze PATH… [options]
  PATH is a trace of torch.profiler (.json, .json.gz), a folder of them or a quoted glob.

`

// analyzeTexts are arguments that are lists or words, before they are read.
type analyzeTexts struct{ mode, ranks, steps, tables string }

func (o *analyzeOptions) define(flags *flag.FlagSet) *analyzeTexts {
	t := &analyzeTexts{}
	flags.StringVar(&t.mode, "mode", "exact", "by whose rules: exact, hta (as HolisticTraceAnalysis) or hta-ns")
	flags.StringVar(&o.json, "json", "", "write all tables as JSON to `FILE`, - for standard output")
	flags.StringVar(&o.csv, "csv", "", "write a CSV file per table into `DIR`")
	flags.StringVar(&o.html, "html", "", "write a self-contained page with charts to `FILE`")
	flags.StringVar(&o.svg, "svg", "", "write every chart as SVG into `DIR`")
	flags.StringVar(&o.merged, "merged", "", "write one Chrome trace of all ranks, clocks aligned, to `FILE` (.json or .json.gz)")
	flags.StringVar(&o.summary, "summary", "", "write operators by device time and memory peaks as text to `FILE`, such as "+view.SummaryName)
	flags.StringVar(&o.display, "display", "", "write what a notebook shows, as JSON, to `FILE`")
	flags.StringVar(&o.snapshot, "memory-snapshot", "", "read a `FILE` of torch.cuda.memory._dump_snapshot as well")
	flags.Func("against", "compare the collectives with those of another run's traces in `PATH`; may be repeated", func(path string) error {
		o.against = append(o.against, path)
		return nil
	})
	flags.StringVar(&t.ranks, "ranks", "", "only these `RANKS`, as in 0,2-5")
	flags.StringVar(&t.steps, "steps", "", "only these profiler `STEPS`, as in 3,4 or 3-7")
	flags.StringVar(&t.tables, "tables", "", "only these `TABLES`, by name, comma-separated")
	flags.BoolVar(&o.analyses.IncludeLastStep, "last-step", false, "count the last profiler step too, which usually is cut off")
	flags.BoolVar(&o.analyses.GroupByShape, "shapes", false, "split operators by their input shapes")
	flags.DurationVar(&o.analyses.KernelWait, "kernel-wait", 0, "gap up to which a stream only waited for its next kernel (default 30µs)")
	flags.Int64Var(&o.snapshotOptions.MinBytes, "min-bytes", 0, "sum blocks of a memory snapshot that are smaller than `BYTES`")
	flags.BoolVar(&o.quiet, "quiet", false, "no report and no progress, only the files asked for")
	return t
}

func parseAnalyze(args []string, stderr io.Writer) (*analyzeOptions, error) {
	o := &analyzeOptions{}
	flags := flag.NewFlagSet("analyze", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	texts := o.define(flags)
	if i := slices.Index(args, "--"); i >= 0 { // only paths behind it
		o.paths = slices.Clone(args[i+1:])
		args = args[:i]
	}
	for len(args) > 0 {
		if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(stderr, analyzeUsage)
			flags.SetOutput(stderr)
			flags.PrintDefaults()
			return nil, err
		} else if err != nil {
			return nil, misuse("%s; see omni-perf analyze --help", err)
		}
		// A path ends the flags for package flag; go on behind it.
		if args = flags.Args(); len(args) > 0 {
			o.paths = append(o.paths, args[0])
			args = args[1:]
		}
	}
	return o, o.read(texts)
}

// read makes sense of the lists and words, and of the arguments together.
func (o *analyzeOptions) read(t *analyzeTexts) (err error) {
	if o.analyses.Mode, err = analyses.ParseMode(t.mode); err != nil {
		return usageError{err}
	}
	if o.load.Ranks, err = parseNumbers(t.ranks); err != nil {
		return misuse("--ranks: %w", err)
	}
	if o.analyses.Steps, err = parseNumbers(t.steps); err != nil {
		return misuse("--steps: %w", err)
	}
	if t.tables != "" {
		o.analyses.Tables = strings.Split(t.tables, ",")
		if err := knownTables(o.analyses.Tables); err != nil {
			return err
		}
	}
	if len(o.paths) == 0 && o.snapshot == "" {
		return misuse("name a trace, a folder of traces or --memory-snapshot FILE; see omni-perf analyze --help")
	}
	if len(o.paths) == 0 && (o.merged != "" || len(o.against) > 0) {
		return misuse("--merged and --against need traces")
	}
	return nil
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

func knownTables(names []string) error {
	known := append(analyses.DefaultTables(), analyses.Series()...)
	for _, name := range names {
		if !slices.Contains(known, name) {
			return misuse("--tables: there is no table %q; the tables are %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}

// analyze reads, computes and writes what the arguments ask for.
func analyze(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parseAnalyze(args, stderr)
	if err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	result := &view.Result{Name: strings.Join(append(slices.Clone(o.paths), nonEmpty(o.snapshot)...), ", ")}
	if len(o.paths) > 0 {
		if result.Analysis, err = o.compute(ctx, stderr); err != nil {
			return err
		}
	}
	if o.snapshot != "" {
		s, err := snapshot.ReadFile(o.snapshot)
		if err != nil {
			return err
		}
		result.Snapshot, result.Notes = snapshot.Analyze(s, o.snapshotOptions), s.Notes
	}
	return o.write(ctx, result, stdout, stderr)
}

func nonEmpty(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// compute reads the traces and analyses them, those of other runs too.
func (o *analyzeOptions) compute(ctx context.Context, stderr io.Writer) (*torchtrace.Analysis, error) {
	if _, ok := columnsOf(stderr); ok && !o.quiet {
		o.load.Progress = progressBar(stderr)
	}
	options := o.analyses
	if len(options.Tables) == 0 {
		options.Tables = analyses.DefaultTables()
		if o.html != "" || o.display != "" || o.csv != "" || o.svg != "" {
			options.Tables = append(options.Tables, analyses.Series()...)
		}
	}
	a, err := torchtrace.Run(ctx, o.paths, o.load, options)
	if err != nil || len(o.against) == 0 {
		return a, err
	}
	runs, labels := []*torchtrace.Analysis{a}, []string{strings.Join(o.paths, ", ")}
	for _, path := range o.against {
		other, err := torchtrace.Run(ctx, []string{path}, o.load, analyses.Options{Mode: options.Mode, Tables: []string{analyses.TableCollectives}})
		if err != nil {
			return nil, err
		}
		a.Warnings = append(a.Warnings, other.Warnings...)
		runs, labels = append(runs, other), append(labels, path)
	}
	a.Tables = append(a.Tables, torchtrace.CompareRuns(runs, labels))
	return a, nil
}

// check says what of the files asked for could not be written, before the traces
// are read, which may take minutes.
func (o *analyzeOptions) check() error {
	for _, folder := range []string{o.csv, o.svg} {
		if folder != "" {
			if err := output.CheckFolder(folder); err != nil {
				return err
			}
		}
	}
	for _, file := range []string{o.html, o.summary, o.display, o.merged, o.jsonFile()} {
		if file != "" {
			if err := output.Check(file); err != nil {
				return err
			}
		}
	}
	return nil
}

// jsonFile is where the JSON goes; empty if nowhere, or to standard output.
func (o *analyzeOptions) jsonFile() string {
	if o.json == "-" {
		return ""
	}
	return o.json
}

// write writes the files asked for, each for itself, then the report unless
// standard output has the JSON.
func (o *analyzeOptions) write(ctx context.Context, r *view.Result, stdout, stderr io.Writer) error {
	var results output.Results
	for _, asked := range []struct {
		path  string
		write func(path string) error
	}{
		{o.csv, r.WriteCSV},
		{o.html, r.PageFile},
		{o.svg, r.WriteSVG},
		{o.summary, r.WriteSummaryFile},
		{o.display, r.DisplayFile},
		{o.merged, func(path string) error {
			clocks, err := view.WriteMergedFile(ctx, path, r.Analysis)
			if err == nil && !o.quiet {
				fmt.Fprintln(stderr, clockSentence(clocks))
			}
			return err
		}},
		{o.jsonFile(), func(path string) error { return r.JSONFile(path, o.keeps) }},
	} {
		if asked.path == "" {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		results.Put(asked.path, asked.write)
	}
	err := results.Err()
	switch {
	case o.json == "-":
		err = errors.Join(err, r.WriteJSON(stdout, o.keeps))
	case !o.quiet:
		columns, ok := columnsOf(stdout)
		if !ok {
			columns = 120
		}
		err = errors.Join(err, r.Text(stdout, columns))
	}
	return err
}

// keeps tells whether a table belongs into the JSON: series only if somebody asked for them.
func (o *analyzeOptions) keeps(t *table.Table) bool {
	return !slices.Contains(analyses.Series(), t.Name) || slices.Contains(o.analyses.Tables, t.Name)
}

func clockSentence(clocks []view.Clock) string {
	matched := 0
	for _, c := range clocks {
		if c.Matched {
			matched++
		}
	}
	switch {
	case len(clocks) == 1:
		return "One rank: its clock is the trace's."
	case matched == len(clocks):
		return fmt.Sprintf("The clocks of all %d ranks are aligned by their collectives.", matched)
	}
	return fmt.Sprintf("The clocks of %d of %d ranks are aligned by their collectives; the others keep their own.", matched, len(clocks))
}

// columnsOf is the width of the terminal a stream goes to.
func columnsOf(stream any) (columns int, terminal bool) {
	f, ok := stream.(*os.File)
	if !ok {
		return 0, false
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 {
		return 0, false
	}
	return int(size.Col), true
}

// progressBar draws on one line of a terminal and clears it at the end.
func progressBar(w io.Writer) func(kineto.Progress) {
	const width = 28
	return func(p kineto.Progress) {
		if p.Done {
			fmt.Fprint(w, "\r\x1b[K")
			return
		}
		share := 0.0
		if p.AllBytes > 0 {
			share = min(1, float64(p.Bytes)/float64(p.AllBytes))
		}
		full := int(share * width)
		fmt.Fprintf(w, "\r\x1b[K%s%s %3.0f %%  %d of %d files, %.1f M events",
			strings.Repeat("━", full), strings.Repeat("─", width-full), 100*share, p.FilesDone, p.Files, float64(p.Events)/1e6)
	}
}
