package pystack

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/requirement"
	"github.com/omni-perf/omni-perf/sidecar/testkit/retry"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// loaderPass is a pass over a loader as testdata/loads.py reports it.
type loaderPass struct {
	Batch, Workers   int
	DropLast, Stream bool
	Samples          int64
	Asked            [][2]int64 // CLOCK_MONOTONIC of each call of the iterator: its begin and end
}

// A stand-in has what is read of torch's loader, on each interpreter.
func TestBatchesOfALoaderAreRead(t *testing.T) {
	truth.EachInterpreter(t, func(t *testing.T, python truth.Interpreter) {
		folder := t.TempDir() // an interpreter in a container has its own files, but for these
		if err := os.CopyFS(folder, os.DirFS("testdata/standin")); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PYTHONPATH", folder)
		retry.Again(t, func(t *retry.Attempt) { checkLoaders(t, python.Path) })
	})
}

func TestBatchesOfTorchsLoaderAreRead(t *testing.T) {
	python, err := filepath.Abs("../../../.cache/torch/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(python); err != nil {
		requirement.Missing(t, requirement.Torch, "there is no PyTorch in .cache/torch; tools/torch makes it")
	}
	retry.Again(t, func(t *retry.Attempt) { checkLoaders(t, python) })
}

// checkLoaders goes over loaders and compares what was read with what the program reports.
func checkLoaders(t *retry.Attempt, python string) {
	t.Helper()
	var want []loaderPass
	source, err := os.ReadFile("testdata/loads.py")
	if err != nil {
		t.Fatal(err)
	}
	rec := recordAnswer(t, exec.Command(python, "-c", string(source)), &want)
	numbers, seen, known := make(map[int]int), make([]int, len(want)), make([]int64, len(want))
	for _, r := range rec.Batches {
		at := rec.Origin + int64(r.At)
		pass, call := findCall(want, at)
		if pass < 0 {
			t.Errorf("reading at %d is in no call of an iterator", r.At)
			continue
		}
		w, l := &want[pass], rec.Loaders[r.Loader]
		l.Process, l.Thread, l.ID = 0, 0, 0
		if expected := (timeline.Loader{Batch: w.Batch, Workers: w.Workers, Prefetch: 2 * min(w.Workers, 1), DropLast: w.DropLast, Stream: w.Stream}); l != expected {
			t.Errorf("pass %d is over %+v, want %+v", pass, l, expected)
		}
		if r.Yielded != int64(call) {
			t.Errorf("pass %d: %d batches at the call after %d", pass, r.Yielded, call)
		}
		if number, ok := numbers[r.Pass]; ok && number != pass {
			t.Errorf("passes %d and %d are taken for one", number, pass)
		}
		numbers[r.Pass] = pass
		seen[pass]++
		known[pass] = max(known[pass], r.Samples)
	}
	if len(numbers) != len(want) {
		t.Errorf("%d passes, want %d", len(numbers), len(want))
	}
	for i, w := range want {
		if took := w.Asked[len(w.Asked)-1][1] - w.Asked[0][0]; int64(3*seen[i]+3) < took/loaderEvery {
			t.Errorf("pass %d has %d readings in %.3f s", i, seen[i], float64(took)/1e9)
		}
		if known[i] != w.Samples {
			t.Errorf("pass %d has %d samples, want %d", i, known[i], w.Samples)
		}
	}
}

// An attribute that is not what torch has there is not known; nothing is read of an iterator that counts no batches.
func TestAttributesThatAreNotTorchs(t *testing.T) {
	truth.EachInterpreter(t, func(t *testing.T, python truth.Interpreter) {
		if python.Build == "container" {
			t.Skip("it has its own files")
		}
		t.Setenv("PYTHONPATH", "testdata/standin")
		retry.Again(t, func(t *retry.Attempt) { checkWrongLoaders(t, python.Path) })
	})
}

func checkWrongLoaders(t *retry.Attempt, python string) {
	t.Helper()
	var wrong []struct {
		Name         string
		Began, Ended int64
	}
	rec := recordAnswer(t, exec.Command(python, "testdata/wrongloads.py"), &wrong)
	read := make(map[string]int)
	for _, r := range rec.Batches {
		at, l := rec.Origin+int64(r.At), rec.Loaders[r.Loader]
		for _, w := range wrong {
			if at < w.Began || at > w.Ended {
				continue
			}
			read[w.Name]++
			good := l.Batch == 2
			switch w.Name {
			case "_dataset_kind", "_index_sampler":
				good = l.Batch == 0
			case "_sampler_iter":
				good = good && r.Samples == 0
			}
			if !good || r.Yielded != 0 || l.Workers != 0 || l.Stream {
				t.Errorf("with another %s: %+v of %+v", w.Name, r, l)
			}
		}
	}
	if read["_num_yielded"] != 0 || read["_base_seed"] == 0 || read["_index_sampler"] == 0 || read["_sampler_iter"] == 0 {
		t.Errorf("readings by what is wrong: %v", read)
	}
}

// findCall returns the pass, and the number of the call in it, that a time is in; -1: it is in none.
func findCall(passes []loaderPass, at int64) (pass, call int) {
	for i := range passes {
		for n, asked := range passes[i].Asked {
			if at >= asked[0] && at <= asked[1] {
				return i, n
			}
		}
	}
	return -1, -1
}
