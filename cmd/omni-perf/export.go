package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"github.com/omni-perf/omni-perf/sidecar/program"
	"github.com/omni-perf/omni-perf/sidecar/report"
	"github.com/omni-perf/omni-perf/sidecar/server"
)

const exportUsage = `usage: omni-perf export REPORT.json --format FORMAT -o FILE

Draws or converts a saved report.

options:
`

func exportCommand() command {
	return command{"export", "draw or convert a saved report", exportReport}
}

func exportReport(args []string) int {
	flags := flag.NewFlagSet("export", flag.ContinueOnError)
	format := flags.String("format", "html", "one of "+formatNames())
	output := flags.String("o", "", "the file to write")
	if code, done := parse(flags, exportUsage, args); done {
		return code
	}
	if flags.NArg() == 0 {
		return usageProblem(flags, "there is no report")
	}
	file := flags.Arg(0)
	if code, done := parse(flags, exportUsage, flags.Args()[1:]); done { // options after the report
		return code
	}
	if *output == "" || flags.NArg() > 0 {
		return usageProblem(flags, "one report, --format and -o FILE are wanted")
	}
	if err := convert(file, *format, *output); err != nil {
		fmt.Fprintf(os.Stderr, "omni-perf: %s\n", server.Sentence(err))
		return exitFailed
	}
	return exitOK
}

func convert(file, format, output string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	r := new(report.Report)
	if err := json.Unmarshal(text, r); err != nil {
		return fmt.Errorf("%s is no report of omni_perf: %w", file, err)
	}
	if r.SchemaVersion != report.SchemaVersion {
		return fmt.Errorf("%s has version %d of the report, this omni-perf reads version %d", file, r.SchemaVersion, report.SchemaVersion)
	}
	chosen, err := program.Tools{Formats: formats()}.Choose([]string{format})
	if err != nil {
		return err
	}
	content, err := chosen[0].Encode(r)
	if err != nil {
		return fmt.Errorf("draw %s: %w", file, err)
	}
	return program.WriteFile(output, content)
}
