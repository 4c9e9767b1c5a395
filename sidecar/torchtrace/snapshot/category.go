package snapshot

import "strings"

// Category says what memory is for, as far as the allocating stack tells.
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
// tells decides: an optimizer's step may run inside a backward hook, and a
// recomputed forward inside the backward pass.
func categoryOf(stack Stack) Category {
	if len(stack) == 0 {
		return CategoryNoStack
	}
	for _, f := range stack {
		switch {
		case strings.Contains(f.File, "torch/optim/"):
			return CategoryOptimizer
		case strings.Contains(f.File, "torch/distributed/"), strings.Contains(f.Function, "c10d::"):
			return CategoryCommunication
		case strings.Contains(f.File, "torch/utils/data/"):
			return CategoryData
		case strings.Contains(f.Function, "torch::autograd::Engine"), f.Function == "_engine_run_backward",
			f.Function == "backward" && strings.Contains(f.File, "torch/"):
			return CategoryBackward
		case f.Function == "forward", f.Function == "_call_impl":
			return CategoryActivations
		case strings.Contains(f.File, "torch/nn/") && (f.Function == "_apply" || f.Function == "__init__" || f.Function == "reset_parameters"),
			strings.HasSuffix(f.File, "torch/nn/parameter.py"):
			return CategoryParameters
		}
	}
	return CategoryOther
}

// Place is the innermost frame of the user's own code, or of any code.
func (s *Snapshot) Place(id StackID) string {
	if int(id) >= len(s.Stacks) || len(s.Stacks[id]) == 0 {
		return "(no stack recorded)"
	}
	stack := s.Stacks[id]
	for _, f := range stack {
		if strings.HasSuffix(f.File, ".py") && !isLibrary(f.File) {
			return f.String()
		}
		if strings.Contains(f.File, "/ipykernel_") || strings.HasPrefix(f.File, "<ipython-") {
			return f.String()
		}
	}
	return stack[0].String()
}

func isLibrary(file string) bool {
	return strings.Contains(file, "/site-packages/") || strings.Contains(file, "/dist-packages/") ||
		strings.Contains(file, "/lib/python") || strings.HasPrefix(file, "torch/") || strings.Contains(file, "/torch/")
}

// Trace writes a stack as one line, innermost frame first.
func (s *Snapshot) Trace(id StackID) string {
	if int(id) >= len(s.Stacks) {
		return ""
	}
	var lines []string
	for _, f := range s.Stacks[id] {
		lines = append(lines, f.String())
	}
	return strings.Join(lines, " < ")
}
