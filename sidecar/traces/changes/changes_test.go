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
