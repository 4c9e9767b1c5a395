// Package request carries out what somebody asks of torch traces: which traces,
// which analyses, which files.
//
// In flows a Request, out flow the files it names and a report for a terminal. The
// analyses are package traces', the drawing is package page's.
package request

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/show/output"
	"github.com/omni-perf/omni-perf/sidecar/traces"
	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/changes"
	"github.com/omni-perf/omni-perf/sidecar/traces/closeup"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/page"
	"github.com/omni-perf/omni-perf/sidecar/traces/snapshot"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
	"github.com/omni-perf/omni-perf/sidecar/understand/significance"
)

// Request is what is asked for. Empty names are files that nobody wants.
type Request struct {
	Paths    []string // traces, folders of them, globs
	Against  []string // those of other runs, whose collectives are compared
	Snapshot string   // a memory snapshot
	// SnapshotAgainst is another one that it is compared with.
	SnapshotAgainst string

	// CriticalPath adds the critical path to the tables that are computed anyway.
	CriticalPath bool

	Load            kineto.Options
	Analyses        analyses.Options
	SnapshotOptions snapshot.Options

	JSON    string // "-": standard output, in place of the report
	HTML    string
	Merged  string // one Chrome trace of all ranks
	Summary string
	Display string // what a notebook shows
	CSV     string // a folder
	SVG     string // a folder
	Quiet   bool   // no report, only files

	Limit significance.Limit // by how much a step may be slower than in the other runs; Run's error is then a significance.Exceeded

	Columns int    // of the terminal that the report is for
	Version string // of omni_perf
}

// Check says what of the request makes no sense: a fragment for the one who asked.
func (q *Request) Check() error {
	known := analyses.AllTables()
	for _, name := range q.Analyses.Tables {
		if !slices.Contains(known, name) {
			return fmt.Errorf("there is no table %q; the tables are %s", name, strings.Join(known, ", "))
		}
	}
	switch {
	case q.SnapshotAgainst != "" && q.Snapshot == "":
		return errors.New("--memory-against needs --memory-snapshot, the one to compare")
	case q.Limit.IsSet() && len(q.Against) == 0:
		return errors.New("--fail-if needs --against, the run to compare with")
	case len(q.Paths) > 0:
		return nil
	case q.Snapshot == "":
		return errors.New("name a trace, a folder of traces or --memory-snapshot FILE")
	case q.Merged != "" || len(q.Against) > 0:
		return errors.New("--merged and --against need traces")
	}
	return nil
}

// Run reads, computes and writes. Files are written each for itself; what failed is
// an output.Failures. messages takes what is to be said beside the report.
func (q *Request) Run(ctx context.Context, stdout, messages io.Writer) error {
	if err := q.writable(); err != nil {
		return err
	}
	result := &page.Result{Version: q.Version, Name: strings.Join(append(slices.Clone(q.Paths), nonEmpty(q.Snapshot)...), ", ")}
	var err error
	if len(q.Paths) > 0 {
		if result.Analysis, err = q.compute(ctx); err != nil {
			return err
		}
	}
	if q.Snapshot != "" {
		s, err := snapshot.ReadFile(q.Snapshot)
		if err != nil {
			return err
		}
		result.Snapshot, result.Notes = snapshot.Analyze(s, q.SnapshotOptions), s.Notes
		if q.HTML != "" {
			result.Memory, result.Bands = s, s.LargestBands()
		}
		if q.SnapshotAgainst != "" {
			before, err := snapshot.ReadFile(q.SnapshotAgainst)
			if err != nil {
				return err
			}
			result.Snapshot = append(result.Snapshot, snapshot.Compare(before, s))
		}
	}
	if err := q.fromNear(ctx, result); err != nil {
		return err
	}
	err = q.write(ctx, result, stdout, messages)
	if !q.Limit.IsSet() || result.Analysis == nil {
		return err
	}
	verdict := changes.Judge(result.Analysis.Table(changes.TableName), q.Against, q.Limit)
	if err != nil && verdict != nil {
		fmt.Fprintf(messages, "omni-perf: %v\n", err)
		return verdict
	}
	return errors.Join(err, verdict)
}

// fromNear adds single steps, where something is asked for that shows them. A trace
// that cannot be read again is no reason to show nothing of it.
func (q *Request) fromNear(ctx context.Context, r *page.Result) error {
	if r.Analysis == nil || q.HTML == "" && q.Display == "" {
		return nil
	}
	var err error
	if r.Steps, err = closeup.Of(ctx, r.Analysis); err != nil && !errors.Is(err, closeup.ErrNothing) {
		r.StepNote = fmt.Sprintf("A step could not be shown from near: %v.", err)
	}
	return ctx.Err()
}

func nonEmpty(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// writable says what of the files asked for could not be written, before the traces
// are read, which may take minutes.
func (q *Request) writable() error {
	for _, folder := range []string{q.CSV, q.SVG} {
		if folder != "" {
			if err := output.CheckFolder(folder); err != nil {
				return err
			}
		}
	}
	for _, file := range []string{q.HTML, q.Summary, q.Display, q.Merged, q.jsonFile()} {
		if file != "" {
			if err := output.Check(file); err != nil {
				return err
			}
		}
	}
	return nil
}

// jsonFile is where the JSON goes; empty if nowhere, or to standard output.
func (q *Request) jsonFile() string {
	if q.JSON == "-" {
		return ""
	}
	return q.JSON
}

// compute reads the traces and analyses them, those of other runs too.
func (q *Request) compute(ctx context.Context) (*traces.Analysis, error) {
	options := q.Analyses
	if len(options.Tables) == 0 {
		options.Tables = analyses.DefaultTables()
		if q.HTML != "" || q.Display != "" || q.CSV != "" || q.SVG != "" {
			options.Tables = append(options.Tables, analyses.Series()...)
		}
	}
	if q.CriticalPath {
		options.Tables = append(slices.Clone(options.Tables), analyses.CriticalPath()...)
	}
	run := q.compare
	if len(q.Against) == 0 {
		run = func(ctx context.Context, options analyses.Options) (*traces.Analysis, error) {
			return traces.Run(ctx, q.Paths, q.Load, options)
		}
	}
	a, err := run(ctx, options)
	if err == nil && q.CriticalPath {
		q.explainNoPath(a)
	}
	return a, err
}

// explainNoPath adds the reason why there is no critical path, which was asked for, where there is none.
func (q *Request) explainNoPath(a *traces.Analysis) {
	path := a.Table(analyses.TableCriticalPath)
	if path != nil && path.Len() > 0 {
		return
	}
	why := "nothing that ran on a device was recorded, and the path is traced back from the devices' work"
	if a.Mode != analyses.Exact {
		why = "by the rules of HolisticTraceAnalysis none is found; leave out --mode"
	}
	a.Warnings = append(a.Warnings, kineto.Warning{Byte: -1, What: "no critical path: " + why})
}

// compare analyses the traces and sets them beside those of the other runs.
func (q *Request) compare(ctx context.Context, options analyses.Options) (*traces.Analysis, error) {
	asked := options.Tables
	needed := append(changes.Needed(), analyses.TableCollectives)
	options.Tables = slices.Clone(asked)
	for _, name := range needed {
		if !slices.Contains(asked, name) {
			options.Tables = append(options.Tables, name)
		}
	}
	a, err := traces.Run(ctx, q.Paths, q.Load, options)
	if err != nil {
		return nil, err
	}
	compared := changes.New()
	runs, labels := []*traces.Analysis{a}, []string{strings.Join(q.Paths, ", ")}
	for _, path := range q.Against {
		theirs := options
		theirs.Steps, theirs.Tables = nil, needed // their steps have other numbers
		other, err := traces.Run(ctx, []string{path}, q.Load, theirs)
		if err != nil {
			return nil, err
		}
		a.Warnings = append(a.Warnings, other.Warnings...)
		changes.Add(compared, path, other.Tables, a.Tables)
		runs, labels = append(runs, other), append(labels, path)
	}
	byRun := traces.CompareRuns(runs, labels)
	a.Tables = slices.DeleteFunc(a.Tables, func(t *table.Table) bool { return !slices.Contains(asked, t.Name) })
	a.Tables = append(a.Tables, compared, byRun)
	return a, nil
}

// write writes the files asked for, each for itself, then the report unless
// standard output has the JSON.
func (q *Request) write(ctx context.Context, r *page.Result, stdout, messages io.Writer) error {
	var results output.Results
	for _, asked := range []struct {
		path  string
		write func(path string) error
	}{
		{q.CSV, r.WriteCSV},
		{q.HTML, r.PageFile},
		{q.SVG, r.WriteSVG},
		{q.Summary, r.WriteSummaryFile},
		{q.Display, r.DisplayFile},
		{q.Merged, func(path string) error {
			clocks, err := page.WriteMergedFile(ctx, path, r.Analysis)
			if err == nil && !q.Quiet {
				fmt.Fprintln(messages, page.ClockSentence(clocks))
			}
			return err
		}},
		{q.jsonFile(), func(path string) error { return r.JSONFile(path, q.keeps) }},
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
	case q.JSON == "-":
		err = errors.Join(err, r.WriteJSON(stdout, q.keeps))
	case !q.Quiet:
		err = errors.Join(err, r.Text(stdout, q.Columns))
	}
	return err
}

// keeps reports whether a table belongs into the JSON: series only if somebody asked for them.
func (q *Request) keeps(t *table.Table) bool {
	return !slices.Contains(analyses.Series(), t.Name) || slices.Contains(q.Analyses.Tables, t.Name)
}
