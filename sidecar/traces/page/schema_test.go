package page

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/omni-perf/omni-perf/sidecar/traces"
	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/changes"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/snapshot"
	"github.com/omni-perf/omni-perf/sidecar/traces/synth"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

const schemaFile = "../analysis.schema.json"

// documented are results of each kind: made-up ranks with everything on and compared
// with themselves, small traces of every shape by every rule, a damaged one, nothing.
func documented(t *testing.T) map[string]*Result {
	t.Helper()
	all, _ := training(t)
	ranks := []*traces.Analysis{all.Analysis, all.Analysis}
	compared := changes.New()
	changes.Add(compared, "yesterday", all.Analysis.Tables, all.Analysis.Tables)
	all.Analysis.Tables = append(all.Analysis.Tables, compared, traces.CompareRuns(ranks, []string{"run", "yesterday"}))
	var smaller bytes.Buffer
	if err := synth.WriteSnapshot(synth.Config{Seed: 4, Steps: 2}, &smaller); err != nil {
		t.Fatal(err)
	}
	memory, err := snapshot.Read(bytes.NewReader(smaller.Bytes()), snapshot.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	all.Snapshot = append(snapshot.Analyze(memory, snapshot.Options{Window: &snapshot.Window{To: 1e6}}), snapshot.Compare(memory, memory))
	results := map[string]*Result{"nothing": {}, "training": all}
	analyse := func(name string, opts analyses.Options, files ...string) {
		opts.Tables = analyses.AllTables()
		a, err := traces.Run(context.Background(), files, kineto.Options{}, opts)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		results[name] = &Result{Analysis: a}
	}
	folders, _ := filepath.Glob("../testdata/parity/*")
	for _, folder := range folders {
		files, _ := filepath.Glob(filepath.Join(folder, "*.json*"))
		if len(files) == 0 {
			t.Fatalf("no traces in %s", folder)
		}
		for _, mode := range []analyses.Mode{analyses.Exact, analyses.HTA, analyses.HTANs} {
			analyse(filepath.Base(folder)+" "+string(mode), analyses.Options{Mode: mode, GroupByShape: mode == analyses.Exact}, files...)
		}
	}
	cut := filepath.Join(t.TempDir(), "cut.json")
	text := `{"traceEvents": [{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#5", "pid": 1, "tid": 1, "ts": 0, "dur": 9}, {"ph": "X", "cat": "kernel", "name": "", "pid": 0, "tid": 7, "ts": 1, "dur": 2, "args": {"stream": 7}}, {"ph": "X", "ca`
	if err := os.WriteFile(cut, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	analyse("cut", analyses.Options{Steps: []int{5, 99}}, cut)
	return results
}

// Every document holds to the schema, the one of nothing too.
func TestDocumentsHoldToTheSchema(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range documented(t) {
		var text bytes.Buffer
		if err := r.WriteJSON(&text, func(*table.Table) bool { return true }); err != nil {
			t.Fatal(err)
		}
		document, err := jsonschema.UnmarshalJSON(&text)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(document); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// schemaNode is what a schema says of a value.
type schemaNode struct {
	ID          string `json:"$id"`
	Type        any
	Description string
	Required    []string
	Properties  map[string]*schemaNode
	Items       *schemaNode
	Closed      any `json:"additionalProperties"`
}

func readSchema(t *testing.T) *schemaNode {
	t.Helper()
	text, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	whole := new(schemaNode)
	if err := json.Unmarshal(text, whole); err != nil {
		t.Fatal(err)
	}
	return whole
}

// described checks that everything in a schema has a description, and that objects
// are open.
func (n *schemaNode) described(t *testing.T, path string) {
	t.Helper()
	if n.Description == "" {
		t.Errorf("%s has no description", path)
	}
	if n.Closed == false {
		t.Errorf("%s is not open", path)
	}
	for name, property := range n.Properties {
		property.described(t, path+"."+name)
	}
	for _, name := range n.Required {
		if n.Properties[name] == nil {
			t.Errorf("%s.%s is required, but not described", path, name)
		}
	}
	if n.Items != nil {
		n.Items.described(t, path+"[]")
	}
}

// The schema describes everything that is written, and nothing else; what is always
// written is required.
func TestTheSchemaTellsAll(t *testing.T) {
	whole := readSchema(t)
	if whole.ID == "" {
		t.Error("the schema has no $id")
	}
	whole.described(t, "analysis")
	left := maps.Clone(whole.Properties)
	for _, part := range []struct {
		path string
		node *schemaNode
		typ  reflect.Type
	}{
		{"analysis", whole, reflect.TypeFor[head]()},
		{"generator", whole.Properties["generator"], reflect.TypeFor[generator]()},
		{"headline", whole.Properties["headline"], reflect.TypeFor[headline]()},
		{"warnings", whole.Properties["warnings"].Items, reflect.TypeFor[warning]()},
		{"findings", whole.Properties["findings"].Items, reflect.TypeFor[finding]()},
		{"place", whole.Properties["findings"].Items.Properties["place"], reflect.TypeFor[documentPlace]()},
	} {
		var written []string
		for _, field := range reflect.VisibleFields(part.typ) {
			name := field.Tag.Get("json")
			written = append(written, name)
			if part.node.Properties[name] == nil {
				t.Errorf("%s.%s is not described", part.path, name)
			}
			if part.node == whole {
				delete(left, name)
			}
		}
		slices.Sort(written)
		if required := slices.Sorted(slices.Values(part.node.Required)); !slices.Equal(required, written) {
			t.Errorf("%s requires %v, but is written with %v", part.path, required, written)
		}
	}
	columns := map[string]int{} // how many of the tables have each
	tables := map[string]int{}
	for _, r := range documented(t) {
		for _, made := range r.tables() {
			described := whole.Properties[made.Name]
			if described == nil {
				t.Errorf("the table %s is not described", made.Name)
				continue
			}
			delete(left, made.Name)
			tables[made.Name]++
			for _, c := range made.Columns {
				columns[made.Name+"."+c.Name]++
				property := described.Items.Properties[c.Name]
				if property == nil {
					t.Errorf("the column %s.%s is not described", made.Name, c.Name)
				} else if want := typeOf(c); property.baseType() != want || c.Optional != property.nullable() && c.Kind == table.Text {
					t.Errorf("the column %s.%s is described as %v, want %s", made.Name, c.Name, property.Type, want)
				}
			}
		}
	}
	for name, n := range tables {
		row := whole.Properties[name].Items
		for column := range row.Properties {
			switch has := columns[name+"."+column]; {
			case has == 0:
				t.Errorf("the column %s.%s is never written", name, column)
			case has < n && slices.Contains(row.Required, column):
				t.Errorf("the column %s.%s is required, but %d of %d tables have it", name, column, has, n)
			}
		}
	}
	for name := range left {
		t.Errorf("%s is never written", name)
	}
}

// typeOf is what a schema calls a column's values.
func typeOf(c *table.Column) string {
	switch c.Kind {
	case table.Text:
		return "string"
	case table.Int, table.Bytes:
		return "integer"
	}
	return "number"
}

// baseType is the type of a value that is there.
func (n *schemaNode) baseType() string {
	if list, ok := n.Type.([]any); ok {
		return list[0].(string)
	}
	text, _ := n.Type.(string)
	return text
}

func (n *schemaNode) nullable() bool {
	list, _ := n.Type.([]any)
	return slices.Contains(list, any("null"))
}

// tablesOfHTA are the tables that keep the names, units and percentages of
// HolisticTraceAnalysis.
var tablesOfHTA = []string{
	analyses.TableTemporal, analyses.TableIdle, analyses.TableOverlap, analyses.TableLaunch, analyses.TableKernels,
	analyses.TableKernelTypes, analyses.TableKernelsTop, analyses.TableIdleIntervals, analyses.TableMemoryBandwidth, analyses.TableQueueLength,
}

// All other tables have shares of 0 to 1, with names that say so.
func TestSharesAreOfOne(t *testing.T) {
	for _, r := range documented(t) {
		for _, made := range r.tables() {
			if slices.Contains(tablesOfHTA, made.Name) {
				continue
			}
			for _, c := range made.Columns {
				if isShare := c.Name == "share" || strings.HasSuffix(c.Name, "_share"); c.Kind == table.Percent || isShare != (c.Kind == table.Ratio) {
					t.Errorf("%s.%s is no share of 0 to 1 by name and unit", made.Name, c.Name)
				}
				if c.Kind != table.Ratio {
					continue
				}
				for row, v := range c.Floats {
					if v < 0 || v > 1+1e-9 {
						t.Errorf("%s.%s has %g in row %d", made.Name, c.Name, v, row)
						break
					}
				}
			}
		}
	}
}
