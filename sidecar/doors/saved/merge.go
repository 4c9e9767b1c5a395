package saved

import (
	"errors"
	"io"

	"github.com/omni-perf/omni-perf/sidecar/compare/mergereports"
	"github.com/omni-perf/omni-perf/sidecar/doors/program"
	"github.com/omni-perf/omni-perf/sidecar/show/chart"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// Merge puts reports into one, writes it into files, and says on messages what it has and where it is.
// A report that cannot be read is left out; the error says so then, when all is done.
func Merge(reports []string, files []program.File, messages io.Writer) error {
	if err := program.Check(files); err != nil {
		return err
	}
	merged, unread, err := mergereports.Read(reports, func(at int) (*report.View, error) { return Read(reports[at]) })
	if err != nil {
		return err
	}
	_, err = program.Show(merged, files, []byte(chart.Text(merged, 100)), messages)
	return errors.Join(err, unread)
}
