package specimen_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/specimen"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/interpret"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

var update = flag.Bool("update", false, "rewrite the headlines in programs/*.txt: read them all again")

func programs(t *testing.T) []*specimen.Program {
	t.Helper()
	list, err := specimen.Load("programs")
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// lines reads a program's lines as its texts have them, else as the recording has: without
// indentation, and no more than were asked for when it was made.
func lines(p *specimen.Program, s *specimen.Specimen) func(file string, line int) string {
	return func(file string, line int) string {
		for _, t := range p.Texts {
			name, isFile := strings.CutPrefix(t.Kind, "file ")
			if !isFile && t.Kind == "script" {
				name = "script.py"
			}
			if written := strings.Split(t.Source, "\n"); name == filepath.Base(file) && line > 0 && line <= len(written) {
				return written[line-1]
			}
		}
		return s.Line(file, line)
	}
}

// diagnosed is what the product makes of a recording.
func diagnosed(t *testing.T, p *specimen.Program, s *specimen.Specimen) (*timeline.Recording, diagnose.Diagnosis, *report.View) {
	rec := interpret.Of(s.Recording)
	line := lines(p, s)
	d := diagnose.Options{Line: line}.Run(rec)
	r, err := report.Build(rec, &d, report.Options{Line: line})
	if err != nil {
		t.Fatal(err)
	}
	return rec, d, r
}

// Each program's headline is the one that was reviewed, to the letter.
func TestHeadlines(t *testing.T) {
	changed := make(map[string][]string) // lines of tables
	for _, p := range programs(t) {
		s, err := specimen.Read(filepath.Join("testdata", p.File()))
		if errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: there is no recording; sidecar/testkit/specimen/take makes it", p.Name)
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		_, d, r := diagnosed(t, p, s)
		advice := ""
		if i, ok := d.Main(); ok {
			advice = string(d.Findings[i].Advice)
		}
		if *update {
			changed[p.Table] = append(changed[p.Table], p.Name, r.Headline.Text, advice)
			continue
		}
		if r.Headline.Text != p.Says || advice != p.Advises {
			t.Errorf("%s:\n got  %s %s\n want %s %s", p.Name, r.Headline.Text, advice, p.Says, p.Advises)
		}
	}
	for path, said := range changed {
		if err := rewrite(path, said); err != nil {
			t.Fatal(err)
		}
	}
}

// rewrite puts headlines into a table; said has name, headline and advice of each.
func rewrite(path string, said []string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	now := make(map[string][2]string)
	for i := 0; i < len(said); i += 3 {
		now[said[i]] = [2]string{said[i+1], said[i+2]}
	}
	var out []string
	attributes := false
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "--- ") {
			attributes = false
		}
		name, isName := strings.CutPrefix(line, "=== ")
		if attributes && (strings.HasPrefix(line, "says ") || strings.HasPrefix(line, "advises ")) {
			if _, known := now[""]; !known {
				continue
			}
		}
		out = append(out, line)
		if isName {
			attributes = true
			if s, ok := now[name]; ok {
				out = append(out, "says "+s[0])
				if s[1] != "" {
					out = append(out, "advises "+s[1])
				}
			}
		}
	}
	return os.WriteFile(path, []byte(strings.Join(out, "\n")), 0o644)
}

// check compares a diagnosis with what must hold of every run of a program.
func check(p *specimen.Program, rec *timeline.Recording, d diagnose.Diagnosis, r *report.View) (problems []string) {
	say := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	main, found := d.Main()
	if p.Finding != "" && (!found || string(d.Findings[main].ID) != p.Finding) {
		say("the main finding is not %s: %q", p.Finding, r.Headline.Text)
	}
	if p.Cause != "" && (len(d.Spent) == 0 || string(mostly(d)) != p.Cause) {
		say("most of the time is %s, want %s: %q", mostly(d), p.Cause, r.Headline.Text)
	}
	if text, line, ok := p.HerePlace(); ok && found {
		f := d.Findings[main]
		if f.Place.Line != line || !isText(p, rec, text, f.Place.File) {
			say("names %+v, want line %d of %s: %q", f.Place, line, p.Texts[text].Kind, r.Headline.Text)
		}
	}
	said := r.Headline.Text
	if found {
		said += " " + r.Findings[main].Hint
	}
	for _, word := range p.Never {
		if strings.Contains(strings.ToLower(said), strings.ToLower(word)) {
			say("says %q: %q", word, said)
		}
	}
	return problems
}

// mostly is the cause with most of the time.
func mostly(d diagnose.Diagnosis) (top activity.Cause) {
	sums := make(map[activity.Cause]timeline.Nanos)
	for _, s := range d.Spent {
		if s.Cause != activity.NoCPU { // what else this machine does is not the program's
			sums[s.Cause] += s.Nanos
		}
	}
	for c, n := range sums {
		if n > sums[top] || n == sums[top] && c < top {
			top = c
		}
	}
	return top
}

// isText reports whether a file is one of a program's texts.
func isText(p *specimen.Program, rec *timeline.Recording, text int, file string) bool {
	t := p.Texts[text]
	if name, ok := strings.CutPrefix(t.Kind, "file "); ok {
		return filepath.Base(file) == name
	}
	if t.Kind == "script" {
		return filepath.Base(file) == "script.py"
	}
	for _, s := range rec.Sources {
		if s.File == file {
			return strings.TrimSpace(s.Text) == strings.TrimSpace(t.Source)
		}
	}
	return false
}

// What must hold of every run holds of the kept ones too.
func TestKeptRecordings(t *testing.T) {
	for _, p := range programs(t) {
		s, err := specimen.Read(filepath.Join("testdata", p.File()))
		if err != nil {
			continue // TestHeadlines says so
		}
		rec, d, r := diagnosed(t, p, s)
		for _, problem := range check(p, rec, d, r) {
			t.Errorf("%s: %s", p.Name, problem)
		}
	}
}
