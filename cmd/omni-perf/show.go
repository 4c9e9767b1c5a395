package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/omni-perf/omni-perf/sidecar/show/answers"
	"github.com/omni-perf/omni-perf/sidecar/show/chart"
)

func showCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "show REPORT.json [--what TOPIC] [options]",
		Short: "say in words what a saved report has, all in short or on one topic",
		Long: `Prints the summary of a saved report, or the answer on one topic: ` + strings.Join(answers.Names(), ", ") + `.
REPORT.json may be compressed by gzip; - is standard input.`,
		Args: exactly("a report"),
	}
	var o showOptions
	c.Flags().StringVar(&o.what, "what", "", "answer on one `TOPIC`: "+strings.Join(answers.Names(), ", "))
	c.Flags().Float64Var(&o.from, "from", 0, "of the topic stretch: from `SECONDS` of the recording on")
	c.Flags().Float64Var(&o.to, "to", 0, "of the topic stretch: to `SECONDS` of the recording (default: its end)")
	c.Flags().BoolVar(&o.json, "json", false, "answer as JSON")
	c.Flags().BoolVar(&o.all, "all", false, fmt.Sprintf("all rows, not only those that fit into %d bytes", answers.MaxBytes))
	complete(c, "what", answers.Names())
	c.RunE = func(_ *cobra.Command, args []string) error {
		o.report = args[0]
		return o.run()
	}
	return c
}

// showOptions are the arguments of show.
type showOptions struct {
	report, what string
	from, to     float64
	json, all    bool
}

func (o showOptions) run() error {
	if o.what != "" && answers.Topic(o.what).About() == "" {
		return misuse("--what takes one of %s", strings.Join(answers.Names(), ", "))
	}
	if (o.from != 0 || o.to != 0) && answers.Topic(o.what) != answers.Stretch {
		return misuse("--from and --to go with --what stretch")
	}
	v, err := readReport(o.report)
	if err != nil {
		return err
	}
	if o.what == "" && !o.json {
		columns := 100
		if c, ok := columnsOf(os.Stdout); ok {
			columns = c
		}
		fmt.Fprint(plainText{os.Stdout}, chart.Text(v, columns))
		return nil
	}
	if o.what == "" {
		o.what = string(answers.Headline)
	}
	a, err := answers.Of(v, answers.Question{About: answers.Topic(o.what), From: o.from, To: o.to})
	if err != nil {
		return err
	}
	most := answers.MaxBytes
	if o.all {
		most = 0
	}
	if !o.json {
		fmt.Fprint(plainText{os.Stdout}, a.Text(most))
		return nil
	}
	text, err := a.JSON(most)
	if err == nil {
		_, err = os.Stdout.Write(text)
	}
	return err
}
