// Package kernelspec registers kernels with Jupyter in which every cell is profiled with nothing to load.
//
// In flows the name of a kernel, out flows another one of Jupyter's kernelspecs: the same command, with the
// extension loaded at its start. What Jupyter knows of kernels is asked of it, in the user's Python.
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
	Place       string `json:"place"` // its folder
	Missing     string `json:"missing"`
	Problem     string `json:"problem"`
}

// Install registers a kernel with the Jupyter of an interpreter. Its error is a sentence.
func Install(interpreter string, r Request) (Installed, error) {
	given, err := json.Marshal(r)
	if err != nil {
		return Installed{}, err
	}
	said, err := exec.Command(interpreter, "-c", installer, string(given)).Output()
	var got Installed
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
	case got.Missing != "":
		return got, fmt.Errorf("%s has no %s; %s -m pip install jupyter_client ipykernel installs it", interpreter, got.Missing, interpreter)
	case got.Problem != "":
		return got, fmt.Errorf("%s", words.Clean(got.Problem, 4*words.MaxName))
	}
	return got, nil
}
