// Package python decides which Python is used where a command needs one.
//
// In flows what the user named and the environment, out flows a path. The package starts nothing.
package python

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Variable names the Python that has omni_perf; it is set by the extension for the programs that it starts.
const Variable = "OMNI_PERF_PYTHON"

// OfUser is the Python that runs the user's code: the named one, else that of the active environment, else python3 on PATH.
func OfUser(named string) (string, error) {
	if named != "" {
		path, err := exec.LookPath(named)
		if err != nil {
			return "", fmt.Errorf("there is no interpreter %s: %w", named, err)
		}
		return path, nil
	}
	if path := cmp.Or(ofEnvironment(), onPath("python3")); path != "" {
		return path, nil
	}
	return "", errors.New("no python3 on PATH; name the interpreter with --interpreter")
}

// Candidates are the Pythons to try for what not every one has, in that order: the named one alone, else the user's, and the one
// beside this program, where that is another.
func Candidates(named string) ([]string, error) {
	first, err := OfUser(named)
	other := beside()
	switch {
	case named != "" || other == "" || err == nil && folder(first) == folder(other):
		return []string{first}, err
	case err != nil:
		return []string{other}, nil
	}
	return []string{first, other}, nil
}

// folder is what an environment's Pythons have in common: they themselves are links to the one that it was made by.
func folder(python string) string {
	dir := filepath.Dir(python)
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

// OfExtension is the Python that has omni_perf: the one that has called this program, else the one beside it, else the
// user's.
func OfExtension() string {
	return cmp.Or(os.Getenv(Variable), beside(), ofEnvironment(), "python3")
}

// Any is a Python to try something with, the named one where that is a file; empty if none is found.
func Any(named string) string {
	return cmp.Or(program(named), ofEnvironment(), beside(), onPath("python3"), onPath("python"))
}

// ofEnvironment is the Python of the environment that is active, Conda's if no virtual one is; empty if none is.
func ofEnvironment() string {
	for _, variable := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if env := os.Getenv(variable); env != "" {
			return program(filepath.Join(env, "bin", "python"))
		}
	}
	return ""
}

// beside is the Python in the folder of this program: both are installed into one environment.
func beside() string {
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	return program(filepath.Join(filepath.Dir(self), "python"))
}

func onPath(name string) string {
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return path
}

// program returns the path if a program is there, else nothing.
func program(path string) string {
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() || st.Mode().Perm()&0o111 == 0 {
		return ""
	}
	return path
}
