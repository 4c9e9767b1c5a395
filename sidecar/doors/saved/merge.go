package saved

import (
	"io"

	"github.com/omni-perf/omni-perf/sidecar/compare/mergereports"
	"github.com/omni-perf/omni-perf/sidecar/doors/program"
	"github.com/omni-perf/omni-perf/sidecar/show/chart"
)

// Merge puts reports into one, writes it into files, and says on messages what it has and where it is.
func Merge(reports []string, files []program.File, messages io.Writer) error {
	if err := program.Check(files); err != nil {
		return err
	}
	views, err := ReadAll(reports)
	if err != nil {
		return err
	}
	merged, err := mergereports.Merge(views, reports)
	if err != nil {
		return err
	}
	_, err = program.Show(merged, files, []byte(chart.Text(merged, 100)), messages)
	return err
}
