package diagnose_test

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/gpu"
	"github.com/omni-perf/omni-perf/sidecar/measure/pystack"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/gpuidle"
)

// The program does the same few things over and over, each on a line of its
// own, and prints when it came to which line.
const program = `
import random, sys, time
sys.path.insert(0, sys.argv[1])
from simulated_gpu import SimulatedGPU
from work import spin
scale, length = float(sys.argv[2]), float(sys.argv[3])
random.seed(7)
gpu, log = SimulatedGPU(), []
def mark():
    log.append((sys._getframe(1).f_lineno, time.monotonic_ns()))
def about(seconds):
    return seconds * scale * random.uniform(0.7, 1.3)
def train():
    stop = time.monotonic() + length
    while time.monotonic() < stop:
        mark(); spin(about(0.40))
        mark(); gpu.busy(about(0.45)); spin(about(0.10))
        mark(); gpu.synchronize()
        mark(); time.sleep(about(0.25))
    mark()
print("ready", flush=True)
sys.stdin.readline()
train()
print(*(f"{line}:{at}" for line, at in log), flush=True)
sys.stdin.readline()
`

const work = `
import time
def spin(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass
`

// A real interpreter, the real sampler and the real collector over the fake
// driver, which is in step with the program: the diagnosis against what the
// program knows of itself.
func TestLiveProgram(t *testing.T) {
	python := truth.OnPath(t)
	library := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	if out, err := exec.Command("../../measure/gpu/testdata/fakenvml/build.sh", library).CombinedOutput(); err != nil {
		t.Skipf("the fake NVML library cannot be built: %v\n%s", err, out)
	}
	// A script without a library frame would be charged to these two.
	site := filepath.Join(t.TempDir(), "site-packages")
	copyFile(t, "../../../examples/simulated_gpu.py", filepath.Join(site, "simulated_gpu.py"))
	write(t, filepath.Join(site, "work.py"), work)
	feed := filepath.Join(t.TempDir(), "feed")
	t.Setenv("OMNI_PERF_FAKE_NVML_FEED", feed)
	t.Setenv("OMNI_PERF_FAKE_NVML", "")

	driver := gpu.Open(library)
	if err := driver.Err(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name          string
		scale, length float64
		most          float64 // points
	}{
		{"phases of 0.2 to 0.5 s", 1, 8, 2},
		{"steps of 130 ms", 0.11, 12, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			rec, truth, spent := record(t, driver, python, site, feed, c.scale, c.length)
			sampled := sampledTimes(rec)
			d := diagnose.Run(rec)
			if len(d.GPUs) != 1 || d.Idle == nil {
				t.Fatalf("no diagnosis: %+v, notes %v", d, rec.Notes)
			}
			total, got := timeline.Nanos(0), make(map[int]timeline.Nanos)
			for _, n := range truth {
				total += n
			}
			for _, cause := range d.Idle.Causes {
				if strings.HasSuffix(cause.Place.File, "train.py") {
					got[cause.Place.Line] += cause.Nanos
				}
			}
			t.Logf("%s; GPU busy %v, idle %v, unknown %v of %v", d.Idle.Certainty.Method, d.GPUs[0].Busy.Duration(), d.GPUs[0].Idle.Duration(), d.GPUs[0].Unknown.Duration(), rec.Duration.Duration())
			for _, f := range d.Findings {
				t.Logf("finding %+v", f)
			}
			for line, want := range truth {
				share, wantShare := 100*float64(got[line])/float64(d.Idle.Total), 100*float64(want)/float64(total)
				t.Logf("line %d: %.1f %% of the idle time, truth %.1f %%", line, share, wantShare)
				if d.Idle.Certainty.Method != gpuidle.ByAverage && math.Abs(share-wantShare) > c.most {
					if at, off := worstSampled(sampled, spent); off > rec.Duration/100 {
						t.Skipf("the machine is too busy to compare: the sampler saw line %d for %v, the program was there for %v", at, sampled[at].Duration(), spent[at].Duration())
					}
					t.Errorf("line %d: %.1f points off", line, share-wantShare)
				}
			}
		})
	}
}

// worstSampled is the line for which the sampler is most off, and by how much:
// on a crowded machine it comes late, and then no attribution can be right.
func worstSampled(sampled, spent map[int]timeline.Nanos) (at int, off timeline.Nanos) {
	for line, want := range spent {
		if o := max(sampled[line]-want, want-sampled[line]); o > off {
			at, off = line, o
		}
	}
	return at, off
}

// sampledTimes is the time the sampler saw the program at each line of train.
func sampledTimes(rec *timeline.Recording) map[int]timeline.Nanos {
	times := make(map[int]timeline.Nanos)
	for _, th := range rec.Threads {
		if !th.Main {
			continue
		}
		for _, span := range th.Spans {
			for n := span.Node; n != timeline.RootNode; n = rec.Nodes[n].Parent {
				if f := rec.Frames[rec.Nodes[n].Frame]; f.Function == "train" {
					times[f.Line] += span.End - span.Start
				}
			}
		}
	}
	return times
}

// record runs the program and returns the recording and, by line, the true idle
// time and the time spent, from the program's own log and what it gave the device
// to do.
func record(t *testing.T, driver *gpu.Driver, python, site, feed string, scale, length float64) (rec *timeline.Recording, idle, spent map[int]timeline.Nanos) {
	t.Helper()
	os.Remove(feed)
	script := filepath.Join(t.TempDir(), "train.py")
	write(t, script, program)
	cmd := exec.Command(python, script, site, fmt.Sprint(scale), fmt.Sprint(length))
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer in.Close()
	lines := bufio.NewReader(out)
	lines.ReadString('\n')
	process, err := pystack.Attach(cmd.Process.Pid, pystack.Options{Wait: time.Second})
	if err != nil {
		t.Skipf("the program's stacks cannot be read here: %v", err)
	}
	defer process.Close()

	b := timeline.NewBuilder(timeline.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 2)
	go func() { _, err := process.Sample(ctx, b, pystack.SampleOptions{}); done <- err }()
	go func() {
		done <- driver.Collect(ctx, b, gpu.Options{PIDs: func() []int { return []int{cmd.Process.Pid} }})
	}()
	fmt.Fprintln(in, "go")
	text, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	end := b.Since(timeline.Monotonic())
	cancel()
	<-done
	<-done
	idle, spent = trueTimes(t, text, feed)
	return b.Snapshot(end), idle, spent
}

func trueTimes(t *testing.T, log, feed string) (idle, spent map[int]timeline.Nanos) {
	t.Helper()
	type mark struct {
		line int
		at   int64
	}
	var marks []mark
	for _, field := range strings.Fields(log) {
		var m mark
		if _, err := fmt.Sscanf(field, "%d:%d", &m.line, &m.at); err != nil {
			t.Fatalf("%q: %v", field, err)
		}
		marks = append(marks, m)
	}
	fed, err := os.ReadFile(feed)
	if err != nil {
		t.Fatal(err)
	}
	var busy [][2]int64
	for _, line := range strings.Split(string(fed), "\n") {
		var at, device, percent int64
		if n, _ := fmt.Sscan(line, &at, &device, &percent); n == 3 {
			if percent > 0 {
				busy = append(busy, [2]int64{at, at})
			} else {
				busy[len(busy)-1][1] = at
			}
		}
	}
	idle, spent = make(map[int]timeline.Nanos), make(map[int]timeline.Nanos)
	for i := 0; i+1 < len(marks); i++ {
		from, to := marks[i].at, marks[i+1].at
		n := to - from
		for _, b := range busy {
			n -= max(min(b[1], to)-max(b[0], from), 0)
		}
		idle[marks[i].line] += timeline.Nanos(n)
		spent[marks[i].line] += timeline.Nanos(to - from)
	}
	return idle, spent
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	write(t, to, string(text))
}
