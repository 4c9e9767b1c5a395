package gpu

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/requirement"
	"github.com/omni-perf/omni-perf/sidecar/testkit/retry"
)

func TestAbsentLibrary(t *testing.T) {
	d := Open(filepath.Join(t.TempDir(), "libnvidia-ml.so.1"))
	if err := d.Err(); !errors.Is(err, ErrNoDriver) {
		t.Errorf("error %v, want ErrNoDriver", err)
	}
	r := collectFor(t, d, 10*time.Millisecond, Options{})
	if len(r.Tracks) != 0 || !noted(r, "GPU lanes", "no NVIDIA driver") {
		t.Errorf("tracks %d, notes %v; want none and the reason", len(r.Tracks), r.Notes)
	}
}

func TestLibraryThatIsNotNVML(t *testing.T) {
	if _, err := exec.LookPath("cc"); err != nil {
		requirement.Missing(t, requirement.Compiler, "no C compiler to build a library with")
	}
	path := filepath.Join(t.TempDir(), "libother.so")
	build := exec.Command("cc", "-shared", "-fPIC", "-xc", "-o", path, "-")
	build.Stdin = strings.NewReader("int something_else(void) { return 1; }")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := Open(path).Err(); !errors.Is(err, ErrNoDriver) || !strings.Contains(err.Error(), "is not NVML") {
		t.Errorf("error %v, want one that says it is not NVML", err)
	}
}

func TestNoDevice(t *testing.T) {
	d := openFake(t, "driver 550.00") // a script without a device
	if err := d.Err(); !errors.Is(err, ErrNoDriver) {
		t.Errorf("error %v, want ErrNoDriver", err)
	}
}

func TestDriverUpgradedUnderUs(t *testing.T) {
	d := openFake(t, "device A\nfail nvmlInit 18")
	if err := d.Err(); err == nil || !strings.Contains(err.Error(), "reboot") {
		t.Errorf("error %v, want what to do about a mismatch", err)
	}
}

// Open must not wait for a slow driver, and a cell that is over before it has
// started says so.
func TestSlowInitDelaysNobody(t *testing.T) {
	started := time.Now()
	d := openFake(t, "init_ms 400\ndevice A")
	if took := time.Since(started); took > 300*time.Millisecond {
		t.Errorf("Open took %v, as long as the driver", took)
	}
	builder := timeline.NewBuilder(timeline.Options{})
	ctx, cancel := timeoutContext(20 * time.Millisecond)
	defer cancel()
	if err := d.Collect(ctx, builder, Options{}); err == nil {
		t.Error("no error from a recording that ended before the driver was ready")
	}
	if r := builder.Snapshot(1); !noted(r, "GPU lanes", "still starting") {
		t.Errorf("notes %v, want that NVML was still starting", r.Notes)
	}
	<-d.Ready()
}

// Every function the collector calls on a device.
var deviceCalls = []string{
	"nvmlSystemGetDriverVersion", "nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetMigMode",
	"nvmlDeviceGetName", "nvmlDeviceGetUUID", "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetComputeRunningProcesses",
	"nvmlDeviceGetPowerUsage", "nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetClockInfo", "nvmlDeviceGetTemperatureV", "nvmlDeviceGetTemperature",
	"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetSamples", "nvmlDeviceGetUtilizationRates",
	"nvmlGpmQueryDeviceSupport", "nvmlGpmSampleAlloc", "nvmlGpmSampleGet", "nvmlGpmMetricsGet",
}

// laneOfCall is the lane that is lost when a call fails.
var laneOfCall = map[string]string{
	"nvmlDeviceGetMemoryInfo": "gpu0.mem", "nvmlDeviceGetComputeRunningProcesses": "gpu0.mem.self",
	"nvmlDeviceGetPowerUsage": "gpu0.power", "nvmlDeviceGetClockInfo": "gpu0.clock",
	"nvmlDeviceGetCurrentClocksEventReasons": "gpu0.throttle",
}

var allLanes = []string{"gpu0.util", "gpu0.mem", "gpu0.mem.self", "gpu0.power", "gpu0.clock", "gpu0.temp", "gpu0.throttle"}

// Whatever call fails, from the start or later, the others' lanes are there and
// the lost one has a reason.
func TestEveryCallFailingInTurn(t *testing.T) {
	for _, call := range deviceCalls {
		for _, fault := range []struct{ code, from int }{{3, 1}, {999, 1}, {999, 2}} {
			t.Run(fmt.Sprintf("%s/%d from %d", call, fault.code, fault.from), func(t *testing.T) {
				retry.Again(t, func(t *retry.Attempt) {
					d := openFake(t, fmt.Sprintf("period_ms 20\ndevice A\ngpm 1\nutil 0 50\nprocess self 5\nfail %s %d %d", call, fault.code, fault.from))
					length := 180 * time.Millisecond
					if call == "nvmlDeviceGetName" { // its counters are taken for those of a real device, which come late
						length += 2 * gpmLate
					}
					r := collectFor(t, d, length, Options{Interval: 5 * time.Millisecond, PIDs: self})
					if d.Err() != nil {
						if call != "nvmlDeviceGetCount" && call != "nvmlDeviceGetHandleByIndex" {
							t.Fatalf("the driver was given up: %v", d.Err())
						}
						if !noted(r, "GPU lanes", call) {
							t.Errorf("notes %v do not name %s", r.Notes, call)
						}
						return
					}
					for _, lane := range allLanes {
						got := track(r, lane)
						whole := got != nil && len(got.Points) > 0 && got.Ended == ""
						if lane != laneOfCall[call] && !whole {
							t.Errorf("%s is not whole though it needs no %s: %+v, notes %v", lane, call, got, r.Notes)
						}
						if lane == laneOfCall[call] && (got == nil) != noted(r, lane, call) {
							t.Errorf("%s: track %+v, notes %v; want one or the other to give the reason", lane, got, r.Notes)
						}
					}
				})
			})
		}
	}
}

// A lost GPU may be noticed by any call; then all its lanes end, with points
// before and the reason after, and other GPUs go on.
func TestGPULostInMidCell(t *testing.T) {
	for _, call := range []string{"nvmlGpmSampleGet", "nvmlDeviceGetMemoryInfo"} {
		t.Run(call, func(t *testing.T) {
			retry.Again(t, func(t *retry.Attempt) {
				d := openFake(t, "period_ms 20\ndevice A\ngpm 1\nutil 0 50\nfail "+call+" 15 4")
				r := collectFor(t, d, 600*time.Millisecond, Options{Interval: 50 * time.Millisecond})
				ended := 0
				for _, tr := range r.Tracks {
					if tr.Ended != "" {
						ended++
						if !strings.Contains(tr.Ended, "lost") || len(tr.Points) == 0 {
							t.Errorf("%s: %d points, ended %q; want points and that the GPU was lost", tr.ID, len(tr.Points), tr.Ended)
						}
					}
				}
				if ended != len(r.Tracks) || ended == 0 {
					t.Errorf("%d of %d lanes ended", ended, len(r.Tracks))
				}
				if at := r.GPUs[0].Lost; at <= 0 || at > r.Duration {
					t.Errorf("the device was lost at %v of %v", at.Duration(), r.Duration.Duration())
				}
			})
		})
	}
	t.Run("the other goes on", func(t *testing.T) {
		retry.Again(t, func(t *retry.Attempt) {
			// The fake counts calls over all devices: only device 0 has GPM here.
			d := openFake(t, "period_ms 20\ndevice A\ngpm 1\ndevice B\nutil 0 40\nfail nvmlGpmSampleGet 15 2")
			r := collectFor(t, d, 600*time.Millisecond, Options{})
			if tr := track(r, "gpu1.util"); tr == nil || tr.Ended != "" || tr.Points[len(tr.Points)-1].At < r.Duration*2/3 {
				t.Errorf("gpu1.util did not go on: %+v", tr)
			}
			if tr := track(r, "gpu0.mem"); tr == nil || tr.Ended == "" {
				t.Errorf("gpu0.mem did not end: %+v", tr)
			}
			if r.GPUs[0].Lost == 0 || r.GPUs[1].Lost != 0 {
				t.Errorf("lost at %v and %v, want the first alone", r.GPUs[0].Lost, r.GPUs[1].Lost)
			}
		})
	})
}

// What the driver reports while a recording runs is in it, at its time; what it reported before is not.
func TestErrorsOfADevice(t *testing.T) {
	retry.Again(t, func(t *retry.Attempt) {
		d := openFake(t, "device A\nxid 0 48\nxid 300 31\nxid 300 45\ndevice B\nxid 5000 79")
		time.Sleep(50 * time.Millisecond)
		r := collectFor(t, d, 900*time.Millisecond, Options{})
		list := r.GPUs[0].Xids
		if len(list) != 2 || list[0].Code != 31 || list[1].Code != 45 || list[0].At < 100*timeline.Nanos(time.Millisecond) || list[0].At > r.Duration {
			t.Errorf("%+v", list)
		}
		if len(r.GPUs[1].Xids) != 0 {
			t.Errorf("the other: %+v", r.GPUs[1].Xids)
		}
	})
}

// GPM that breaks in mid-cell is followed by the sample buffer, with a note.
func TestNextSourceTakesOver(t *testing.T) {
	retry.Again(t, func(t *retry.Attempt) {
		d := openFake(t, "period_ms 20\ndevice A\ngpm 1\nutil 0 50\nfail nvmlGpmMetricsGet 999 3")
		r := collectFor(t, d, 900*time.Millisecond, Options{})
		util := track(r, "gpu0.util")
		if _, known := mean(util, 150*1e6, r.Duration-100*1e6); known < 0.9 {
			t.Errorf("known for %.2f of the time, want all of it", known)
		}
		if r.GPUs[0].Source != "NVML sample buffer" || !noted(r, "gpu0.util", "GPM, then NVML sample buffer") {
			t.Errorf("source %q, notes %v; want that the sample buffer took over", r.GPUs[0].Source, r.Notes)
		}
	})
}

// A missing symbol would end the process, so each variant of the library is
// tried in one of its own.
func TestMissingSymbols(t *testing.T) {
	for _, c := range []struct{ symbol, lane string }{
		{"nvmlDeviceGetSamples", ""}, {"nvmlDeviceGetUtilizationRates", ""}, {"nvmlGpm", "gpu0.sm"},
		{"nvmlDeviceGetMemoryInfo_v2", ""}, {"nvmlDeviceGetPowerUsage", "gpu0.power"}, {"nvmlDeviceGetClockInfo", "gpu0.clock"},
		{"nvmlDeviceGetTemperatureV", ""}, {"nvmlDeviceGetTotalEnergyConsumption", ""}, {"nvmlDeviceGetCurrentClocksEventReasons", "gpu0.throttle"},
		{"nvmlDeviceGetComputeRunningProcesses", "gpu0.mem.self"}, {"nvmlDeviceGetMigMode", ""},
		{"nvmlDeviceGetName", ""}, {"nvmlDeviceGetUUID", ""}, {"nvmlSystemGetDriverVersion", ""},
	} {
		t.Run(c.symbol, func(t *testing.T) {
			script := filepath.Join(t.TempDir(), "script")
			if err := os.WriteFile(script, []byte("period_ms 20\ndevice A\ngpm 1\nutil 0 50\nprocess self 5"), 0o600); err != nil {
				t.Fatal(err)
			}
			r := collectInChild(t, buildFake(t, "-DWITHOUT_"+c.symbol), "OMNI_PERF_FAKE_NVML="+script)
			for _, lane := range append([]string{"gpu0.sm"}, allLanes...) {
				if present := track(r, lane) != nil; present != (lane != c.lane) {
					t.Errorf("%s there: %v; notes %v", lane, present, r.Notes)
				}
			}
			if c.lane != "" && c.lane != "gpu0.sm" && !noted(r, c.lane, "too old or too new") {
				t.Errorf("notes %v do not say why %s is missing", r.Notes, c.lane)
			}
		})
	}
}

// collectInChild records with another library than the one all tests of this
// process share.
func collectInChild(t testing.TB, library string, env ...string) *timeline.Recording {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestChildCollects$", "-test.v")
	child.Env = append(append(os.Environ(), "GPU_TEST_LIBRARY="+library), env...)
	out, err := child.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, text, _ := strings.Cut(string(out), "RECORDING ")
	text, _, _ = strings.Cut(text, "\n")
	var r timeline.Recording
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return &r
}

func TestChildCollects(t *testing.T) {
	library := os.Getenv("GPU_TEST_LIBRARY")
	if library == "" {
		t.Skip("runs only as a child of other tests")
	}
	r := collectFor(t, Open(library), 250*time.Millisecond, Options{PIDs: self})
	for i := range r.Tracks {
		r.Tracks[i].Points = nil // NaN is no JSON
		r.Tracks[i].Peak = 0
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("RECORDING %s\n", text)
}
