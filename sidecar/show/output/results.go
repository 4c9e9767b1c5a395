package output

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Results writes the results of one run: each for itself, so that one that fails
// does not lose the others. What cannot be written where it was asked for goes to a
// temporary folder, for the run may have taken hours. The zero value is ready; one
// goroutine.
type Results struct {
	Written []string // as asked for, in order
	Failed  []Failure

	folder    string // for what found no place; made when it is needed
	folderErr error
}

// Failure is a result that is not where it was asked for.
type Failure struct {
	Path  string
	Err   error
	Saved string // where it is instead; empty: it is lost
}

// Put writes one result, a file or a folder, by a function that gets the path. The
// function may be called again with another one.
func (r *Results) Put(path string, write func(path string) error) {
	err := guard(func() error { return write(path) })
	if err == nil {
		r.Written = append(r.Written, path)
		return
	}
	failure := Failure{Path: path, Err: err}
	var place *PlaceError
	if errors.As(err, &place) {
		saved, serr := r.elsewhere(path)
		if serr == nil {
			serr = guard(func() error { return write(saved) })
		}
		if serr == nil {
			failure.Saved = saved
		} else {
			failure.Err = errors.Join(err, serr)
		}
	}
	r.Failed = append(r.Failed, failure)
}

// PutBytes writes one file, whose content is made once.
func (r *Results) PutBytes(path string, make func() ([]byte, error)) {
	make = sync.OnceValues(make)
	r.Put(path, func(path string) error {
		content, err := make()
		if err != nil {
			return err
		}
		return WriteBytes(path, content)
	})
}

// guard makes an error of a panic: a bug in one format is no reason to lose all.
func guard(write func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a bug of omni_perf: %v", p)
		}
	}()
	return write()
}

// elsewhere is a path for a result in the temporary folder.
func (r *Results) elsewhere(path string) (string, error) {
	if r.folder == "" && r.folderErr == nil {
		r.folder, r.folderErr = os.MkdirTemp("", "omni-perf-results-") // 0700
	}
	if r.folderErr != nil {
		return "", fmt.Errorf("no temporary folder could be made: %w", r.folderErr)
	}
	name := filepath.Base(path)
	if IsSpecial(path) || name == "/" || name == "." || name == ".." {
		name = "result" + filepath.Ext(name)
	}
	saved := filepath.Join(r.folder, name)
	for n := 2; ; n++ { // two results of one name, from two folders
		if _, err := os.Lstat(saved); err != nil {
			return saved, nil
		}
		saved = filepath.Join(r.folder, fmt.Sprintf("%d-%s", n, name))
	}
}

// Err is nil when every result is where it was asked for, else a Failures.
func (r *Results) Err() error {
	if len(r.Failed) == 0 {
		return nil
	}
	return Failures(r.Failed)
}

// Failures is the error of a run some of whose results are not where they were
// asked for.
type Failures []Failure

func (f Failures) Error() string {
	var parts []string
	for _, each := range f {
		parts = append(parts, each.String())
	}
	return strings.Join(parts, "; ")
}

func (f Failures) Unwrap() []error {
	var errs []error
	for _, each := range f {
		errs = append(errs, each.Err)
	}
	return errs
}

func (f Failure) String() string {
	text := strings.ReplaceAll(f.Err.Error(), "\n", "; ")
	if f.Saved != "" {
		return fmt.Sprintf("%s; it was saved as %s instead", text, f.Saved)
	}
	return text
}
