package activity

import (
	"fmt"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// A loop that trains and validates by turns has the same stacks in both: batches that no gradients follow are validated with.
func TestALoopThatTrainsAndValidatesByTurns(t *testing.T) {
	const (
		loader = site + "torch/utils/data/dataloader.py"
		text   = `for phase in ["train", "val"]:
    for x, y in loaders[phase]:
        optimizer.zero_grad()
        with %s:
            loss = criterion(model(x), y)
            if %s:
                %sloss.backward()
                optimizer.step()
        total += loss.item()
`
	)
	phases := func(with, condition, line, happened string, steps []timeline.Nanos) string {
		b := timeline.NewBuilder(timeline.Options{Origin: 1})
		b.Describe(func(r *timeline.Recording) {
			r.Sources = []timeline.Source{{File: cellFile, Text: fmt.Sprintf(text, with, condition, line)}}
			r.Target.Cell, r.Target.PID = &timeline.Cell{File: cellFile, Text: r.Sources[0].Text}, 7
			r.Processes = []timeline.Process{{PID: 7}}
		})
		id := b.Thread(timeline.Thread{PID: 7, Main: true, RunsCell: true})
		in := func(line int, function, file string) timeline.NodeID {
			cell := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "<module>", File: cellFile, Line: line, FirstLine: 1}))
			if function == "" {
				return cell
			}
			return b.Child(cell, b.Frame(timeline.Frame{Function: function, File: file, Line: 5, FirstLine: 4}))
		}
		nodes := map[rune]timeline.NodeID{
			'l': in(2, "_BaseDataLoaderIter.__next__", loader), 'z': in(3, "Optimizer.zero_grad", site+"torch/optim/optimizer.py"),
			'f': in(5, "Module._call_impl", torchModule), 'b': in(7, "Tensor.backward", site+"torch/_tensor.py"),
			'o': in(8, "Optimizer.profile_hook_step.<locals>.wrapper", site+"torch/optim/optimizer.py"), '.': in(9, "", ""),
		}
		for i, what := range happened {
			b.Set(id, timeline.Nanos(i)*sec, nodes[what], timeline.StatePython, false)
		}
		for _, end := range steps {
			b.Mark(timeline.Mark{Kind: "step", Start: (end - 1) * sec, End: end * sec, Source: timeline.StepOptimizer})
		}
		rec := b.Snapshot(timeline.Nanos(len(happened)) * sec)
		letters := map[origin.Phase]string{
			origin.Loading: "l", origin.ZeroGrad: "z", origin.Forward: "f", origin.Backward: "b", origin.Optimizer: "o",
			origin.OtherPhase: ".", origin.Evaluation: "E", origin.StartUp: ".",
		}
		var got strings.Builder
		for _, p := range NewStacks(rec, NewSource(rec, nil)).Phases(&rec.Threads[0]) {
			got.WriteString(strings.Repeat(letters[p.Phase], int((p.End-p.Start)/sec)))
		}
		return got.String()
	}
	const (
		byTurns  = `torch.set_grad_enabled(phase == "train")`
		training = `phase == "train"`
		happened = "lzfbo.lzfbo.lzfbo.lzf.lzf.lzf.lzfbo.lzfbo."
		few      = "lfbolfbolflfbolfbolfbolfbolflfbolfbolfbolfbolflfbo"
		turns    = "lzfbo.lzfbo.lzfbo.EEEEEEEEEEE.lzfbo.lzfbo."
	)
	for _, test := range []struct {
		name, with, condition, happened, want, line string
		steps                                       []timeline.Nanos
	}{
		{"a validation between two epochs", byTurns, training, happened, turns, "", nil},
		{"and at the end, with what follows it", byTurns, training,
			"lzfbo.lzfbo.lzfbo.lf.lf.lf..", "lzfbo.lzfbo.lzfbo.EEEEEEEE..", "", nil},
		{"whose last batch no stack shows the begin of", byTurns, training,
			"lzfbo.lzfbo.lzfbo.lzf.lzf.fff.ffff.fbo.", "lzfbo.lzfbo.lzfbo.EEEEEEEEEEEEEEEE.fbo.", "", nil},
		{"one long step is none", byTurns, training,
			"lzfbo.lzfbo.lzfbo.lzffffffbo.lzfbo.", "lzfbo.lzfbo.lzfbo.lzffffffbo.lzfbo.", "", nil},
		{"what came before the first step is not known", byTurns, training,
			"lzf.lzf.lzfbo.lzfbo.", "lzf.lzf.lzfbo.lzfbo.", "", nil},
		{"gradients that several batches add up to are a training's", "torch.set_grad_enabled(True)", "n % 4 == 3", happened, happened, "", nil},
		{"without a word of gradients", "autocast(device)", training, happened, turns, "", nil},
		{"by two managers of contexts", "torch.enable_grad() if training else torch.no_grad()", "training", happened, turns, "", nil},
		{"in the line itself", "autocast(device)", "scaler", happened, turns, `if phase == "train": `, nil},
		{"a batch whose gradients no stack shows, which the hook has seen", byTurns, training,
			"lzfbo.lzfbo.lzfbo.lzf.lzfffbo.lzfbo.", "lzfbo.lzfbo.lzfbo.lzf.lzfffbo.lzfbo.", "", []timeline.Nanos{5, 11, 17, 21, 29, 35}},
		{"short steps of which the stacks show the wait for their batches alone", byTurns, training,
			"lzfbo.lzfbo.lzfbo.llllllzf.lzf.lzf.lzfbo.lzfbo.", "lzfbo.lzfbo.lzfbo.llllEEEEEEEEEEEE.lzfbo.lzfbo.", "", []timeline.Nanos{5, 11, 17, 20, 22, 40, 46}},
		{"and a validation between its steps", byTurns, training, happened, turns, "", []timeline.Nanos{5, 11, 17, 35, 41}},
		{"where few readings show all of a step", byTurns, training, few + "lflflflfbo" + few, few + "EEEEEElfbo" + few, "", nil},
	} {
		if got := phases(test.with, test.condition, test.line, test.happened, test.steps); got != test.want {
			t.Errorf("%s:\n%s got\n%s want\n%s", test.name, test.happened, got, test.want)
		}
	}
}
