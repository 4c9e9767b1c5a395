package gpu

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/retry"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// The program keeps the simulated GPU busy for known times and prints them.
const program = `
import random, sys, time
sys.path.insert(0, sys.argv[1])
from simulated_gpu import SimulatedGPU
random.seed(1)
gpu = SimulatedGPU(memory_mib=1234)
print("ready", flush=True)
sys.stdin.readline()
for phase in range(4):
    start = time.monotonic_ns()
    for _ in range(10):
        gpu.busy(0.03)          # 300 ms of work, launched in no time
    gpu.synchronize()
    middle = time.monotonic_ns()
    time.sleep(0.3)
    print(start, middle, time.monotonic_ns(), flush=True)
`

// The fake driver in step with a program: what is measured is what it did.
func TestActivityOfAProgram(t *testing.T) {
	python := truth.OnPath(t)
	for _, source := range []string{"gpm 1", "gpm 0"} {
		t.Run(source, func(t *testing.T) {
			retry.Again(t, func(t *retry.Attempt) {
				feed := filepath.Join(t.TempDir(), "feed")
				t.Setenv("OMNI_PERF_FAKE_NVML_FEED", feed)
				d := openFake(t, "period_ms 20\ndevice A\n"+source)
				<-d.Ready()
				cmd := exec.Command(python, "-c", program, "../../../examples")
				in, _ := cmd.StdinPipe()
				out, _ := cmd.StdoutPipe()
				cmd.Stderr = os.Stderr
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				lines := bufio.NewScanner(out)
				lines.Scan() // ready
				builder := timeline.NewBuilder(timeline.Options{})
				ctx, cancel := timeoutContext(time.Minute)
				defer cancel()
				done := make(chan error)
				go func() {
					done <- d.Collect(ctx, builder, Options{PIDs: func() []int { return []int{cmd.Process.Pid} }})
				}()
				fmt.Fprintln(in, "go")
				var phases [][3]int64
				for lines.Scan() {
					var p [3]int64
					if _, err := fmt.Sscan(lines.Text(), &p[0], &p[1], &p[2]); err != nil {
						t.Fatalf("%q: %v", lines.Text(), err)
					}
					phases = append(phases, p)
				}
				cmd.Wait()
				cancel()
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				r := builder.Snapshot(builder.Since(timeline.Monotonic()))
				util := track(r, "gpu0.util")
				if len(phases) != 4 || util == nil {
					t.Fatalf("%d phases, util track %v", len(phases), util)
				}
				// Over the whole run, edges of windows included: busy as the device was
				// fed, which on a loaded machine is not quite what the program planned.
				from, to := builder.Since(phases[0][0]), builder.Since(phases[3][1])
				want := fed(t, feed, builder, from, to)
				got, known := mean(util, from, to)
				if math.Abs(got-want) > 2 || known < 0.95 {
					t.Errorf("%s: %.1f %% over the run (known %.2f), want %.1f", util.Source, got, known, want)
				}
				if mem := track(r, "gpu0.mem.self"); mem == nil || mem.Peak != 1234<<20 {
					t.Errorf("memory of the program %+v, want 1234 MiB", mem)
				}
				if !strings.Contains(r.GPUs[0].Name, "simulated") || !r.GPUs[0].Simulated {
					t.Errorf("%+v is not called simulated", r.GPUs[0])
				}
			})
		})
	}
}

// fed is the device's mean activity over a stretch by the feed: lines "TIME 0
// PERCENT" in order of launch, each from its time on.
func fed(t testing.TB, feed string, b *timeline.Builder, from, to timeline.Nanos) float64 {
	t.Helper()
	text, err := os.ReadFile(feed)
	if err != nil {
		t.Fatal(err)
	}
	at, level, sum := from, 0.0, 0.0
	for line := range strings.Lines(string(text)) {
		var when int64
		var device int
		var next float64
		if n, _ := fmt.Sscan(line, &when, &device, &next); n != 3 {
			continue // "process …"
		}
		now := min(max(b.Since(when), at), to)
		sum += level * float64(now-at)
		at, level = now, next
	}
	return (sum + level*float64(to-at)) / float64(to-from)
}

// What polling costs is CPU time of the polling threads, calls into the fake
// driver included, beside that of a goroutine that wakes as often and does nothing.
// A real driver's calls cost more: pace bounds them.
func TestPollingCost(t *testing.T) {
	d := openFake(t, "device A\ngpm 1\nutil 0 50\nprocess self 5")
	<-d.Ready()
	const length = time.Second
	polling, waking := time.Hour, time.Hour
	for range 4 { // the least of each: other work on the machine only adds
		before := processCPU(t)
		collectFor(t, d, length, Options{PIDs: self})
		polling = min(polling, processCPU(t)-before)

		before = processCPU(t)
		ticker := time.NewTicker(timeline.DefaultFigureInterval)
		for end := time.After(length); ; {
			select {
			case <-ticker.C:
				continue
			case <-end:
			}
			break
		}
		ticker.Stop()
		waking = min(waking, processCPU(t)-before)
	}
	t.Logf("%.2f %% of a core for one GPU at the default rates, %.1f times what it takes to wake as often",
		100*polling.Seconds()/length.Seconds(), float64(polling)/float64(waking))
	if polling > 10*waking {
		t.Errorf("polling one GPU takes %v a second, waking as often %v", polling, waking)
	}
}

func processCPU(t testing.TB) time.Duration {
	t.Helper()
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// A device whose calls take a lot of CPU is asked less often; activity may cost more than figures.
func TestPaceStretchesCostlyPolling(t *testing.T) {
	for name, p := range map[string]pace{"figures": newPace(figureShare), "activity": newPace(activityShare)} {
		spend := func(share float64) bool {
			p.checked = time.Now().Add(-paceWindow)
			p.spent = time.Duration(share * float64(paceWindow))
			return p.tooCostly()
		}
		if spend(0.9*p.share) || p.factor != 1 {
			t.Errorf("%s: factor %d after spending less than it may", name, p.factor)
		}
		if !spend(1.1*p.share) || p.factor != 2 {
			t.Errorf("%s: factor %d after spending more than it may, want 2", name, p.factor)
		}
		if spend(0) || p.factor != 2 {
			t.Errorf("%s: factor %d after spending next to nothing, want 2 still", name, p.factor)
		}
	}
}

// What is spent is the reading's own CPU time.
func TestPaceCountsTheReading(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p := newPace(figureShare)
	p.of(func() time.Time {
		for end := timeline.ThreadCPU() + 20*time.Millisecond; timeline.ThreadCPU() < end; {
		}
		return time.Time{}
	})
	if p.spent < 20*time.Millisecond || p.spent > 200*time.Millisecond {
		t.Errorf("%v of a reading that took 20 ms", p.spent)
	}
}

func TestActivityOfManyDevicesCostsNoMoreThanTheMachineHas(t *testing.T) {
	cores := float64(runtime.NumCPU())
	if got := activityBudget(1000); got > machineShare*cores/1000 {
		t.Errorf("each of 1000 devices may cost %v of a core", got)
	}
	if got := activityBudget(1); got > activityShare {
		t.Errorf("one device may cost %v of a core", got)
	}
}
