package answers_test

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/show/answers"
	"github.com/omni-perf/omni-perf/sidecar/show/tables"
	"github.com/omni-perf/omni-perf/sidecar/testkit/specimen"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/interpret"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// kept are recordings of real programs, a dozen of all kinds.
func kept(t *testing.T) map[string]*report.View {
	t.Helper()
	programs, err := specimen.Load("../../testkit/specimen/programs")
	if err != nil {
		t.Fatal(err)
	}
	views := make(map[string]*report.View)
	for i := 0; i < len(programs) && len(views) < 12; i += len(programs) / 12 {
		s, err := specimen.Read(filepath.Join("../../testkit/specimen/testdata", programs[i].File()))
		if err != nil {
			t.Fatal(err)
		}
		rec := interpret.Of(s.Recording)
		d := diagnose.Options{Line: s.Line}.Run(rec)
		if views[programs[i].Name], err = report.Build(rec, &d, report.Options{Line: s.Line}); err != nil {
			t.Fatal(err)
		}
	}
	return views
}

// Five questions to each of twelve recordings, answered to the microsecond as the report's
// own tables have it.
func TestQuestionsOnKeptRecordings(t *testing.T) {
	asked := 0
	for name, v := range kept(t) {
		for _, q := range []struct {
			topic answers.Topic
			want  float64
		}{
			{answers.Lines, columnSum(t, v, "lines", "self_s", programName(v))},
			{answers.Functions, columnSum(t, v, "functions", "self_s", programName(v))},
			{answers.Processes, columnSum(t, v, "processes", "cpu_s", "")},
			{answers.Devices, columnSum(t, v, "devices", "busy_s", "")},
		} {
			got := 0.0
			for _, r := range ask(t, v, answers.Question{About: q.topic}).Rows {
				if r.Seconds != nil && (q.topic != answers.Lines || r.Name == "") {
					got += *r.Seconds
				}
			}
			if asked++; math.Abs(got-q.want) > 1e-5*math.Max(q.want, 1) {
				t.Errorf("%s, %s: %g s, want %g", name, q.topic, got, q.want)
			}
		}
		first := ask(t, v, answers.Question{About: answers.Headline}).Rows[0]
		if asked++; first.Says != v.Headline.Text {
			t.Errorf("%s: the headline is %q, want %q", name, first.Says, v.Headline.Text)
		}
		rows := ask(t, v, answers.Question{About: answers.Functions}).Rows
		if !slices.IsSortedFunc(rows, func(a, b answers.Row) int { return cmp.Compare(*b.Seconds, *a.Seconds) }) {
			t.Errorf("%s: functions are not by their time", name)
		}
	}
	if asked != 60 {
		t.Errorf("%d questions were asked, want 60", asked)
	}
}

// programName is what the tables call the process that a report is about.
func programName(v *report.View) string {
	p := &v.Processes[v.Program()]
	return fmt.Sprintf("%s %d", p.Role, p.PID)
}

// columnSum adds up a column of one of the report's tables; of the rows of one process, if one is named.
func columnSum(t *testing.T, v *report.View, name, column, process string) (sum float64) {
	t.Helper()
	for _, table := range tables.Of(v) {
		if table.Name != name {
			continue
		}
		at := slices.IndexFunc(table.Columns, func(c tables.Column) bool { return c.Name == column })
		for _, row := range table.Rows {
			if s, ok := row[at].(float64); ok && (process == "" || row[len(row)-1] == process) {
				sum += s
			}
		}
	}
	return sum
}
