package pystack

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/procfs"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/retry"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// TestComputingIsTheThreadsCPUTime compares, of every thread, the time in computing states with the CPU time
// that the scheduler counts: where CPUs are free, where there are fewer than threads, and under a quota. With
// OMNI_PERF_NAPS, by make truth, it takes 10 s and they agree within 2 %, also with taskset -c 0.
func TestComputingIsTheThreadsCPUTime(t *testing.T) {
	length, limit := 2*time.Second, .15
	if os.Getenv("OMNI_PERF_NAPS") != "" {
		length, limit = 10*time.Second, .02
	}
	python := truth.Any(t)
	naps := truth.Naps(time.Millisecond, 400*time.Microsecond)
	for name, c := range map[string]struct {
		workload truth.Workload
		others   int // programs that compute beside it
		quota    float64
	}{
		"naps":                            {workload: naps},
		"threads that share a GIL":        {workload: truth.Handover},
		"computes":                        {workload: truth.Parts},
		"naps, more programs than CPUs":   {workload: naps, others: runtime.NumCPU() + 1},
		"naps, a quota":                   {workload: naps, quota: .1},
		"computes, a quota":               {workload: truth.Parts, quota: .3},
		"threads that share a GIL, quota": {workload: truth.Handover, quota: .3},
	} {
		t.Run(name, func(t *testing.T) {
			retry.Again(t, func(t *retry.Attempt) {
				for range c.others {
					other, err := truth.Launch(python.Path, truth.Parts, truth.Settings{})
					if err != nil {
						t.Fatal(err)
					}
					defer other.Kill()
				}
				target, err := truth.Launch(python.Path, c.workload, truth.Settings{})
				if err != nil {
					t.Fatal(err)
				}
				defer target.Kill()
				limitCPU(t, target.Pid, c.quota)
				p := attachTo(t, target)
				_, rec, _ := sampleFor(t, p, length, SampleOptions{})
				for _, th := range rec.Threads {
					computing, unknown := 0.0, 0.0
					for _, s := range th.Spans {
						switch time := float64(s.End - s.Start); {
						case s.State.Computes():
							computing += time
						case s.State == timeline.StateUnknown:
							unknown += time
						}
					}
					cpu := float64(th.OnCPU)
					if cpu < .02*float64(length) {
						continue
					}
					t.Logf("%s: computing %.0f ms, unknown %.0f, CPU time %.0f: %.3f", th.Name, computing/1e6, unknown/1e6, cpu/1e6, computing/cpu)
					// Where the sampler had no CPU, nothing is said of computing.
					if computing > cpu*(1+limit) || computing+unknown < cpu*(1-limit) {
						t.Errorf("%s: computing is %.3f of its CPU time and %.3f unknown, want 1 within %.2f", th.Name, computing/cpu, unknown/cpu, limit)
					}
				}
			})
		})
	}
}

// limitCPU puts a process into a control group with a quota, as a container's: so many CPUs.
func limitCPU(t testing.TB, pid int, quota float64) {
	t.Helper()
	if quota == 0 {
		return
	}
	const period = 100_000 // µs
	folder, files := "", map[string]string{}
	for root, limits := range map[string]map[string]string{
		"/sys/fs/cgroup":     {"cpu.max": fmt.Sprintf("%.0f %d", quota*period, period)},
		"/sys/fs/cgroup/cpu": {"cpu.cfs_period_us": strconv.Itoa(period), "cpu.cfs_quota_us": fmt.Sprintf("%.0f", quota*period)},
	} {
		at := filepath.Join(root, "omni-perf-test-"+strconv.Itoa(pid))
		if os.Mkdir(at, 0o755) != nil {
			continue
		}
		known := true
		for file := range limits {
			_, err := os.Stat(filepath.Join(at, file))
			known = known && err == nil
		}
		if !known {
			os.Remove(at)
			continue
		}
		folder, files = at, limits
		break
	}
	if folder == "" {
		t.Skip("no control group of CPU time can be made here")
	}
	t.Cleanup(func() {
		for range 100 { // until the process has ended
			if os.Remove(folder) == nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	for file, limit := range files {
		if err := os.WriteFile(filepath.Join(folder, file), []byte(limit), 0); err != nil {
			t.Skipf("no quota can be set here: %v", err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
		t.Skipf("no process can be put under a quota here: %v", err)
	}
	proc := procfs.New("/proc")
	if groups, err := proc.Read(proc.Path(pid, "cgroup")); err != nil || !strings.Contains(string(groups), filepath.Base(folder)) {
		t.Skipf("the process is not under the quota: %v", err)
	}
}
