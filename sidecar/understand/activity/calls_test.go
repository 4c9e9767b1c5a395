package activity

import (
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

func TestPublicNamesLeaveOutALibrarysOwnClasses(t *testing.T) {
	for function, want := range map[string]string{
		"read_csv":                         "read_csv",
		"DataFrame.apply":                  "DataFrame.apply",
		"_BaseKMeans.fit_predict":          "fit_predict",
		"_LocationIndexer.__setitem__":     "__setitem__",
		"Outer._Inner.method":              "Outer.method",
		"_private":                         "_private",
		"Popen.communicate":                "Popen.communicate",
		"_InactiveRpcError._Code.__call__": "__call__",
	} {
		if got := publicName(function); got != want {
			t.Errorf("%s: got %q, want %q", function, got, want)
		}
	}
}

// What a decorator made is on the way to the function that was asked for, whatever its name.
func TestWhatALineCalled(t *testing.T) {
	packages := "/usr/lib/python3.11/site-packages/"
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	node := timeline.RootNode
	for _, f := range []timeline.Frame{
		{Function: "<module>", File: "/home/u/train.py", Line: 9},
		{Function: "Optimizer.profile_hook_step.<locals>.wrapper", File: packages + "torch/optim/optimizer.py", Line: 560},
		{Function: "no_grad", File: packages + "torch/utils/_contextlib.py", Line: 158},
		{Function: "LBFGS.step", File: packages + "torch/optim/lbfgs.py", Line: 330},
	} {
		node = b.Child(node, b.Frame(f))
	}
	rec := b.Snapshot(1)
	s := NewStacks(rec, NewSource(rec, nil))
	call, own := s.callFrom(s.Stack(node), Place{"/home/u/train.py", 9})
	if want := (Call{Package: "torch", Function: "LBFGS.step"}); call != want || own {
		t.Errorf("%+v, of its own %v; want %+v", call, own, want)
	}
}
