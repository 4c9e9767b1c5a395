package program

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/omni-perf/omni-perf/sidecar/doors/profiler"
	"github.com/omni-perf/omni-perf/sidecar/measure/gpu"
	"github.com/omni-perf/omni-perf/sidecar/measure/recorder"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// realTools record with the real collectors and write the report as JSON.
func realTools() Tools {
	noGPU := func() *gpu.Driver { return gpu.Open("") }
	return Tools{
		Recorder: func(t timeline.Target) *recorder.Recorder { return profiler.Recorder(t, "script", noGPU) },
		Analyse:  func(rec *timeline.Recording) (*report.View, error) { return report.Build(rec, nil, report.Options{}) },
		Summary:  func(*report.View) []byte { return nil },
	}
}

func write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func asJSON(r *report.View) ([]byte, error) { return json.Marshal(r.Document) }

// known are the formats of these tests.
var known = []Format{{"json", ".json", asJSON}, {"svg", ".svg", asJSON}, {"html", ".html", asJSON}, {"chrome", ".trace.json.gz", asJSON}}

// options are those of a recording whose one result is at path, as JSON.
func options(t testing.TB, messages *bytes.Buffer) (o Options, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "result.json")
	return Options{
		Results: named(t, path), Interval: time.Millisecond, FigureInterval: 50 * time.Millisecond, Messages: messages,
	}, path
}

func named(t testing.TB, name string, formats ...string) Naming {
	t.Helper()
	n, err := Name(known, name, formats)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func readReport(t testing.TB, path string) *report.View {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := jsonschema.NewCompiler().Compile("../../understand/report/report.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(document); err != nil {
		t.Error(err)
	}
	r, err := report.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func functionsOf(r *report.View) string {
	var names []string
	for _, f := range r.FunctionTimes {
		names = append(names, r.FunctionName(f.Function))
	}
	return strings.Join(names, " ")
}

const spinning = `
import sys, time
def spin(end):
    while time.perf_counter() < end:
        pass
print(sys.argv[1:], sys.stdin.read())
print("complaint", file=sys.stderr)
spin(time.perf_counter() + 0.5)
sys.exit(7)
`

func TestAScriptRunsAsWithoutUs(t *testing.T) {
	var out, complaints, messages bytes.Buffer
	o, path := options(t, &messages)
	exit, err := Run(context.Background(), realTools(), Script{
		Interpreter: truth.OnPath(t), Args: []string{write(t, "spin.py", spinning), "--epochs", "3"},
		Stdin: strings.NewReader("typed"), Stdout: &out, Stderr: &complaints,
	}, o)
	if err != nil || exit.Code != 7 {
		t.Fatalf("exit %v, %v; want 7", exit, err)
	}
	if got, want := out.String(), "['--epochs', '3'] typed\n"; got != want {
		t.Errorf("it printed %q, want %q", got, want)
	}
	if complaints.String() != "complaint\n" {
		t.Errorf("its stderr is %q", complaints.String())
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatalf("%v; messages: %s", err, &messages)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the result has mode %v; others must not read it", info.Mode())
	}
	r := readReport(t, path)
	if p := r.Processes[r.Target().Process]; r.Ended(&p) != "exit code 7" || p.EndNS == nil || *p.EndReason != "exit" {
		t.Errorf("the report says that it ended %q (%+v)", r.Ended(&p), p)
	}
	if !strings.Contains(functionsOf(r), "spin") || r.DurationNS < 5e8 {
		t.Errorf("%d ns with the functions %s; want spin within at least 0.5 s", r.DurationNS, functionsOf(r))
	}
	if !strings.Contains(messages.String(), "wrote "+path) {
		t.Errorf("messages %q do not name the result", &messages)
	}
}

// onFirst does something at the first thing that is written to it.
type onFirst struct {
	all  bytes.Buffer
	then func()
}

func (o *onFirst) Write(p []byte) (int, error) {
	defer o.then()
	return o.all.Write(p)
}

func TestASignalThatKillsTheScriptIsItsExitCode(t *testing.T) {
	var messages bytes.Buffer
	script := write(t, "kill.py", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
	o, path := options(t, &messages)
	exit, err := Run(context.Background(), realTools(), Script{Interpreter: truth.OnPath(t), Args: []string{script}}, o)
	if err != nil || exit != (Exit{128 + int(unix.SIGKILL), unix.SIGKILL}) {
		t.Errorf("exit %v, %v; want %d", exit, err, 128+unix.SIGKILL)
	}
	r := readReport(t, path)
	if p := r.Processes[0]; r.Ended(&p) != "ended by SIGKILL" {
		t.Errorf("the report says that it ended %q (%+v)", r.Ended(&p), p)
	}
}

func TestATermSignalReachesTheScript(t *testing.T) {
	var messages bytes.Buffer
	script := write(t, "term.py", `
import signal, sys, time
def term(*_):
    print("term"); sys.exit(3)
signal.signal(signal.SIGTERM, term)
print("ready", flush=True)
for _ in range(6000):
    time.sleep(0.01) # a signal right before one long sleep would be handled after it
`)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	out := &onFirst{then: cancel}
	o, _ := options(t, &messages)
	exit, err := Run(ctx, realTools(), Script{Interpreter: truth.OnPath(t), Args: []string{script}, Stdout: out}, o)
	if err != nil || exit.Code != 3 || !strings.HasSuffix(out.all.String(), "term\n") {
		t.Errorf("exit %v, %v, output %q; want the script's own handler: 3", exit, err, out.all.String())
	}
}

func TestWhatCannotBeRunIsSaid(t *testing.T) {
	var messages bytes.Buffer
	o, _ := options(t, &messages)
	nowhere := o
	nowhere.Results = named(t, "/no/such/folder/result", "json")
	ran := filepath.Join(t.TempDir(), "ran")
	script := write(t, "x.py", fmt.Sprintf("open(%q, 'w')\n", ran))
	for name, c := range map[string]struct {
		script Script
		o      Options
		want   string
	}{
		"no interpreter": {Script{Interpreter: "/no/such/python", Args: []string{script}}, o, "/no/such/python"},
		"no place":       {Script{Interpreter: truth.OnPath(t), Args: []string{script}}, nowhere, "there is no folder /no/such/folder"},
	} {
		exit, err := Run(context.Background(), realTools(), c.script, c.o)
		if err == nil || exit.Code != ExitNotStarted || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: exit %v, %v; want 127 and a sentence with %s", name, exit, err, c.want)
		}
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("the script ran all the same")
	}
}

func TestAttachWatchesARunningProcess(t *testing.T) {
	script := write(t, "loop.py", "def loop():\n    while True: pass\nprint('ready', flush=True)\nloop()\n")
	cmd := exec.Command(truth.OnPath(t), script)
	ready, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	if _, err := ready.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	var messages bytes.Buffer
	o, path := options(t, &messages)
	if err := Attach(context.Background(), realTools(), cmd.Process.Pid, 300*time.Millisecond, o); err != nil {
		t.Fatal(err)
	}
	r := readReport(t, path)
	if !strings.Contains(functionsOf(r), "loop") || len(r.Target().Argv) != 2 {
		t.Errorf("functions %s, argv %v; want loop of loop.py", functionsOf(r), r.Target().Argv)
	}
	if cmd.ProcessState != nil {
		t.Error("the process did not survive being watched")
	}
}

func TestAttachEndsWithTheProcess(t *testing.T) {
	cmd := exec.Command(truth.OnPath(t), "-c", "import time; time.sleep(0.7)")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go cmd.Wait()
	for profiler.Attempt(cmd.Process.Pid) != nil {
		time.Sleep(5 * time.Millisecond)
	}
	var messages bytes.Buffer
	o, path := options(t, &messages)
	if err := Attach(context.Background(), realTools(), cmd.Process.Pid, time.Hour, o); err != nil {
		t.Fatal(err)
	}
	readReport(t, path)
}

func TestAttachToNothingIsSaid(t *testing.T) {
	var messages bytes.Buffer
	o, _ := options(t, &messages)
	err := Attach(context.Background(), realTools(), 1<<22+1, time.Second, o)
	if err == nil || !strings.Contains(err.Error(), "no process") {
		t.Errorf("error %v, want one that says there is no process", err)
	}
}
