package report_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// repeated is a text many times.
type repeated struct {
	text string
	left int // bytes
	at   int
}

func times(text string, n int) io.Reader {
	return &repeated{text: strings.Repeat(text, 1+(1<<16)/len(text)), left: n * len(text)}
}

func (r *repeated) Read(p []byte) (n int, err error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	for n < len(p) && r.left > 0 {
		c := copy(p[n:min(len(p), n+r.left)], r.text[r.at:])
		n += c
		r.left -= c
		if r.at += c; r.at == len(r.text) {
			r.at = 0
		}
	}
	return n, nil
}

// member is a sound report with another member before its own; the parts are its text.
func member(t *testing.T, parts ...any) io.Reader {
	return joined(append(append([]any{"{"}, parts...), ",", golden(t)[1:])...)
}

func golden(t *testing.T) string {
	text, err := json.Marshal(goldens(t)["cell"].Document)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// alone is a document of one more member than the first two.
func alone(parts ...any) io.Reader {
	return joined(append(append([]any{`{"document":"omni_perf.report","version":2,`}, parts...), "}")...)
}

func joined(parts ...any) io.Reader {
	var all []io.Reader
	for _, p := range parts {
		if text, ok := p.(string); ok {
			p = strings.NewReader(text)
		}
		all = append(all, p.(io.Reader))
	}
	return io.MultiReader(all...)
}

// zipped packs small texts, repeated ones as members of their own: quick to make.
func zipped(t *testing.T, head, again string, n int, tail string) io.Reader {
	pack := func(text string) string {
		var out bytes.Buffer
		zip := gzip.NewWriter(&out)
		if _, err := zip.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := zip.Close(); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	const a = 1 << 18
	return joined(pack(head), times(pack(strings.Repeat(again, a)), n/a), pack(tail))
}

// large are documents of which a reader must keep little. refused is part of the error;
// empty: it is read.
var large = map[string]struct {
	text    func(t *testing.T) io.Reader
	refused string
}{
	"zeros":             {func(*testing.T) io.Reader { return times("\x00", 3e9) }, "does not begin with {"},
	"blanks":            {func(*testing.T) io.Reader { return times(" \n", 1.5e9) }, "more than 1,048,576 blanks"},
	"functions":         {func(*testing.T) io.Reader { return alone(`"functions":[`, times("{},", 3e8), `{}]`) }, `more than 1,048,576 elements of "functions"`},
	"functions in gzip": {func(t *testing.T) io.Reader { return zipped(t, `{"functions":[`, "{},", 3e8, `{}]}`) }, `more than 1,048,576 elements of "functions"`},
	"lines of files": {func(*testing.T) io.Reader {
		return alone(`"files":[`, times(`{"lines":[null,null,null]},`, 1e8), `{}]`)
	}, `elements of "files`},
	"numbers":   {func(*testing.T) io.Reader { return alone(`"spans":{"gap_us":[`, times("0,", 5e8), `0]}`) }, `more than 8,388,608 elements of "spans.gap_us"`},
	"states":    {func(*testing.T) io.Reader { return alone(`"threads":[`, times(`{"state_ns":[0,0,0,0]},`, 1e8), `{}]`) }, `elements of "threads`},
	"arguments": {func(*testing.T) io.Reader { return alone(`"notes":[{"args":{"a":[`, times("[],", 3e8), `[]]}}]`) }, `elements of "notes.args"`},
	"keys":      {func(*testing.T) io.Reader { return alone(`"notes":[{"args":{`, times(`"a":1,`, 3e8), `"b":1}}]`) }, `elements of "notes.args"`},
	"nesting":   {func(*testing.T) io.Reader { return alone(`"notes":[{"args":{"a":`, times("[", 1e9), `0]}}]`) }, "more than 16 lists of lists"},
	"digits":    {func(*testing.T) io.Reader { return alone(`"duration_ns":`, times("1", 1e9)) }, "more than 64 digits"},
	"a digit":   {func(*testing.T) io.Reader { return alone(`"frames":{"line":[`, times("1", 1e9), "]}") }, "something else than numbers"},
	"one key":   {func(*testing.T) io.Reader { return alone(times(`"duration_ns":1,`, 1e8), `"a":1`) }, `a second "duration_ns"`},
	"no list":   {func(*testing.T) io.Reader { return alone(`"functions":[`, times(",", 1e9), "]") }, "unexpected ','"},

	"an unknown string":     {func(t *testing.T) io.Reader { return member(t, `"new":"`, times(`x`, 1e9), `"`) }, ""},
	"an unknown list":       {func(t *testing.T) io.Reader { return member(t, `"new":[`, times("0,", 2.5e8), `0]`) }, ""},
	"an unknown tree":       {func(t *testing.T) io.Reader { return member(t, `"new":`, times("[", 2.5e8), times("]", 2.5e8)) }, ""},
	"unknown objects":       {func(t *testing.T) io.Reader { return member(t, `"new":[`, times(`{"a\"b":"\\"},`, 3e7), `{}]`) }, ""},
	"unknown, escaped":      {func(t *testing.T) io.Reader { return member(t, `"new":"`, times(`\\\"`, 1e8), `"`) }, ""},
	"unknown in gzip":       {func(t *testing.T) io.Reader { return zipped(t, `{"new":[`, "0,", 1e8, `0],`+golden(t)[1:]) }, ""},
	"an unknown key's name": {func(t *testing.T) io.Reader { return member(t, `"`, times(`x`, 1e9), `":1`) }, ""},
	"a long string": {func(t *testing.T) io.Reader {
		head, tail, _ := strings.Cut(golden(t), `"text":"`)
		return joined(head, `"text":"`, times("x", 1e9), tail)
	}, ""},
}

// TestLargeDocument is the process in which TestLargeDocuments reads one.
func TestLargeDocument(t *testing.T) {
	c, ok := large[os.Getenv("OMNI_PERF_LARGE")]
	if !ok {
		t.Skip("part of TestLargeDocuments")
	}
	text := c.text(t)
	before := cpu(t)
	_, err := report.ReadFrom(text)
	fmt.Printf("cpu %d\n", cpu(t)-before)
	if err != nil {
		fmt.Printf("refused: %v\n", err)
	}
}

func cpu(t *testing.T) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// Whatever the size of a file, reading it takes 100 MB at most. One beyond the limits is
// refused within a second of CPU time, and what is not of a report is passed over at 200
// MB in a second, or half of that unpacked, at least.
func TestLargeDocuments(t *testing.T) {
	if slowdown > 1 {
		t.Skip("the race detector takes memory and time of its own")
	}
	for name, c := range large {
		t.Run(name, func(t *testing.T) {
			child := exec.Command(os.Args[0], "-test.run", "^TestLargeDocument$")
			child.Env = append(os.Environ(), "OMNI_PERF_LARGE="+name)
			out, err := child.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			var spent time.Duration
			if _, err := fmt.Sscanf(string(out), "cpu %d", &spent); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			peak := child.ProcessState.SysUsage().(*syscall.Rusage).Maxrss >> 10
			t.Logf("%d MB, %v", peak, spent.Round(time.Millisecond))
			most := 5 * time.Second
			if c.refused != "" {
				most = time.Second
			}
			if peak > 100 || spent > most {
				t.Errorf("took %d MB and %v, want at most 100 MB and %v", peak, spent, most)
			}
			_, why, refused := strings.Cut(string(out), "refused: ")
			if refused != (c.refused != "") || !strings.Contains(why, c.refused) {
				t.Errorf("says %s, want %q", out, c.refused)
			}
		})
	}
}

// What a text means does not depend on where its blanks are, on keys that nobody knows, or
// on where the windows of the reader end.
func TestReadingInPieces(t *testing.T) {
	for name, v := range goldens(t) {
		text, err := json.Marshal(v.Document)
		if err != nil {
			t.Fatal(err)
		}
		var want report.Document
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		wide := new(bytes.Buffer)
		if err := json.Indent(wide, text, strings.Repeat(" ", 40), strings.Repeat("\t", 40)); err != nil {
			t.Fatal(err)
		}
		more := strings.ReplaceAll(string(text), "{", `{"more":[{"a":"\\\"}"},[1,null,true]],"":"x","`+strings.Repeat("k", 300)+`":{},`)
		more = strings.ReplaceAll(more, ",}", "}")
		for how, text := range map[string]string{"plain": string(text), "indented": strings.TrimSpace(wide.String()), "with more": more} {
			for _, shift := range []int{0, 1, 7, 131071, 131072 - 13} {
				v, err := report.ReadFrom(strings.NewReader(strings.Repeat(" ", shift) + text))
				if err != nil {
					t.Errorf("%s, %s, %d: %v", name, how, shift, err)
				} else if how != "with more" && !reflect.DeepEqual(tables(v.Document), tables(&want)) {
					t.Errorf("%s, %s, %d: another document", name, how, shift)
				}
			}
		}
	}
}

// tables is a document as JSON, in which NaN is equal to NaN.
func tables(d *report.Document) string {
	text, err := json.Marshal(d)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// An error of the file's is no damage.
func TestUnreadableIsNoDamage(t *testing.T) {
	folder, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	if _, err := report.ReadFrom(folder); err == nil || errors.Is(err, report.ErrNoReport) || !errors.Is(err, syscall.EISDIR) {
		t.Errorf("says %v", err)
	}
}

// BenchmarkRead reads a cell of 1,000 s, 5 MB.
func BenchmarkRead(b *testing.B) {
	v := built(b, program(timeline.Target{PID: 100}, "kernel", cellAt, 10_000), report.Options{})
	text, err := json.Marshal(v.Document)
	if err != nil {
		b.Fatal(err)
	}
	packed, err := report.Pack(v.Document)
	if err != nil {
		b.Fatal(err)
	}
	for name, text := range map[string][]byte{"plain": text, "packed": packed} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := report.Read(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
