package profiler

import (
	"errors"
	"io/fs"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/pystack"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
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

// mainTries is how often a stack that changes under the read is tried again.
const mainTries = 20

// MainStack reads the stack of a process's main thread once, root first.
func MainStack(pid int) ([]timeline.Frame, error) {
	process, err := attach(pid, pystack.Options{})
	if err != nil {
		return nil, err
	}
	defer process.Close()
	for try := 0; ; try++ {
		threads, err := process.Snapshot()
		if err != nil {
			return nil, err
		}
		for _, t := range threads {
			if !t.Main || len(t.Frames) == 0 && try < mainTries {
				continue
			}
			stack := make([]timeline.Frame, len(t.Frames))
			for i, f := range t.Frames {
				stack[i] = timeline.Frame{Function: f.Function, File: f.File, Line: f.Line}
			}
			return stack, nil
		}
		if try == mainTries {
			return nil, errors.New("the stack of its main thread changes too fast to be read")
		}
		time.Sleep(time.Millisecond)
	}
}

// NotebookCell reads the cell that runs on a kernel's main thread, as IPython has it:
// pystack.NotebookCell says what that is worth.
func NotebookCell(pid int) (text string, executionCount int, err error) {
	process, err := attach(pid, pystack.Options{})
	if err != nil {
		return "", 0, err
	}
	defer process.Close()
	cell, err := process.NotebookCell()
	return cell.Text, cell.ExecutionCount, err
}
