package view

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/omni-perf/omni-perf/sidecar/torchtrace/table"
)

// WriteCSV writes one file per table that has rows into a folder, which it makes.
// Headers are the column names of the JSON, values are not rounded.
func (r *Result) WriteCSV(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("writing CSV files: %w", err)
	}
	for _, t := range r.tables() {
		if t.Len() == 0 {
			continue
		}
		if err := writeFile(filepath.Join(dir, t.Name+".csv"), t.WriteCSV); err != nil {
			return err
		}
	}
	return nil
}

// writeFile writes a file through a buffer; a failed one is removed.
func writeFile(path string, write func(io.Writer) error) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	buffer := bufio.NewWriterSize(f, 1<<16)
	err = write(buffer)
	if e := buffer.Flush(); err == nil {
		err = e
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		os.Remove(path)
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// WriteSVG writes one file per chart into a folder, which it makes.
func (r *Result) WriteSVG(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("writing charts: %w", err)
	}
	for _, c := range r.Charts(Auto) {
		write := func(w io.Writer) error {
			_, err := w.Write(c.SVG)
			return err
		}
		if err := writeFile(filepath.Join(dir, c.Name+".svg"), write); err != nil {
			return err
		}
	}
	return nil
}

// PageFile writes Page's document to a file.
func (r *Result) PageFile(path string) error { return writeFile(path, r.Page) }

// JSONFile writes WriteJSON's document to a file.
func (r *Result) JSONFile(path string, keep func(*table.Table) bool) error {
	return writeFile(path, func(w io.Writer) error { return r.WriteJSON(w, keep) })
}
