package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// traceLensSource is AMD's TraceLens; the package of that name on PyPI is another project. A clone in
// .cache/tracelens-src is used in its place, where there is one.
const traceLensSource = "git+https://github.com/AMD-AGI/TraceLens@171dd74721ca1ec45709e5805b68ae1f65e27811"

// traceLensNeeds is what its report of PyTorch traces imports. What its other reports need (xprof, msal) is not
// installed.
var traceLensNeeds = []string{pandasVersion, "tqdm", "openpyxl", "orjson", "tabulate", "PyYAML", "matplotlib"}

// wholeReports are the traces that both sides make all their tables of; TraceLens takes one file.
var wholeReports = []string{
	"v100-resnet-2gpu-rank1", "mi300x-flux-sage", "mi300x-resnet-3steps", "a100-nccl-ns-3steps", "h100-qwen05b", "b200-eager",
}

// cost is what a whole process took, the start of its interpreter and the writing of its files included.
type cost struct{ cpu, megabytes float64 }

// wholeProcesses measures `omni-perf analyze --csv` beside TraceLens's report with CSV files. It comes before anything
// large is read here, as the peak that Linux keeps of a process is at least that of its parent.
func wholeProcesses(root string, rounds int, python string) error {
	ours := filepath.Join(root, ".venv", "bin", "omni-perf")
	if _, err := os.Stat(ours); err != nil {
		fmt.Println("TraceLens is skipped: make build first:", err)
		return nil
	}
	theirs, why := traceLens(root, python)
	if why != "" {
		fmt.Println("TraceLens is skipped:", why)
		return nil
	}
	out, err := os.MkdirTemp("", "bench-torchtrace")
	if err != nil {
		return err
	}
	defer os.RemoveAll(out)
	fmt.Println("| whole report as CSV | ours CPU s | TraceLens CPU s | ratio | ours peak MB | TraceLens peak MB | ratio |")
	fmt.Println("|---|---|---|---|---|---|---|")
	for _, name := range wholeReports {
		files, _ := filepath.Glob(filepath.Join(root, "..", "shared", "traces", name, "*.json.gz"))
		if len(files) != 1 {
			fmt.Printf("| %s | not at ../shared/traces | | | | | |\n", name)
			continue
		}
		var mine, other []cost
		for range rounds {
			c, err := costOf(ours, "analyze", files[0], "--quiet", "--csv", filepath.Join(out, "ours"))
			if err != nil {
				return err
			}
			mine = append(mine, c)
			c, err = costOf(theirs, "-m", "TraceLens.Reporting.generate_perf_report_pytorch",
				"--profile_json_path", files[0], "--output_csvs_dir", filepath.Join(out, "theirs"))
			if err != nil {
				fmt.Printf("TraceLens failed on %s: %v\n", name, err)
				break
			}
			other = append(other, c)
		}
		fmt.Println(wholeRow(name, mine, other))
	}
	return nil
}

func wholeRow(name string, ours, theirs []cost) string {
	middle := func(list []cost, of func(cost) float64) float64 {
		var values []float64
		for _, c := range list {
			values = append(values, of(c))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	cpu, memory := func(c cost) float64 { return c.cpu }, func(c cost) float64 { return c.megabytes }
	a, m := middle(ours, cpu), middle(ours, memory)
	if len(theirs) == 0 {
		return fmt.Sprintf("| %s | %.2f | – | – | %.0f | – | – |", name, a, m)
	}
	b, n := middle(theirs, cpu), middle(theirs, memory)
	return fmt.Sprintf("| %s | %.2f | %.2f | %.1f | %.0f | %.0f | %.1f |", name, a, b, b/a, m, n, n/m)
}

// costOf runs a command to its end.
func costOf(name string, args ...string) (cost, error) {
	cmd := exec.Command(name, args...)
	var logs bytes.Buffer
	cmd.Stderr = &logs
	if err := cmd.Run(); err != nil {
		return cost{}, fmt.Errorf("%w: %s", err, logs.Bytes()[max(0, logs.Len()-500):])
	}
	state := cmd.ProcessState
	c := cost{cpu: (state.UserTime() + state.SystemTime()).Seconds()}
	if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
		c.megabytes = float64(usage.Maxrss) * 1024 / 1e6
	}
	return c, nil
}

// traceLens returns the Python of an environment with TraceLens, made if need be, or why there is none.
func traceLens(root, python string) (venv, why string) {
	const module = "import TraceLens.Reporting.generate_perf_report_pytorch"
	folder := filepath.Join(root, ".cache", "tracelens-venv")
	venv = filepath.Join(folder, "bin", "python")
	if exec.Command(venv, "-c", module).Run() == nil {
		return venv, ""
	}
	source := traceLensSource
	if clone := filepath.Join(root, ".cache", "tracelens-src"); exists(filepath.Join(clone, "setup.py")) {
		source = clone
	}
	for _, command := range [][]string{
		{python, "-m", "venv", folder},
		append([]string{venv, "-m", "pip", "install", "--quiet"}, traceLensNeeds...),
		{venv, "-m", "pip", "install", "--quiet", "--no-deps", source},
		{venv, "-c", module},
	} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			return "", fmt.Sprintf("%s: %v: %s", strings.Join(command, " "), err, bytes.TrimSpace(out))
		}
	}
	return venv, ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
