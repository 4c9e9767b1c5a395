package pystack

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// machine is an affinity that is remembered, not kept.
type machine struct {
	allowed, now unix.CPUSet
	refuses      bool
	sets         int
	slices       []uint64
}

func newMachine(cpus ...int) *machine {
	m := &machine{allowed: cpuSet(cpus...)}
	m.now = m.allowed
	return m
}

func (m *machine) get(set *unix.CPUSet) error { *set = m.now; return nil }
func (m *machine) set(set *unix.CPUSet) error {
	if m.refuses {
		return errors.New("refused")
	}
	m.sets++
	m.now = *set
	return nil
}
func (m *machine) slice(n uint64) { m.slices = append(m.slices, n) }

func cpuSet(cpus ...int) (set unix.CPUSet) {
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	return set
}

// On the CPU of its target the sampler would run when the target stops, and see it waiting.
func TestTheSamplerStaysOffTheCPUsOfItsTarget(t *testing.T) {
	for _, c := range []struct {
		name    string
		allowed []int
		targets []int
		want    []int
	}{
		{"another CPU is left", []int{0, 1}, []int{0}, []int{1}},
		{"two of four", []int{0, 1, 2, 3}, []int{1, 3}, []int{0, 2}},
		{"the target runs where the sampler may not", []int{0, 1}, []int{7}, []int{0, 1}},
		{"the target has them all", []int{0, 1}, []int{0, 1}, []int{0, 1}},
		{"there is one", []int{0}, []int{0}, []int{0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(c.allowed...)
			away := newApart(m)
			if away.due(placesEvery) {
				away.leave(c.targets)
			}
			if m.now != cpuSet(c.want...) {
				t.Errorf("it may run on %v, want %v", m.now, cpuSet(c.want...))
			}
			away.end()
			if m.now != m.allowed || len(m.slices) != 2 || m.slices[1] != 0 {
				t.Errorf("after the end it may run on %v with slices %v", m.now, m.slices)
			}
		})
	}
}

func TestTheSamplerFollowsItsTarget(t *testing.T) {
	m := newMachine(0, 1)
	away := newApart(m)
	at := placesEvery
	for _, target := range []int{0, 0, 1, 1, 0} {
		if !away.due(at) {
			t.Fatal("it does not look where the target is")
		}
		away.leave([]int{target})
		if m.now.IsSet(target) {
			t.Errorf("it stays on CPU %d of its target", target)
		}
		if away.due(at + placesEvery/2) {
			t.Error("it looks too often")
		}
		at += placesEvery
	}
	if m.sets != 3 {
		t.Errorf("it was moved %d times, want 3", m.sets)
	}
}

// Where all CPUs have work, a sampler that is kept to some would wait longer for them.
func TestOnABusyMachineTheSamplerRunsAnywhere(t *testing.T) {
	m := newMachine(0, 1)
	away := newApart(m)
	away.due(placesEvery)
	away.leave([]int{0})
	away.missed(crowdedTicks-1, placesEvery)
	if m.now != cpuSet(1) {
		t.Error("it is let free for a tick that was missed")
	}
	away.missed(crowdedTicks, 2*placesEvery)
	if m.now != m.allowed || away.due(2*placesEvery+crowdedFor-1) {
		t.Errorf("it may run on %v, and asks where its target is", m.now)
	}
	if !away.due(2*placesEvery + crowdedFor) {
		t.Error("it never asks again")
	}
}

func TestARefusedMoveIsNotTriedAgain(t *testing.T) {
	m := newMachine(0, 1)
	away := newApart(m)
	m.refuses = true
	away.due(placesEvery)
	away.leave([]int{0})
	if away.due(2 * placesEvery) {
		t.Error("it is tried again")
	}
}

func TestTheCPUOfAThread(t *testing.T) {
	own, err := os.ReadFile("/proc/thread-self/stat")
	if err != nil {
		t.Fatal(err)
	}
	if cpu := parseCPU(own); cpu < 0 {
		t.Errorf("of %q it is %d", own, cpu)
	}
	fields := strings.Repeat(" 0", cpuField-1)
	for text, want := range map[string]int{
		"12 (a) b) R" + fields + " 3 0 0":     3,
		"12 (a) R" + fields + " 3":            3,
		"12 (a) R" + fields:                   -1,
		"12 (a) R" + fields + " 99999999 0":   -1,
		"12 (a) R" + fields + " -1 0":         -1,
		"":                                    -1,
		"12 (a":                               -1,
		"12 (a)":                              -1,
		"12 (a) R" + fields + " 184467440737": -1,
	} {
		if got := parseCPU([]byte(text)); got != want {
			t.Errorf("of %q it is %d, want %d", text, got, want)
		}
	}
}

// A locked thread goes back to Go's scheduler: it must be as it was.
func TestTheThreadIsAsItWas(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, after unix.CPUSet
	own := ownThread{}
	if err := own.get(&before); err != nil {
		t.Skip("no affinity can be read: ", err)
	}
	away := newApart(own)
	away.leave([]int{0})
	away.end()
	if err := own.get(&after); err != nil || before != after {
		t.Errorf("it may run on %v, before on %v (%v)", after, before, err)
	}
	if attr, err := unix.SchedGetAttr(0, 0); err == nil && attr.Runtime == shortSlice {
		t.Error("it keeps its short slice")
	}
}
