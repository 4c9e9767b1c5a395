package truth

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/testkit/requirement"
)

// Minors are the versions that the sampler reads.
var Minors = []string{"3.11", "3.12", "3.13", "3.14", "3.15"}

// An Interpreter is one CPython to test with.
type Interpreter struct {
	Minor string // "3.14"
	Build string // "" for the first choice of its version, else as in tools/interpreters: "system", "sid", "container"
	Path  string
}

// String is the interpreter's name in the list: 3.14 or 3.14-container.
func (i Interpreter) String() string {
	if i.Build == "" {
		return i.Minor
	}
	return i.Minor + "-" + i.Build
}

// Interpreters returns those of the environment variable OMNI_PERF_PYTHONS ("3.11=/path,3.12=/path"),
// else those that tools/interpreters has listed, else those that it finds.
func Interpreters() ([]Interpreter, error) {
	if listed := os.Getenv("OMNI_PERF_PYTHONS"); listed != "" {
		return parseList(strings.ReplaceAll(listed, ",", "\n"), "=")
	}
	root, err := checkout()
	if err != nil {
		return nil, err
	}
	list, err := os.ReadFile(filepath.Join(root, ".cache/interpreters/list"))
	if errors.Is(err, os.ErrNotExist) {
		list, err = exec.Command(filepath.Join(root, "tools/interpreters"), "--print").Output()
	}
	if err != nil {
		return nil, fmt.Errorf("list of interpreters: %w", err)
	}
	return parseList(string(list), "\t")
}

// checkout is the folder of the module that the working folder is in.
func checkout() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder, nil
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return "", errors.New("not inside a checkout")
		}
		folder = parent
	}
}

func parseList(list, separator string) ([]Interpreter, error) {
	var found []Interpreter
	for lines := bufio.NewScanner(strings.NewReader(list)); lines.Scan(); {
		if lines.Text() == "" {
			continue
		}
		version, path, ok := strings.Cut(lines.Text(), separator)
		if !ok {
			return nil, fmt.Errorf("list of interpreters: %q is not VERSION%sPATH", lines.Text(), separator)
		}
		minor, build, _ := strings.Cut(version, "-")
		found = append(found, Interpreter{Minor: minor, Build: build, Path: path})
	}
	return found, nil
}

// EachInterpreter runs test once for every interpreter there is, as a subtest named like it. A version
// without any is a skipped subtest.
func EachInterpreter(t *testing.T, test func(t *testing.T, python Interpreter)) {
	t.Helper()
	found, err := Interpreters()
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, python := range found {
		have[python.Minor] = true
		t.Run(python.String(), func(t *testing.T) {
			if err := runs(python.Path); err != nil {
				requirement.Missing(t, requirement.PythonVersion(python.Minor), "%v; run tools/interpreters again", err)
			}
			test(t, python)
		})
	}
	for _, minor := range Minors {
		if !have[minor] {
			t.Run(minor, func(t *testing.T) {
				requirement.Missing(t, requirement.PythonVersion(minor), "no CPython %s that runs is on PATH or under pyenv; tools/interpreters fetches one", minor)
			})
		}
	}
}

// With is the interpreter of the environment of a version, which has a package: gevent or trio.
func With(t *testing.T, name, minor string) string {
	t.Helper()
	root, err := checkout()
	if err != nil {
		t.Fatal(err)
	}
	python := filepath.Join(root, ".cache", "kernels", minor, "bin", "python")
	if exec.Command(python, "-c", "import "+name).Run() != nil {
		requirement.Missing(t, requirement.Package(name, minor), "the environment of %s has no %s: run tools/kernels", minor, name)
	}
	return python
}

// Any is the first interpreter that runs.
func Any(t testing.TB) Interpreter {
	t.Helper()
	found, err := Interpreters()
	if err != nil {
		t.Fatal(err)
	}
	for _, python := range found {
		if runs(python.Path) == nil {
			return python
		}
	}
	requirement.Missing(t, requirement.Python, "no CPython that runs is on this machine; tools/interpreters fetches one")
	return Interpreter{}
}

// OnPath is the python3 on PATH, as it is called itself, if stacks of it can be read.
func OnPath(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		requirement.Missing(t, requirement.OnPath, "no python3 on PATH")
	}
	if err := runs(path); err != nil { // a version manager's name for a version that is not chosen
		requirement.Missing(t, requirement.OnPath, "%v", err)
	}
	out, err := exec.Command(path, "-c", "import sys; print(sys.version_info >= (3, 11), sys.executable)").Output()
	version, real, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if err != nil || version != "True" {
		requirement.Missing(t, requirement.OnPath, "python3 on PATH is older than 3.11")
	}
	return real
}

// runs returns why a Python does not start: a name on PATH may be a version manager's, without a version
// behind it, and what was listed may be gone.
func runs(python string) error {
	out, err := exec.Command(python, "-I", "-c", "").CombinedOutput()
	if err != nil {
		said, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		return fmt.Errorf("%s does not start: %w %s", python, err, said)
	}
	return nil
}
