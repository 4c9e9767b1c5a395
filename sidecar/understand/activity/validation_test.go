package activity

import (
	"slices"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// trainingText is a cell whose stacks are made line by line.
type trainingText struct {
	*timeline.Builder
}

func newTrainingText(text string) trainingText {
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	b.Describe(func(r *timeline.Recording) {
		r.Sources = []timeline.Source{{File: cellFile, Text: text}}
		r.Target.Cell, r.Target.PID = &timeline.Cell{File: cellFile, Text: text}, 7
		r.Processes = []timeline.Process{{PID: 7}}
	})
	return trainingText{b}
}

// at is a stack of the cell's own functions, the outermost first, each with the line that it is at.
func (b trainingText) at(calls ...timeline.Frame) (node timeline.NodeID) {
	for _, f := range calls {
		if f.File == "" {
			f.File = cellFile
		}
		f.FirstLine = max(f.FirstLine, 1)
		node = b.Child(node, b.Frame(f))
	}
	return node
}

// What is written around and in the loops that people validate in; of each line of a program the phase, by what it calls:
// a loader's batch, the model, its gradients.
func TestEvaluationsAsPeopleWriteThem(t *testing.T) {
	const training = "for x, y in train:\n    loss(model(x)).backward()\n" // lines 1 and 2
	module := func(line int) timeline.Frame { return timeline.Frame{Function: "<module>", Line: line} }
	in := func(function string, first, line int) timeline.Frame {
		return timeline.Frame{Function: function, FirstLine: first, Line: line}
	}
	type stack []timeline.Frame
	next := timeline.Frame{Function: "_BaseDataLoaderIter.__next__", File: site + "torch/utils/data/dataloader.py", Line: 5}
	model := timeline.Frame{Function: "Module._call_impl", File: torchModule, Line: 5}
	backward := timeline.Frame{Function: "Tensor.backward", File: site + "torch/_tensor.py", Line: 5}
	for _, c := range []struct {
		name, text    string
		batch, passes stack // of the evaluation
		trains        stack // beside the first two lines, with batches and gradients; empty: none
		want          bool
	}{
		{"a generator expression", "with torch.no_grad():\n    v = sum(model(x) for x, y in val)", stack{module(4), in("<genexpr>", 4, 4)}, stack{module(4), in("<genexpr>", 4, 4)}, nil, true},
		{"in the header's line", "with torch.no_grad(): v = sum(model(x) for x, y in val)", stack{module(3), in("<genexpr>", 3, 3)}, stack{module(3), in("<genexpr>", 3, 3)}, nil, true},
		{"a comprehension that has no function", "with torch.no_grad():\n    v = torch.cat([\n        model(x)\n        for x, y in val\n    ])", stack{module(6)}, stack{module(5)}, nil, true},
		{"one in a decorated function", "@torch.inference_mode()\ndef predict(loader):\n    return [model(x) for x in loader]\npredict(val)",
			stack{module(6), in("predict", 3, 5), in("<listcomp>", 5, 5)}, stack{module(6), in("predict", 3, 5), in("<listcomp>", 5, 5)}, nil, true},
		{"a comprehension with gradients", "v = sum(model(x) for x, y in val)", stack{module(3), in("<genexpr>", 3, 3)}, stack{module(3), in("<genexpr>", 3, 3)}, nil, false},
		{"a header of several lines", "with (\n    torch.no_grad(),\n    autocast(device),\n):\n    for x in val:\n        model(x)", stack{module(7)}, stack{module(8)}, nil, true},
		{"below the loop", "for x in val:\n    with torch.no_grad():\n        model(x)", stack{module(3)}, stack{module(5)}, nil, true},
		{"a teacher's pass in a training", "for x in train:\n    with torch.no_grad():\n        y = teacher(x)\n    loss(model(x), y).backward()", stack{module(3)}, stack{module(5)}, stack{module(6)}, false},
		{"by a value, below the loop", "def epoch(loader, train):\n    for x in loader:\n        with torch.set_grad_enabled(train):\n            l = model(x)\n        if train: l.backward()\nepoch(train, True)\nepoch(val, False)",
			stack{module(9), in("epoch", 3, 4)}, stack{module(9), in("epoch", 3, 6)}, stack{module(8), in("epoch", 3, 7)}, true},
		{"whose training the same line calls", "def epoch(loader, train):\n    for x in loader:\n        with torch.set_grad_enabled(train):\n            l = model(x)\n        if train: l.backward()\nepoch(train, True), epoch(val, False)",
			stack{module(8), in("epoch", 3, 4)}, stack{module(8), in("epoch", 3, 6)}, stack{module(8), in("epoch", 3, 7)}, false},
		{"with gradients always", "def epoch(loader):\n    for x in loader:\n        with torch.set_grad_enabled(True):\n            l = model(x)\nepoch(train)", stack{module(7), in("epoch", 3, 4)}, stack{module(7), in("epoch", 3, 6)}, nil, false},
		{"without a word of it, as another line's training has gradients", "def epoch(loader, opt=None):\n    for x in loader:\n        l = model(x)\n        if opt: l.backward()\nepoch(train, opt)\nepoch(val)",
			stack{module(8), in("epoch", 3, 4)}, stack{module(8), in("epoch", 3, 5)}, stack{module(7), in("epoch", 3, 6)}, true},
		{"a model that evaluates", "model.eval()\nfor x in val:\n    model(x)", stack{module(4)}, stack{module(5)}, nil, true},
		{"and trains again", "model.eval()\nmodel.train()\nfor x in val:\n    model(x)", stack{module(5)}, stack{module(6)}, nil, false},
		{"a plain loop", "for x in val:\n    losses += model(x)", stack{module(3)}, stack{module(4)}, nil, false},
		{"a function of any name", "def score(loader):\n    for x in loader:\n        model(x)\nwith torch.no_grad():\n    score(val)", stack{module(7), in("score", 3, 4)}, stack{module(7), in("score", 3, 5)}, nil, true},
		{"one batch that a block takes", "with torch.no_grad():\n    x = next(batches)\n    y = teacher(x)", stack{module(4)}, stack{module(5)}, nil, false},
		{"a choice of two", "with nullcontext() if train else torch.no_grad():\n    for x in val:\n        model(x).backward()", stack{module(4)}, stack{module(5)}, stack{module(5)}, false},
		{"inference mode that is off", "with torch.inference_mode(False):\n    for x in val:\n        model(x)", stack{module(4)}, stack{module(5)}, nil, false},
	} {
		b := newTrainingText(training + c.text)
		id := b.Thread(timeline.Thread{PID: 7, Main: true, RunsCell: true})
		below := func(s stack, leaf timeline.Frame) timeline.NodeID { return b.at(append(slices.Clone(s), leaf)...) }
		nodes := []timeline.NodeID{below(c.batch, next), below(c.passes, model), below(stack{module(1)}, next), below(stack{module(2)}, model), below(stack{module(2)}, backward)}
		if c.trains != nil {
			nodes = append(nodes, below(c.trains, backward))
		}
		for i, node := range nodes {
			b.Set(id, timeline.Nanos(i)*sec, node, timeline.StatePython, false)
		}
		rec := b.Snapshot(timeline.Nanos(len(nodes)) * sec)
		phases := NewStacks(rec, NewSource(rec, nil)).nodePhases()
		for i, want := range []origin.Phase{origin.Loading, origin.Forward, origin.Loading, origin.Forward, origin.Backward, origin.Backward}[:len(nodes)] {
			if i < 2 && c.want {
				want = origin.Evaluation
			}
			if got := phases[nodes[i]]; got != want {
				t.Errorf("%s: %d is %v, want %v", c.name, i, got, want)
			}
		}
	}
}

// A loop that sleeps, or waits, shows its model in few of its samples, or in none: behind model.eval() it is an evaluation all the same,
// with all its time. Statistics of a dataset are none.
func TestAModelThatEvaluatesNeedNotBeSeen(t *testing.T) {
	for text, want := range map[string]origin.Phase{
		"model.eval()\nwith torch.no_grad():\n    for x in val: model(x); sleep(1)\nmodel.train()": origin.Evaluation,
		"pass\nwith torch.no_grad():\n    for x in val: total += x.sum(); sleep(1)\n":              origin.OtherPhase,
	} {
		b := newTrainingText("loss(model(next(train))).backward()\n" + text)
		id := b.Thread(timeline.Thread{PID: 7, Main: true, RunsCell: true})
		line := func(n int) timeline.Frame { return timeline.Frame{Function: "<module>", Line: n} }
		loop := b.at(line(4))
		for i, node := range []timeline.NodeID{
			b.at(line(1), timeline.Frame{Function: "Tensor.backward", File: site + "torch/_tensor.py", Line: 5}),
			b.at(line(4), timeline.Frame{Function: "_BaseDataLoaderIter.__next__", File: site + "torch/utils/data/dataloader.py", Line: 5}), loop,
		} {
			b.Set(id, timeline.Nanos(i)*sec, node, timeline.StatePython, false)
		}
		rec := b.Snapshot(3 * sec)
		if got := NewStacks(rec, NewSource(rec, nil)).nodePhases()[loop]; got != want {
			t.Errorf("%q: the sleep is %v, want %v", text, got, want)
		}
	}
}

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
	b := newTrainingText(text)
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
