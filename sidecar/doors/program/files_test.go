package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/show/output"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

func pathsOf(files []File) string {
	var paths []string
	for _, f := range files {
		paths = append(paths, f.Path+"="+f.Format.Name)
	}
	return strings.Join(paths, " ")
}

func TestNamesOfResults(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	fifo := filepath.Join(dir, "fifo")
	if err := errors.Join(unix.Mkfifo(fifo, 0o600), unix.Mkfifo(fifo+".svg", 0o600), os.Mkdir("out", 0o700)); err != nil {
		t.Skip(err)
	}
	for _, c := range []struct{ name, formats, want, numbered string }{
		{"perf", "", "perf.svg=svg perf.html=html", "perf-3.svg=svg perf-3.html=html"},
		{"perf", "json", "perf.json=json", "perf-3.json=json"},
		{"perf", "json, html,json", "perf.json=json perf.html=html", ""},
		{"out", "", "out.svg=svg out.html=html", ""},
		{"out/perf", "svg", "out/perf.svg=svg", ""},
		{"v1.2", "", "v1.2.svg=svg v1.2.html=html", ""},
		{".svg", "", ".svg.svg=svg .svg.html=html", ""},
		{"perf.svg", "", "perf.svg=svg", "perf-3.svg=svg"},
		{"perf.SVG", "", "perf.SVG=svg", "perf-3.SVG=svg"},
		{"perf.svg", "svg", "perf.svg=svg", ""},
		{"perf.json", "", "perf.json=json", ""},
		{"perf.trace.json.gz", "", "perf.trace.json.gz=chrome", "perf-3.trace.json.gz=chrome"},
		{fifo, "json", fifo + "=json", fifo + "=json"},
		{fifo + ".svg", "", fifo + ".svg=svg", fifo + ".svg=svg"},
		{"/dev/stdout", "json", "/dev/stdout=json", "/dev/stdout=json"},
		{"/dev/null", "html", "/dev/null=html", ""},
	} {
		var formats []string
		if c.formats != "" {
			formats = strings.Split(c.formats, ",")
		}
		n, err := Name(known, c.name, formats)
		if err != nil {
			t.Errorf("%s, %q: %v", c.name, c.formats, err)
			continue
		}
		if got := pathsOf(n.Files("")); got != c.want {
			t.Errorf("%s, %q: %s, want %s", c.name, c.formats, got, c.want)
		}
		if got := pathsOf(n.Files("-3")); c.numbered != "" && got != c.numbered {
			t.Errorf("%s, %q, third cell: %s, want %s", c.name, c.formats, got, c.numbered)
		}
	}
	for _, c := range []struct{ name, formats, want string }{
		{"", "", "is empty"},
		{"perf", "docx", `format "docx" is not known; there are json, svg, html, chrome`},
		{"perf.svg", "html", "the name perf.svg says svg, --format says html; leave out one of them"},
		{"perf.svg", "svg,html", "says svg"},
		{"out/", "", "out/ is a folder; name the results in it, such as out/perf_output"},
		{".", "", ". is a folder"},
		{"..", "", ".. is a folder"},
		{"/dev/stdout", "", "/dev/stdout takes one result: name one format with --format"},
		{fifo, "svg,html", "takes one result"},
	} {
		var formats []string
		if c.formats != "" {
			formats = strings.Split(c.formats, ",")
		}
		if _, err := Name(known, c.name, formats); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %q: %v, want %q", c.name, c.formats, err, c.want)
		}
	}
}

func TestExactlyNamesAFileWhateverItsExtension(t *testing.T) {
	for _, c := range []struct{ file, format, want string }{
		{"page", "", "html"}, {"a.json", "", "json"}, {"a.json", "svg", "svg"}, {"a.trace.json.gz", "", "chrome"},
	} {
		if f, err := Exactly(known, c.file, c.format); err != nil || f.Format.Name != c.want || f.Path != c.file {
			t.Errorf("%s, %q: %+v, %v; want %s", c.file, c.format, f, err, c.want)
		}
	}
}

func TestAFIFOWithoutReaderKeepsNoOtherResultWaiting(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "r")
	if err := unix.Mkfifo(name+".svg", 0o600); err != nil {
		t.Skip(err)
	}
	done := make(chan output.Results, 1)
	go func() {
		var results output.Results
		Write(&report.View{Document: &report.Document{}}, named(t, name, "svg", "json").Files(""), &results)
		done <- results
	}()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(name + ".json"); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the file waits for a reader of the FIFO beside it")
		}
	}
	passed, err := os.ReadFile(name + ".svg")
	if err != nil || !json.Valid(passed) {
		t.Errorf("the FIFO passed on %d bytes, %v", len(passed), err)
	}
	if results := <-done; results.Err() != nil {
		t.Error(results.Err())
	}
}

// Everything is in order when the script starts; it spoils its result's place
// itself.
func TestTheScriptsExitCodeIsKeptAndTheResultSaved(t *testing.T) {
	for _, c := range []struct {
		name, spoil string // Python, with the result's path in p
		lost        bool
	}{
		{"its folder is gone", "shutil.rmtree(os.path.dirname(p))", false},
		{"a folder is in its place", "os.mkdir(p)", false},
		{"a link is in its place", "os.symlink('/etc/passwd', p)", false},
		{"nowhere else to go", "shutil.rmtree(os.path.dirname(p)); os.rmdir(os.environ['TMPDIR'])", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			elsewhere := filepath.Join(t.TempDir(), "tmp")
			if err := os.Mkdir(elsewhere, 0o700); err != nil {
				t.Fatal(err)
			}
			t.Setenv("TMPDIR", elsewhere)
			var messages bytes.Buffer
			o, path := options(t, &messages)
			script := write(t, "spoil.py", "import os, shutil, sys\np = sys.argv[1]\n"+c.spoil+"\nsys.exit(7)\n")
			exit, err := Run(context.Background(), realTools(), Script{Interpreter: truth.OnPath(t), Args: []string{script, path}}, o)
			if exit.Code != 7 || err == nil || !strings.Contains(err.Error(), "cannot write "+path) {
				t.Fatalf("exit %v, %v; want 7 and what is wrong", exit, err)
			}
			saved, _ := filepath.Glob(filepath.Join(elsewhere, "*", "result.json"))
			if c.lost {
				return
			}
			if len(saved) != 1 || !strings.Contains(err.Error(), "saved as "+saved[0]) {
				t.Fatalf("saved as %v; said: %v", saved, err)
			}
			readReport(t, saved[0])
		})
	}
}

func TestABugInTheReportDoesNotCostTheExitCode(t *testing.T) {
	var messages bytes.Buffer
	o, _ := options(t, &messages)
	tools := realTools()
	tools.Summary = func(*report.View) []byte { panic("index out of range") }
	exit, err := Run(context.Background(), tools, Script{Interpreter: truth.OnPath(t), Args: []string{"-c", "raise SystemExit(7)"}}, o)
	if exit.Code != 7 || err == nil || !strings.Contains(err.Error(), "a bug of omni_perf: index out of range") {
		t.Errorf("exit %v, %v", exit, err)
	}
}

// brokenPipe is a stream whose reader has left.
func brokenPipe(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	t.Cleanup(func() { w.Close() })
	return w
}

// TestMain lets the test binary be a program that runs a script with the
// arguments and writes its result to the file in the environment.
func TestMain(m *testing.M) {
	path := os.Getenv("OMNI_PERF_TEST_RESULT")
	if path == "" {
		os.Exit(m.Run())
	}
	naming, err := Name(known, path, nil)
	if err != nil {
		panic(err)
	}
	tools := realTools()
	tools.Summary = func(*report.View) []byte { return []byte("summary\n") }
	exit, _ := Run(context.Background(), tools, Script{Args: os.Args[1:]}, Options{
		Results: naming, Interval: time.Millisecond, FigureInterval: time.Second, Messages: os.Stderr,
	})
	os.Exit(exit.Code)
}

func TestMessagesThatNobodyReadsCostNeitherResultNorExitCode(t *testing.T) {
	truth.OnPath(t)
	path := filepath.Join(t.TempDir(), "result.json")
	cmd := exec.Command(os.Args[0], "-c", "raise SystemExit(7)")
	cmd.Env = append(os.Environ(), "OMNI_PERF_TEST_RESULT="+path)
	cmd.Stderr = brokenPipe(t)
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("%v, want exit code 7", err)
	}
	readReport(t, path)
}
