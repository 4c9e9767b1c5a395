package report_test

import (
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// A launcher that an exception of its own ended is described by that of the rank which failed; who caught
// the exception after all, or ended otherwise, was not ended by it.
func TestHowAProgramEnded(t *testing.T) {
	raised := func(kind string, stack ...timeline.RaisedAt) *timeline.Raised {
		return &timeline.Raised{Type: kind, Message: "because", Stack: stack}
	}
	library := timeline.RaisedAt{File: "/v/lib/python3.12/site-packages/torch/nn/linear.py", Line: 9}
	own := timeline.RaisedAt{File: "/home/u/train.py", Line: 31}
	one, two := 1, 2
	for name, c := range map[string]struct {
		target, rank *timeline.Raised
		exit         *int
		how, message string
	}{
		"own line":     {raised("ValueError", library, own), nil, &one, "ended by ValueError at train.py:31", "because"},
		"none":         {nil, nil, &one, "exit code 1", ""},
		"no own line":  {raised("RuntimeError", library), nil, &one, "ended by RuntimeError", "because"},
		"ended apart":  {raised("ValueError", own), nil, &two, "exit code 2", ""},
		"no exit code": {raised("ValueError", own), nil, nil, "ended by ValueError at train.py:31", "because"},
		"a rank":       {raised("ChildFailedError", library), raised("ValueError", own), &one, "rank 1 ended by ValueError at train.py:31", "because"},
		"spawned":      {raised("ProcessRaisedException", own), raised("KeyError", own), &one, "rank 1 ended by KeyError at train.py:31", "because"},
		"torchrun's":   {raised("ChildFailedError", own), raised("KeyError", own), &one, "rank 1 ended by KeyError at train.py:31", "because"},
		"spawned only": {raised("ProcessRaisedException", own), nil, &one, "ended by ProcessRaisedException at train.py:31", "because"},
		"no line":      {raised("ValueError", timeline.RaisedAt{File: "/home/u/train.py", Line: -1}), nil, &one, "ended by ValueError", "because"},
	} {
		number := 1
		rec := &timeline.Recording{
			Duration: 1e9, Target: timeline.Target{PID: 7, Argv: []string{"torchrun", "/home/u/train.py"}},
			Processes: []timeline.Process{
				{PID: 7, ParentIndex: -1, Role: timeline.RoleScript, Exit: c.exit, End: 9e8, Raised: c.target},
				{PID: 8, Parent: 7, Role: timeline.RoleRank, Rank: &number, Number: &number, Raised: c.rank},
			},
		}
		r, err := report.Build(rec, &diagnose.Diagnosis{}, report.Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if how, message := r.HowItEnded(); how != c.how || message != c.message {
			t.Errorf("%s: %q, %q; want %q, %q", name, how, message, c.how, c.message)
		}
	}
}
