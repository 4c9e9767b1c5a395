package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/traces"
	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
)

// work loads and analyses a folder once and prints what it took; it runs in a
// process of its own.
func work(folder string) {
	start := time.Now()
	var events int64
	_, err := traces.Run(context.Background(), []string{folder},
		kineto.Options{Progress: func(p kineto.Progress) { events = p.Events }},
		analyses.Options{Tables: []string{
			analyses.TableTemporal, analyses.TableIdle, analyses.TableOverlap, analyses.TableKernels}})
	if err != nil {
		fail(err)
	}
	fmt.Printf("seconds %.4f\nmegabytes %.1f\nevents %d\n", time.Since(start).Seconds(), peakMemory(), events)
}

// peakMemory of this process in MB. (ru_maxrss would include the parent's
// memory from before exec.)
func peakMemory() float64 {
	text, _ := os.ReadFile("/proc/self/status")
	for _, line := range strings.Split(string(text), "\n") {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb * 1024 / 1e6
		}
	}
	return 0
}

// runOurs measures ourselves in a fresh process.
func runOurs(folder string, env ...string) (result, error) {
	self, err := os.Executable()
	if err != nil {
		return result{}, err
	}
	cmd := exec.Command(self, "-worker", folder)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return result{}, err
	}
	var r result
	if r.seconds, err = numberAfter(string(out), "seconds"); err != nil {
		return r, err
	}
	r.megabytes, err = numberAfter(string(out), "megabytes")
	return r, err
}

const (
	htaVersion    = "HolisticTraceAnalysis==0.5.0"
	pandasVersion = "pandas==2.3.3" // with pandas 3 HTA fails on some traces
)

// htaPython returns the Python of an environment with HTA, made if need be, or
// why there is none.
func htaPython(root, python string) (venv, why string) {
	venv = filepath.Join(root, ".cache", "hta-venv", "bin", "python")
	if exec.Command(venv, "-c", "import hta.trace_analysis").Run() == nil {
		return venv, ""
	}
	for _, command := range [][]string{
		{python, "-m", "venv", filepath.Join(root, ".cache", "hta-venv")},
		{venv, "-m", "pip", "install", "--quiet", htaVersion, pandasVersion},
		{venv, "-c", "import hta.trace_analysis"},
	} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			return "", fmt.Sprintf("%s: %v: %s", strings.Join(command, " "), err, bytes.TrimSpace(out))
		}
	}
	return venv, ""
}

// runHTA measures HTA; its peak is that of its process tree, since it parses
// several ranks in a pool.
func runHTA(root, venv, folder string, ranks []int) (result, error) {
	args := []string{filepath.Join(root, "bench", "torchtrace", "hta_run.py"), folder}
	for _, rank := range ranks {
		args = append(args, strconv.Itoa(rank))
	}
	cmd := exec.Command(venv, args...)
	var out, logs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &logs
	if err := cmd.Start(); err != nil {
		return result{}, err
	}
	peak := watchTree(cmd.Process.Pid)
	err := cmd.Wait()
	r := result{megabytes: peak()}
	if err != nil {
		return r, fmt.Errorf("%w: %s", err, logs.Bytes()[max(0, logs.Len()-500):])
	}
	r.seconds, err = numberAfter(out.String(), "seconds")
	return r, err
}

// watchTree follows the memory of a process and its descendants (shared pages
// counted once); the function it returns ends that and gives the peak in MB.
func watchTree(pid int) (peak func() float64) {
	var highest float64
	stop := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			highest = max(highest, treeMemory(pid))
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	return func() float64 {
		close(stop)
		watching.Wait()
		return highest
	}
}

// treeMemory is the proportional set size of a process tree in MB.
func treeMemory(pid int) (sum float64) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	for _, line := range strings.Split(string(text), "\n") {
		if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			sum = kb * 1024 / 1e6
		}
	}
	children, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range children {
		text, _ := os.ReadFile(file)
		for _, child := range strings.Fields(string(text)) {
			if id, err := strconv.Atoi(child); err == nil {
				sum += treeMemory(id)
			}
		}
	}
	return sum
}

// parsing measures the speed of reading plain JSON from the page cache on one
// core, beside json.loads.
func parsing(root string, text []byte, rounds int, python string) error {
	plain := filepath.Join(root, ".cache", "bench-torchtrace", "trace.json")
	var ours, theirs []result
	for range rounds {
		r, err := runOurs(plain, "GOMAXPROCS=1")
		if err != nil {
			return err
		}
		ours = append(ours, r)
		out, err := exec.Command(python, filepath.Join(root, "bench", "torchtrace", "json_run.py"), plain).Output()
		if err != nil {
			fmt.Println("json.loads is skipped:", err)
			continue
		}
		if r.seconds, err = numberAfter(string(out), "seconds"); err != nil {
			return err
		}
		theirs = append(theirs, r)
	}
	speed := float64(len(text)) / 1e6 / median(ours, seconds)
	fmt.Printf("one core, plain JSON, parsing and analysing: %.0f MB/s", speed)
	if len(theirs) > 0 {
		base := float64(len(text)) / 1e6 / median(theirs, seconds)
		fmt.Printf("; json.loads: %.0f MB/s; ratio %.1f", base, speed/base)
	}
	fmt.Printf(" (%s)\n", runtime.Version())
	return nil
}

// loadBig loads a trace of many GB and prints what it took.
func loadBig(source, cache string, gigabytes float64) error {
	path := filepath.Join(cache, fmt.Sprintf("big-%g.json.gz", gigabytes))
	if _, err := os.Stat(path); err != nil {
		text, err := gunzip(source)
		if err != nil {
			return err
		}
		fmt.Printf("writing %s\n", path)
		if err := writeBig(text, path, int64(gigabytes*1e9)); err != nil {
			return err
		}
	}
	r, err := runOurs(path)
	if err != nil {
		return err
	}
	fmt.Printf("%g GB of JSON: %.1f s, peak %.0f MB\n", gigabytes, r.seconds, r.megabytes)
	return nil
}
