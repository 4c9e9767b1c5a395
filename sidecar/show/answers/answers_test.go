package answers_test

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/show/answers"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

func read(t testing.TB, name string) *report.View {
	t.Helper()
	text, err := os.ReadFile("../../understand/report/testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	v, err := report.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

var reports = []string{"cell", "kernel", "merged", "script"}

func ask(t testing.TB, v *report.View, q answers.Question) answers.Answer {
	t.Helper()
	a, err := answers.Of(v, q)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestEveryTopicOfEveryReportHasAShortAnswer(t *testing.T) {
	for _, name := range reports {
		for _, topic := range answers.Names() {
			a := ask(t, read(t, name), answers.Question{About: answers.Topic(topic)})
			again := ask(t, read(t, name), answers.Question{About: answers.Topic(topic)})
			text := a.Text(answers.MaxBytes)
			if len(text) > answers.MaxBytes || text != again.Text(answers.MaxBytes) {
				t.Errorf("%s of %s: %d bytes, twice the same: %v", topic, name, len(text), text == again.Text(answers.MaxBytes))
			}
			encoded, err := a.JSON(answers.MaxBytes)
			var back answers.Answer
			if err != nil || len(encoded) > answers.MaxBytes+1 || json.Unmarshal(encoded, &back) != nil {
				t.Fatalf("%s of %s: %d bytes of JSON, %v", topic, name, len(encoded), err)
			}
			if len(back.Rows)+back.LeftOut != len(a.Rows) {
				t.Errorf("%s of %s: %d rows and %d left out, want %d", topic, name, len(back.Rows), back.LeftOut, len(a.Rows))
			}
		}
	}
}

func TestWhatTheTracesHaveIsAnswered(t *testing.T) {
	v := read(t, "merged")
	a := ask(t, v, answers.Question{About: answers.Operators})
	first := v.Operators[0]
	if len(a.Rows) != len(v.Operators) || a.Rows[0].Name != first.Name || *a.Rows[0].Seconds != report.Seconds(first.SelfCPUNS) {
		t.Errorf("%+v, want %+v first of %d", a.Rows[0], first, len(v.Operators))
	}
	if a := ask(t, v, answers.Question{About: answers.Kernels}); len(a.Rows) != len(v.KernelTimes) || len(a.Rows) == 0 {
		t.Errorf("%d kernels, want %d", len(a.Rows), len(v.KernelTimes))
	}
	bare := read(t, "script")
	bare.Steps = nil
	if a := ask(t, bare, answers.Question{About: answers.Steps}); strings.Count(a.Text(0), "\n") != 1 || !strings.HasSuffix(a.Text(0), "none are known\n") {
		t.Errorf("%q, want one line: that there are none is said once", a.Text(0))
	}
	if a := ask(t, read(t, "script"), answers.Question{About: answers.Operators}); !strings.Contains(a.About, "no trace of torch.profiler") {
		t.Error(a.About)
	}
}

func TestWhatHasNoRoomIsCounted(t *testing.T) {
	v := read(t, "script")
	whole := ask(t, v, answers.Question{About: answers.Lines})
	for most := 150; most < 600; most += 7 {
		text := whole.Text(most)
		rows := strings.Count(text, "\n") - 1
		if rows < len(whole.Rows) {
			rows--
			if !strings.HasSuffix(text, "left out.\n") {
				t.Fatalf("in %d bytes: nothing says that rows are left out:\n%s", most, text)
			}
		}
		if len(text) > most && rows > 0 {
			t.Errorf("%d bytes, allowed are %d:\n%s", len(text), most, text)
		}
	}
}

func TestTheHeadlineIsThatOfTheReport(t *testing.T) {
	v := read(t, "script")
	first := ask(t, v, answers.Question{About: answers.Headline}).Rows[0]
	if first.Says != v.Headline.Text || first.Advice != v.Headline.Hint || first.Place != "~/project/script.py:2" || first.Code != "for x in loader:" {
		t.Errorf("got %+v", first)
	}
}

// The parts of a recording add up to the whole, which is what the report's tables have.
func TestStretchesAddUp(t *testing.T) {
	for _, name := range reports {
		v := read(t, name)
		whole := sums(t, v, 0, 0)
		duration := report.Seconds(v.DurationNS)
		parts := make(map[string]float64)
		for i := range 8 {
			for k, s := range sums(t, v, float64(i)*duration/8, float64(i+1)*duration/8) {
				parts[k] += s
			}
		}
		for k, s := range whole {
			if math.Abs(parts[k]-s) > 2e-5 {
				t.Errorf("%s: %s is %g s in all, its parts %g s", name, k, s, parts[k])
			}
		}
		for _, r := range ask(t, v, answers.Question{About: answers.Lines}).Rows {
			if r.Name == "" && math.Abs(whole[r.Place]-*r.Seconds) > 2e-5 { // of the program itself
				t.Errorf("%s: %s has %g s in the stretch of all, %g s in the table", name, r.Place, whole[r.Place], *r.Seconds)
			}
		}
	}
}

// sums are the seconds of a stretch's rows by what they are of.
func sums(t *testing.T, v *report.View, from, to float64) map[string]float64 {
	t.Helper()
	seconds := make(map[string]float64)
	for _, r := range ask(t, v, answers.Question{About: answers.Stretch, From: from, To: to}).Rows {
		if r.Seconds != nil {
			seconds[r.Place+r.Name] += *r.Seconds
		}
	}
	return seconds
}

func TestWhatIsRefused(t *testing.T) {
	v := read(t, "cell")
	for _, q := range []answers.Question{
		{About: "cost"}, {About: ""}, {About: "line\x1b[2J"},
		{About: answers.Stretch, From: -1}, {About: answers.Stretch, From: 0.3, To: 0.2}, {About: answers.Stretch, To: 99},
		{About: answers.Stretch, From: math.NaN()}, {About: answers.Stretch, To: math.Inf(1)}, {About: answers.Stretch, From: 1e300},
	} {
		if a, err := answers.Of(v, q); err == nil {
			t.Errorf("%+v is answered: %+v", q, a)
		} else if strings.Contains(err.Error(), "\x1b") {
			t.Errorf("the error passes on control characters: %q", err)
		}
	}
}
