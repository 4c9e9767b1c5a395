package timeline

import (
	"cmp"
	"slices"
	"time"
)

// Process is the target or one of its descendants.
type Process struct {
	PID, Parent int // ids; a pid that was used again has two entries
	ParentIndex int // in Recording.Processes, of the process that started it; -1: not known
	Role        Role
	Number      *int    // among those of its role that lived at a time, as its owner counts: "DataLoader worker 3"
	Rank        *int    // distributed rank, of the process or of the one that started it; nil: none is known
	Command     string  // what it runs in one word: "pip", "ffmpeg"; empty where it could not be read
	Start       Nanos   // negative: before the recording
	End         Nanos   // when it was found to have ended; 0: it was alive to the last
	CPU         Nanos   // that it and its own dead children used during the recording; -1 unknown
	Exit        *int    // how it ended: its exit code, or 128 and the signal; nil where it is not known
	Signal      int     // that ended it; 0: none, or it is not known
	Raised      *Raised // the exception that ended its Python program; nil: none, or it is not known
	Stacks      StackReading
	Memory      ProcessMemory
}

// Raised is an exception that nothing in a program has caught.
type Raised struct {
	Type, Message string     // its message's first line, where that was read
	Stack         []RaisedAt // the innermost call first
}

// RaisedAt is a line of a traceback.
type RaisedAt struct {
	File string // co_filename
	Line int
}

// ProcessMemory is what is known of a process's memory beside its track. The zero value of each:
// not known.
type ProcessMemory struct {
	Growth GrowthReading
	// Peak is the most that was resident in the process's whole life, as the kernel kept it: it
	// is there for a process that was waited for.
	Peak int64
	// AtBegin and AtEnd are what was resident when the recorded cell began, and when it ended: of a short cell
	// Growth begins too late to know.
	AtBegin, AtEnd int64
	// Own and Proportional are what was the process's own at the end (USS), and that with its
	// part of the memory that it shares (PSS).
	Own, Proportional int64
}

// Role is what a process does for the one that was recorded.
type Role string

// The roles. Those of the target are RoleKernel, RoleScript, RoleProcess and those of engines' workers.
const (
	RoleKernel       Role = "kernel"
	RoleScript       Role = "script"
	RoleProcess      Role = "process"
	RoleRank         Role = "rank"          // a distributed run's
	RolePoolWorker   Role = "pool-worker"   // multiprocessing.Pool, concurrent.futures, joblib
	RoleLoaderWorker Role = "loader-worker" // torch.utils.data.DataLoader
	RoleWorker       Role = "worker"        // runs a part of the program that started it
	RoleForkServer   Role = "fork-server"   // multiprocessing's, which workers are forked from
	RoleTracker      Role = "tracker"       // cleans up after others: multiprocessing's and loky's resource trackers
	RoleProfiler     Role = "profiler"      // omni-perf within the program, as in front of each rank: in nobody's profile
	RoleChild        Role = "child"         // another program

	RoleDaskWorker Role = "dask-worker"        // of the engine Dask
	RoleRayWorker  Role = "ray-worker"         // of Ray
	RoleEngine     Role = "ipyparallel-engine" // of ipyparallel
)

// EngineRoles are what a process is to an engine that hands tasks to it.
var EngineRoles = []Role{RoleDaskWorker, RoleRayWorker, RoleEngine}

// OfEngine reports whether it is that of a process to which an engine hands tasks.
func (r Role) OfEngine() bool { return slices.Contains(EngineRoles, r) }

// IsWorker recognises a process that runs a part of the target's program.
func (p *Process) IsWorker() bool {
	switch p.Role {
	case RoleRank, RolePoolWorker, RoleLoaderWorker, RoleWorker:
		return true
	}
	return false
}

// IsDescendant recognises a process that the target, or a process of its, has started.
func (p *Process) IsDescendant() bool {
	return p.IsWorker() || p.Role == RoleChild || p.Role == RoleForkServer || p.Role == RoleTracker
}

// StackReading says whether the Python stacks of a process were read, and how.
type StackReading struct {
	Reason   NoStacks      // why they were not; StacksRead where they were
	Detail   string        // what the system said, where that adds something; for people
	Interval time.Duration // between two reads, on average; 0 where they were not read
	Samples  int64         // ticks at which they were read …
	Reads    int64         // … stacks of single threads …
	Lost     int64         // … of them without a usable frame …
	Cut      int64         // … and cut to their sure prefix
	Last     Nanos         // when they were known for the last time; 0: they were not
	Gone     Nanos         // when reading them showed that the process had ended; 0: it did not
}

// SeenBefore is how long before its end the stacks of a process were known for the last time, at most; 0: that is not
// known. Its memory is gone first: to free much of it takes the system a while.
func (p *Process) SeenBefore() Nanos {
	if p.Stacks.Last == 0 || p.End == 0 {
		return 0
	}
	return max(cmp.Or(p.Stacks.Gone, p.End)-p.Stacks.Last, 1)
}

// TargetSeenBefore is how long before its end the stacks of the target were known for the last time; 0: that is not known.
func (r *Recording) TargetSeenBefore() Nanos {
	if len(r.Processes) == 0 {
		return 0
	}
	return r.Processes[0].SeenBefore()
}

// NoStacks is why the stacks of a process were not read.
type NoStacks string

// The reasons. The zero value: of the process nothing was said.
const (
	StacksUnknown     NoStacks = ""
	StacksRead        NoStacks = "read"
	StacksNotAsked    NoStacks = "not-asked" // --children tracks
	StacksNotPython   NoStacks = "not-python"
	StacksDenied      NoStacks = "permission"  // the kernel refuses to let us read it
	StacksUnsupported NoStacks = "unsupported" // a Python that cannot be read from outside
	StacksTooShort    NoStacks = "too-short"   // it ended before it could be looked at
	StacksTooMany     NoStacks = "too-many"    // more processes than are kept apart
	StacksFailed      NoStacks = "failed"
)
