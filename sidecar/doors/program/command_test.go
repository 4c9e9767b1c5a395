package program

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

func TestWhatACommandLineRuns(t *testing.T) {
	script := write(t, "train.py", "")
	executable := func(name, text string) string {
		path := write(t, name, text)
		if err := os.Chmod(path, 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	interpreter, itself := executable("python", "\x7fELF\x02"), executable("train", "#!/usr/bin/env python3\n")
	for name, k := range map[string]struct {
		interpreter  string
		python, what []string
		program      string // end of it
		args, says   string
	}{
		"a script":              {what: []string{script, "-o"}, args: script + " -o"},
		"with options":          {python: []string{"-I"}, what: []string{script}, args: "-I " + script},
		"a module":              {what: []string{"-m", "x"}, args: "-m x"},
		"standard input":        {args: ""},
		"a program":             {what: []string{"sh", "-c", "x"}, program: "/sh", args: "-c x"},
		"a path to python":      {what: []string{interpreter, "x.py"}, program: "/python", args: "x.py"},
		"a shell script":        {what: []string{executable("start", "#!/bin/sh\n"), "x"}, program: "/start", args: "x"},
		"an executable script":  {what: []string{itself}, args: itself},
		"python by another":     {interpreter: "python3", what: []string{interpreter}, says: "--interpreter"},
		"by an interpreter":     {interpreter: "python3", what: []string{"sh"}, says: "--interpreter"},
		"with python's options": {python: []string{"-u"}, what: []string{"sh"}, says: "options of python"},
		"nothing of that name":  {what: []string{"no-such-program-here"}, says: "no program of that name on PATH"},
		"no such script":        {what: []string{"none.py", "x"}, args: "none.py x"}, // python says so
	} {
		s, err := Resolve(k.interpreter, k.python, k.what)
		var refused *Refused
		switch {
		case k.says != "":
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), k.says) || refused.Code != 2 {
				t.Errorf("%s: %v, want a refusal that says %q", name, err, k.says)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case !strings.HasSuffix(s.Program, k.program) || (s.Program == "") != (k.program == "") || strings.Join(s.Args, " ") != k.args:
			t.Errorf("%s: %q %q, want %q %q", name, s.Program, s.Args, k.program, k.args)
		}
	}
}

// runOf runs a command line and returns the names of the files that are there then.
func runOf(t *testing.T, o Options, what ...string) (exit Exit, files []string, stderr string, err error) {
	t.Helper()
	folder := t.TempDir()
	json := Format{Name: "json", Extension: ".json", Encode: func(r *report.View) ([]byte, error) { return []byte("{}"), nil }}
	naming, err := Name([]Format{json}, filepath.Join(folder, "out"), []string{"json"})
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	o.Results, o.Messages, o.Interval, o.FigureInterval = naming, &said, time.Millisecond, 50*time.Millisecond
	s, err := Resolve("", nil, what)
	if err != nil {
		t.Fatal(err)
	}
	if s.Program == "" {
		s.Interpreter = truth.OnPath(t)
	}
	var out bytes.Buffer
	s.Stderr, s.Stdout = &out, &out
	exit, err = Run(context.Background(), realTools(), s, o)
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		files = append(files, e.Name())
	}
	return exit, files, out.String() + said.String(), err
}

func TestWrongSyntaxIsSaidBeforeAnythingRuns(t *testing.T) {
	_, files, said, err := runOf(t, Options{}, write(t, "wrong.py", "print('ran')\ndef f(:\n"))
	var refused *Refused
	if !errors.As(err, &refused) || refused.Code != 1 || len(files) != 0 {
		t.Errorf("%v, files %q", err, files)
	}
	if !strings.Contains(said, "SyntaxError") || !strings.Contains(said, "line 2") || strings.Contains(said, "ran") {
		t.Errorf("it said %q", said)
	}
}

func TestALauncherIsExecutedAsItIs(t *testing.T) {
	exit, files, said, err := runOf(t, Options{}, "sh", "-c", "sleep 0.3; exit 7")
	if exit.Code != 7 || err != nil || len(files) != 1 {
		t.Errorf("exit %+v, %v, files %q; it said %s", exit, err, files, said)
	}
}

func TestResultsOfARankHaveItsNumber(t *testing.T) {
	_, files, _, err := runOf(t, Options{Rank: &timeline.Rank{Global: 3, World: 4}}, write(t, "x.py", "pass\n"))
	if err != nil || len(files) != 1 || files[0] != "out.rank3.json" {
		t.Errorf("files %q, %v", files, err)
	}
}

func TestAReportIsWrittenWhileTheScriptRuns(t *testing.T) {
	script := write(t, "x.py", `
import glob, sys, time
end = time.monotonic() + 20
while not glob.glob(sys.argv[1] + "/*/out.json") and time.monotonic() < end:
    time.sleep(0.05)
sys.exit(4 if time.monotonic() < end else 5)
`)
	exit, files, said, err := runOf(t, Options{PartialEvery: 300 * time.Millisecond}, script, filepath.Dir(t.TempDir()))
	if exit.Code != 4 || err != nil || len(files) != 1 {
		t.Errorf("exit %+v, %v, files %q; it said %s", exit, err, files, said)
	}
}
