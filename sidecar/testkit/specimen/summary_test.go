package specimen_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/testkit/specimen"
)

// Each recording has a summary beside it that people can read; make summaries writes them.
func TestSummaries(t *testing.T) {
	var summaries []string
	for _, folder := range []string{"testdata", "testdata/trainings"} {
		recordings, err := filepath.Glob(filepath.Join(folder, "*.json.gz"))
		if err != nil || len(recordings) == 0 {
			t.Fatalf("%s: %d recordings, %v", folder, len(recordings), err)
		}
		for _, recording := range recordings {
			packed, err := os.ReadFile(recording)
			if err != nil {
				t.Fatal(err)
			}
			got, err := specimen.Summary(packed)
			if err != nil {
				t.Fatalf("%s: %v", recording, err)
			}
			path := specimen.SummaryFile(recording)
			summaries = append(summaries, path)
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				continue
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Errorf("%v: make summaries writes it", err)
			} else if got != string(want) {
				t.Errorf("%s is not of its recording (make summaries):\n got  %s\n want %s", path, got, want)
			}
		}
		texts, err := filepath.Glob(filepath.Join(folder, "*.txt"))
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range texts {
			if text != undecidedFile && !slices.Contains(summaries, text) {
				t.Errorf("%s is of no recording", text)
			}
		}
	}
}

// What was recorded is in the summary: a thread, its states, the line with the most time.
func TestASummaryHasTheLinesWithTheMostTime(t *testing.T) {
	packed, err := os.ReadFile("testdata/Fibonacci-by-recursion.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	got, err := specimen.Summary(packed)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"thread MainThread of process 0: ", "python ", "\ncomputes ", " fib\n", "\ntrack "} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
