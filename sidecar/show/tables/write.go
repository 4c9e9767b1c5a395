package tables

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"

	"github.com/omni-perf/omni-perf/sidecar/show/output"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"maps"
	"slices"
	"strings"
)

// WriteFolder writes FOLDER/TABLE.csv for every table into a folder, which it makes.
func WriteFolder(v *report.View, folder string) error {
	if err := output.MakeFolder(folder); err != nil {
		return err
	}
	var errs []error
	for _, t := range Of(v) {
		errs = append(errs, output.Write(filepath.Join(folder, t.Name+".csv"), t.WriteCSV))
	}
	return errors.Join(errs...)
}

// WriteCSV writes a header and the rows; what is not known is empty. A column of
// states becomes one per state, state_s.python.
func (t *Table) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	var header []string
	for _, c := range t.Columns {
		if c.Name != statesColumn {
			header = append(header, c.Name)
			continue
		}
		for s := range report.NumStates {
			header = append(header, statesColumn+"."+report.State(s).String())
		}
	}
	out.Write(header) // the writer keeps its first error
	for _, row := range t.Rows {
		cells := make([]string, 0, len(header))
		for _, value := range row {
			if states, ok := value.(States); ok {
				for s := range report.NumStates {
					cells = append(cells, figure(states[report.State(s).String()]))
				}
				continue
			}
			cells = append(cells, cell(value))
		}
		out.Write(cells)
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write the table %s: %w", t.Name, err)
	}
	return nil
}

const statesColumn = "state_s"

func cell(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case float64:
		return figure(v)
	case Parts:
		var list []string
		for _, id := range slices.Sorted(maps.Keys(v)) {
			list = append(list, id+"="+figure(v[id]))
		}
		return output.SpreadsheetText(strings.Join(list, " "))
	case string:
		return output.SpreadsheetText(v)
	}
	return fmt.Sprint(value)
}

func figure(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
