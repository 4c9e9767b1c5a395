package changes

import (
	"fmt"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// run is a run of one rank: the lengths of its steps, and the device time of two operators in all of them, µs.
func run(steps []float64, mm, copies float64) Tables {
	lengths := table.New(analyses.TableSteps, "", &table.Column{Name: "rank", Kind: table.Int},
		&table.Column{Name: "duration_us", Kind: table.Micros}, &table.Column{Name: "counted", Kind: table.Text})
	for _, us := range steps {
		lengths.Add(0, us, "yes")
	}
	lengths.Add(0, 9e9, "dropped")
	operators := table.New(analyses.TableOperators, "", &table.Column{Name: "rank", Kind: table.Int},
		&table.Column{Name: "name", Kind: table.Text}, &table.Column{Name: "self_device_us", Kind: table.Micros})
	operators.Add(0, "aten::mm", mm)
	operators.Add(0, "ProfilerStep*", 1.0)
	if copies > 0 {
		operators.Add(0, "aten::copy_", copies)
	}
	return Tables{lengths, operators}
}

func rows(t *table.Table) string {
	var lines []string
	for r := range t.Len() {
		lines = append(lines, fmt.Sprintf("%s %s %s %.4g %.4g %.4g %s", t.TextAt("kind", r), t.TextAt("name", r), t.TextAt("per", r),
			t.FloatAt("before_us", r), t.FloatAt("after_us", r), t.FloatAt("change_us", r), t.TextAt("verdict", r)))
	}
	return strings.Join(lines, "\n")
}

// TestAdd: figures are of one step; the whole comes first, then what changed most.
func TestAdd(t *testing.T) {
	for name, c := range map[string]struct {
		before, after Tables
		want          string
	}{
		"slower steps": {run([]float64{100, 102, 98, 100}, 200, 40), run([]float64{150, 151}, 200, 0), `
			step a step step 100 150.5 50.5 more
			operator aten::mm step 50 100 50 more
			operator aten::copy_ step 10 0 -10 gone`},
		"the same": {run([]float64{100, 102, 98}, 210, 0), run([]float64{101, 100, 99}, 212, 0), `
			step a step step 100 100 0 
			operator aten::mm step 70 70.67 0.6667 `},
		"steps that vary": {run([]float64{50, 150, 100}, 300, 0), run([]float64{130, 80, 120}, 300, 0), `
			step a step step 100 110 10 `},
		"no steps in one: by rank": {run(nil, 200, 0), run([]float64{150, 151}, 400, 0), `
			operator aten::mm rank 200 400 200 more`},
	} {
		t.Run(name, func(t *testing.T) {
			changes := New()
			Add(changes, "base", c.before, c.after)
			want := strings.ReplaceAll(strings.TrimPrefix(c.want, "\n"), "\t", "")
			if got := rows(changes); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// work is a table of what each step did: rows of step, kind, name, operator, position and µs.
func work(rows ...[]any) *table.Table {
	t := table.New(analyses.TableWorkByStep, "", &table.Column{Name: "rank", Kind: table.Int}, &table.Column{Name: "step", Kind: table.Int},
		&table.Column{Name: "kind", Kind: table.Text}, &table.Column{Name: "name", Kind: table.Text}, &table.Column{Name: "operator", Kind: table.Text},
		&table.Column{Name: "kernel_type", Kind: table.Text}, &table.Column{Name: "position", Kind: table.Int}, &table.Column{Name: "us", Kind: table.Micros})
	for _, row := range rows {
		t.Add(append([]any{0}, row...)...)
	}
	return t
}

// numbered are steps 0, 1 … of equal length, 100 µs.
func numbered(n int) *table.Table {
	t := table.New(analyses.TableSteps, "", &table.Column{Name: "rank", Kind: table.Int}, &table.Column{Name: "step", Kind: table.Int},
		&table.Column{Name: "duration_us", Kind: table.Micros}, &table.Column{Name: "counted", Kind: table.Text})
	for i := range n {
		t.Add(0, i, 100.0, "yes")
	}
	return t
}

// totals is a table of sums by name.
func totals(of, column string, rows ...[]any) *table.Table {
	t := table.New(of, "", &table.Column{Name: "rank", Kind: table.Int}, &table.Column{Name: "name", Kind: table.Text}, &table.Column{Name: column, Kind: table.Micros})
	for _, row := range rows {
		t.Add(append([]any{0}, row...)...)
	}
	return t
}

// TestSpread: what differs as much among the steps of a run as between the runs has not changed.
func TestSpread(t *testing.T) {
	run := func(us ...float64) Tables {
		each, sum := work(), 0.0
		for step, of := range us {
			each.Add(0, step, analyses.WorkOperator, "aten::mm", "", "", 0, of)
			sum += of
		}
		return Tables{numbered(len(us)), each, totals(analyses.TableOperators, "self_device_us", []any{"aten::mm", sum})}
	}
	for name, c := range map[string]struct {
		before, after Tables
		want          string
	}{
		"steps alike":  {run(20, 20, 20, 20), run(30, 30, 30, 30), "operator aten::mm step 20 30 10 more"},
		"steps differ": {run(5, 40, 5, 30), run(60, 10, 40, 10), "operator aten::mm step 20 30 10 "},
	} {
		changes := New()
		Add(changes, "base", c.before, c.after)
		if got := rows(changes.Rows([]int{1})); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// TestRenamedKernels: a kernel with another name is the same if the same operator launches it at the same place; what takes
// the place of nothing is new.
func TestRenamedKernels(t *testing.T) {
	const kernel = analyses.WorkKernel
	before := Tables{numbered(2), work(
		[]any{0, kernel, "volta_gemm", "aten::mm", "COMPUTATION", 0, 30.0}, []any{1, kernel, "volta_gemm", "aten::mm", "COMPUTATION", 0, 30.0},
		[]any{0, kernel, "reduce", "aten::sum", "COMPUTATION", 0, 10.0}, []any{1, kernel, "reduce", "aten::sum", "COMPUTATION", 0, 10.0},
	), totals(analyses.TableKernels, "sum_us", []any{"volta_gemm", 60.0}, []any{"reduce", 20.0})}
	after := Tables{numbered(2), work(
		[]any{0, kernel, "Memset", "aten::mm", "MEMORY", 0, 30.0}, []any{1, kernel, "Memset", "aten::mm", "MEMORY", 0, 30.0},
		[]any{0, kernel, "ampere_gemm", "aten::mm", "COMPUTATION", 0, 15.0}, []any{1, kernel, "ampere_gemm", "aten::mm", "COMPUTATION", 0, 15.0},
		[]any{0, kernel, "reduce", "aten::sum", "COMPUTATION", 0, 10.0}, []any{1, kernel, "reduce", "aten::sum", "COMPUTATION", 0, 10.0},
	), totals(analyses.TableKernels, "sum_us", []any{"Memset", 60.0}, []any{"ampere_gemm", 30.0}, []any{"reduce", 20.0})}
	changes := New()
	Add(changes, "base", before, after)
	var got []string
	for r := range changes.Len() {
		got = append(got, fmt.Sprintf("%s was %q %s", changes.TextAt("name", r), changes.TextAt("was", r), changes.TextAt("verdict", r)))
	}
	want := `a step was "" ; Memset was "" new; ampere_gemm was "volta_gemm" less`
	if text := strings.Join(got, "; "); text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

// TestCommunicationAndMemory: a collective is compared by size and per call, waiting per step, memory in bytes.
func TestCommunicationAndMemory(t *testing.T) {
	run := func(median, waited float64, peak int) Tables {
		sizes := table.New(analyses.TableCommunication, "", &table.Column{Name: "collective", Kind: table.Text}, &table.Column{Name: "dtype", Kind: table.Text},
			&table.Column{Name: "group_size", Kind: table.Int}, &table.Column{Name: "size_bytes", Kind: table.Bytes}, &table.Column{Name: "median_us", Kind: table.Micros})
		sizes.Add("allreduce", "Float", 8, 4096, median)
		waits := table.New(analyses.TableStragglers, "", &table.Column{Name: "rank", Kind: table.Int},
			&table.Column{Name: "waited_us", Kind: table.Micros}, &table.Column{Name: "transfer_us", Kind: table.Micros})
		waits.Add(0, waited, 20.0)
		peaks := table.New(analyses.TableMemoryPeaks, "", &table.Column{Name: "rank", Kind: table.Int}, &table.Column{Name: "device", Kind: table.Text},
			&table.Column{Name: "peak_allocated_bytes", Kind: table.Bytes})
		peaks.Add(0, "device 0", peak)
		return Tables{numbered(2), sizes, waits, peaks}
	}
	changes := New()
	Add(changes, "base", run(10, 40, 100<<20), run(30, 100, 150<<20))
	want := strings.ReplaceAll(`step a step step 100 100 0 
		communication waiting for other ranks step 20 50 30 more
		collective allreduce of 4096 bytes, Float, 8 ranks call 10 30 20 more
		memory most allocated, device 0 rank NaN NaN NaN more`, "\t", "")
	if got := rows(changes); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if last := changes.Len() - 1; changes.IntAt("change_bytes", last) != 50<<20 {
		t.Errorf("memory changed by %d bytes", changes.IntAt("change_bytes", last))
	}
}
