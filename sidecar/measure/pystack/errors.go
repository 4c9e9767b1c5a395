package pystack

import (
	"errors"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
)

// What a caller decides on; the errors returned wrap one of these and say more.
var (
	// ErrNotPython: no CPython runtime in the process.
	ErrNotPython = errors.New("no CPython in this process")
	// ErrPermission: the kernel refuses to let us read the process.
	ErrPermission = errors.New("not permitted to read the process's memory")
	// ErrUnsupported: a CPython whose layout is not known.
	ErrUnsupported = cpython.ErrUnsupported
	// ErrFreeThreaded: a CPython without GIL.
	ErrFreeThreaded = cpython.ErrFreeThreaded
	// ErrStarting: the interpreter is not yet initialized, or no longer; try again in
	// a moment.
	ErrStarting = errors.New("CPython is still starting in this process, or has shut down")
	// ErrGone: the process has ended.
	ErrGone = errors.New("the process has ended")
	// ErrReplaced: the process runs another program than the one attached to.
	ErrReplaced = errors.New("the process runs another program now")
)
