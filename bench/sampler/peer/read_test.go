package peer

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "out.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestParseCollapsed(t *testing.T) {
	want := truth.Sample{Functions: []string{"<module>", "north_1"}, Lines: []int{14, 3}}
	for _, test := range []struct {
		name, text string
		read       frameReader
		want       truth.Sample
		count      int
	}{
		{"py-spy", "<module> (work.py:14);north_1 (<north>:3) 279", functionFileLine, want, 279},
		{"py-spy without a line", "north_1 (<north>) 1", functionFileLine,
			truth.Sample{Functions: []string{"north_1"}, Lines: []int{0}}, 1},
		{"Austin", "P5315;T0:5315;/tmp/work.py:<module>:14;<north>:north_1:3 1077", fileFunctionLine, want, 1077},
		{"Tachyon", "tid:7964;work.py:<module>:14;<north>:north_1:3;<GC> 2", fileFunctionLine, want, 2},
		{"omni-perf", "work.py:<module>:14;<north>:north_1:3; 138", fileFunctionLine, want, 138},
		{"omni-perf, cut", "work.py:<module>:14;<north>:north_1:3;~truncated 5", fileFunctionLine,
			truth.Sample{Functions: want.Functions, Lines: want.Lines, Truncated: true}, 5},
		{"nothing", " 5", fileFunctionLine, truth.Sample{}, 5},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, count, err := parseCollapsed(test.text, test.read)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, test.want) || count != test.count {
				t.Errorf("got %v × %d, want %v × %d", got, count, test.want, test.count)
			}
		})
	}
	for _, text := range []string{"", "frame", "frame x", "frame -1"} {
		if got, count, err := parseCollapsed(text, fileFunctionLine); err == nil {
			t.Errorf("%q gives %v × %d", text, got, count)
		}
	}
}

func FuzzParseCollapsed(f *testing.F) {
	f.Add("P5315;T0:5315;/tmp/work.py:<module>:14;<north>:north_1:3 1077")
	f.Add("<module> (work.py:14);north_1 (<north>:3) 279")
	f.Fuzz(func(t *testing.T, text string) {
		for _, read := range []frameReader{fileFunctionLine, functionFileLine} {
			s, _, err := parseCollapsed(text, read)
			if err == nil && len(s.Functions) != len(s.Lines) {
				t.Errorf("%d functions, %d lines", len(s.Functions), len(s.Lines))
			}
		}
	})
}

func TestReadCollapsed(t *testing.T) {
	path := write(t, "# austin: 4.0.0\n\nP1;T1;a.py:f:2 3\nP1;T1;a.py:g:4 2\n")
	counted, err := readCollapsed(path, fileFunctionLine, false)
	if err != nil || len(counted.Samples) != 5 || counted.Samples[2].Functions[0] != "f" || counted.Samples[3].Functions[0] != "g" {
		t.Errorf("got %v, %v, want 3 × f and 2 × g", counted, err)
	}
	if r, err := readCollapsed(write(t, "a.py:f:2 30000000000\n"), fileFunctionLine, false); err == nil {
		t.Errorf("%d samples are believed", len(r.Samples))
	}
	once, err := readCollapsed(path, fileFunctionLine, true)
	if err != nil || len(once.Samples) != 2 {
		t.Errorf("got %v, %v, want one sample a line", once, err)
	}
}

func TestReadPyinstrument(t *testing.T) {
	path := write(t, `{"duration": 0.010, "sample_count": 10, "root_frame": {
		"function": "<module>", "file_path": "a.py", "time": 0.010, "children": [
			{"function": "work", "file_path": "a.py", "time": 0.007, "children": [
				{"function": "sum", "file_path": "<built-in>", "time": 0.004, "children": []}]}]}}`)
	r, err := readPyinstrument(path, "")
	if err != nil {
		t.Fatal(err)
	}
	got := map[int]int{} // samples by depth
	for _, s := range r.Samples {
		got[len(s.Functions)]++
	}
	if want := map[int]int{1: 3, 2: 7}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v: a built-in's time is its caller's", got, want)
	}
	if _, err := readPyinstrument(write(t, `{"root_frame": null}`), ""); err == nil {
		t.Error("a session without samples is read")
	}
}

func TestReadScalene(t *testing.T) {
	path := write(t, `{"stacks": [
		[["/tmp/a b.py <module>:53;", "/tmp/a b.py Pet.bob:21;"], {"count": 3, "cpu_samples": 0.75}],
		[["/tmp/a b.py <module>:54;"], {"count": 5, "cpu_samples": 0.25}]]}`)
	r, err := readScalene(path, "")
	want := truth.Sample{Functions: []string{"<module>", "Pet.bob"}, Lines: []int{53, 21}}
	if err != nil || r.Ticks != 8 || len(r.Samples) != 8 || !reflect.DeepEqual(r.Samples[5], want) || len(r.Samples[6].Functions) != 1 {
		t.Errorf("got %v, %v, want 6 × %v and 2 × its caller", r.Samples, err, want)
	}
	if _, err := readScalene(write(t, `{"stacks": [[3, 4]]}`), ""); err == nil {
		t.Error("frames that are none are read")
	}
}

func FuzzReadTrees(f *testing.F) {
	f.Add([]byte(`{"duration": 1, "sample_count": 2, "root_frame": {"time": 1}}`))
	f.Add([]byte(`{"stacks": [[["a.py f:1;"], {"count": 1, "cpu_samples": 1}]]}`))
	path := filepath.Join(f.TempDir(), "out.json")
	f.Fuzz(func(t *testing.T, document []byte) {
		if err := os.WriteFile(path, document, 0o600); err != nil {
			t.Fatal(err)
		}
		readPyinstrument(path, "")
		readScalene(path, "")
	})
}

// What the samplers print beside their output.
func TestLogs(t *testing.T) {
	out := write(t, "a.py:f:2 3\n")
	python := truth.Interpreter{Path: "/nonexistent/python"}
	r, err := pySpy("", "", python, false).Read(write(t, "f (a.py:2) 3\n"), "py-spy> Wrote raw flamegraph data to 'x'. Samples: 3 Errors: 17")
	if err != nil || r.Failed != 17 {
		t.Errorf("py-spy: %d failed, %v, want 17", r.Failed, err)
	}
	r, err = tachyon(python, false).Read(out, "Captured 2,000 samples in 2.50 seconds\nError rate: 1.00\n")
	if err != nil || r.Failed != 20 || r.Time != 2500*time.Millisecond {
		t.Errorf("Tachyon: %d failed in %v, %v, want 20 in 2.5s", r.Failed, r.Time, err)
	}
	log := "      Total duration\x1b[0;30m . . . . \x1b[0m\x1b[1m2.25s\x1b[0m\n      Error rate\x1b[0;30m . . .\x1b[0m\x1b[1m12/1806\x1b[0m ([1m0.66%[0m)"
	if failed, took := austinSaid(log); failed != 12 || took != 2250*time.Millisecond {
		t.Errorf("Austin: %d failed in %v, want 12 in 2.25s", failed, took)
	}
}
