package activity

import (
	"slices"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// A package that is imported for another has no time of its own: "%matplotlib inline" imports matplotlib.
func TestWhatIsImportedForAnotherPackageIsOfThat(t *testing.T) {
	const second, site = timeline.Nanos(1e9), "/x/site-packages/"
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	b.Describe(func(r *timeline.Recording) {
		r.Target.Cell, r.Target.PID = &timeline.Cell{File: "/tmp/ipykernel_1/1.py", Text: "%matplotlib inline\nimport matplotlib.pyplot as plt\n"}, 1
		r.Processes = []timeline.Process{{PID: 1, Role: timeline.RoleKernel}}
	})
	id := b.Thread(timeline.Thread{PID: 1, Main: true, RunsCell: true})
	stack := func(line int, files ...string) timeline.NodeID {
		node := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "<module>", File: "/tmp/ipykernel_1/1.py", Line: line}))
		for _, file := range files {
			node = b.Child(node, b.Frame(timeline.Frame{Function: "_find_and_load", File: "<frozen importlib._bootstrap>"}))
			node = b.Child(node, b.Frame(timeline.Frame{Function: "<module>", File: site + file}))
		}
		return node
	}
	b.Set(id, 0, stack(1, "matplotlib_inline/backend_inline.py", "matplotlib/colors.py"), timeline.StatePython, false)
	b.Set(id, 2*second, stack(1, "matplotlib_inline/backend_inline.py", "matplotlib/rcsetup.py"), timeline.StatePython, false)
	b.Set(id, 3*second, stack(2, "matplotlib/pyplot.py"), timeline.StatePython, false)
	rec := b.Snapshot(5 * second)
	var names []string
	main, _ := NewStacks(rec, NewSource(rec, nil)).Explain(AnyDevice, 0)
	for _, m := range main.Modules() {
		names = append(names, m.Module)
	}
	if want := []string{"matplotlib", "matplotlib.colors", "matplotlib.pyplot", "matplotlib.rcsetup"}; !slices.Equal(names, want) {
		t.Errorf("importing took the time of %v, want %v", names, want)
	}
}
