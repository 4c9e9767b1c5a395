// Command torchtrace measures our torch trace analysis beside
// HolisticTraceAnalysis (HTA): the same files, the same five results (load,
// temporal, idle, overlap, kernel breakdown), each run in a process of its
// own, interleaved. It prints medians, ratios, peak memory and parsing speed.
// Beside TraceLens it measures whole processes that write all their tables.
//
//	go run ./bench/torchtrace [-rounds 3] [-big 5]
//
// It needs the real traces at ../shared/traces and, for HTA and TraceLens, a Python that can
// install them; what is missing is skipped with the reason.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func main() {
	rounds := flag.Int("rounds", 3, "runs of each side, interleaved")
	big := flag.Float64("big", 0, "also load a synthetic trace of this many GB of JSON")
	python := flag.String("python", "python3", "the Python that makes HTA's environment")
	worker := flag.String("worker", "", "internal: measure one load of this folder")
	flag.Parse()
	if *worker != "" {
		work(*worker)
		return
	}
	root, err := checkout()
	if err != nil {
		fail(err)
	}
	if err := compare(root, *rounds, *big, *python); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "bench/torchtrace:", err)
	os.Exit(1)
}

// checkout finds the folder with go.mod.
func checkout() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("run it inside the checkout")
		}
		dir = filepath.Dir(dir)
	}
}

// compare runs everything and prints the report.
func compare(root string, rounds int, big float64, python string) error {
	source := filepath.Join(root, "..", "shared", "traces", "v100-resnet-2gpu-rank1", "df_index_resolver.json.gz")
	if _, err := os.Stat(source); err != nil {
		fmt.Println("skipped: the V100 trace is not at ../shared/traces:", err)
		return nil
	}
	cache := filepath.Join(root, ".cache", "bench-torchtrace")
	load, _ := os.ReadFile("/proc/loadavg")
	fmt.Printf("load average %s\n", strings.TrimSpace(string(load)))
	if err := wholeProcesses(root, rounds, python); err != nil {
		return err
	}
	text, cases, err := prepare(source, cache)
	if err != nil {
		return err
	}
	venv, why := htaPython(root, python)
	if why != "" {
		fmt.Println("HTA is skipped:", why)
	}
	fmt.Println("| trace | ours s | HTA s | ratio | ours peak MB | HTA peak MB | JSON MB |")
	fmt.Println("|---|---|---|---|---|---|---|")
	for _, c := range cases {
		var ours, theirs []result
		for range rounds {
			r, err := runOurs(c.folder)
			if err != nil {
				return err
			}
			ours = append(ours, r)
			if venv == "" {
				continue
			}
			if r, err = runHTA(root, venv, c.folder, c.ranks); err != nil {
				fmt.Println("HTA failed:", err)
				venv = ""
				continue
			}
			theirs = append(theirs, r)
		}
		fmt.Println(row(c, ours, theirs))
	}
	if err := parsing(root, text, rounds, python); err != nil {
		return err
	}
	if big > 0 {
		return loadBig(source, cache, big)
	}
	return nil
}

// row formats one comparison.
func row(c benchCase, ours, theirs []result) string {
	cells := []string{c.name, fmt.Sprintf("%.3f", median(ours, seconds)), "–", "–",
		fmt.Sprintf("%.0f", median(ours, megabytes)), "–", fmt.Sprintf("%.0f", c.megabytes)}
	if len(theirs) > 0 {
		cells[2] = fmt.Sprintf("%.2f", median(theirs, seconds))
		cells[3] = fmt.Sprintf("%.1f ×", median(theirs, seconds)/median(ours, seconds))
		cells[5] = fmt.Sprintf("%.0f", median(theirs, megabytes))
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

// result is one run.
type result struct{ seconds, megabytes float64 }

func seconds(r result) float64   { return r.seconds }
func megabytes(r result) float64 { return r.megabytes }

func median(runs []result, of func(result) float64) float64 {
	values := make([]float64, len(runs))
	for i, r := range runs {
		values[i] = of(r)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// numberAfter finds "key 1.23" in a program's output.
func numberAfter(output, key string) (float64, error) {
	for _, line := range strings.Split(output, "\n") {
		if rest, ok := strings.CutPrefix(line, key+" "); ok {
			return strconv.ParseFloat(rest, 64)
		}
	}
	return 0, fmt.Errorf("no %q in the output:\n%s", key, output)
}
