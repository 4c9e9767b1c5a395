package page

import (
	"errors"
	"io"
	"path/filepath"

	"github.com/omni-perf/omni-perf/sidecar/show/output"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// WriteCSV writes one file per table that has figures into a folder, which it makes.
// Headers are the column names of the JSON, values are not rounded.
func (r *Result) WriteCSV(dir string) error {
	if err := output.MakeFolder(dir); err != nil {
		return err
	}
	var errs []error
	for _, t := range r.tables() {
		if !hasFigures(t) {
			continue
		}
		errs = append(errs, output.Write(filepath.Join(dir, t.Name+".csv"), t.WriteCSV))
	}
	return errors.Join(errs...)
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

// JSONFile writes WriteJSON's document to a file.
func (r *Result) JSONFile(path string, keep func(*table.Table) bool) error {
	return output.Write(path, func(w io.Writer) error { return r.WriteJSON(w, keep) })
}
