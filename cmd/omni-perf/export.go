package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/omni-perf/omni-perf/sidecar/output"
	"github.com/omni-perf/omni-perf/sidecar/program"
	"github.com/omni-perf/omni-perf/sidecar/report"
	"github.com/omni-perf/omni-perf/sidecar/server"
)

const exportUsage = `usage: omni-perf export REPORT.json --format FORMAT -o FILE
       omni-perf export REPORT.json [--format FORMAT,…] --name NAME

Draws or converts a saved report. REPORT.json may be compressed by gzip; - is
standard input.

options:
`

func exportCommand() command {
	return command{"export", "draw or convert a saved report", exportReport}
}

// exportOptions are the arguments of export.
type exportOptions struct {
	report, format, file, name string
	json                       bool
}

func exportReport(args []string) int {
	var o exportOptions
	flags := flag.NewFlagSet("export", flag.ContinueOnError)
	flags.StringVar(&o.format, "format", "", "one of "+formatNames()+" (default html, or what the name's extension says)")
	flags.StringVar(&o.file, "o", "", "the file to write")
	flags.StringVar(&o.name, "name", "", "instead of -o: the name of the results, as for -o of omni-perf run")
	flags.BoolVar(&o.json, "json", false, "tell as JSON, on standard error, what was written")
	if code, done := parse(flags, exportUsage, args); done {
		return code
	}
	if flags.NArg() == 0 {
		return usageProblem(flags, "there is no report")
	}
	o.report = flags.Arg(0)
	if code, done := parse(flags, exportUsage, flags.Args()[1:]); done { // options after the report
		return code
	}
	if flags.NArg() > 0 || (o.file == "") == (o.name == "") {
		return usageProblem(flags, "one report and one of -o FILE and --name NAME are wanted")
	}
	var results output.Results
	err := o.run(&results)
	if o.json {
		tellJSON(os.Stderr, &results, err)
	} else if err != nil {
		complain(err)
	}
	return exitOf(err)
}

func (o exportOptions) run(results *output.Results) error {
	files, err := o.files()
	if err != nil {
		return err
	}
	if err := program.Check(files); err != nil {
		return err
	}
	r, err := readReport(o.report)
	if err != nil {
		return err
	}
	program.Write(r, files, results)
	return results.Err()
}

func (o exportOptions) files() ([]program.File, error) {
	if o.file != "" {
		file, err := program.Exactly(formats(), o.file, o.format)
		return []program.File{file}, err
	}
	naming, err := program.Name(formats(), o.name, listed(o.format))
	if err != nil {
		return nil, err
	}
	return naming.Files(""), nil
}

// exported is what export --json tells.
type exported struct {
	Written []string `json:"written"`         // the files asked for
	Saved   []string `json:"saved"`           // those that are in a temporary folder instead
	Error   string   `json:"error,omitempty"` // a sentence; empty: all is well
}

func tellJSON(w io.Writer, results *output.Results, err error) {
	told := exported{Written: append([]string{}, results.Written...), Saved: []string{}}
	for _, f := range results.Failed {
		if f.Saved != "" {
			told.Saved = append(told.Saved, f.Saved)
		}
	}
	if err != nil {
		told.Error = server.Sentence(err)
	}
	_ = json.NewEncoder(w).Encode(told) // nobody to tell if stderr is closed
}

// maxReport is what the file of a report may have.
const maxReport = 1 << 30

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
	text, err := readUpTo(in, maxReport)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	r, err := report.Read(text)
	if err != nil {
		return nil, fmt.Errorf("cannot take the report from %s: %w", name, err)
	}
	return r, nil
}

func readUpTo(in io.Reader, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(in, most+1))
	if err == nil && int64(len(text)) > most {
		err = errors.New("it is larger than any report")
	}
	return text, err
}
