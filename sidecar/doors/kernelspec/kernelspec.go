// Package kernelspec registers kernels with Jupyter in which every cell is profiled with nothing to load.
//
// In flows the name of a kernel, out flows another one of Jupyter's kernelspecs: the same command, with the
// extension loaded at its start. What Jupyter knows of kernels is asked of it, in the user's Python or in omni_perf's.
package kernelspec

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os/exec"

	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

//go:embed install.py
var installer string

// Request says what is to be installed.
type Request struct {
	Kernel      string `json:"kernel"`       // the kernel to wrap
	Name        string `json:"name"`         // of the new one; empty: made of the other's
	DisplayName string `json:"display_name"` // likewise
	Options     string `json:"options"`      // of "%omni_perf on"
	User        bool   `json:"user"`         // for the user, also where the interpreter has an environment of its own
	Prefix      string `json:"prefix"`       // in this environment; empty: the interpreter's own, or for the user
}

// Installed is a kernel that was installed.
type Installed struct {
	Name        string `json:"name"`
	DisplayName string `json:"display_name"`
	Place       string `json:"place"`   // its folder
	Missing     string `json:"missing"` // what the interpreter lacks, and another may have
	Problem     string `json:"problem"`
	Interpreter string `json:"-"` // whose Jupyter it was registered with
}

// Install registers a kernel with the Jupyter of the first of these interpreters that has what it takes. Its error is a
// sentence, about the first one.
func Install(interpreters []string, r Request) (Installed, error) {
	first, err := install(interpreters[0], r)
	if err == nil || first.Missing == "" {
		return first, err
	}
	for _, other := range interpreters[1:] {
		if got, err := install(other, r); err == nil {
			got.Missing = fmt.Sprintf("%s has no %s", interpreters[0], words.Clean(first.Missing, words.MaxName))
			return got, nil
		}
	}
	return first, err
}

func install(interpreter string, r Request) (Installed, error) {
	given, err := json.Marshal(r)
	if err != nil {
		return Installed{}, err
	}
	said, err := exec.Command(interpreter, "-c", installer, string(given)).Output()
	got := Installed{Interpreter: interpreter}
	if err == nil {
		err = json.Unmarshal(said, &got)
	}
	switch {
	case err != nil:
		reason := err.Error()
		if exit, ok := err.(*exec.ExitError); ok {
			reason = words.Clean(words.LastLine(string(exit.Stderr)), words.MaxName)
		}
		return got, fmt.Errorf("%s could not install the kernel: %s", interpreter, reason)
	case got.Problem != "":
		return got, fmt.Errorf("%s", words.Clean(got.Problem, 4*words.MaxName))
	case got.Missing != "":
		return got, fmt.Errorf("%s has no %s; %s -m pip install jupyter_client ipykernel installs it", interpreter, got.Missing, interpreter)
	}
	return got, nil
}
