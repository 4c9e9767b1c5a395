package activity

import (
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// A validation in a plain loop is an evaluation by its text; an average of weights, a rollout and the training are none.
func TestAPlainLoopsValidationIsAnEvaluation(t *testing.T) {
	const (
		loader = site + "torch/utils/data/dataloader.py"
		text   = `for epoch in range(3):
    for x, y in train:
        loss(model(x), y).backward()
    with torch.no_grad():
        for x, y in val:
            model(x)
    with torch.no_grad():
        for p in model.parameters(): average(p)
    for t in range(9):
        with torch.no_grad():
            model(state)
    with torch.no_grad():
        for t in range(9):
            state = model(state)
    check(val)
    with torch.set_grad_enabled(False):
        for x, y in val: model(x)
@torch.no_grad()
def check(loader):
    for x, y in loader:
        model(x)
@torch.no_grad()
def draw(n):
    for i in range(n):
        model(i)
def epoch(loader, train):
    with torch.set_grad_enabled(train):
        for x, y in loader:
            loss = model(x)
            if train: loss.backward()
epoch(train, True)
epoch(val, False)
`
	)
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	b.Describe(func(r *timeline.Recording) {
		r.Sources = []timeline.Source{{File: cellFile, Text: text}}
		r.Target.Cell, r.Target.PID = &timeline.Cell{File: cellFile, Text: text}, 7
		r.Processes = []timeline.Process{{PID: 7}}
	})
	id := b.Thread(timeline.Thread{PID: 7, Main: true, RunsCell: true})
	cell := func(line int) timeline.NodeID {
		return b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "<module>", File: cellFile, Line: line, FirstLine: 1}))
	}
	in := func(parent timeline.NodeID, function, file string) timeline.NodeID {
		return b.Child(parent, b.Frame(timeline.Frame{Function: function, File: file, Line: 5, FirstLine: 4}))
	}
	next := func(parent timeline.NodeID) timeline.NodeID {
		return in(parent, "_BaseDataLoaderIter.__next__", loader)
	}
	model := func(parent timeline.NodeID) timeline.NodeID {
		return in(parent, "Module._call_impl", torchModule)
	}
	function := func(name string, called, first, line int) timeline.NodeID {
		return b.Child(cell(called), b.Frame(timeline.Frame{Function: name, File: cellFile, Line: line, FirstLine: first}))
	}
	check := func(line int) timeline.NodeID { return function("check", 15, 18, line) }
	for i, want := range []struct {
		node  timeline.NodeID
		phase origin.Phase
	}{
		{next(cell(2)), origin.Loading}, {model(cell(3)), origin.Forward}, {in(cell(3), "Tensor.backward", site+"torch/_tensor.py"), origin.Backward},
		{next(cell(5)), origin.Evaluation}, {model(cell(6)), origin.Evaluation}, {cell(6), origin.Evaluation},
		{cell(8), origin.OtherPhase}, {model(cell(11)), origin.Forward}, {model(cell(14)), origin.Forward},
		{next(check(20)), origin.Evaluation}, {model(check(21)), origin.Evaluation},
		{model(function("draw", 16, 22, 25)), origin.Forward},
		{next(cell(17)), origin.Evaluation}, {model(cell(17)), origin.Evaluation},
		{next(function("epoch", 31, 26, 28)), origin.Loading}, {model(function("epoch", 31, 26, 29)), origin.Forward},
		{in(function("epoch", 31, 26, 30), "Tensor.backward", site+"torch/_tensor.py"), origin.Backward},
		{next(function("epoch", 32, 26, 28)), origin.Evaluation}, {model(function("epoch", 32, 26, 29)), origin.Evaluation},
	} {
		b.Set(id, timeline.Nanos(i)*sec, want.node, timeline.StatePython, false)
		defer func() {
			rec := b.Snapshot(20 * sec)
			if got := NewStacks(rec, NewSource(rec, nil)).nodePhases()[want.node]; got != want.phase {
				t.Errorf("%d: %v, want %v", i, got, want.phase)
			}
		}()
	}
}
