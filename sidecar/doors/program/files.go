package program

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/show/output"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// Format is one kind of result file.
type Format struct {
	Name      string // as --format has it
	Extension string // with its dot
	Encode    func(*report.View) ([]byte, error)
}

// DefaultFormats are written where neither a format is named nor the name of the
// result does so for one.
var DefaultFormats = []string{"svg", "html"}

// Naming says which files a report becomes.
type Naming struct {
	base    string
	formats []Format
	exact   bool   // base is a device or a FIFO, and the one result
	ending  string // of the one result whose name determined its format; else the formats' extensions
}

// Base is the name without extension.
func (n Naming) Base() string { return n.base }

// File is one result file to be.
type File struct {
	Path   string
	Format Format
}

// Name reads what a user calls the results: a name that the extensions of the
// formats are added to, the name of a single file by its extension, or a device or
// FIFO that takes one format. formats may be empty. Its error is a sentence about
// the arguments.
func Name(known []Format, name string, formats []string) (Naming, error) {
	chosen, err := choose(known, formats)
	if err != nil {
		return Naming{}, err
	}
	if name == "" {
		return Naming{}, errors.New("the name of the results is empty")
	}
	if named, ok := formatOf(known, name); ok {
		if len(chosen) > 0 && (len(chosen) > 1 || chosen[0].Name != named.Name) {
			return Naming{}, fmt.Errorf("the name %s says %s, --format says %s; leave out one of them", name, named.Name, strings.Join(formats, ","))
		}
		cut := len(name) - len(named.Extension)
		return Naming{base: name[:cut], ending: name[cut:], formats: []Format{named}, exact: output.IsSpecial(name)}, nil
	}
	special := output.IsSpecial(name)
	if special && len(chosen) != 1 {
		return Naming{}, fmt.Errorf("%s takes one result: name one format with --format", name)
	}
	if info, err := os.Stat(name); !special && (strings.HasSuffix(name, "/") || filepath.Base(name) == ".." || filepath.Base(name) == "." && err == nil && info.IsDir()) {
		return Naming{}, fmt.Errorf("%s is a folder; name the results in it, such as %s", name, filepath.Join(name, "perf_output"))
	}
	if len(chosen) == 0 {
		if chosen, err = choose(known, DefaultFormats); err != nil {
			return Naming{}, err
		}
	}
	return Naming{base: name, formats: chosen, exact: special}, nil
}

// Exactly names one result by the file it goes to, whatever its extension. Without
// a format, the extension determines it; one that is not known means a page.
func Exactly(known []Format, file, format string) (File, error) {
	if format == "" {
		if named, ok := formatOf(known, file); ok {
			return File{file, named}, nil
		}
		format = "html"
	}
	chosen, err := choose(known, []string{format})
	if err != nil {
		return File{}, err
	}
	return File{file, chosen[0]}, nil
}

// formatOf is the format whose extension a name ends in: the longest one.
func formatOf(known []Format, name string) (found Format, ok bool) {
	lower := strings.ToLower(filepath.Base(name))
	for _, f := range known {
		if len(lower) > len(f.Extension) && strings.HasSuffix(lower, f.Extension) && len(f.Extension) > len(found.Extension) {
			found, ok = f, true
		}
	}
	return found, ok
}

// choose returns the formats of the given names, each once.
func choose(known []Format, names []string) ([]Format, error) {
	var chosen []Format
	for _, name := range names {
		name = strings.TrimSpace(name)
		at := slices.IndexFunc(known, func(f Format) bool { return f.Name == name })
		if at < 0 {
			return nil, fmt.Errorf("format %q is not known; there are %s", name, formatNames(known))
		}
		if !slices.ContainsFunc(chosen, func(f Format) bool { return f.Name == name }) {
			chosen = append(chosen, known[at])
		}
	}
	return chosen, nil
}

func formatNames(known []Format) string {
	var names []string
	for _, f := range known {
		names = append(names, f.Name)
	}
	return strings.Join(names, ", ")
}

// Files are the results of one report. The suffix distinguishes it from others of the run.
func (n Naming) Files(suffix string) []File {
	var files []File
	for _, f := range n.formats {
		ending := n.ending
		if ending == "" && !n.exact {
			ending = f.Extension
		}
		path := n.base + suffix + ending
		if n.exact {
			path = n.base + n.ending
		}
		files = append(files, File{path, f})
	}
	return files
}

// Check says which of the results could not be written.
func Check(files []File) error {
	for _, f := range files {
		if err := output.Check(f.Path); err != nil {
			return err
		}
	}
	return nil
}

// Show writes a report's summary to messages, the results to files, and then which were written. Its
// error says which are not where they were asked for, and where they are.
func Show(r *report.View, files []File, summary []byte, messages io.Writer) (written []string, err error) {
	messages.Write(summary)
	var results output.Results
	Write(r, files, &results)
	if len(results.Written) > 0 {
		fmt.Fprintf(messages, "omni-perf: wrote %s\n", strings.Join(results.Written, ", "))
	}
	return results.Written, results.Err()
}

// Write writes the results of a report, each for itself. A FIFO whose reader does
// not come keeps nothing waiting but itself: files are written first.
func Write(r *report.View, files []File, results *output.Results) {
	first := func(f File) int {
		if output.IsSpecial(f.Path) {
			return 1
		}
		return 0
	}
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b File) int { return first(a) - first(b) })
	for _, f := range files {
		results.PutBytes(f.Path, func() ([]byte, error) {
			content, err := f.Format.Encode(r)
			if err != nil {
				return nil, fmt.Errorf("the %s result cannot be made: %w", f.Format.Name, err)
			}
			return content, nil
		})
	}
}
