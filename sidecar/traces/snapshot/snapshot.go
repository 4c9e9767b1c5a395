// Package snapshot reads what torch.cuda.memory._dump_snapshot writes and reports
// where device memory went: over time, at the peak, in fragments.
//
// In flows a pickle of plain data (protocols 2 to 5, gzip or not), out flow a
// Snapshot and tables. A pickle is a program; this
// reader refuses every instruction that names or calls anything, so that a
// foreign file cannot run code or use more memory than its size justifies.
package snapshot

import (
	"fmt"

	"github.com/omni-perf/omni-perf/sidecar/measure/targetfs"
	"github.com/omni-perf/omni-perf/sidecar/traces/place"
)

// Snapshot is the state of PyTorch's caching allocator and its history.
type Snapshot struct {
	Segments []Segment
	Devices  []Device // histories, by device index; some may be empty
	Host     Device   // the history of pinned host memory (record_pinned_host_memory=True)
	Stacks   []Stack  // interned; Stacks[0] is empty: nothing was recorded
	// Notes say what the file does not contain or what was left out.
	Notes []string

	categories []Category // by StackID
	places     []string   // likewise; "" where nobody has asked yet
}

// StackID indexes Snapshot.Stacks.
type StackID uint32

// Stack is where an allocation was made, innermost frame first.
type Stack []*Frame

// Frame is one Python or C++ function at a line. Of C++ the file may be a shared
// library and the line an offset in it.
type Frame struct {
	File, Function string
	Line           int64
}

func (f Frame) String() string {
	if !f.isPython() {
		return f.Function
	}
	return place.Place{File: f.File, Line: int(f.Line), Function: f.Function}.String()
}

// HostMemory is the number of the device that pinned host memory counts as.
const HostMemory = -1

// DeviceName names a device in the tables.
func DeviceName(device int) string {
	if device == HostMemory {
		return "pinned host memory"
	}
	return fmt.Sprintf("device %d", device)
}

// Segment is a piece of memory the allocator got from the driver.
type Segment struct {
	Device  int
	Address int64
	Total   int64  // bytes
	Kind    string // "small" or "large"
	Stream  int64
	// Expandable segments grow in place and return single pages.
	Expandable bool
	Blocks     []Block
}

// BlockState is what a block of a segment is used for.
type BlockState uint8

const (
	Inactive     BlockState = iota // free for reuse
	Active                         // used by a tensor
	AwaitingFree                   // freed, but a stream has still to finish with it
)

// Block is a part of a segment. Size is what it takes, Requested what the
// program asked for.
type Block struct {
	Address         int64
	Size, Requested int64
	State           BlockState
	Stack           StackID
}

// Device is the history of one device: the newest events, since the allocator
// keeps a ring of them.
type Device struct {
	Events []Event
}

// Action is what happened to a piece of memory.
type Action uint8

const (
	Alloc         Action = iota
	FreeRequested        // the tensor is gone
	FreeCompleted        // no stream needs it any more
	SegmentAlloc         // got from the driver
	SegmentFree          // given back to the driver
	OutOfMemory
	OtherAction // snapshot, annotate and what may come
)

var actions = map[string]Action{
	"alloc": Alloc, "free_requested": FreeRequested, "free_completed": FreeCompleted, "free": FreeCompleted,
	"segment_alloc": SegmentAlloc, "segment_map": SegmentAlloc,
	"segment_free": SegmentFree, "segment_unmap": SegmentFree, "oom": OutOfMemory,
}

// (torch 2.15 also writes snapshot and annotate, which change nothing.)

// Event is one entry of a history. Size of Alloc and Free is what the program
// asked for, of segments what they take.
type Event struct {
	TimeUs  int64 // µs since the epoch; 0 in files of PyTorch before 2.2
	Address int64
	Size    int64
	Stack   StackID
	Action  Action
}

// Free is what was free on the device, in bytes, of OutOfMemory: torch writes it in place of the address.
func (e Event) Free() int64 { return e.Address }

// ReadFile reads a snapshot within the default limits.
func ReadFile(path string) (*Snapshot, error) {
	f, err := targetfs.OpenRegular(path) // what lies in a folder may be a FIFO
	if err != nil {
		return nil, fmt.Errorf("reading the memory snapshot: %w", err)
	}
	defer f.Close()
	s, err := Read(f, Limits{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}
