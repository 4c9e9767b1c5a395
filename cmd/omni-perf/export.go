package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/omni-perf/omni-perf/sidecar/doors/program"
	"github.com/omni-perf/omni-perf/sidecar/doors/signals"
	"github.com/omni-perf/omni-perf/sidecar/show/output"
	"github.com/omni-perf/omni-perf/sidecar/show/tables"
	"github.com/omni-perf/omni-perf/sidecar/traces/addtrace"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

func exportCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "export REPORT.json [--format FORMAT] -o FILE",
		Short: "draw or convert a saved report, or merge a torch trace into it",
		Long: `Draws or converts a saved report. REPORT.json may be compressed by gzip; - is
standard input. --format csv writes every table into the folder that -o names.`,
		Annotations: map[string]string{formsNote: `omni-perf export REPORT.json [--format FORMAT,…] --name NAME
omni-perf export REPORT.json --format csv -o FOLDER`},
		Args: exactly("a report"),
	}
	var o exportOptions
	names := append(formatNames(), csv)
	c.Flags().Var(listValue{&o.formats}, "format", "`FORMATS` to write, separated by commas: "+strings.Join(names, ", ")+" (default html, or what the name's extension says)")
	c.Flags().StringVarP(&o.file, "output", "o", "", "the `FILE` to write")
	c.Flags().StringVar(&o.name, "name", "", "instead of -o: the `NAME` of the results, as for -o of omni-perf run")
	c.Flags().StringVar(&o.trace, "merge-trace", "", "add the kernels and the exact idle time of a torch.profiler `TRACE` taken meanwhile (a file or a folder)")
	c.Flags().IntVar(&o.most, "most", 0, "thin the report so that its JSON takes at most so many `BYTES` compressed by gzip; 0: leave it whole")
	c.Flags().BoolVar(&o.json, "json", false, "say as JSON, on standard error, what was written")
	complete(c, "format", names)
	c.RunE = func(_ *cobra.Command, args []string) error {
		if (o.file == "") == (o.name == "") {
			return misuse("name the result by either -o FILE or --name NAME")
		}
		if o.folder = slices.Contains(o.formats, csv); o.folder && (len(o.formats) > 1 || o.file == "") {
			return misuse("--format csv goes alone, with -o FOLDER")
		}
		o.report = args[0]
		var results output.Results
		err := o.run(&results)
		if !o.json {
			return err
		}
		writeResults(os.Stderr, &results, err)
		return silent(err)
	}
	return c
}

// csv is the one format that is a folder of files.
const csv = "csv"

// exportOptions are the arguments of export.
type exportOptions struct {
	report, file, name, trace string
	formats                   []string
	folder, json              bool
	most                      int // bytes; 0: no bound
}

// silent keeps of an error that was reported only its exit status.
func silent(err error) error {
	var misplaced output.Failures
	switch {
	case err == nil:
		return nil
	case errors.As(err, &misplaced):
		return exitStatus(exitMisplaced)
	}
	return exitStatus(exitFailed)
}

func (o exportOptions) run(results *output.Results) error {
	if o.folder {
		if err := output.CheckFolder(o.file); err != nil {
			return err
		}
		r, err := o.read()
		if err != nil {
			return err
		}
		results.Put(o.file, func(folder string) error { return tables.WriteFolder(r, folder) })
		return results.Err()
	}
	files, err := o.files()
	if err != nil {
		return err
	}
	if err := program.Check(files); err != nil {
		return err
	}
	r, err := o.read()
	if err != nil {
		return err
	}
	program.Write(r, files, results)
	return results.Err()
}

// read reads the report, merges the trace into it, and thins it.
func (o exportOptions) read() (*report.View, error) {
	r, err := o.merged()
	if err != nil || o.most <= 0 {
		return r, err
	}
	thin, err := r.Thin(o.most)
	if err != nil {
		return nil, err
	}
	return report.Check(thin.Document)
}

func (o exportOptions) merged() (*report.View, error) {
	r, err := readReport(o.report)
	if err != nil || o.trace == "" {
		return r, err
	}
	ctx, stop := signals.Context(context.Background())
	defer stop()
	return addtrace.File(ctx, r, o.trace)
}

func (o exportOptions) files() ([]program.File, error) {
	if o.file != "" {
		if len(o.formats) > 1 {
			return nil, errors.New("-o FILE takes one format; --name NAME takes several")
		}
		file, err := program.Exactly(formats(), o.file, strings.Join(o.formats, ""))
		return []program.File{file}, err
	}
	naming, err := program.Name(formats(), o.name, o.formats)
	if err != nil {
		return nil, err
	}
	return naming.Files(""), nil
}

// exported is what export --json writes.
type exported struct {
	Written []string `json:"written"`         // the files asked for
	Saved   []string `json:"saved"`           // those that are in a temporary folder instead
	Error   string   `json:"error,omitempty"` // a sentence; empty: all is well
}

func writeResults(w io.Writer, results *output.Results, err error) {
	done := exported{Written: append([]string{}, results.Written...), Saved: []string{}}
	for _, f := range results.Failed {
		if f.Saved != "" {
			done.Saved = append(done.Saved, f.Saved)
		}
	}
	if err != nil {
		done.Error = words.Sentence(err.Error())
	}
	_ = json.NewEncoder(w).Encode(done) // nobody reads it if stderr is closed
}

func readReport(file string) (*report.View, error) {
	in, name := os.Stdin, "standard input"
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer opened.Close()
		in, name = opened, file
	}
	r, err := report.ReadFrom(in)
	if err != nil {
		return nil, fmt.Errorf("cannot take the report from %s: %w", name, err)
	}
	return r, nil
}
