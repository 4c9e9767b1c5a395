package profilestore

import (
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// training is a report of 2 s of a rank with two steps and of its loader worker.
func training(t *testing.T) *report.View {
	t.Helper()
	host, rank, number, parent := "node,7", 3, 0, 0
	states := make(report.StateTimes, report.NumStates)
	v, err := report.Check(&report.Document{
		Document: report.Kind, Version: report.Version, Generator: report.Generator{Name: "omni_perf", Version: "test"},
		StartedAt: time.Unix(1_790_000_000, 0).UTC(), DurationNS: 2e9, Hosts: []report.Host{{Name: &host}},
		Targets: []report.Target{{
			Kind: report.TargetScript, Name: "train.py", EndNS: 2e9, Sampling: report.Sampling{Text: "read", AskedNS: 1e6},
		}},
		Processes: []report.Process{
			{PID: 100, Role: "rank", Rank: &rank}, {PID: 200, Parent: &parent, Role: "loader", RoleNumber: &number, Rank: &rank},
			{PID: 300, Parent: &parent, Role: "child"},
		},
		Threads: []report.Thread{
			{NativeID: 100, Name: "MainThread", Main: true, StateNS: states},
			{Process: 1, NativeID: 200, Name: "MainThread", StateNS: states},
		},
		Files:     []report.File{{Name: "~/train.py"}},
		Functions: []report.Function{{Name: "fit", FirstLine: 1}, {Name: "load", FirstLine: 10}},
		Frames:    report.Frames{Function: report.Column{0, 1}, Line: report.Column{2, 12}},
		Nodes:     report.Nodes{Parent: report.Column{0, 0, 1}, Frame: report.Column{0, 0, 1}},
		Spans: report.Spans{
			First: report.Column{0, 1, 2}, GapUS: report.Column{0, 500_000}, LengthUS: report.Column{2_000_000, 1_000_000},
			Node: report.Column{1, 2}, State: report.Column{0, 2},
		},
		Steps:        []report.Step{{StartNS: 0, EndNS: 1e9}, {StartNS: 1e9, EndNS: 15e8}},
		Enumerations: report.Enumerations{State: []string{"python", "native", "waiting", "io", "gil", "off", "unknown"}, Code: []string{"own"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return v
}
