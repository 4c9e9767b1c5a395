package snapshot

import (
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// Category says what memory is for, as far as the allocating stack shows.
type Category uint8

const (
	CategoryOther Category = iota
	CategoryParameters
	CategoryActivations
	CategoryBackward
	CategoryOptimizer
	CategoryCommunication
	CategoryData
	CategoryEarly // allocated before the history begins
	CategoryNoStack
	numCategories
)

var categoryNames = [numCategories]string{
	"other", "parameters", "activations", "backward", "optimizer", "communication", "data", "before the history", "no stack recorded",
}

func (c Category) String() string { return categoryNames[c] }

func (s *Snapshot) category(a allocation) Category {
	if a.early && a.stack == 0 {
		return CategoryEarly
	}
	return s.Category(a.stack)
}

// Category of the memory that a stack allocated.
func (s *Snapshot) Category(id StackID) Category {
	if int(id) >= len(s.categories) {
		return CategoryNoStack
	}
	return s.categories[id]
}

// categoryOf guesses by the functions on the stack. The innermost frame that
// says anything decides: an optimizer's step may run inside a backward hook, and a
// recomputed forward inside the backward pass.
func categoryOf(stack Stack, files *origin.Names) Category {
	if len(stack) == 0 {
		return CategoryNoStack
	}
	for _, f := range stack {
		var means origin.Meanings
		if f.isPython() {
			means = files.Known(f.File).Means(f.Function)
		}
		switch {
		case means&origin.Optimizes != 0:
			return CategoryOptimizer
		case means&origin.Distributes != 0, strings.Contains(f.Function, "c10d::"):
			return CategoryCommunication
		case means&origin.Loads != 0:
			return CategoryData
		case means&origin.RunsBackward != 0, strings.Contains(f.Function, "torch::autograd::Engine"):
			return CategoryBackward
		case f.Function == "forward", f.Function == "_call_impl":
			return CategoryActivations
		case means&origin.MakesParameters != 0:
			return CategoryParameters
		}
	}
	return CategoryOther
}

// isPython recognises Python's frames: their file is a source, or a name in angle
// brackets that the interpreter made up.
func (f Frame) isPython() bool {
	return strings.HasSuffix(f.File, ".py") || strings.HasPrefix(f.File, "<")
}

// machinery are parts of C++ functions' names that every allocation has: the
// unwinder that records the stack, the allocator, the making of a tensor, the
// interpreter, the beginning of a thread.
var machinery = []string{
	"unwind::unwind", "CapturedTraceback", "gather", "CachingAllocator", "CachingHostAllocator", "c10::StorageImpl", "intrusive_ptr",
	"at::detail::", "empty_cuda", "empty_strided", "empty_generic", "at::empty", "allocate", "Allocator", "raw_alloc",
	"PyEval", "PyObject", "PyFunction", "PyVectorcall", "PyRun", "Py_Run", "Py_Bytes", "PyMethod", "cfunction", "method_vectorcall",
	"_start", "__libc", "start_thread", "clone", "execute_native_thread_routine", "??",
}

// isInformative reports whether a C++ frame says anything about an allocation.
func (f Frame) isInformative() bool {
	if f.Function == "" {
		return false
	}
	for _, part := range machinery {
		if strings.Contains(f.Function, part) {
			return false
		}
	}
	return true
}

// Place is the innermost frame of the user's own code, else the innermost of
// Python, else the innermost of C++ that says anything: of a backward pass
// without Python the operation.
func (s *Snapshot) Place(id StackID) string {
	if int(id) >= len(s.Stacks) || len(s.Stacks[id]) == 0 {
		return "(no stack recorded)"
	}
	if s.places == nil {
		s.places = make([]string, len(s.Stacks))
	}
	if s.places[id] == "" {
		s.places[id] = s.place(id)
	}
	return s.places[id]
}

func (s *Snapshot) place(id StackID) string {
	if python := s.frame(id); python != nil {
		return python.String()
	}
	var native *Frame
	for _, f := range s.Stacks[id] {
		switch {
		case strings.Contains(f.Function, "Backward") && strings.Contains(f.Function, "::apply("):
			if native == nil || !strings.Contains(native.Function, "Backward") {
				native = f
			}
		case native == nil && f.isInformative():
			native = f
		}
	}
	if native != nil {
		return withoutArguments(native.Function)
	}
	return "(only torch's own C++)"
}

// withoutArguments leaves out the list of arguments of a C++ function.
func withoutArguments(function string) string {
	if i := strings.IndexByte(function, '('); i > 0 {
		return function[:i]
	}
	return function
}

// Trace writes a stack as one line, innermost frame first, without what every
// allocation has.
func (s *Snapshot) Trace(id StackID) string {
	return strings.Join(s.FramesOf(id), " < ")
}
