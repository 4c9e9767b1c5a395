// Package requirement names what a test needs from the machine. A test that lacks one of these is skipped by
// Missing, which writes down what is missing: tools/suite.py fails where it is there after all.
package requirement

import (
	"fmt"
	"os"
	"testing"
)

// A Requirement is something that a machine may lack. tools/suite.py knows each, and how to look for it.
type Requirement string

const (
	Chromium   Requirement = "chromium"   // Chromium or Chrome on PATH
	Compiler   Requirement = "compiler"   // a C compiler on PATH
	Cupti      Requirement = "cupti"      // NVIDIA's headers of it, in .cache/cupti
	Esbuild    Requirement = "esbuild"    // its module, for tools/bundle
	GPU        Requirement = "gpu"        // one that the NVIDIA driver lists
	MPI        Requirement = "mpirun"     // Open MPI's mpirun on PATH
	OnPath     Requirement = "python3"    // a python3 on PATH that runs, 3.11 or newer
	Python     Requirement = "python"     // any CPython that runs
	Torch      Requirement = "torch"      // PyTorch in .cache/torch
	Traces     Requirement = "traces"     // real traces in ../shared/traces
	VirtualEnv Requirement = "virtualenv" // .venv, with ipykernel
)

// PythonVersion is a CPython of one minor version that runs.
func PythonVersion(minor string) Requirement { return "python-" + Requirement(minor) }

// Package is a package of Python in the environment that tools/kernels makes for a version: gevent or trio.
func Package(name, minor string) Requirement { return Requirement(name + "-" + minor) }

// skipped is the environment variable with the file in which skipped tests are written down, a line each.
const skipped = "OMNI_PERF_SKIPPED_TESTS"

// Missing skips a test, or a benchmark, for want of a requirement.
func Missing(t testing.TB, r Requirement, format string, args ...any) {
	t.Helper()
	reason := fmt.Sprintf(format, args...)
	if path := os.Getenv(skipped); path != "" {
		if err := note(path, fmt.Sprintf("%s\t%s\t%q\n", r, t.Name(), reason)); err != nil {
			t.Fatalf("skipped, %s, which cannot be written down: %v", reason, err)
		}
	}
	t.Skipf("%s: %s", r, reason)
}

// note appends one line, whole also where several processes do.
func note(path, line string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.WriteString(line)
	return err
}
