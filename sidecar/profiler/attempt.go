package profiler

import (
	"errors"
	"io/fs"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/pystack"
	"github.com/omni-perf/omni-perf/sidecar/recorder"
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

// attach is pystack.Attach with the errors that package recorder knows.
func attach(pid int, o pystack.Options) (*pystack.Process, error) {
	process, err := pystack.Attach(pid, o)
	switch {
	case errors.Is(err, pystack.ErrPermission):
		return nil, permissionError{err}
	case errors.Is(err, pystack.ErrStarting), errors.Is(err, pystack.ErrNotPython):
		return nil, notYet{err}
	}
	return process, err
}

// notYet is what a process says that may become Python.
type notYet struct{ error }

func (e notYet) Is(target error) bool { return target == recorder.ErrNotYet }
func (e notYet) Unwrap() error        { return e.error }

// permissionError is a refusal that the target may take back.
type permissionError struct{ error }

func (e permissionError) Is(target error) bool { return target == fs.ErrPermission }
func (e permissionError) Unwrap() error        { return e.error }
