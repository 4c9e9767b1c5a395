package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/omni-perf/omni-perf/sidecar/doors/saved"
	"github.com/omni-perf/omni-perf/sidecar/show/answers"
)

func showCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "show REPORT.json [--what TOPIC] [options]",
		Short: "say in words what a saved report has, all in short or on one topic",
		Long: `Prints the summary of a saved report, or the answer on one topic: ` + strings.Join(answers.Names(), ", ") + `.
REPORT.json may be compressed by gzip; - is standard input.`,
		Args: exactly("a report"),
	}
	var q saved.Question
	c.Flags().StringVar(&q.About, "what", "", "answer on one `TOPIC`: "+strings.Join(answers.Names(), ", "))
	c.Flags().Float64Var(&q.From, "from", 0, "of the topic stretch: from `SECONDS` of the recording on")
	c.Flags().Float64Var(&q.To, "to", 0, "of the topic stretch: to `SECONDS` of the recording (default: its end)")
	c.Flags().BoolVar(&q.JSON, "json", false, "answer as JSON")
	c.Flags().BoolVar(&q.All, "all", false, fmt.Sprintf("all rows, not only those that fit into %d bytes", answers.MaxBytes))
	complete(c, "what", answers.Names())
	c.RunE = func(_ *cobra.Command, args []string) error {
		if err := q.Check(); err != nil {
			return usageError{err}
		}
		q.Report, q.Columns = args[0], columnsOr(os.Stdout, 100)
		return q.Run(plainText{os.Stdout}, os.Stdout)
	}
	return c
}
