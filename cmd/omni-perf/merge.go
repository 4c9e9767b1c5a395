package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/omni-perf/omni-perf/sidecar/compare/mergereports"
	"github.com/omni-perf/omni-perf/sidecar/doors/program"
	"github.com/omni-perf/omni-perf/sidecar/doors/saved"
)

func mergeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "merge -o NAME [--format FORMAT,…] [--run RUN] [--force] REPORT.json|FOLDER…",
		Short: "put the reports of several processes into one picture",
		Long: `Puts reports that were recorded on one machine at the same time, as those of the
ranks of a distributed run, on one time axis: lanes of all, a table of the ranks, and
which one the others waited for. The reports are what omni-perf run --format json
wrote, NAME.rank0.json and so on; a FOLDER stands for those in it. Those of several
machines are merged if they are of the ranks of one run: their clocks are related by the
collectives in which the ranks met, else by the wall clocks, and a note says how exactly.`,
		Args: cobra.ArbitraryArgs,
	}
	var list []string
	name := &onceValue{}
	c.Flags().VarP(name, "output", "o", "`NAME` of the result files, without extension; with one, of that single file")
	var choice mergereports.Choice
	c.Flags().StringVar(&choice.Run, "run", "", "merge only the reports of this `RUN`, as its launcher names it; which there are is said where there are several")
	c.Flags().BoolVar(&choice.Force, "force", false, "merge reports that are not of one run, too")
	c.Flags().Var(listValue{&list}, "format", "`FORMATS` of the results, separated by commas: "+strings.Join(formatNames(), ", ")+" (default "+strings.Join(program.DefaultFormats, ",")+")")
	complete(c, "format", formatNames())
	c.RunE = func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return misuse("there are no reports to merge")
		case name.value == "":
			return misuse("name the result by -o NAME")
		}
		naming, err := program.Name(formats(), name.value, list)
		if err != nil {
			return usageError{err}
		}
		return saved.Merge(args, choice, naming.Files(""), os.Stderr)
	}
	return c
}
