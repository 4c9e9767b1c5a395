package report

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
	"github.com/omni-perf/omni-perf/sidecar/understand/wording"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// names turns the names of code objects into what a user reads.
type names struct {
	cells   map[string]int  // co_filename of a cell -> execution count
	nested  map[string]bool // co_filename of code that the cell of that number ran
	cell    string          // co_filename of the recorded cell; empty for scripts
	oneLine bool            // the recorded cell is a statement on one line
	origins *origin.Files
	home    string            // shortened to ~
	files   map[string]string // display name by co_filename
}

func newNames(rec *timeline.Recording, home string) *names {
	n := &names{
		cells: make(map[string]int), nested: make(map[string]bool), origins: origin.New(rec), home: strings.TrimRight(home, "/"), files: make(map[string]string),
	}
	for _, s := range rec.Sources {
		n.cells[s.File], n.nested[s.File] = s.ExecutionCount, s.Nested
	}
	if c := rec.Target.Cell; c != nil {
		n.cell, n.oneLine = c.File, !strings.Contains(strings.TrimSpace(c.Text), "\n")
		n.cells[c.File], n.nested[c.File] = c.ExecutionCount, false
	}
	return n
}

// file is the display name of a co_filename: "Cell [7]", "~/train.py".
func (n *names) file(name string) string {
	if shown, ok := n.files[name]; ok {
		return shown
	}
	shown := clean(name)
	if count, ok := n.cells[name]; ok {
		if shown = cellName(count); n.nested[name] {
			shown = "code run by " + shown
		}
	} else if n.origins.Of(name).Owner == origin.Cell {
		shown = "Cell [?]"
	} else if n.home != "" && (name == n.home || strings.HasPrefix(name, n.home+"/")) {
		shown = "~" + clean(name[len(n.home):])
	}
	n.files[name] = shown
	return shown
}

// place names a line as sentences do: "line 3" of the recorded cell, "Cell [5]:2"
// of another, "train.py:40" of a file; empty for none, and for the only line there is.
func (n *names) place(at activity.Place) string {
	switch {
	case at.Line <= 0, at.File == n.cell && n.oneLine:
		return ""
	case at.File == n.cell && n.cell != "":
		return "line " + itoa(at.Line)
	}
	return words.ShortFile(n.file(at.File)) + ":" + itoa(at.Line)
}

// function is the display name of a qualified name: a cell's module level is
// the cell itself.
func (n *names) function(f timeline.Frame) string {
	if f.Phase != timeline.PhaseNone {
		return wording.Phase(f.Phase)
	}
	if f.Task {
		return clean(wording.Task(f.Function))
	}
	if count := f.Elided; count > 0 {
		f.Elided = 0
		return "… about " + itoa(count) + " frames, most of " + n.function(f)
	}
	if f.Function == "<module>" {
		if _, ok := n.cells[f.File]; ok {
			return n.file(f.File)
		}
		if module := n.origins.Module(f.File); module != "" {
			return "import " + clean(module)
		}
		return path.Base(clean(f.File))
	}
	return qualified(f.Function)
}

// qualified is a function's name in its file, which does not show what is local to a
// call.
func qualified(name string) string { return clean(strings.ReplaceAll(name, ".<locals>", "")) }

// shells run a script that their command line names, prefixes another command.
var (
	shells   = []string{"sh", "bash", "dash", "zsh"}
	prefixes = []string{"env", "nohup", "setsid", "time"}
)

// programName is what a command line runs: "train.py", "-m package"; empty where it
// does not show.
func programName(argv []string) string {
	if len(argv) > 1 && !strings.HasPrefix(argv[1], "-") {
		switch first := path.Base(argv[0]); {
		case slices.Contains(shells, first):
			return path.Base(argv[1])
		case slices.Contains(prefixes, first):
			rest := slices.DeleteFunc(slices.Clone(argv[1:]), func(arg string) bool { return first == "env" && strings.Contains(arg, "=") })
			return cmp.Or(programName(rest), first)
		}
	}
	python := len(argv) > 0 && strings.HasPrefix(path.Base(argv[0]), "python")
	for i := 0; i < len(argv); i++ {
		arg := argv[i]
		if python && arg == "-" {
			return standardInput
		}
		if arg == "-m" && i+1 < len(argv) {
			return "-m " + argv[i+1]
		}
		if arg == "-c" { // a whole program may follow
			return "python -c"
		}
		if i == 0 && python {
			continue
		}
		if arg == "-W" || arg == "-X" { // a value follows
			i++
			continue
		}
		if !strings.HasPrefix(arg, "-") {
			return path.Base(arg)
		}
	}
	if python { // which reads what it runs
		return standardInput
	}
	return ""
}

// standardInput is the name of a program that Python reads from there.
const standardInput = "standard input"

func cellName(count int) string {
	if count <= 0 {
		return "Cell"
	}
	return "Cell [" + itoa(count) + "]"
}

// clean makes text from the target fit for any display: valid UTF-8 without
// control characters and without marks that turn the direction of what follows.
func clean(s string) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, unfit) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if unfit(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(s, string(unicode.ReplacementChar)))
}

func unfit(r rune) bool {
	return unicode.IsControl(r) || (r >= 0x202A && r <= 0x202E) || (r >= 0x2066 && r <= 0x2069)
}

func itoa(n int) string { return strconv.Itoa(n) }

// Places names the lines of a recording as its report would, for who has no report.
func Places(rec *timeline.Recording, home string) func(activity.Place) string {
	return newNames(rec, home).place
}
