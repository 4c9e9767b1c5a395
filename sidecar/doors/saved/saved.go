// Package saved carries out what somebody asks of saved reports: to compare them, to merge
// them, to write one in other formats, to answer a question about one.
//
// In flow the names of files and what is asked, out flow files and text for a terminal.
// What is computed is packages comparison's, mergereports', answers' and the pictures'.
package saved

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// Stdio is the name of a file that means standard input or output.
const Stdio = "-"

// Read reads a report; Stdio is standard input.
func Read(file string) (*report.View, error) {
	in, name := os.Stdin, "standard input"
	if file != Stdio {
		opened, err := open(file)
		if err != nil {
			return nil, err
		}
		defer opened.Close()
		in, name = opened, file
	}
	r, err := report.ReadFrom(in)
	switch {
	case errors.Is(err, syscall.EISDIR):
		return nil, fmt.Errorf("there is a folder %s: name a report in it", name)
	case errors.Is(err, report.ErrNoReport):
		return nil, fmt.Errorf("cannot take the report from %s: %w%s", name, err, adviceOn(name))
	case err != nil:
		return nil, fmt.Errorf("cannot take the report from %s: %w", name, err)
	}
	return r, nil
}

// adviceOn says how a report is made in place of a file that is none, where the name says what that is.
func adviceOn(file string) string {
	switch strings.ToLower(filepath.Ext(file)) {
	case ".html", ".svg":
		return "; a report is what omni-perf run --format json writes"
	case ".ipynb":
		return fmt.Sprintf("; omni-perf run %s --format json executes the notebook and writes what omni-perf compare takes", file)
	}
	return ""
}

// open opens a file. Its error is words: that of package os begins like a command, "open x.json: …".
func open(name string) (*os.File, error) {
	f, err := os.Open(name)
	if as := new(fs.PathError); errors.As(err, &as) {
		return nil, fmt.Errorf("cannot open %s: %w", name, as.Err)
	}
	return f, err
}

// ReadAll reads several.
func ReadAll(files []string) ([]*report.View, error) {
	views := make([]*report.View, len(files))
	for i, file := range files {
		var err error
		if views[i], err = Read(file); err != nil {
			return nil, err
		}
	}
	return views, nil
}
