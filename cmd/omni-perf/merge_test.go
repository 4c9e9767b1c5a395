package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/doors/saved"
)

// rankReports writes the saved report as those of two ranks of one machine.
func rankReports(t *testing.T, boots ...string) (paths []string) {
	t.Helper()
	text, err := os.ReadFile(savedReport(t))
	if err != nil {
		t.Fatal(err)
	}
	for rank, boot := range boots {
		var doc map[string]any
		if err := json.Unmarshal(text, &doc); err != nil {
			t.Fatal(err)
		}
		doc["targets"].([]any)[0].(map[string]any)["rank"] = rank
		for _, process := range doc["processes"].([]any) { // each rank has its own
			process.(map[string]any)["pid"] = process.(map[string]any)["pid"].(float64) + float64(1000*rank)
		}
		doc["hosts"].([]any)[0].(map[string]any)["boot_id"] = boot
		changed, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "run.rank.json")
		if err := os.WriteFile(path, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

func TestMerge(t *testing.T) {
	name := filepath.Join(t.TempDir(), "all")
	files := rankReports(t, "one", "one")
	_, errs, code := invoke(t, "merge -o "+name+" --format svg,json "+strings.Join(files, " "))
	if code != exitOK {
		t.Fatalf("exit status %d, %s", code, errs)
	}
	if !strings.Contains(errs, "omni-perf: wrote "+name+".svg, "+name+".json\n") || !strings.Contains(errs, "2 reports together") {
		t.Errorf("it does not show the summary and what was written:\n%s", errs)
	}
	svg, err := os.ReadFile(name + ".svg")
	if err != nil || !strings.Contains(string(svg), "rank 0") || !strings.Contains(string(svg), "rank 1") {
		t.Errorf("the picture does not show both ranks (%v)", err)
	}
	merged, err := saved.Read(name + ".json")
	if err != nil || len(merged.Targets) != 2 {
		t.Errorf("the merged report cannot be read: %v", err)
	}
}

func TestReportsOfTwoMachinesAreMergedIfTheyAreOfOneRun(t *testing.T) {
	name := filepath.Join(t.TempDir(), "all")
	files := rankReports(t, "one", "another")
	_, errs, code := invoke(t, "merge -o "+name+" "+strings.Join(files, " "))
	if code == exitOK || !strings.Contains(errs, files[0]) || !strings.Contains(errs, "is of no rank of a distributed run") { // without a world size
		t.Errorf("exit status %d, %q", code, errs)
	}
	if _, err := os.Stat(name + ".svg"); err == nil {
		t.Error("something was written")
	}
}

// A folder stands for the reports of single processes in it, not for what else is there.
func TestMergeTakesTheReportsInAFolder(t *testing.T) {
	folder := t.TempDir()
	for i, file := range rankReports(t, "one", "one") {
		if err := os.Rename(file, filepath.Join(folder, "run.rank"+string(rune('0'+i))+".json")); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"trace.json": `{"traceEvents": []}`, "list.json": `[1, 2]`, "notes.txt": "none"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all := filepath.Join(folder, "all")
	for range 2 { // the second time what was merged lies there, too
		if _, errs, code := invoke(t, "merge --format json -o "+all+" "+folder); code != exitOK {
			t.Fatalf("exit status %d, %s", code, errs)
		}
		if merged, err := saved.Read(all + ".json"); err != nil || len(merged.Targets) != 2 {
			t.Errorf("%v", err)
		}
	}
	if _, errs, code := invoke(t, "merge -o "+all+" "+t.TempDir()); code == exitOK || !strings.Contains(errs, "There is no report in ") {
		t.Errorf("an empty folder: exit status %d, %q", code, errs)
	}
	if err := os.WriteFile(filepath.Join(folder, "cut.json"), []byte(`{"document": "omni_perf.report", "version": 2, "na`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := invoke(t, "merge --format json -o "+all+" "+folder); code == exitOK || !strings.Contains(errs, "cut.json") {
		t.Errorf("a damaged report: exit status %d, %q", code, errs)
	}
}
