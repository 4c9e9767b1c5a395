package program

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/show/glance"
	"github.com/omni-perf/omni-perf/sidecar/show/output"
)

// Folder is where the results of a kernel's cells lie, with a page that lists them. One
// process at a time writes there. The page goes to disk whole, each time it changes.
type Folder struct {
	path  string
	made  bool // it was not there
	lock  *os.File
	index glance.Watched
}

const (
	indexName = "index.html"
	cellBase  = "cell" // of the results: cell-1.html
)

// ErrInUse is returned for a folder that somebody else writes to.
var ErrInUse = errors.New("another omni-perf writes its results there; name another folder")

// OpenFolder makes a folder, private to its user unless it is there, and takes it for
// itself.
func OpenFolder(path string) (*Folder, error) {
	if err := output.CheckFolder(path); err != nil {
		return nil, err
	}
	_, missing := os.Lstat(path)
	if err := output.MakeFolder(path); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(path, unix.O_DIRECTORY|os.O_RDONLY, 0)
	if err != nil {
		return nil, &output.PlaceError{Path: path, Reason: err}
	}
	// A file system that knows no locks is no reason to fail.
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		lock.Close()
		return nil, fmt.Errorf("%s: %w", path, ErrInUse)
	}
	if err := output.Check(filepath.Join(path, indexName)); err != nil {
		lock.Close()
		return nil, err
	}
	return &Folder{path: path, made: missing != nil, lock: lock}, nil
}

// Base is what the results in a folder are called, before their numbers.
func Base(folder string) string { return filepath.Join(folder, cellBase) }

// Close gives the folder free, and removes it if it was made for nothing.
func (f *Folder) Close() {
	if f.made {
		_ = os.Remove(f.path) // which fails where something lies in it
	}
	f.lock.Close()
}

// Page is the path of the page.
func (f *Folder) Page() string { return filepath.Join(f.path, indexName) }

// write writes the page as the index is now.
func (f *Folder) write() error {
	page, err := f.index.Page()
	if err != nil {
		return err
	}
	return output.WriteBytes(f.Page(), page)
}
