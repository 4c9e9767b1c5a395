package truth

import (
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// legalCats is: <module> (line 9) calls cat (lines 1, 2), which calls tail (line 5) from line 2, and
// creates a generator kitten (line 20).
func legalCats(t *testing.T) *Legal {
	t.Helper()
	legal, err := parseLegal([]byte(`{
		"edges": [["<module>", 9, "cat"], ["cat", 2, "tail"]],
		"creations": [["cat", "kitten", 20]],
		"lines": {"<module>": [9], "cat": [1, 2], "tail": [5], "kitten": [20, 21]},
		"roots": ["<module>"], "depth": 3}`))
	if err != nil {
		t.Fatal(err)
	}
	return legal
}

func TestJudge(t *testing.T) {
	frames := func(names ...string) []string { return names }
	for _, test := range []struct {
		name   string
		sample Sample
		want   Verdict
	}{
		{"right", Sample{Functions: frames("<module>", "cat", "tail"), Lines: []int{9, 2, 5}}, Verdict{}},
		{"qualified", Sample{Functions: frames("<module>", "Pet.cat", "f.<locals>.tail")}, Verdict{}},
		{"unknown lines", Sample{Functions: frames("<module>", "cat"), Lines: []int{0, 0}}, Verdict{}},
		{"truncated and right", Sample{Functions: frames("<module>"), Truncated: true}, Verdict{Truncated: 1}},
		{"no frame", Sample{}, Verdict{Lost: 1}},
		{"no root", Sample{Functions: frames("cat", "tail")}, Verdict{Lost: 1}},
		{"skips a frame", Sample{Functions: frames("<module>", "tail")}, Verdict{Impossible: 1}},
		{"torn and truncated", Sample{Functions: frames("<module>", "tail"), Truncated: true}, Verdict{Impossible: 1, Truncated: 1}},
		{"unknown callee", Sample{Functions: frames("<module>", "dog")}, Verdict{Impossible: 1}},
		{"caller at another line", Sample{Functions: frames("<module>", "cat", "tail"), Lines: []int{9, 1, 5}}, Verdict{WrongLines: 1}},
		{"creates a generator", Sample{Functions: frames("<module>", "cat", "kitten"), Lines: []int{9, 1, 20}}, Verdict{}},
		{"runs a generator", Sample{Functions: frames("<module>", "cat", "kitten"), Lines: []int{9, 1, 21}}, Verdict{Impossible: 1}},
		{"leaf at another's line", Sample{Functions: frames("<module>", "cat"), Lines: []int{9, 5}}, Verdict{WrongLines: 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := legalCats(t).Judge([]Sample{test.sample})
			test.want.Samples = 1
			if len(got.Examples) == 0 != (test.want.Impossible+test.want.Lost+test.want.WrongLines == 0) {
				t.Errorf("examples %q", got.Examples)
			}
			got.Examples = nil
			if !sameCounts(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func sameCounts(a, b Verdict) bool {
	return a.Samples == b.Samples && a.Impossible == b.Impossible && a.Lost == b.Lost &&
		a.Truncated == b.Truncated && a.WrongLines == b.WrongLines
}

func TestJudgeDepth(t *testing.T) {
	legal, err := parseLegal([]byte(`{"edges": [["down", 2, "down"]], "lines": {}, "roots": ["down"], "depth": 2}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := legal.Judge([]Sample{{Functions: []string{"down", "down"}}}); got.Impossible != 0 {
		t.Errorf("as deep as allowed: %+v", got)
	}
	if got := legal.Judge([]Sample{{Functions: []string{"down", "down", "down"}}}); got.Impossible != 1 {
		t.Errorf("too deep: %+v", got)
	}
}

func TestDistance(t *testing.T) {
	type weights = map[string]float64
	for _, test := range []struct {
		got, want weights
		distance  float64
	}{
		{weights{"a": 1, "b": 3}, weights{"a": 10, "b": 30}, 0},
		{weights{"a": 1, "b": 1}, weights{"a": 1, "b": 3}, 0.25},
		{weights{"a": 1}, weights{"b": 1}, 1},
		{weights{}, weights{"a": 1}, 1},
	} {
		if got := Distance(test.got, test.want); math.Abs(got-test.distance) > 1e-9 {
			t.Errorf("Distance(%v, %v) = %v, want %v", test.got, test.want, got, test.distance)
		}
	}
}

func TestLeafLines(t *testing.T) {
	samples := []Sample{
		{Functions: []string{"<module>", "total"}, Lines: []int{1, 7}},
		{Functions: []string{"<module>", "total"}, Lines: []int{1, 8}},
		{Functions: []string{"<module>", "total"}, Lines: []int{1, 8}, Truncated: true},
		{Functions: []string{"<module>", "other"}, Lines: []int{1, 8}},
		{Functions: []string{"<module>", "total"}},
	}
	wrong, judged := LeafLines(samples, map[string]int{"total": 7})
	if wrong != 1 || judged != 2 {
		t.Errorf("got %d wrong of %d, want 1 of 2", wrong, judged)
	}
}

func TestDuringRounds(t *testing.T) {
	got := DuringRounds([]Sample{
		{Functions: []string{"<module>", "_find_and_load"}},
		{Functions: []string{"<module>", "drive", "repeat", "one_round"}},
		{Functions: []string{"_bootstrap", "run"}},
		{},
	})
	if len(got) != 3 || len(got[0].Functions) != 4 {
		t.Errorf("got %v, want all but the import", got)
	}
}

func TestInterpreterList(t *testing.T) {
	t.Setenv("OMNI_PERF_PYTHONS", "3.12=/a/python,3.14-container=/b/python")
	got, err := Interpreters()
	if err != nil {
		t.Fatal(err)
	}
	want := []Interpreter{{"3.12", "", "/a/python"}, {"3.14", "container", "/b/python"}}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %v, want %v", got, want)
	}
	t.Setenv("OMNI_PERF_PYTHONS", "/a/python")
	if got, err := Interpreters(); err == nil {
		t.Errorf("a list without versions gives %v", got)
	}
}

// Without a list it is looked for: what a version manager puts on PATH for a version that is not chosen only
// says so, and stands for no interpreter.
func TestInterpretersAreThoseThatRun(t *testing.T) {
	script, err := os.ReadFile("../../../tools/interpreters")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	real := filepath.Join(folder, "pyenv/versions/3.13.9/bin/python3.13")
	const shim = "#!/bin/sh\necho 'pyenv: python: command not found' >&2\nexit 127\n"
	for path, text := range map[string]string{
		"checkout/go.mod": "module m\n", "checkout/tools/interpreters": string(script),
		"bin/python3": shim, "bin/python3.12": shim, "bin/python3.13": shim,
		"pyenv/versions/3.13.9/bin/python3.13": "#!/bin/sh\necho cpython 3.13 " + real + "\n",
	} {
		path = filepath.Join(folder, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("OMNI_PERF_PYTHONS", "")
	t.Setenv("PATH", filepath.Join(folder, "bin")+":/usr/bin:/bin")
	t.Setenv("PYENV_ROOT", filepath.Join(folder, "pyenv"))
	t.Chdir(filepath.Join(folder, "checkout"))
	found, err := Interpreters()
	if err != nil {
		t.Fatal(err)
	}
	paths := map[string]string{}
	for _, python := range found {
		paths[python.String()] = python.Path
	}
	if paths["3.13"] != real && !strings.HasPrefix(paths["3.13"], "/usr/bin/") {
		t.Errorf("3.13 is %q, want %s", paths["3.13"], real)
	}
	for version, path := range paths {
		if strings.HasPrefix(path, filepath.Join(folder, "bin")) {
			t.Errorf("%s is %s, which does not run", version, path)
		}
	}
	if err := runs(filepath.Join(folder, "bin/python3")); err == nil || !strings.Contains(err.Error(), "pyenv: python: command not found") {
		t.Errorf("a name that does not run: %v, want what it says", err)
	}
}

// Every workload runs, ends when asked to, and can be observed, on every version.
func TestWorkloads(t *testing.T) {
	EachInterpreter(t, func(t *testing.T, python Interpreter) {
		t.Parallel()
		for _, test := range []struct {
			workload Workload
			chain    string // one stack that must be legal, leaf last
		}{
			{Work, "<module> drive repeat one_round north_1 north_2 north_3 north_4 north_5 north_6 north_7 north_leaf"},
			{Flat, "<module> drive repeat one_round tock tock_leaf"},
			{Deep, "one_round red_1 red_2"},
			{Generators(20 * time.Microsecond), "cats cat_relay cat_map cat_source cat_work"},
			{Tasks(100 * time.Microsecond), "_run reader reader_step reader_work"},
			{Threads(5), "_bootstrap _bootstrap_inner run idle idle_below wait"},
			{Handover, "run compute east_1"},
			{Native, "one_round hashing"},
			{Parts, "one_round dora dora_below"},
			{Lines, "one_round product"},
		} {
			target := Start(t, python, test.workload)
			legal, err := target.Legal()
			if err != nil {
				t.Fatal(err)
			}
			if reason := legal.impossible(strings.Fields(test.chain), nil); reason != "" {
				t.Errorf("%s: %s", test.workload.Name, reason)
			}
			measured, err := target.Stop()
			if err != nil {
				t.Fatal(err)
			}
			if measured.Rounds == 0 || measured.WallNs <= 0 {
				t.Errorf("%s measured %+v", test.workload.Name, measured)
			}
			if test.workload.Name == "parts" && len(measured.SpentNs) != 5 {
				t.Errorf("time shares %v, want those of 5 parts", measured.SpentNs)
			}
			if test.workload.Name == "lines" && len(measured.Hot) != 5 {
				t.Errorf("hot lines %v, want those of 5 functions", measured.Hot)
			}
		}
	})
}

// A workload from elsewhere, held until it may go, and with an argument before the script.
func TestSettings(t *testing.T) {
	python := Any(t)
	source := "import harness, sys\nharness.drive(lambda: None, lambda: {'spent_ns': {'optimize': sys.flags.optimize}})\n"
	target, err := Launch(python.Path, Workload{Name: "other", Source: source}, Settings{Rounds: 7, Held: true, Wrap: []string{"-O"}})
	if err != nil {
		t.Fatal(err)
	}
	target.Go()
	got, err := target.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if got.Rounds != 7 || got.SpentNs["optimize"] != 1 {
		t.Errorf("got %+v, want 7 rounds under -O", got)
	}
}

func TestLaunchFailure(t *testing.T) {
	if _, err := Launch("/nonexistent/python", Work, Settings{}); err == nil {
		t.Error("an interpreter that does not exist was started")
	}
	python := Any(t)
	if _, err := Launch(python.Path, Workload{Name: "nonexistent"}, Settings{}); err == nil || !strings.Contains(err.Error(), "nonexistent") {
		t.Errorf("a workload that does not exist: %v", err)
	}
}

// The first interpreter's dump is read whole; its entries must fit their own tables' lengths.
func TestLineTables(t *testing.T) {
	python := Any(t)
	path, err := DumpLineTables(python.Path, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	objects, units := 0, 0
	for table, err := range LineTables(file) {
		if err != nil {
			t.Fatal(err)
		}
		objects++
		units += len(table.Lines)
		if got := unitsOf(table.Table); got != len(table.Lines) {
			t.Fatalf("%s: its table covers %d code units, its lines %d", table.Function, got, len(table.Lines))
		}
	}
	t.Logf("%d code objects, %d code units", objects, units)
	if objects < 10_000 {
		t.Errorf("%d code objects, want those of a whole standard library", objects)
	}
}

// unitsOf adds up the lengths of a location table's entries: an entry's first byte has bit 7 set and
// its length − 1 in the lowest three bits.
func unitsOf(table []byte) int {
	units := 0
	for _, b := range table {
		if b&0x80 != 0 {
			units += int(b&7) + 1
		}
	}
	return units
}

func TestLineTableCutShort(t *testing.T) {
	whole := "\x01\x00\x00\x00\x07\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00" + "f" + "\x80\x00" + "\x01\x00\x00\x00\x07\x00\x00\x00"
	for table, err := range LineTables(strings.NewReader(whole)) {
		if err != nil || table.Function != "f" || table.FirstLine != 7 || len(table.Lines) != 1 || table.Lines[0] != 7 {
			t.Errorf("got %+v, %v", table, err)
		}
	}
	if _, err := readLineTable(strings.NewReader(whole[:20])); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("a table cut short gives %v", err)
	}
	if _, err := readLineTable(strings.NewReader(whole[:5])); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a head cut short gives %v", err)
	}
}

// TestNumbersOfCompiledCode: code that a program compiles under counted names is the same in each run.
func TestNumbersOfCompiledCode(t *testing.T) {
	caller := Function{File: "/lib/decorators.py", Name: "argmap.__call__.<locals>.func", FirstLine: 784}
	pairs := Pairs{{caller, Function{File: "<argmap> compilation #", Name: "argmap_sample_#", FirstLine: 1}}: true}
	if pair, impossible := pairs.Impossible([]Function{caller, {File: "<argmap> compilation 742", Name: "argmap_sample_739", FirstLine: 1}}); impossible {
		t.Errorf("%v is taken for impossible", pair)
	}
	if _, impossible := pairs.Impossible([]Function{caller, {File: "/lib/sample_739.py", Name: "argmap_sample_739", FirstLine: 1}}); !impossible {
		t.Error("the name of a file counts")
	}
}

// TestTracedCalls traces real code and takes a stack apart: neighbours that call each other, and ones that do not.
func TestTracedCalls(t *testing.T) {
	EachInterpreter(t, func(t *testing.T, python Interpreter) {
		if python.Build != "" {
			t.Skip("the first choice of each version is enough here")
		}
		pairs := make(Pairs)
		if err := pairs.TraceCalls(python.Path, RealProgram{Name: "json", Arguments: []string{"import", "json.tool"}}); err != nil {
			t.Fatal(err)
		}
		named := func(name string) (found Function) {
			for pair := range pairs {
				if pair[1].Name == name {
					found = pair[1]
				}
			}
			if found.Name == "" {
				t.Fatalf("no call of %s in %d pairs", name, len(pairs))
			}
			return found
		}
		main := Function{File: "/elsewhere/" + driver, Name: "main", FirstLine: 1}
		program, load, findSpec := named("run_program"), named("_find_and_load"), named("_find_spec")
		program.File = "/elsewhere/" + driver // it lies in another folder each time
		imports := named("import_module")
		if pair, impossible := pairs.Impossible([]Function{main, program, imports}); impossible {
			t.Errorf("%v is taken for impossible", pair)
		}
		for _, stack := range [][]Function{{main, program, imports, findSpec}, {findSpec, load}} {
			if _, impossible := pairs.Impossible(stack); !impossible {
				t.Errorf("%v is taken for possible", stack)
			}
		}
	})
}
