package program

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/traces/addtrace"
)

// Nsys is Nsight Systems, which records a program while we do.
type Nsys struct {
	Program string   // nsys
	Options []string // of nsys profile; those that say where its files go are ours
	base    string   // of its files, without extension
}

// nsysDefaults record what a report takes: kernels and copies, and NVTX ranges. Stacks of the CPU are ours.
var nsysDefaults = []string{"--trace=cuda,nvtx", "--sample=none", "--cpuctxsw=none"}

var errNoNsys = errors.New("--nsys runs the program under Nsight Systems, and there is no nsys on PATH: install nsight-systems-cli of NVIDIA's package repository (https://developer.nvidia.com/nsight-systems), or use --exact")

// ParseNsys reads what --nsys is given: options of nsys profile, separated by blanks; none: the default's.
func ParseNsys(options string) (*Nsys, error) {
	n := &Nsys{Options: strings.Fields(options)}
	if len(n.Options) == 0 {
		n.Options = nsysDefaults
	}
	for _, option := range n.Options {
		name, _, _ := strings.Cut(option, "=")
		if slices.Contains([]string{"-o", "--output", "--export", "-f", "--force-overwrite"}, name) {
			return nil, fmt.Errorf("%s: nsys writes beside the results, and exports SQLite, which is read", name)
		}
	}
	var err error
	if n.Program, err = exec.LookPath("nsys"); err != nil {
		return nil, errNoNsys
	}
	return n, nil
}

// around is a command that nsys runs, and writes what it recorded of it under a name.
func (n *Nsys) around(command []string, base string) []string {
	n.base = base
	_ = os.Remove(n.base + ".sqlite") // of an earlier run, which is not to be taken for this one's
	return slices.Concat([]string{n.Program, "profile"}, n.Options, []string{"--output=" + n.base, "--force-overwrite=true", "--export=sqlite"}, command)
}

// recorded are the traces that nsys left.
func (n *Nsys) recorded(messages io.Writer) addtrace.Traced {
	export := n.base + ".sqlite"
	if info, err := os.Stat(export); err != nil || !info.Mode().IsRegular() {
		fmt.Fprintf(messages, "omni-perf: nsys left no %s: what it says is above; GPU activity is the driver's\n", export)
		return addtrace.Traced{}
	}
	fmt.Fprintf(messages, "omni-perf: nsys wrote %s.nsys-rep, for its own viewer, and %s\n", n.base, export)
	return addtrace.Traced{Files: []addtrace.TraceFile{{Path: export}}, Each: true}
}
