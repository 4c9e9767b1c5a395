package traces

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
)

// TestRunIsLoadAndAnalyze, also with ranks that are known only at the end.
func TestRunIsLoadAndAnalyze(t *testing.T) {
	dir := t.TempDir()
	for name, rank := range map[string]string{
		"a.json": `"rank": 5`, "b.json": "", "rank2.json": "", "c.json": "cut", "rank9.json": "", "d.json": `"rank": -5`,
	} {
		text := soundTrace
		switch rank {
		case "cut":
			text = "[1"
		case "":
			text, _ = edit(`"rank": 3, `, "")
		default:
			text, _ = edit(`"rank": 3`, rank)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, opts := range []analyses.Options{{}, {Mode: analyses.HTA}, {Tables: []string{analyses.TableKernels}}} {
		opts = opts.WithDefaults()
		ranks := []int{0, 5, 2}
		set, err := kineto.Load(context.Background(), []string{dir}, kineto.Options{Ranks: ranks, Inputs: opts.Inputs(), Frame: opts.AsHTA()})
		if err != nil {
			t.Fatal(err)
		}
		run, err := Run(context.Background(), []string{dir}, kineto.Options{Ranks: ranks}, opts)
		if err != nil {
			t.Fatal(err)
		}
		if len(run.Ranks) < 2 {
			t.Errorf("got ranks %v", run.Ranks)
		}
		if got, want := textOf(run), textOf(Analyze(set, opts)); got != want {
			t.Errorf("%v: got\n%s\nwant\n%s", opts, got, want)
		}
	}
}

// textOf is all that an analysis says.
func textOf(a *Analysis) string {
	var b bytes.Buffer
	fmt.Fprintln(&b, a.Mode, a.Ranks, a.ProfilerSteps, a.Device, a.Warnings, a.Recordings)
	for _, t := range a.Tables {
		fmt.Fprintln(&b, t.Name, t.Note)
		t.WriteJSON(&b)
	}
	return b.String()
}

// TestStepsThatAreNot: a step asked for in vain is reported.
func TestStepsThatAreNot(t *testing.T) {
	set, err := kineto.Load(context.Background(), []string{filepath.Join("testdata", "parity", "cuda-steps", "trace.json.gz")}, kineto.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a := Analyze(set, analyses.Options{Steps: []int{5, 9}})
	if all := fmt.Sprint(a.Warnings); len(a.Warnings) != 1 || !strings.Contains(all, "step 9 was asked for, but no trace has it") {
		t.Errorf("got warnings %s", all)
	}
	if got := fmt.Sprint(a.ProfilerSteps); got != "map[0:[5]]" {
		t.Errorf("got steps %s", got)
	}
}

// TestNoneOfTheSteps: a run of which no step was found says which there are.
func TestNoneOfTheSteps(t *testing.T) {
	steps := filepath.Join("testdata", "parity", "cuda-steps", "trace.json.gz")
	for want, asked := range map[string][]int{
		"none of the traces has step 99; they have steps 4–6":                      {99},
		"none of the traces has step 1 or 99; they have steps 4–6":                 {1, 99},
		"none of the traces has any of the 5 steps asked for; they have steps 4–6": {90, 91, 92, 93, 94},
	} {
		if _, err := Run(context.Background(), []string{steps}, kineto.Options{}, analyses.Options{Steps: asked}); err == nil || err.Error() != want {
			t.Errorf("steps %v: got %v, want %s", asked, err, want)
		}
	}
	if _, err := Run(context.Background(), []string{steps}, kineto.Options{}, analyses.Options{Steps: []int{5, 99}}); err != nil {
		t.Errorf("with a step that there is: %v", err)
	}
}
