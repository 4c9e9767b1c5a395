package activity

import (
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// A function that jax.jit has compiled has frames while it is traced only: what it did then says what the same line does later, below
// the same callers.
func TestACompiledStepIsKnownByItsTrace(t *testing.T) {
	b := newTrainingText("for x in batches:\n    state, loss = step(state, x)\n    print(float(loss))\n    v = score(state, x)\n    w = eval_step(state, x)\nfor x in more:\n    loss = float(step(state, x)[1])\n    restep(x), sgd.step(x)\n")
	id := b.Thread(timeline.Thread{PID: 7, Main: true, RunsCell: true})
	module := func(line int) timeline.Frame { return timeline.Frame{Function: "<module>", Line: line} }
	lib := func(file, function string) timeline.Frame {
		return timeline.Frame{File: site + file, Function: function, Line: 5}
	}
	wrapper, call := lib("jax/_src/traceback_util.py", "reraise_with_filtered_traceback"), lib("jax/_src/pjit.py", "_cpp_pjit.<locals>.cache_miss")
	traces := lib("jax/_src/interpreters/partial_eval.py", "trace_to_jaxpr_dynamic")
	waits := lib("jax/_src/array.py", "ArrayImpl._value")
	nodes := []struct {
		node timeline.NodeID
		want origin.Phase
		what string
	}{
		{b.at(module(2), wrapper, call, traces, timeline.Frame{Function: "step", Line: 9}, lib("jax/_src/api.py", "value_and_grad.<locals>.value_and_grad_f")), origin.Compilation, "it is traced"},
		{b.at(module(2), wrapper, call), origin.CompiledStep, "it is called from Python"},
		{b.at(module(2)), origin.CompiledStep, "it is called again"},
		{b.at(module(3), waits), origin.CompiledStep, "the loss is waited for"},
		{b.at(module(3), lib("tqdm/std.py", "tqdm.set_postfix"), waits), origin.CompiledStep, "a progress bar waits for it"},
		{b.at(module(3), lib("tqdm/std.py", "tqdm.set_postfix")), origin.Logging, "a progress bar"},
		{b.at(module(4), wrapper, call, traces, timeline.Frame{Function: "score", Line: 9}), origin.Compilation, "another function is traced"},
		{b.at(module(4)), origin.OtherPhase, "nobody knows what for"},
		{b.at(module(5), wrapper, call, traces, timeline.Frame{Function: "eval_step", Line: 9}), origin.Compilation, "an evaluation is traced"},
		{b.at(module(5)), origin.Evaluation, "and called again"},
		{b.at(module(7)), origin.CompiledStep, "it is called in another line"},
		{b.at(module(7), wrapper, call), origin.CompiledStep, "from Python"},
		{b.at(module(8)), origin.OtherPhase, "the name of another function"},
		{b.at(module(1), timeline.Frame{Function: "run", Line: 1}), origin.OtherPhase, "the line of another function"},
	}
	for i, n := range nodes {
		b.Set(id, timeline.Nanos(i)*sec, n.node, timeline.StatePython, false)
	}
	rec := b.Snapshot(timeline.Nanos(len(nodes)) * sec)
	phases := NewStacks(rec, NewSource(rec, nil)).nodePhases()
	for _, n := range nodes {
		if got := phases[n.node]; got != n.want {
			t.Errorf("%s: %v, want %v", n.what, got, n.want)
		}
	}
}

// In a cell that runs again nothing is traced.
func TestAStepThatAnotherCellHasTracedIsKnownByItsName(t *testing.T) {
	for _, waits := range []timeline.Frame{{File: site + "jax/_src/array.py", Function: "ArrayImpl._value", Line: 5}, {File: site + "torch/_tensor.py", Function: "Tensor.__float__", Line: 5}} {
		b := newTrainingText("for x in batches:\n    state, loss = train_step(state, x)\n    print(float(loss))\n    eval_step(state, x)\n")
		id := b.Thread(timeline.Thread{PID: 7, Main: true, RunsCell: true})
		step, wait, eval := b.at(timeline.Frame{Function: "<module>", Line: 2}), b.at(timeline.Frame{Function: "<module>", Line: 3}, waits), b.at(timeline.Frame{Function: "<module>", Line: 4})
		for i, node := range []timeline.NodeID{step, wait, eval} {
			b.Set(id, timeline.Nanos(i)*sec, node, timeline.StatePython, false)
		}
		rec := b.Snapshot(3 * sec)
		phases := NewStacks(rec, NewSource(rec, nil)).nodePhases()
		got, want := [3]origin.Phase{phases[step], phases[wait], phases[eval]}, [3]origin.Phase{}
		if strings.Contains(waits.File, "jax") {
			want = [3]origin.Phase{origin.CompiledStep, origin.CompiledStep, origin.Evaluation}
		}
		if got != want {
			t.Errorf("%s: %v, want %v", waits.Function, got, want)
		}
	}
}

// A framework's function waits for the result in a line after the one that calls.
func TestAFrameworksFunctionIsACallerWithAllOfItsLines(t *testing.T) {
	b := newTrainingText("model, loss = step(model, x)\n")
	id := b.Thread(timeline.Thread{PID: 7, Main: true, RunsCell: true})
	at := func(line int, more ...timeline.Frame) timeline.NodeID {
		return b.at(append([]timeline.Frame{{Function: "<module>", Line: 1}, {File: site + "equinox/_jit.py", Function: "_call", Line: line}}, more...)...)
	}
	traced := at(250, timeline.Frame{File: site + "jax/_src/pjit.py", Function: "cache_miss", Line: 5}, timeline.Frame{File: site + "optax/_src/update.py", Function: "apply_updates", Line: 5})
	waits := at(260)
	b.Set(id, 0, traced, timeline.StatePython, false)
	b.Set(id, sec, waits, timeline.StatePython, false)
	rec := b.Snapshot(2 * sec)
	if got := NewStacks(rec, NewSource(rec, nil)).nodePhases()[waits]; got != origin.CompiledStep {
		t.Errorf("the wait is %v", got)
	}
}
