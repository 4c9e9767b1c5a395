package proctree

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// facts are what a process is known by besides its stacks.
type facts struct {
	comm       string
	arguments  []string
	executable string // empty: cannot be seen
	image      Image
	rank       int // in its environment; -1: none
}

// isPython recognises a Python by the name of what it runs.
func (f *facts) isPython() bool {
	name := path.Base(f.executable)
	if f.executable == "" && len(f.arguments) > 0 {
		name = path.Base(f.arguments[0])
	}
	return strings.HasPrefix(name, "python") || strings.HasPrefix(name, "pypy")
}

// isProfiler recognises an omni-perf, and the interpreter by which it looks at a script's syntax
// (program/command.go).
func (f *facts) isProfiler(parentRole timeline.Role) bool {
	name := f.executable
	if name == "" && len(f.arguments) > 0 {
		name = f.arguments[0]
	}
	return path.Base(name) == "omni-perf" || parentRole == timeline.RoleProfiler && f.has(markSyntax)
}

// forkOf reports whether f runs on in the program of another process, which forked it.
func (f *facts) forkOf(parent *facts) bool {
	if parent == nil {
		return false
	}
	if f.image != (Image{}) && parent.image != (Image{}) {
		return f.image == parent.image
	}
	return f.executable != "" && f.executable == parent.executable && slices.Equal(f.arguments, parent.arguments)
}

// Arguments on the command lines of processes that run a part of the program which
// started them (Lib/multiprocessing/popen_spawn_posix.py, forkserver.py,
// resource_tracker.py; joblib's loky/backend/popen_loky_posix.py).
const (
	markSpawn      = "multiprocessing.spawn"
	markSpawned    = "--multiprocessing-fork"
	markForkServer = "multiprocessing.forkserver"
	markLoky       = "loky.backend.popen_loky"
	markTracker    = "resource_tracker"
	lokyName       = "LokyProcess-"
	markSyntax     = "compile(sys.stdin.buffer.read()"
)

func (f *facts) has(mark string) bool {
	return slices.ContainsFunc(f.arguments, func(a string) bool { return strings.Contains(a, mark) })
}

// roleOf returns what a process does for the one that started it; parent is nil where
// that is not known. Pools and loaders are distinguished by their stacks only.
func roleOf(f, parent *facts, parentRole timeline.Role) (timeline.Role, *int) {
	switch {
	case f.isProfiler(parentRole):
		return timeline.RoleProfiler, nil
	case f.rank >= 0 && f.isPython() && !(parent != nil && parent.isPython() && parent.rank == f.rank):
		rank := f.rank
		return timeline.RoleRank, &rank
	case f.has(markTracker):
		return timeline.RoleTracker, nil
	case f.has(markLoky):
		return timeline.RolePoolWorker, numberOf(f, lokyName)
	case f.forkOf(parent) && parent.isPython(), f.has(markSpawn), f.has(markSpawned) && !f.has(markForkServer):
		return timeline.RoleWorker, nil
	case f.has(markForkServer):
		if parentRole == timeline.RoleForkServer {
			return timeline.RoleWorker, nil
		}
		return timeline.RoleForkServer, nil
	}
	return timeline.RoleChild, nil
}

// numberOf reads the number behind a name on a command line, as in LokyProcess-3.
func numberOf(f *facts, name string) *int {
	for _, a := range f.arguments {
		if _, rest, ok := strings.Cut(a, name); ok {
			if n, err := strconv.Atoi(rest); err == nil {
				return &n
			}
		}
	}
	return nil
}

// trackerCommand is what multiprocessing's and loky's process is called that only
// cleans up after others.
const trackerCommand = "resource_tracker"

// commandOf names what a command line runs: "pip" of "python -m pip install x".
func commandOf(arguments []string) string {
	if len(arguments) == 0 {
		return ""
	}
	name := strings.TrimPrefix(path.Base(arguments[0]), "-") // a login shell's is "-bash"
	if !strings.HasPrefix(name, "python") && !strings.HasPrefix(name, "pypy") {
		return name
	}
	for i := 1; i < len(arguments); i++ {
		switch a := arguments[i]; {
		case a == "-m" && i+1 < len(arguments) && strings.HasSuffix(arguments[i+1], ".resource_tracker"):
			return trackerCommand
		case a == "-m" && i+1 < len(arguments):
			return arguments[i+1]
		case a == "-c" && i+1 < len(arguments) && strings.Contains(arguments[i+1], "resource_tracker"):
			return trackerCommand
		case a == "-c", a == "-":
			return name
		case a == "-W", a == "-X":
			i++ // its value
		case !strings.HasPrefix(a, "-"):
			return path.Base(a)
		}
	}
	return name
}
