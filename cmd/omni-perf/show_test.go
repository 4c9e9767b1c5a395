package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/omni-perf/omni-perf/sidecar/show/answers"
)

const reportFile = "../../sidecar/understand/report/testdata/script.json"

func TestShowSaysWhatAReportHas(t *testing.T) {
	for _, test := range []struct {
		args string
		want []string
	}{
		{"show " + reportFile, []string{"The GPU waited 0.24 of 0.40 s for data", "Where the GPU waited"}},
		{"show " + reportFile + " --what lines", []string{"~/project/train.py:3  60 ms  15 %"}},
		{"show " + reportFile + " --what stretch --from 0.1 --to 0.2", []string{"from 0.10 s to 0.20 s", "GPU 0 idle  65 ms  65 %"}},
		{"show --what idle --all " + reportFile, []string{"data loading in this thread  0.24 s  92 %"}},
	} {
		stdout, stderr, code := invoke(t, test.args)
		for _, want := range test.want {
			if code != exitOK || stderr != "" || !strings.Contains(stdout, want) {
				t.Errorf("%s: status %d, %q, no %q in\n%s", test.args, code, stderr, want, stdout)
			}
		}
	}
	stdout, _, code := invoke(t, "show "+reportFile+" --what lines --json")
	var a answers.Answer
	if err := json.Unmarshal([]byte(stdout), &a); err != nil || code != exitOK || len(a.Rows) != 4 || *a.Rows[0].Seconds != 0.24 {
		t.Errorf("status %d, %v: %+v", code, err, a)
	}
}

func TestShowRefusesWhatMakesNoSense(t *testing.T) {
	for args, want := range map[string]string{
		"show":                                "name a report",
		"show " + reportFile + " --what cost": "--what takes one of headline, findings",
		"show " + reportFile + " --from 3":    "--from and --to go with --what stretch",
		"show " + reportFile + " --what stretch --from 0.3 --to 0.2": "there is no stretch from",
	} {
		stdout, stderr, code := invoke(t, args)
		if code == exitOK || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%s: status %d, %q, %q; want %q", args, code, stdout, stderr, want)
		}
	}
}

// The server as an agent starts it: a process that speaks the protocol on its standard input
// and output, and ends when they are closed.
func TestAnAgentAsksOverPipes(t *testing.T) {
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), "OMNI_PERF_TEST_ARGS=mcp")
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: command}, nil)
	if err != nil {
		t.Fatal(err)
	}
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "headline", Arguments: map[string]any{"report": reportFile}})
	if err != nil || result.IsError {
		t.Fatalf("%v, %+v", err, result)
	}
	if text := result.Content[0].(*mcp.TextContent).Text; !strings.Contains(text, "The GPU waited 0.24 of 0.40 s for data") {
		t.Errorf("it answers %q", text)
	}
	if err := session.Close(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}
