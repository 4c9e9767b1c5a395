package main

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/omni-perf/omni-perf/sidecar/doors/saved"
	"github.com/omni-perf/omni-perf/sidecar/doors/signals"
	"github.com/omni-perf/omni-perf/sidecar/show/output"
)

func exportCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "export REPORT.json [--format FORMAT] -o FILE",
		Short: "draw or convert a saved report, or merge a torch trace into it",
		Long: `Draws or converts a saved report. REPORT.json may be compressed by gzip; - is
standard input. --format csv writes every table into the folder that -o names.`,
		Annotations: map[string]string{formsNote: `omni-perf export REPORT.json [--format FORMAT,…] --name NAME
omni-perf export REPORT.json --format csv -o FOLDER
omni-perf export REPORT.json --push URL`},
		Args: exactly("a report"),
	}
	q := saved.Export{Known: formats()}
	names := append(formatNames(), saved.CSV)
	c.Flags().Var(listValue{&q.Formats}, "format", "`FORMATS` to write, separated by commas: "+strings.Join(names, ", ")+" (default html, or what the name's extension says)")
	c.Flags().StringVarP(&q.File, "output", "o", "", "the `FILE` to write")
	c.Flags().StringVar(&q.Name, "name", "", "instead of -o: the `NAME` of the results, as for -o of omni-perf run")
	c.Flags().StringVar(&q.Trace, "merge-trace", "", "add the kernels and the exact idle time of a torch.profiler `TRACE` taken meanwhile (a file or a folder)")
	c.Flags().IntVar(&q.Most, "most", 0, "thin the report so that its JSON takes at most so many `BYTES` compressed by gzip; 0: leave it whole")
	push := pushFlag(c)
	asJSON := c.Flags().Bool("json", false, "say as JSON, on standard error, what was written")
	complete(c, "format", names)
	c.RunE = func(_ *cobra.Command, args []string) error {
		q.Push = push.to()
		if err := q.Check(); err != nil {
			return usageError{err}
		}
		q.Report = args[0]
		ctx, stop := signals.Context(context.Background())
		defer stop()
		var results output.Results
		err := q.Run(ctx, &results)
		if !*asJSON {
			return err
		}
		saved.WriteResults(os.Stderr, &results, err)
		return silent(err)
	}
	return c
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
