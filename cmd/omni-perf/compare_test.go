package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/compare/comparison"
	"github.com/omni-perf/omni-perf/sidecar/show/glance"
	"github.com/omni-perf/omni-perf/sidecar/testkit/twosides"
)

// recorded writes runs of a program as reports and returns their paths.
func recorded(t *testing.T, p twosides.Program, seeds ...uint64) (paths []string) {
	t.Helper()
	for _, seed := range seeds {
		v, err := p.Record(seed)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, savedJSON(t, fmt.Sprintf("run%d.json", seed), v.Document))
	}
	return paths
}

func TestCompare(t *testing.T) {
	before, after := recorded(t, twosides.Training(), 1)[0], recorded(t, twosides.Faster(), 2)[0]
	folder := t.TempDir()
	page, document := filepath.Join(folder, "c.html"), filepath.Join(folder, "c.json")
	out, errs, code := invoke(t, "compare "+before+" "+after+" --html "+page+" --json "+document)
	if code != exitOK || errs != "" {
		t.Fatalf("exit status %d, %s", code, errs)
	}
	for _, want := range []string{"Cell [7] → Cell [9]", "Took 2.5 s less than before (−43 %)", "line 2 · edited", "Most of it: line 2"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if html, err := os.ReadFile(page); err != nil || !strings.Contains(string(html), "Content-Security-Policy") {
		t.Errorf("the page: %v", err)
	}
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	var c comparison.Comparison
	if err := json.Unmarshal(text, &c); err != nil || c.Document != comparison.Kind || c.Wall().Verdict != "less" {
		t.Errorf("%v, %+v", err, c)
	}
	out, _, code = invoke(t, "compare "+before+" "+after+" --json -")
	if code != exitOK || out != string(text) {
		t.Errorf("exit status %d; on standard output is not the document alone", code)
	}
	if out, _, code = invoke(t, "compare --quiet "+before+" "+after); out != "" || code != exitOK {
		t.Errorf("exit status %d, %q", code, out)
	}
}

func TestCompareSeveralRuns(t *testing.T) {
	before, after := recorded(t, twosides.Training(), 1, 2, 3), recorded(t, twosides.Faster(), 4, 5)
	out, errs, code := invoke(t, "compare "+strings.Join(before, " ")+" -- "+strings.Join(after, " "))
	if code != exitOK || !strings.Contains(out, "Cell [7] (3 runs) → Cell [9] (2 runs)") || !strings.Contains(out, "means of 3 runs before and 2 after") {
		t.Errorf("exit status %d, %s\n%s", code, errs, out)
	}
}

func TestFailIf(t *testing.T) {
	fast, slow := recorded(t, twosides.Faster(), 1)[0], recorded(t, twosides.Training(), 2, 3)
	for _, c := range []struct {
		args string
		code int
	}{
		{fast + " " + slow[0], exitOK},
		{fast + " " + slow[0] + " --fail-if slower=5%", exitExceeded},
		{fast + " " + slow[0] + " --fail-if slower=0%", exitExceeded},
		{fast + " " + slow[0] + " --fail-if slower=200%", exitOK},
		{fast + " " + slow[0] + " --fail-if slower=2s", exitExceeded},
		{fast + " " + slow[0] + " --fail-if slower=3s", exitOK},
		{slow[0] + " " + fast + " --fail-if slower=0%", exitOK},
		{slow[0] + " " + slow[1] + " --fail-if slower=0%", exitOK}, // whatever is slower by chance
	} {
		_, errs, code := invoke(t, "compare --quiet "+c.args)
		if code != c.code || (code == exitExceeded) != strings.Contains(errs, "beyond the limit of") {
			t.Errorf("%s: exit status %d, want %d; %s", c.args, code, c.code, errs)
		}
	}
	// A result that found no place does not hide it.
	_, errs, code := invoke(t, "compare --quiet "+fast+" "+slow[0]+" --fail-if slower=5% --html /dev/full")
	if code != exitExceeded || !strings.Contains(errs, "/dev/full") {
		t.Errorf("exit status %d, %s", code, errs)
	}
}

// executed writes the figures of a notebook whose only cell took so long, and returns the path.
func executed(t *testing.T, ms int) string {
	t.Helper()
	n := glance.Notebook{Name: "n.ipynb", Cells: []glance.Cell{{Number: 1, Code: "fit()", Outcome: "ok", Duration: time.Duration(ms) * time.Millisecond}}}
	return savedJSON(t, "n.json", n.Document())
}

func TestCompareNotebooks(t *testing.T) {
	before, after := executed(t, 1000), executed(t, 1500)
	out, errs, code := invoke(t, "compare "+before+" "+after+" --fail-if slower=5%")
	if code != exitExceeded || !strings.Contains(out, "[1]   1.0 s  1.5 s  +0.50 s (+50 %)  fit()") || !strings.Contains(errs, "cell [1] fit() is slower by 0.50 s (+50 %), beyond the limit of 5%") {
		t.Errorf("exit status %d, %s\n%s", code, errs, out)
	}
	out, _, code = invoke(t, "compare "+before+" "+before+" --json -")
	var d glance.Difference
	if err := json.Unmarshal([]byte(out), &d); err != nil || code != exitOK || d.Document != glance.ComparisonKind || len(d.Cells) != 1 {
		t.Errorf("exit status %d, %v\n%s", code, err, out)
	}
	report := recorded(t, twosides.Faster(), 1)[0]
	if _, errs, code = invoke(t, "compare "+before+" "+report); code != exitFailed || !strings.Contains(errs, "like is compared with like") {
		t.Errorf("exit status %d, %s", code, errs)
	}
}

// A file that is none of a notebook is said to be what it is: another kind of document, none, or not there.
func TestFilesThatAreNoReportsAreSaidToBeThat(t *testing.T) {
	folder := t.TempDir()
	report := recorded(t, twosides.Faster(), 1)[0]
	whole, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	cells := `{"document": "omni_perf.notebook", "version": 1, "name": "a.ipynb", "cells": []}`
	for name, text := range map[string]string{
		"cells.json": cells, "half.json": cells[:len(cells)-3], "cut.json": string(whole[:len(whole)/2]), "text.txt": "hello", "list.json": "[1,2]",
		"perf_output.html": "<!doctype html>", "perf_output.svg": "<svg/>", "a.ipynb": `{"cells": [], "nbformat": 4}`,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(folder)
	if err := os.Mkdir("runs", 0o700); err != nil {
		t.Fatal(err)
	}
	made := "a report is what omni-perf run --format json writes."
	for args, says := range map[string]string{
		"compare cells.json nofile.json":   "no such file or directory",
		"compare cells.json cut.json":      "the report from cut.json: the report is damaged",
		"compare cells.json text.txt":      "the report from text.txt: it is no report of omni_perf",
		"compare cells.json " + report:     "The cells of a notebook are in cells.json, and those of none in " + report,
		"compare cells.json half.json":     "the cells from half.json: they are damaged",
		"compare a.ipynb a.ipynb":          "omni-perf run a.ipynb --format json executes the notebook",
		"compare perf_output.svg cut.json": made,
		"show perf_output.html":            made,
		"show list.json":                   "it is no report of omni_perf, but a list.",
		"show runs":                        "There is a folder runs: name a report in it.",
		"merge -o all runs":                "There is no report in runs: omni-perf run -o runs/run --format json writes one.",
	} {
		if _, errs, code := invoke(t, args); code != exitFailed || !strings.Contains(errs, says) {
			t.Errorf("%s: exit status %d, %s; want %q", args, code, errs, says)
		}
	}
	for _, value := range []string{"abc", "1x"} {
		if _, errs, code := invoke(t, "show "+report+" --what stretch --from "+value); code != exitUsage || !strings.Contains(errs, `--from: "`+value+`" is not a number such as 1.5`) {
			t.Errorf("--from %s: exit status %d, %s", value, code, errs)
		}
	}
}

func TestCompareRefuses(t *testing.T) {
	good := recorded(t, twosides.Faster(), 1)[0]
	old, damaged := filepath.Join(t.TempDir(), "old.json"), filepath.Join(t.TempDir(), "damaged.json")
	for path, text := range map[string]string{old: `{"schema_version": 1}`, damaged: `{"document": "omni_perf.report", "version": 2, "threads": 5}`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args, says string
		code       int
	}{
		{"", "name two reports to compare", exitUsage},
		{good, "name two reports to compare", exitUsage},
		{good + " " + good + " " + good, "3 reports: part those before from those after by --", exitUsage},
		{good + " --", "name reports on both sides of --", exitUsage},
		{good + " -- " + good + " --html x.html", "options come before the reports", exitUsage},
		{"/none.json " + good, "omni-perf: Cannot open /none.json: no such file", exitFailed},
		{good + " " + old, "recorded by an older version", exitFailed},
		{good + " " + damaged, damaged, exitFailed},
		{good + " " + good + " --html /no/such/folder/c.html", "there is no folder", exitFailed},
		// Wrong limits are reported before anything is read.
		{"/none.json /none.json --fail-if slower", "it takes slower=LIMIT", exitUsage},
		{"/none.json /none.json --fail-if faster=5%", "it takes slower=LIMIT", exitUsage},
		{"/none.json /none.json --fail-if slower=-5%", "it takes slower=LIMIT", exitUsage},
		{"/none.json /none.json --fail-if slower=NaN%", "it takes slower=LIMIT", exitUsage},
		{"/none.json /none.json --fail-if slower=5", "it takes slower=LIMIT", exitUsage},
	} {
		_, errs, code := invoke(t, "compare "+c.args)
		if code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("%q: exit status %d, %s; want %d, %q", c.args, code, errs, c.code, c.says)
		}
	}
}
