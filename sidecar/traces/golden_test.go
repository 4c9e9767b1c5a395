package traces

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/testkit/requirement"
	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// sharedTraces finds the folder of real traces beside the checkout; the test
// is skipped where it is absent.
func sharedTraces(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for dir != filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			traces := filepath.Join(dir, "..", "shared", "traces")
			if _, err := os.Stat(filepath.Join(traces, "README.md")); err != nil {
				requirement.Missing(t, requirement.Traces, "no real traces at ../shared/traces: %v", err)
			}
			return traces
		}
		dir = filepath.Dir(dir)
	}
	t.Skip("not inside a checkout")
	return ""
}

// goldenKeys are the columns by which compare.py pairs rows.
var goldenKeys = map[string][]string{
	analyses.TableTemporal: {"rank"}, analyses.TableIdle: {"rank", "stream", "idle_category"}, analyses.TableOverlap: {"rank"},
	analyses.TableLaunch: {"rank", "correlation"}, analyses.TableKernels: {"rank", "kernel_type", "name"},
	analyses.TableKernelTypes: {"kernel_type"}, analyses.TableKernelsTop: {"rank", "kernel_type", "name"},
	analyses.TableIdleIntervals:   {"rank", "stream", "idle_category"},
	analyses.TableMemoryBandwidth: {"rank", "name"}, analyses.TableQueueLength: {"rank", "stream"},
}

var goldenTables = []string{analyses.TableTemporal, analyses.TableIdle, analyses.TableOverlap, analyses.TableLaunch, analyses.TableKernels,
	analyses.TableKernelTypes, analyses.TableKernelsTop, analyses.TableIdleIntervals, analyses.TableMemoryBandwidth, analyses.TableQueueLength}

// readGolden returns a golden's rows as header → cell, nil if there is none.
func readGolden(t *testing.T, dir, table string) []map[string]string {
	t.Helper()
	var in io.Reader
	if text, err := os.ReadFile(filepath.Join(dir, table+".csv")); err == nil {
		in = bytes.NewReader(text)
	} else if f, err := os.Open(filepath.Join(dir, table+".csv.gz")); err == nil {
		defer f.Close()
		if in, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	} else {
		return nil
	}
	lines, err := csv.NewReader(in).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	rows := []map[string]string{}
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, cell := range line {
			row[lines[0][i]] = cell
		}
		rows = append(rows, row)
	}
	return rows
}

// cellEqual compares with compare.py's tolerances.
func cellEqual(c *table.Column, row int, golden string) bool {
	if c.Kind == table.Text {
		return c.Text[row] == golden
	}
	want, err := strconv.ParseFloat(golden, 64)
	if err != nil {
		want = math.NaN()
	}
	if c.Kind == table.Int {
		return c.Ints[row] == int64(want)
	}
	got := c.Floats[row]
	if math.IsNaN(got) || math.IsNaN(want) {
		return math.IsNaN(got) && math.IsNaN(want)
	}
	var tolerance float64
	switch {
	case c.Name == "percentage":
		tolerance = 0.01 + 0.05
	case c.Kind == table.Percent:
		tolerance = 0.01
	case c.Kind == table.Ratio:
		tolerance = 0.0001 + 0.005
	case c.Kind == table.Micros:
		tolerance = max(1, 1e-4*math.Abs(want))
	default:
		tolerance = max(1e-6, 1e-4*math.Abs(want))
	}
	return math.Abs(got-want) <= tolerance+1e-9
}

// keyOf joins a row's key cells.
func keyOf(keys []string, cell func(string) string) string {
	parts := make([]string, len(keys))
	for i, k := range keys {
		parts[i] = cell(k)
		if f, err := strconv.ParseFloat(parts[i], 64); err == nil && k != "name" {
			parts[i] = strconv.FormatFloat(f, 'f', -1, 64)
		}
	}
	return strings.Join(parts, "|")
}

// compareGolden returns one line per cell that differs.
func compareGolden(ours *table.Table, golden []map[string]string) (differences []string) {
	keys := goldenKeys[ours.Name]
	if len(golden) > 0 && hasKey(golden[0], "device") {
		keys = append([]string{"device"}, keys...)
	}
	columns := []*table.Column{}
	for _, c := range ours.Columns {
		if len(golden) == 0 || hasKey(golden[0], c.HTAName) {
			columns = append(columns, c)
		}
	}
	rows, theirs := map[string][]int{}, map[string][]int{}
	for r := range ours.Len() {
		k := keyOf(keys, func(name string) string { return ours.Column(name).Format(r) })
		rows[k] = append(rows[k], r)
	}
	for r := range golden {
		k := keyOf(keys, func(name string) string { return golden[r][ours.Column(name).HTAName] })
		theirs[k] = append(theirs[k], r)
	}
	all := map[string]bool{}
	for k := range rows {
		all[k] = true
	}
	for k := range theirs {
		all[k] = true
	}
	for _, k := range slices.Sorted(maps.Keys(all)) {
		a, b := rows[k], theirs[k]
		sort.SliceStable(a, func(i, j int) bool {
			return lessRow(columns, func(c *table.Column) string { return c.Format(a[i]) }, func(c *table.Column) string { return c.Format(a[j]) })
		})
		sort.SliceStable(b, func(i, j int) bool {
			return lessRow(columns, func(c *table.Column) string { return golden[b[i]][c.HTAName] }, func(c *table.Column) string { return golden[b[j]][c.HTAName] })
		})
		for i := range max(len(a), len(b)) {
			switch {
			case i >= len(a):
				differences = append(differences, fmt.Sprintf("%s[%.120s]: row missing", ours.Name, k))
			case i >= len(b):
				differences = append(differences, fmt.Sprintf("%s[%.120s]: row too many", ours.Name, k))
			default:
				for _, c := range columns {
					if want := golden[b[i]][c.HTAName]; !cellEqual(c, a[i], want) {
						differences = append(differences, fmt.Sprintf("%s[%.120s].%s: got %s, want %s", ours.Name, k, c.Name, c.Format(a[i]), want))
					}
				}
			}
		}
	}
	return differences
}

func hasKey(m map[string]string, key string) bool {
	_, ok := m[key]
	return ok
}

// lessRow orders rows of one key by their numbers, column by column.
func lessRow(columns []*table.Column, a, b func(*table.Column) string) bool {
	for _, c := range columns {
		x, errX := strconv.ParseFloat(a(c), 64)
		y, errY := strconv.ParseFloat(b(c), 64)
		if errX == nil && errY == nil && x != y {
			return x < y
		}
		if (errX == nil) != (errY == nil) {
			return errX != nil
		}
	}
	return false
}

func loadShared(t testing.TB, dir string, opts kineto.Options) *kineto.Set {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "*.json*"))
	paths := []string{}
	for _, f := range files {
		if filepath.Base(f) != "source.json" {
			paths = append(paths, f)
		}
	}
	set, err := kineto.Load(context.Background(), paths, opts)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// TestParity compares small traces, made up in the shapes that profilers have
// written, with what the exact rules and HolisticTraceAnalysis say about them;
// see testdata/make_parity.py.
func TestParity(t *testing.T) { compareFolders(t, filepath.Join("testdata", "parity")) }

// TestGolden does the same with every real trace.
func TestGolden(t *testing.T) { compareFolders(t, sharedTraces(t)) }

func compareFolders(t *testing.T, root string) {
	folders, _ := filepath.Glob(filepath.Join(root, "*", "exact"))
	if len(folders) == 0 {
		t.Fatal("no goldens")
	}
	for _, exact := range folders {
		dir := filepath.Dir(exact)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Run("exact", func(t *testing.T) {
				checkGolden(t, Analyze(loadShared(t, dir, kineto.Options{}), analyses.Options{}), exact, nil)
			})
			set := loadShared(t, dir, kineto.Options{Frame: true})
			for _, w := range set.Warnings {
				t.Log(w)
			}
			variants := map[string]analyses.Options{
				"default":   {Mode: analyses.HTA},
				"ns":        {Mode: analyses.HTANs},
				"last_step": {Mode: analyses.HTA, IncludeLastStep: true},
			}
			for _, variant := range slices.Sorted(maps.Keys(variants)) {
				golden := filepath.Join(dir, "hta", variant)
				_, err := os.Stat(golden)
				if err != nil {
					golden = filepath.Join(dir, "hta", "default") // left out: its tables are equal
				}
				t.Run(variant, func(t *testing.T) {
					if err == nil {
						checkSteps(t, Analyze(set, variants[variant]), golden)
					}
					checkGolden(t, Analyze(set, variants[variant]), golden, knownFor(filepath.Base(dir), variant))
				})
			}
		})
	}
}

// checkGolden reports every difference that known does not list by its prefix.
func checkGolden(t *testing.T, a *Analysis, dir string, known []string) {
	t.Helper()
	used := map[string]bool{}
	for _, name := range goldenTables {
		golden := readGolden(t, dir, name)
		ours := a.Table(name)
		if golden == nil {
			continue
		}
		if ours == nil {
			t.Errorf("%s: not computed", name)
			continue
		}
		shown := 0
	differences:
		for _, d := range compareGolden(ours, golden) {
			for _, k := range known {
				if strings.HasPrefix(d, k) {
					used[k] = true
					continue differences
				}
			}
			if shown++; shown <= 5 {
				t.Error(d)
			}
		}
		if shown > 5 {
			t.Errorf("%s: %d differences more", name, shown-5)
		}
	}
	for _, k := range known {
		if !used[k] {
			t.Errorf("listed as a known difference, but there is none: %s", k)
		}
	}
}

// checkSteps compares the first rank's steps with HTA's get_profiler_steps.
func checkSteps(t *testing.T, a *Analysis, dir string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "status.json"))
	if err != nil {
		t.Fatal(err)
	}
	var status struct {
		Steps []int `json:"profiler_steps_value"`
	}
	if err := json.Unmarshal(text, &status); err != nil {
		t.Fatal(err)
	}
	if got := a.ProfilerSteps[a.Ranks[0]]; !slices.Equal(got, status.Steps) {
		t.Errorf("got steps %v, want %v", got, status.Steps)
	}
}
