package saved

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/compare/mergereports"
	"github.com/omni-perf/omni-perf/sidecar/doors/program"
	"github.com/omni-perf/omni-perf/sidecar/show/chart"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// Merge puts reports into one, writes it into files, and says on messages what it has and where it is.
// A folder stands for the reports of single processes in it. A report that cannot be read is left out; the
// error says so then, when all is done.
func Merge(places []string, choice mergereports.Choice, files []program.File, messages io.Writer) error {
	if err := program.Check(files); err != nil {
		return err
	}
	reports, found, err := reportsIn(places)
	if err != nil {
		return err
	}
	merged, unread, err := mergereports.Read(reports, choice, func(at int) (*report.View, error) {
		if at < len(reports)-found {
			return Read(reports[at])
		}
		return readFound(reports[at])
	})
	if err != nil {
		return err
	}
	_, err = program.Show(merged, files, []byte(chart.Text(merged, 100)), messages)
	return errors.Join(err, unread)
}

// reportsIn are the files that are named, and after them the found ones: those of the folders that are named, each once.
func reportsIn(places []string) (files []string, found int, err error) {
	var folders []string
	for _, place := range places {
		if info, err := os.Stat(place); err == nil && info.IsDir() {
			folders = append(folders, place)
		} else {
			files = append(files, place)
		}
	}
	named := len(files)
	for _, folder := range folders {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return nil, 0, err
		}
		before := len(files)
		for _, entry := range entries {
			file := filepath.Join(folder, entry.Name())
			isReport := strings.HasSuffix(file, ".json") || strings.HasSuffix(file, ".json.gz")
			if isReport && !entry.IsDir() && !slices.Contains(files[:named], file) {
				files = append(files, file)
			}
		}
		if len(files) == before {
			return nil, 0, fmt.Errorf("there is no report in %s: omni-perf run -o %s --format json writes one", folder, filepath.Join(folder, "run"))
		}
	}
	return files, len(files) - named, nil
}

// readFound reads a report in a folder, where there are other files, too: what other programs wrote there, and what was merged before.
func readFound(file string) (*report.View, error) {
	r, err := Read(file)
	switch {
	case errors.Is(err, report.ErrNoReport), err == nil && len(r.Targets) != 1:
		return nil, mergereports.ErrNotMeant
	default:
		return r, err
	}
}
