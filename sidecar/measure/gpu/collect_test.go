package gpu

import (
	"fmt"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/retry"
)

func self() []int { return []int{os.Getpid()} }

func TestLanesOfAHopper(t *testing.T) {
	retry.Again(t, func(t *retry.Attempt) {
		d := openFake(t, `
	driver 555.42
	device Hopper
	uuid GPU-1234
	gpm 1
	util 0 50
	memory 40960 10240
	process self 2048
	process 999999 512
	power 350
	sm_mhz 1755
	temperature 61
	throttle 0x24
	`)
		r := collectFor(t, d, 450*time.Millisecond, Options{PIDs: self})

		for _, want := range []struct {
			id    string
			value float64
			limit float64
		}{
			{"gpu0.util", 50, 100}, {"gpu0.sm", 40, 100}, {"gpu0.occupancy", 25, 100}, {"gpu0.tensor", 15, 100},
			{"gpu0.dram", 20, 100}, {"gpu0.pcie.tx", 500 << 20, 0}, {"gpu0.pcie.rx", 500 << 20, 0},
			{"gpu0.mem", 10240 << 20, 40960 << 20}, {"gpu0.mem.self", 2048 << 20, 40960 << 20},
			{"gpu0.power", 350, 0}, {"gpu0.clock", 1755, 0}, {"gpu0.temp", 61, 0}, {"gpu0.throttle", 1, 1},
		} {
			got := track(r, want.id)
			if got == nil || len(got.Points) == 0 {
				t.Errorf("%s: no points", want.id)
				continue
			}
			if v := got.Points[len(got.Points)-1].Value; math.Abs(v-want.value) > want.value*0.01 {
				t.Errorf("%s = %v, want %v", want.id, v, want.value)
			}
			if got.Limit != want.limit || got.Device != 0 {
				t.Errorf("%s: limit %v, device %d; want %v, 0", want.id, got.Limit, got.Device, want.limit)
			}
		}
		if used := track(r, "gpu0.energy"); used == nil || len(used.Points) < 2 || used.Points[0].Value != 0 {
			t.Errorf("energy %+v", used)
		} else if last := used.Points[len(used.Points)-1]; math.Abs(last.Value-350*(last.At-used.Points[0].At).Seconds()) > 20 {
			t.Errorf("%v J in %v at 350 W", last.Value, last.At-used.Points[0].At)
		}
		if len(r.GPUs) != 1 {
			t.Fatalf("%d GPUs described, want 1", len(r.GPUs))
		}
		if want := []timeline.ThrottleReason{timeline.PowerCap, timeline.ThermalSoftware}; !slices.Equal(r.GPUs[0].Throttle, want) {
			t.Errorf("the throttle reasons are %v, want %v", r.GPUs[0].Throttle, want)
		}
		g := r.GPUs[0]
		if g.UUID != "GPU-1234" || g.Name != "Hopper (simulated)" || !g.Simulated || g.Driver != "555.42" || g.Source != "GPM" {
			t.Errorf("described as %+v", g)
		}
		if g.OtherProcesses != 1 || len(g.PIDs) != 1 || g.PIDs[0] != os.Getpid() {
			t.Errorf("processes: %d others, ours %v; want 1 and this one", g.OtherProcesses, g.PIDs)
		}
		if g.Resolution < 100*time.Millisecond {
			t.Errorf("resolution %v, want no less than the 100 ms of GPM", g.Resolution)
		}
	})
}

func TestSampleBufferFollowsTheProgram(t *testing.T) {
	for _, clock := range []string{"boot", "wall", "mono"} {
		t.Run(clock, func(t *testing.T) {
			retry.Again(t, func(t *retry.Attempt) {
				d := openFake(t, "clock "+clock+"\nperiod_ms 20\ndevice Ampere\nutil 0 0\nutil 400 100\nutil 700 25")
				<-d.Ready()
				started := timeline.Monotonic() // the script's time 0, a little late
				r := collectFor(t, d, 1100*time.Millisecond, Options{})
				util := track(r, "gpu0.util")
				if util == nil {
					t.Fatal("no gpu0.util")
				}
				if util.Source != "NVML sample buffer" || util.Resolution != 20*time.Millisecond {
					t.Errorf("source %q at %v, want the sample buffer at 20 ms", util.Source, util.Resolution)
				}
				zero := timeline.Nanos(started - r.Origin)
				ms := timeline.Nanos(time.Millisecond)
				for _, phase := range []struct {
					from, to timeline.Nanos
					want     float64
				}{{50, 350, 0}, {450, 650, 100}, {750, 1000, 25}} {
					got, known := mean(util, zero+phase.from*ms, zero+phase.to*ms)
					if math.Abs(got-phase.want) > 1 || known < 0.99 {
						t.Errorf("from %d to %d ms: %.1f %% (known %.2f), want %v", phase.from, phase.to, got, known, phase.want)
					}
				}
			})
		})
	}
}

// A driver whose buffer holds nothing for idle time: short and long gaps are
// idle because the rates say so, and unknown where they cannot be asked.
func TestDryBufferIsIdleOnlyWhenConfirmed(t *testing.T) {
	const script = "period_ms 20\ndry 1\ndevice Ampere\nutil 0 100\nutil 300 0\nutil 900 100\nutil 1100 0\n"
	for _, c := range []struct {
		name, rates string
		known       float64
	}{{"confirmed", "rates 1", 1}, {"unconfirmed", "rates 0", 0}} {
		t.Run(c.name, func(t *testing.T) {
			retry.Again(t, func(t *retry.Attempt) {
				d := openFake(t, script+c.rates)
				<-d.Ready()
				started := timeline.Monotonic()
				r := collectFor(t, d, 1900*time.Millisecond, Options{})
				util := track(r, "gpu0.util")
				zero, ms := timeline.Nanos(started-r.Origin), timeline.Nanos(time.Millisecond)
				if got, known := mean(util, zero+50*ms, zero+250*ms); got != 100 || known < 0.99 {
					t.Errorf("busy stretch: %.1f %%, known %.2f; want 100 %%, all of it", got, known)
				}
				for _, gap := range [][2]timeline.Nanos{{330, 870}, {1150, 1850}} {
					got, known := mean(util, zero+gap[0]*ms, zero+gap[1]*ms)
					if got != 0 || math.Abs(known-c.known) > 0.02 {
						t.Errorf("dry stretch %v: %.1f %%, known %.2f; want 0 %%, known %v", gap, got, known, c.known)
					}
				}
			})
		})
	}
}

func TestSampleTimesGoingBackwardsAddNothing(t *testing.T) {
	retry.Again(t, func(t *retry.Attempt) {
		d := openFake(t, "period_ms 20\nback 300 200\ndevice Ampere\nutil 0 60")
		r := collectFor(t, d, 900*time.Millisecond, Options{})
		util := track(r, "gpu0.util")
		var last timeline.Nanos
		for _, p := range util.Points {
			if p.From < last || p.At <= p.From {
				t.Fatalf("window [%d, %d] after one that ended at %d", p.From, p.At, last)
			}
			if p.Value != 60 {
				t.Errorf("window [%d, %d] = %v, want 60", p.From, p.At, p.Value)
			}
			last = p.At
		}
		if last < timeline.Nanos(550*time.Millisecond) {
			t.Errorf("the lane stopped at %v when time went back", last.Duration())
		}
	})
}

func TestRatesAreTheLastResort(t *testing.T) {
	retry.Again(t, func(t *retry.Attempt) {
		d := openFake(t, "device Old\nsamples 0\nutil 0 70")
		r := collectFor(t, d, 700*time.Millisecond, Options{})
		util := track(r, "gpu0.util")
		if util == nil || util.Source != "NVML utilization rates" || util.Resolution != time.Second {
			t.Fatalf("util track %+v, want one of the utilization rates with 1 s", util)
		}
	})
}

func TestEightDevices(t *testing.T) {
	retry.Again(t, func(t *retry.Attempt) {
		script := ""
		for i := range 8 {
			script += fmt.Sprintf("device G%d\ngpm %d\nutil 0 %d\n", i, i%2, 10*i)
		}
		r := collectFor(t, openFake(t, "period_ms 20\n"+script), 500*time.Millisecond, Options{})
		if len(r.GPUs) != 8 {
			t.Fatalf("%d GPUs, want 8", len(r.GPUs))
		}
		for i := range 8 {
			util := track(r, fmt.Sprintf("gpu%d.util", i))
			if util == nil || util.Device != i {
				t.Fatalf("gpu%d: no util track of that device", i)
			}
			if v := util.Points[len(util.Points)-1].Value; math.Abs(v-float64(10*i)) > 0.5 {
				t.Errorf("gpu%d: %v %%, want %d", i, v, 10*i)
			}
		}
	})
}

func TestMIG(t *testing.T) {
	t.Run("with GPM", func(t *testing.T) {
		retry.Again(t, func(t *retry.Attempt) {
			r := collectFor(t, openFake(t, "device Hopper\ngpm 1\nmig 2\nutil 0 30"), 400*time.Millisecond, Options{})
			if len(r.GPUs) != 2 || r.GPUs[1].UUID != "MIG-GPU-fake-0-1" {
				t.Fatalf("GPUs %+v, want the two instances", r.GPUs)
			}
			if got, _ := mean(track(r, "gpu1.util"), 0, r.Duration); math.Abs(got-30) > 0.5 {
				t.Errorf("instance 1: %v %%, want 30", got)
			}
		})
	})
	t.Run("refused", func(t *testing.T) {
		retry.Again(t, func(t *retry.Attempt) {
			r := collectFor(t, openFake(t, "device Ampere\nmig 1\nutil 0 30"), 150*time.Millisecond, Options{})
			if track(r, "gpu0.util") != nil {
				t.Error("a util track without a source")
			}
			if !noted(r, "gpu0.util", "MIG instance is only known to GPM") {
				t.Errorf("the reason is not noted: %v", r.Notes)
			}
			if track(r, "gpu0.mem") == nil {
				t.Error("memory is missing: MIG does offer it")
			}
		})
	})
}

func TestProcessListThatMatchesNothing(t *testing.T) {
	retry.Again(t, func(t *retry.Attempt) {
		r := collectFor(t, openFake(t, "device A\nprocess 4000001 100\nprocess 4000002 100"), 150*time.Millisecond, Options{PIDs: self})
		if got := track(r, "gpu0.mem.self"); got != nil {
			t.Errorf("memory of this process %v, want none: it was not found", got.Points)
		}
		if !noted(r, "gpu0.mem.self", "none of the 2 processes") {
			t.Errorf("not said that no process matched: %v", r.Notes)
		}
		if r.GPUs[0].OtherProcesses != 2 {
			t.Errorf("%d other processes, want 2", r.GPUs[0].OtherProcesses)
		}
	})
}

func TestFeedDrivesTheDevice(t *testing.T) {
	retry.Again(t, func(t *retry.Attempt) {
		feed := t.TempDir() + "/feed"
		t.Setenv("OMNI_PERF_FAKE_NVML_FEED", feed)
		d := openFake(t, "period_ms 20\ndevice A")
		<-d.Ready()
		now := timeline.Monotonic()
		text := fmt.Sprintf("process %d 0 300\n%d 0 100\n%d 0 0\n%d 0 55", os.Getpid(), now, now+200e6, now+1e15)
		if err := os.WriteFile(feed, []byte(text), 0o600); err != nil { // the last line is not yet whole
			t.Fatal(err)
		}
		r := collectFor(t, d, 600*time.Millisecond, Options{PIDs: self})
		zero, ms := timeline.Nanos(now-r.Origin), timeline.Nanos(time.Millisecond)
		util := track(r, "gpu0.util")
		if got, _ := mean(util, zero+25*ms, zero+175*ms); got != 100 {
			t.Errorf("while fed with work: %v %%, want 100", got)
		}
		if got, _ := mean(util, zero+225*ms, zero+500*ms); got != 0 {
			t.Errorf("after it: %v %%, want 0", got)
		}
		if got := track(r, "gpu0.mem.self"); got == nil || got.Peak != 300<<20 {
			t.Errorf("memory of this process: %+v, want 300 MiB", got)
		}
	})
}

// A process the driver numbers by its inner namespace is still ours; where two
// of ours share a number, the one seen by us under it wins.
func TestMatchThroughNamespaces(t *testing.T) {
	ids := func(pid int) []int { return map[int][]int{100: {100, 7}, 200: {200, 8}, 7: {7}}[pid] }
	u := match([]Process{{7, 10}, {200, 20}, {300, 40}}, []int{100, 200}, ids)
	if u.bytes != 30 || u.others != 1 || !u.known {
		t.Errorf("got %+v, want 30 bytes and one other", u)
	}
	u = match([]Process{{7, 10}}, []int{100, 7}, ids)
	if len(u.pids) != 1 || u.pids[0] != 7 {
		t.Errorf("process 7 was taken for %v", u.pids)
	}
	if u = match([]Process{{100, 0}}, []int{100}, ids); u.known {
		t.Error("a memory of 0 is the driver's way to say unknown")
	}
}
