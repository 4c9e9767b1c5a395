package program

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/report"
)

// Format is one kind of result file.
type Format struct {
	Name      string // as --format has it
	Extension string // with its dot
	Encode    func(*report.Report) ([]byte, error)
}

// Choose returns the formats of the given names.
func (t Tools) Choose(names []string) ([]Format, error) {
	var chosen []Format
	for _, name := range names {
		found := false
		for _, f := range t.Formats {
			if f.Name == strings.TrimSpace(name) {
				chosen, found = append(chosen, f), true
			}
		}
		if !found {
			return nil, fmt.Errorf("format %q is not known; there are %s", name, t.formatNames())
		}
	}
	return chosen, nil
}

func (t Tools) formatNames() string {
	var names []string
	for _, f := range t.Formats {
		names = append(names, f.Name)
	}
	return strings.Join(names, ", ")
}

// encode writes the report in each format; it returns the files that were
// written even when one could not be.
func encode(r *report.Report, base string, formats []Format) (files []string, err error) {
	for _, f := range formats {
		content, err := f.Encode(r)
		if err != nil {
			return files, fmt.Errorf("draw the %s result: %w", f.Name, err)
		}
		path := base + f.Extension
		if err := WriteFile(path, content); err != nil {
			return files, err
		}
		files = append(files, path)
	}
	return files, nil
}

// WriteFile writes a file that only its owner reads, whole or not at all.
func WriteFile(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(f.Name())
	if _, err = f.Write(content); err == nil {
		err = f.Close()
	} else {
		f.Close()
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
