package profiler

import (
	"errors"
	"io/fs"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/pystack"
)

// Attempt reads a process's stacks once, for a check of what works. It waits a
// second for an interpreter that is starting. An error that is fs.ErrPermission may
// go away when the process grants access.
func Attempt(pid int) error {
	process, err := attach(pid, pystack.Options{Wait: time.Second})
	if err != nil {
		return err
	}
	defer process.Close()
	_, err = process.Snapshot()
	return err
}

// attach is pystack.Attach with the error that package recorder knows.
func attach(pid int, o pystack.Options) (*pystack.Process, error) {
	process, err := pystack.Attach(pid, o)
	if errors.Is(err, pystack.ErrPermission) {
		return nil, permissionError{err}
	}
	return process, err
}

// permissionError is a refusal that the target may take back.
type permissionError struct{ error }

func (e permissionError) Is(target error) bool { return target == fs.ErrPermission }
func (e permissionError) Unwrap() error        { return e.error }
