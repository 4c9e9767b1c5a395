package torchtrace

import (
	"context"
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// damaged says what must come of each case of ../shared/traces/malformed. The
// sound trace has 263 µs of kernel time, 212 of them idle, on rank 0.
type damaged struct {
	rank         int
	kernel, idle float64 // µs, exact mode
	warning      string  // part of a warning; "": there must be none
}

var damagedCases = map[string]damaged{
	"plain-json":             {0, 263, 212, ""},
	"bom":                    {0, 263, 212, ""},
	"comms-id-uint64":        {0, 263, 212, ""},
	"correlation-2e40":       {0, 263, 212, ""},
	"crlf-minified":          {0, 263, 212, ""},
	"events-before-metadata": {0, 263, 212, ""},
	"fake-rank-string":       {0, 263, 212, ""},
	"gz-two-members":         {0, 263, 212, ""},
	"minified-rank":          {5, 263, 212, ""},
	"no-distributed-info":    {0, 263, 212, ""},
	"plain-named-gz":         {0, 263, 212, ""},
	"stream-hex-string":      {0, 263, 212, ""},
	"stream-missing":         {0, 263, 212, ""},
	"top-level-array":        {0, 263, 212, ""},
	"ts-as-string":           {0, 263, 212, ""},
	"unsorted":               {0, 263, 212, ""},
	"ts-ns-decimal":          {0, 263.377, 210.492, ""},
	"bad-utf8":               {0, 263, 212, "byte 3595: a text that is not UTF-8"},
	"control-char":           {0, 263, 212, "byte 3595: control characters"},
	"raw-backslash":          {0, 263, 212, "byte 3595: a backslash"},
	"lone-surrogate":         {0, 263, 212, "byte 3595: a backslash that escapes nothing, or half a surrogate pair"},
	"unescaped-quotes":       {0, 263, 212, "byte 3594: quotes inside a text"},
	"trailing-comma":         {0, 263, 212, `the value of "INFO" is no valid JSON`},
	"nan-infinity":           {0, 263, 212, `the value of "x" is no valid JSON`},
	"duplicate-events":       {0, 263, 212, "recorded twice (17 records)"},
	"gz-trailing-garbage":    {0, 263, 212, "byte 22635: bytes that are no gzip"},
	"gz-truncated":           {0, 263, 212, "byte 13884: the gzip data is cut off"},
	"json-truncated":         {0, 263, 212, "byte 14978: the file ends inside an event"},
	"negative-dur":           {0, 263, 213, "byte 5887: events with a negative duration"},
	"null-dur":               {0, 214, 164, "byte 5887: events without start or duration"},
	"one-good-one-broken":    {1, 60, 48, "b.json.gz: byte 8589: the file ends inside an event"},
	"same-rank-twice":        {0, 263, 212, "the file states rank 0, as "},
	"two-files-no-rank":      {1, 263, 212, "it is called rank 1 here"},
	"metadata-only":          {0, -1, 0, ""},
	"empty-trace-events":     {0, -1, 0, "traceEvents is empty"},
}

// noTrace are the cases in which nothing can be read, with the error's reason.
var noTrace = map[string]string{
	"empty-file":      "the file is empty",
	"no-trace-events": "the file has no traceEvents",
}

func TestDamagedFiles(t *testing.T) {
	root := filepath.Join(sharedTraces(t), "malformed")
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		t.Run(e.Name(), func(t *testing.T) {
			set, err := Load(context.Background(), []string{filepath.Join(root, e.Name())}, LoadOptions{})
			if reason, ok := noTrace[e.Name()]; ok {
				if err == nil || !strings.Contains(err.Error(), reason) {
					t.Fatalf("got error %v, want one that says %q", err, reason)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want, ok := damagedCases[e.Name()]
			if !ok {
				t.Fatal("this case has no expectation")
			}
			checkDamaged(t, set, want)
		})
	}
}

func checkDamaged(t *testing.T, set *TraceSet, want damaged) {
	t.Helper()
	var texts []string
	for _, w := range set.Warnings {
		texts = append(texts, w.String())
	}
	all := strings.Join(texts, "\n")
	if want.warning == "" && all != "" || !strings.Contains(all, want.warning) {
		t.Errorf("got warnings %q, want %q", all, want.warning)
	}
	table := Analyze(set, AnalyzeOptions{}).Table(TableTemporal)
	if want.kernel < 0 {
		if table.Len() != 0 || table.Note == "" {
			t.Errorf("got %d rows and note %q, want none and a note", table.Len(), table.Note)
		}
		return
	}
	for row, rank := range table.Column("rank").Ints {
		if int(rank) != want.rank {
			continue
		}
		kernel, idle := table.Column("kernel_time_us").Floats[row], table.Column("idle_time_us").Floats[row]
		if kernel != want.kernel || idle != want.idle {
			t.Errorf("got kernel %v idle %v, want %v and %v", kernel, idle, want.kernel, want.idle)
		}
		return
	}
	t.Errorf("got ranks %v, want %d", set.Ranks(), want.rank)
}

// TestDamagedAsHTA: where HTA does read the file, HTA's mode gives its numbers.
func TestDamagedAsHTA(t *testing.T) {
	root := filepath.Join(sharedTraces(t), "malformed")
	f, err := os.Open(filepath.Join(root, "hta.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines[1:] {
		if line[6] != "ok" {
			continue
		}
		t.Run(line[0], func(t *testing.T) {
			set, err := Load(context.Background(), []string{filepath.Join(root, line[0])}, LoadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			table := Analyze(set, AnalyzeOptions{Mode: HTA}).Table(TableTemporal)
			kernel, _ := strconv.ParseFloat(line[4], 64)
			idle, _ := strconv.ParseFloat(line[5], 64)
			if got := table.Column("kernel_time_us").Floats[0]; got != kernel {
				t.Errorf("kernel time: got %v, want %v", got, kernel)
			}
			if got := table.Column("idle_time_us").Floats[0]; got != idle {
				t.Errorf("idle time: got %v, want %v", got, idle)
			}
		})
	}
}
