package view

import (
	"encoding/csv"
	"errors"
	"io"
	"path/filepath"

	"github.com/omni-perf/omni-perf/sidecar/output"
	"github.com/omni-perf/omni-perf/sidecar/torchtrace"
)

// WriteCSV writes one file per table into a folder, which it makes. Headers are
// the column names of the JSON, values are not rounded.
func (r *Result) WriteCSV(dir string) error {
	if err := output.MakeFolder(dir); err != nil {
		return err
	}
	var errs []error
	for _, t := range r.tables() {
		errs = append(errs, output.Write(filepath.Join(dir, t.Name+".csv"), func(w io.Writer) error { return writeCSV(w, t) }))
	}
	return errors.Join(errs...)
}

func writeCSV(w io.Writer, t *torchtrace.Table) error {
	out := csv.NewWriter(w)
	row := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		row[i] = c.Name
	}
	out.Write(row) // Error below has the first failure
	for r := range t.Len() {
		for i, c := range t.Columns {
			row[i] = c.Format(r)
			if c.Kind == torchtrace.Text {
				row[i] = output.SpreadsheetText(row[i])
			}
		}
		out.Write(row)
	}
	out.Flush()
	return out.Error()
}

// WriteSVG writes one file per chart into a folder, which it makes.
func (r *Result) WriteSVG(dir string) error {
	if err := output.MakeFolder(dir); err != nil {
		return err
	}
	var errs []error
	for _, c := range r.Charts(Auto) {
		errs = append(errs, output.WriteBytes(filepath.Join(dir, c.Name+".svg"), c.SVG))
	}
	return errors.Join(errs...)
}

// PageFile writes Page's document to a file.
func (r *Result) PageFile(path string) error { return output.Write(path, r.Page) }
