package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/traces/synth"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// savedReport is the file of an empty report.
func savedReport(t testing.TB) string {
	t.Helper()
	r, err := report.Build(timeline.NewBuilder(timeline.Options{Origin: 1}).Snapshot(1e9), nil, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return savedJSON(t, "report.json", r.Document)
}

// savedJSON is the path of a new file with a document as JSON.
func savedJSON(t testing.TB, name string, document any) string {
	t.Helper()
	text, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Whatever the command writes, it writes by the rule of package output: a link is
// refused before anything is read, a file is replaced and private.
func TestEveryCommandWritesByOneRule(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // where what finds no place goes
	traces, _ := madeTraces(t)
	saved := savedReport(t)
	snapshot := filepath.Join(traces, synth.SnapshotName)
	for name, args := range map[string]string{
		"export":              "export " + saved + " --format json -o FILE",
		"export by name":      "export " + saved + " --name FILE.svg",
		"export --format csv": "export " + saved + " --format csv -o FILE.d",
		"analyze --json":      "analyze --memory-snapshot " + snapshot + " --quiet --json FILE",
		"analyze --html":      "analyze --memory-snapshot " + snapshot + " --quiet --html FILE",
		"analyze --summary":   "analyze --memory-snapshot " + snapshot + " --quiet --summary FILE",
		"analyze --display":   "analyze --memory-snapshot " + snapshot + " --quiet --display FILE",
		"analyze --merged":    "analyze " + traces + " --quiet --merged FILE",
		"analyze --csv":       "analyze --memory-snapshot " + snapshot + " --quiet --csv FILE.d",
		"analyze --svg":       "analyze --memory-snapshot " + snapshot + " --quiet --svg FILE.d",
		"make-traces":         "make-traces FILE.d --ranks 1 --steps 2",
		"make-traces answers": "make-traces FILE.d --ranks 1 --steps 2 --answers FILE",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file, other := filepath.Join(dir, "result"), filepath.Join(dir, "other")
			if err := os.WriteFile(other, []byte("precious"), 0o644); err != nil {
				t.Fatal(err)
			}
			args := strings.ReplaceAll(args, "FILE", file)
			if _, errs, code := invoke(t, args); code != exitOK {
				t.Fatalf("%s: exit status %d, %s", args, code, errs)
			}
			private(t, dir, other)
			before := written(t, dir, other)
			for _, path := range before { // a link in place of each
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(other, path); err != nil {
					t.Fatal(err)
				}
			}
			if _, errs, code := invoke(t, args); code == exitOK || !strings.Contains(errs, "it is a link to "+other) {
				t.Errorf("over links: exit status %d, %q", code, errs)
			}
			if text, _ := os.ReadFile(other); string(text) != "precious" {
				t.Error("the file behind the link was written")
			}
		})
	}
}

// written are the files below dir.
func written(t *testing.T, dir, besides string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && path != besides {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("nothing was written: %v", err)
	}
	return files
}

func private(t *testing.T, dir, besides string) {
	t.Helper()
	for _, path := range written(t, dir, besides) {
		if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 || info.Size() == 0 {
			t.Errorf("%s: %v, %v, %d bytes; want a file only its owner reads", path, info.Mode(), err, info.Size())
		}
	}
}

func TestAnalyzeSaysBeforeItReadsWhatCannotBeWritten(t *testing.T) {
	for args, want := range map[string]string{
		"--html /no/such/a.html": "there is no folder /no/such",
		"--json /no/such/a.json": "there is no folder /no/such",
		"--csv /dev/null/csv":    "not a directory",
		"--svg /proc/svg":        "/proc",
	} {
		// There are no traces: had they been looked for, that would be the error.
		if _, errs, code := invoke(t, "analyze /nonexistent "+args); code != exitFailed || !strings.Contains(errs, want) || strings.Contains(errs, "nonexistent") {
			if os.Geteuid() == 0 && strings.Contains(args, "/proc") {
				continue // root may write there, as far as access(2) shows
			}
			t.Errorf("%s: exit status %d, %q; want %q", args, code, errs, want)
		}
	}
}

func TestOneFileThatFailsLosesNoOther(t *testing.T) {
	traces, _ := madeTraces(t)
	out := t.TempDir()
	in := func(name string) string { return filepath.Join(out, name) }
	if err := os.Mkdir(in("csv"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(in("csv/temporal_breakdown.csv"), 0o700); err != nil { // only seen when it is its turn
		t.Fatal(err)
	}
	tmp := t.TempDir()
	stdout, errs, code := invoke(t, strings.Join([]string{"analyze", traces, "--csv", in("csv"), "--html", in("a.html"), "--json", in("a.json"), "--merged", in("m.json")}, " "), "TMPDIR="+tmp)
	if code != exitMisplaced || !strings.Contains(errs, "temporal_breakdown.csv: it is a folder") || !strings.Contains(stdout, "3 ranks") {
		t.Errorf("exit status %d, %q; want %d, what is wrong, and the report", code, errs, exitMisplaced)
	}
	private(t, out, "")
	for _, name := range []string{"a.html", "a.json", "m.json", "csv/comm_comp_overlap.csv"} {
		if _, err := os.Stat(in(name)); err != nil {
			t.Error(err)
		}
	}
	saved, _ := filepath.Glob(filepath.Join(tmp, "omni-perf-results-*", "csv", "temporal_breakdown.csv"))
	if len(saved) != 1 || !strings.Contains(errs, filepath.Dir(saved[0])) {
		t.Errorf("saved as %v; said %q", saved, errs)
	}
}

func TestExportTellsAsJSONWhatWasWritten(t *testing.T) {
	saved, dir := savedReport(t), t.TempDir()
	name := filepath.Join(dir, "r")
	_, errs, code := invoke(t, "export --json "+saved+" --name "+name)
	var done struct {
		Written []string
		Error   string
	}
	if err := json.Unmarshal([]byte(errs), &done); err != nil || code != exitOK {
		t.Fatalf("exit status %d, %q: %v", code, errs, err)
	}
	if len(done.Written) != 2 || done.Written[0] != name+".svg" || done.Error != "" {
		t.Errorf("done %+v", done)
	}
	_, errs, code = invoke(t, "export --json "+saved+" --name /no/such/r")
	if err := json.Unmarshal([]byte(errs), &done); err != nil || code != exitFailed || !strings.Contains(done.Error, "there is no folder /no/such.") {
		t.Errorf("exit status %d, %q: %v", code, errs, err)
	}
}

func TestExportWritesThroughAFIFO(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "out.json")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Skip(err)
	}
	read := make(chan []byte)
	go func() {
		text, _ := os.ReadFile(fifo)
		read <- text
	}()
	if _, errs, code := invoke(t, "export "+savedReport(t)+" -o "+fifo); code != exitOK {
		t.Errorf("exit status %d, %s", code, errs)
	}
	if text := <-read; !json.Valid(text) {
		t.Errorf("%d bytes came through", len(text))
	}
	if info, err := os.Lstat(fifo); err != nil || info.Mode().Type() != os.ModeNamedPipe {
		t.Errorf("the FIFO became %v, %v", info.Mode(), err)
	}
	if out, errs, code := invoke(t, "export "+savedReport(t)+" --format json -o /dev/stdout"); code != exitOK || !json.Valid([]byte(out)) {
		t.Errorf("to /dev/stdout: exit status %d, %q, %s", code, out, errs)
	}
}

func TestNamesAndErrorsSendNoCommandsToTheTerminal(t *testing.T) {
	evil := "x\x1b]0;owned\a\x1b[2J\u202e\r\x9b.json"
	t.Setenv("OMNI_PERF_TEST_ARGV", "1")
	for _, args := range [][]string{
		{"export", evil, "-o", "y"},
		{"export", savedReport(t), "-o", "/no/such/" + evil},
		{"export", savedReport(t), "-o", filepath.Join(t.TempDir(), evil), "--format", evil},
		{"analyze", evil},
		{"analyze", "--memory-snapshot", evil},
		{"analyze", "--mode", evil, "x"},
		{"make-traces", "/dev/null/" + evil},
		{"attach", evil},
		{"attach", "--nonsense" + evil, "1"},
		{"run", "-o", "/no/such/" + evil, "x.py"},
		{"run", "--interpreter", evil, "x.py"},
		{"run", "--" + evil, "x.py"},
		{"doctor", "--" + evil},
		{evil},
	} {
		got := runs(t, "", nil, os.Args[0], args...)
		if got.status.ExitStatus() == exitOK || len(got.stderr) == 0 {
			t.Errorf("%q: exit status %d, %q", args, got.status.ExitStatus(), got.stderr)
		}
		if text := got.stdout + got.stderr; strings.ContainsAny(text, "\x1b\a\r\u009b\u202e") || !utf8.ValidString(text) {
			t.Errorf("%q: %q", args, text)
		}
	}
}

func TestAnalyzeOpensRegularFilesOnly(t *testing.T) {
	traces, _ := madeTraces(t)
	fifo := filepath.Join(traces, "rank9.json")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Skip(err)
	}
	out, errs, code := invoke(t, "analyze "+traces)
	if code != exitOK || !strings.Contains(out, "3 ranks") || !strings.Contains(out+errs, "not a regular file") {
		t.Errorf("a FIFO among traces: exit status %d, %s%s", code, out, errs)
	}
	for _, args := range []string{"analyze " + fifo, "analyze --memory-snapshot " + fifo, "analyze /dev/zero", "analyze --memory-snapshot /dev/zero"} {
		if _, errs, code := invoke(t, args); code != exitFailed {
			t.Errorf("%s: exit status %d, %s", args, code, errs)
		}
	}
}
