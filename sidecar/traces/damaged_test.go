package traces

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
)

// damaged says what must come of a damaged file.
type damaged struct {
	rank         int
	kernel, idle float64 // µs, exact mode; kernel -1: nothing ran
	warning      string  // part of a warning; "": there must be none
}

func (want damaged) check(t *testing.T, path string) {
	t.Helper()
	set, err := kineto.Load(context.Background(), []string{path}, kineto.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, w := range set.Warnings {
		texts = append(texts, w.String())
	}
	all := strings.Join(texts, "\n")
	if want.warning == "" && all != "" || !strings.Contains(all, want.warning) {
		t.Errorf("got warnings %q, want %q", all, want.warning)
	}
	table := Analyze(set, analyses.Options{}).Table(analyses.TableTemporal)
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

// soundTrace is a trace of rank 3: kernels from 100 to 110, 120 to 140.5 and
// 150 to 155 µs on stream 7, one from 130 to 160 on stream 20. So the device was
// idle from 110 to 120 µs of 60.
const soundTrace = `{
 "schemaVersion": 1, "INFO": "made up", "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8},
 "traceEvents": [
 {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": 90, "dur": 4, "args": {"correlation": 1}},
 {"ph": "X", "cat": "kernel", "name": "one", "pid": 0, "tid": 7, "ts": 100, "dur": 10, "args": {"device": 0, "stream": 7, "correlation": 1}},
 {"ph": "X", "cat": "kernel", "name": "two", "pid": 0, "tid": 7, "ts": 120, "dur": 20.5, "args": {"device": 0, "stream": 7, "correlation": 2}},
 {"ph": "X", "cat": "kernel", "name": "three", "pid": 0, "tid": 7, "ts": 150, "dur": 5, "args": {"device": 0, "stream": 7, "correlation": 3}},
 {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "pid": 0, "tid": 20, "ts": 130, "dur": 30, "args": {"device": 0, "stream": 20, "correlation": 4, "bytes": 64}},
 {"ph": "M", "name": "process_name", "pid": 9, "tid": 0, "args": {"name": "python"}}
 ], "traceName": "trace.json"
}
`

// damagedFile is the sound trace after a mishap.
type damagedFile struct {
	name string
	data []byte
	want damaged
}

// edit is the sound trace with one place changed, and that place's byte.
func edit(old, with string) (text string, at int) {
	if strings.Count(soundTrace, old) != 1 {
		panic(old)
	}
	return strings.Replace(soundTrace, old, with, 1), strings.Index(soundTrace, old)
}

func zipped(text string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte(text))
	z.Close()
	return b.Bytes()
}

// TestDamaged damages a small trace in every way that files of profilers have
// been seen to be damaged, and some more.
func TestDamaged(t *testing.T) {
	sound := damaged{3, 60, 10, ""}
	cut := strings.Index(soundTrace, `"three"`)
	half := soundTrace[:strings.Index(soundTrace, "\n {\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"two\"")]
	cases := map[string]damagedFile{
		"sound":                  {"t.json", []byte(soundTrace), sound},
		"gzip":                   {"t.json.gz", zipped(soundTrace), sound},
		"gzip of two members":    {"t.json.gz", append(zipped(half), zipped(soundTrace[len(half):])...), sound},
		"gzip without its name":  {"t.json", zipped(soundTrace), sound},
		"plain named gz":         {"t.json.gz", []byte(soundTrace), sound},
		"byte order mark":        {"t.json", []byte("\xef\xbb\xbf" + soundTrace), sound},
		"CRLF":                   {"t.json", []byte(strings.ReplaceAll(soundTrace, "\n", "\r\n")), sound},
		"minified":               {"t.json", []byte(strings.NewReplacer(": ", ":", ", ", ",", "\n ", "").Replace(soundTrace)), sound},
		"garbage after the gzip": {"t.json.gz", append(zipped(soundTrace), "garbage"...), sound.warn("byte %d: bytes that are no gzip", len(soundTrace))},
		"cut inside an event":    {"t.json", []byte(soundTrace[:cut]), damaged{3, 40.5, 10, fmt.Sprintf("byte %d: the file ends inside an event", strings.LastIndex(soundTrace[:cut], "{"))}},
		"cut between events":     {"t.json", []byte(half), damaged{3, 10, 0, fmt.Sprintf("byte %d: the file ends", len(half))}},
		"nothing ran":            {"t.json", []byte(`{"distributedInfo": {"rank": 3}, "traceEvents": []}`), damaged{3, -1, 0, "traceEvents is empty"}},
	}
	list := soundTrace[strings.Index(soundTrace, "["):strings.Index(soundTrace, ", \"traceName\"")]
	cases["only the list"] = damagedFile{"rank_3.json", []byte(list), sound}
	head := soundTrace[strings.Index(soundTrace, `"schema`):strings.Index(soundTrace, `"traceEvents"`)]
	cases["events before metadata"] = damagedFile{"t.json", []byte(`{"traceEvents": ` + list + ", " + strings.TrimRight(head, ", \n") + "}"), sound}

	for name, e := range map[string]struct{ old, with, warning string }{
		"UTF-8 broken in a name":    {`"three"`, "\"th\xffree\"", "byte %d+1: a text that is not UTF-8"},
		"control character":         {`"three"`, "\"th\x01ree\"", "byte %d+1: control characters"},
		"backslash":                 {`"three"`, `"th\qree"`, "byte %d+1: a backslash that escapes nothing"},
		"half a surrogate":          {`"three"`, `"th\ud800ree"`, "byte %d+1: a backslash that escapes nothing, or half a surrogate pair"},
		"quotes in a name":          {`"three"`, `"th"r"ee"`, "byte %d: quotes inside a text"},
		"text for a time":           {`"ts": 150`, `"ts": "150"`, ""},
		"text for a stream":         {`"ts": 150, "dur": 5, "args": {"device": 0, "stream": 7`, `"ts": 150, "dur": 5, "args": {"device": 0, "stream": "0x7"`, ""},
		"no stream":                 {`"ts": 150, "dur": 5, "args": {"device": 0, "stream": 7,`, `"ts": 150, "dur": 5, "args": {"device": 0, `, ""},
		"no device":                 {`"ts": 150, "dur": 5, "args": {"device": 0,`, `"ts": 150, "dur": 5, "args": {`, ""},
		"huge number":               {`"correlation": 3}`, `"correlation": 3e40}`, "an identifier beyond 64 bits"},
		"number above 2⁶³":          {`"bytes": 64`, `"bytes": 64, "Comms Id": 18446744073709551615`, ""},
		"NaN":                       {`"INFO": "made up"`, `"INFO": NaN`, `the value of "INFO" is no valid JSON`},
		"comma too many":            {`"INFO": "made up"`, `"INFO": {"a": [1, 2,]}`, `the value of "INFO" is no valid JSON`},
		"comma after the events":    {"{\"name\": \"python\"}}\n", "{\"name\": \"python\"}},\n", "a comma before a closing bracket; nothing lost"},
		"an event twice":            {`"name": "process_name", "pid": 9, "tid": 0, "args": {"name": "python"}}`, `"name": "x"}, {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": 90, "dur": 4, "args": {"correlation": 1}}`, "recorded twice"},
		"nulls and numbers":         {`{"ph": "M", `, `null, 12, "x", [], {"ph": "M", `, "byte %d: elements of traceEvents that are no objects (4 times, first here)"},
		"rank as a text":            {`"INFO": "made up"`, `"INFO": "\"rank\": 7 "`, ""},
		"another trace in a member": {`"INFO": "made up"`, `"other": {"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 500, "dur": 5}]}`, ""},
	} {
		text, at := edit(e.old, e.with)
		want := sound
		if want.warning = e.warning; strings.Contains(e.warning, "%d") {
			if strings.Contains(e.warning, "%d+1") { // behind the quotes
				at++
			}
			want = sound.warn(strings.Replace(e.warning, "+1", "", 1), at)
		}
		cases[name] = damagedFile{"t.json", []byte(text), want}
	}
	for name, e := range map[string]struct {
		old, with string
		want      damaged
	}{
		"negative duration": {`"ts": 120, "dur": 20.5`, `"ts": 120, "dur": -20.5`, damaged{3, 60, 20, "events with a negative duration"}},
		"no duration":       {`"ts": 120, "dur": 20.5`, `"ts": 120, "dur": null`, damaged{3, 60, 20, "events without start or duration"}},
		"no start":          {`"ts": 120, "dur": 20.5`, `"dur": 20.5`, damaged{3, 60, 20, "events without start or duration"}},
		"damaged event":     {`"ts": 120, "dur": 20.5`, `"ts" 120`, damaged{3, 60, 20, "damaged JSON in an event"}},
	} {
		text, _ := edit(e.old, e.with)
		cases[name] = damagedFile{"t.json", []byte(text), e.want}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), c.name)
			if err := os.WriteFile(path, c.data, 0o600); err != nil {
				t.Fatal(err)
			}
			c.want.check(t, path)
		})
	}
}

// warn is the same outcome with a warning.
func (want damaged) warn(format string, args ...any) damaged {
	want.warning = fmt.Sprintf(format, args...)
	return want
}

// TestCutAnywhere: wherever a file was cut off, the events before are read, the
// loss is reported, and every analysis copes.
func TestCutAnywhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.json")
	load := func() (*kineto.Set, error) {
		return kineto.Load(context.Background(), []string{path}, kineto.Options{Frame: true})
	}
	events, end := strings.Index(soundTrace, "["), strings.LastIndex(soundTrace, "}")
	for n := range len(soundTrace) {
		if err := os.WriteFile(path, []byte(soundTrace[:n]), 0o600); err != nil {
			t.Fatal(err)
		}
		set, err := load()
		if n <= events {
			if err == nil {
				t.Fatalf("cut at %d: no error", n)
			}
			continue
		}
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		if len(set.Warnings) == 0 && n <= end {
			t.Fatalf("cut at %d of %d: no warning", n, len(soundTrace))
		}
		whole := soundTrace[:max(0, strings.LastIndex(soundTrace[:n], "}}"))]
		if got, want := set.Traces[0].Device.Len(), strings.Count(whole, `"stream"`); got != want {
			t.Fatalf("cut at %d: got %d device events of %d", n, got, want)
		}
		for _, mode := range []analyses.Mode{analyses.Exact, analyses.HTA, analyses.HTANs} {
			Analyze(set, analyses.Options{Mode: mode, Tables: everyTable()})
		}
	}
}

func everyTable() []string { return analyses.AllTables() }

// damagedCases says what must come of each case of ../shared/traces/malformed.
// The sound trace has 263 µs of kernel time, 212 of them idle, on rank 0.
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
	"same-rank-twice":        {0, 263, 212, "the file is the same recording as "},
	"two-files-no-rank":      {0, 263, 212, "the file is the same recording as "},
	"metadata-only":          {0, -1, 0, ""},
	"empty-trace-events":     {0, -1, 0, "traceEvents is empty"},
}

// noTrace are the cases in which nothing can be read, with the error's reason.
var noTrace = map[string]string{
	"empty-file":      "the file is empty",
	"no-trace-events": "the file has no traceEvents",
}

func TestDamagedShared(t *testing.T) {
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
			path := filepath.Join(root, e.Name())
			if reason, ok := noTrace[e.Name()]; ok {
				if _, err := kineto.Load(context.Background(), []string{path}, kineto.Options{}); err == nil || !strings.Contains(err.Error(), reason) {
					t.Fatalf("got error %v, want one that says %q", err, reason)
				}
				return
			}
			want, ok := damagedCases[e.Name()]
			if !ok {
				t.Fatal("this case has no expectation")
			}
			want.check(t, path)
		})
	}
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
			set, err := kineto.Load(context.Background(), []string{filepath.Join(root, line[0])}, kineto.Options{Frame: true})
			if err != nil {
				t.Fatal(err)
			}
			table := Analyze(set, analyses.Options{Mode: analyses.HTA}).Table(analyses.TableTemporal)
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
