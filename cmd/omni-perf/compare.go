package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/omni-perf/omni-perf/sidecar/doors/saved"
	"github.com/omni-perf/omni-perf/sidecar/understand/significance"
)

func compareCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "compare BEFORE.json AFTER.json [options]",
		Short: "say what differs between two recordings, and what is only noise",
		Long: `Compares reports that omni-perf run --format json wrote, or a notebook saved, as
NAME.json: the whole time, and tables per line, function, cause of GPU idle time and
kind of step, each with an interval and a verdict. Several recordings of each side
(-- is between the sides) show how much runs vary; of single ones that is assumed.

Of the cells of a notebook, as omni-perf run NOTEBOOK.ipynb --format json writes
them, it compares the time of each.

--fail-if slower=LIMIT ends with status 4 if the whole, or a cell of a notebook, took
longer by more than LIMIT, a share (5%) or a time (200ms, 1.5s), and longer beyond noise.`,
		Annotations: map[string]string{formsNote: "omni-perf compare [options] BEFORE.json… -- AFTER.json…"},
		Args:        cobra.ArbitraryArgs,
	}
	var q saved.Comparison
	c.Flags().StringVar(&q.HTML, "html", "", "write a self-contained page with the flame graphs to `FILE`")
	c.Flags().StringVar(&q.JSON, "json", "", "write the comparison as JSON to `FILE`, - for standard output")
	c.Flags().Var(limitValue(&q.Limit), "fail-if", "end with status 4 if `slower=LIMIT`, as in slower=5% or slower=200ms")
	c.Flags().BoolVar(&q.Quiet, "quiet", false, "print nothing, only write the files asked for")
	complete(c, "fail-if", []string{"slower=5%"})
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		if q.Before, q.After, err = sidesOf(args, c.ArgsLenAtDash()); err != nil {
			return err
		}
		q.Columns = columnsOr(os.Stdout, 100)
		return q.Run(plainText{os.Stdout}, os.Stdout, messages)
	}
	return c
}

// limitValue is the option that names a limit.
func limitValue(to *significance.Limit) parsedValue[significance.Limit] {
	return parsedValue[significance.Limit]{to, significance.ParseLimit, "slower=LIMIT"}
}

// sidesOf parts the arguments, of which dash precede a "--" (-1: there is none).
func sidesOf(args []string, dash int) (before, after []string, err error) {
	switch {
	case len(args) < 2 && dash < 0:
		return nil, nil, misuse("name two reports to compare")
	case dash < 0 && len(args) > 2:
		return nil, nil, misuse("%d reports: part those before from those after by --, as in a1.json a2.json -- b1.json b2.json", len(args))
	case dash < 0:
		return args[:1], args[1:], nil
	case dash == 0 || dash == len(args):
		return nil, nil, misuse("name reports on both sides of --")
	}
	for _, arg := range args[dash:] {
		if strings.HasPrefix(arg, "-") && arg != "-" {
			return nil, nil, misuse("options come before the reports: %s is behind --", arg)
		}
	}
	return args[:dash], args[dash:], nil
}
