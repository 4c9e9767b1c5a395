package live

import (
	"fmt"
	"math"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

func TestAlarms(t *testing.T) {
	const gib = float64(1 << 30)
	unknown := math.NaN()
	quiet := func(n int) (list []window) {
		for i := range n {
			wobble := float64(i%3-1) / 100 // noise of 1 %
			list = append(list, window{length: 10, pace: 5 * (1 + wobble), idle: 0.2 + wobble, memory: Figure{2 * gib, 16 * gib}})
		}
		return list
	}
	// end has the last n windows changed.
	end := func(n int, change func(w *window, i int)) []window {
		list := quiet(20)
		for i := range n {
			change(&list[len(list)-n+i], i)
		}
		return list
	}
	for name, c := range map[string]struct {
		windows []window
		want    []AlarmID
	}{
		"nothing yet":         {nil, nil},
		"a quiet training":    {quiet(30), nil},
		"slower":              {end(2, func(w *window, _ int) { w.pace = 3 }), []AlarmID{PaceFalls}},
		"slower once":         {end(1, func(w *window, _ int) { w.pace = 3 }), nil},
		"slower within noise": {end(2, func(w *window, _ int) { w.pace = 4.5 }), nil},
		"faster":              {end(2, func(w *window, _ int) { w.pace = 9 }), nil},
		"stopped":             {end(2, func(w *window, _ int) { w.pace = 0 }), []AlarmID{PaceFalls}},
		"a step less": {end(20, func(w *window, i int) {
			w.pace = 0.3
			if i >= 18 {
				w.pace = 0.2
			}
		}), nil},
		"pace not known":    {end(2, func(w *window, _ int) { w.pace = unknown }), nil},
		"slower, too short": {end(2, func(w *window, _ int) { w.pace = 3 })[14:], nil},
		"a noisy pace": {end(20, func(w *window, i int) {
			w.pace = 5 + 3*float64(i%2)
			if i >= 18 {
				w.pace = 3.5
			}
		}), nil},
		"the GPU idles":          {end(2, func(w *window, _ int) { w.idle = 0.7 }), []AlarmID{GPUIdles}},
		"the GPU idles a little": {end(2, func(w *window, _ int) { w.idle = 0.3 }), nil},
		"memory fills":           {end(7, func(w *window, i int) { w.memory.Value += float64(i) * gib / 4 }), []AlarmID{MemoryFills}},
		"memory rose once":       {end(4, func(w *window, i int) { w.memory.Value += 3 * gib }), nil},
		"memory fills in days":   {end(7, func(w *window, i int) { w.memory.Value += float64(i) * gib / 4096 }), nil},
		"memory without a limit": {end(7, func(w *window, i int) { w.memory = Figure{float64(i) * gib, 0} }), nil},
		"both memories": {end(7, func(w *window, i int) {
			w.memory.Value += float64(i) * gib
			w.gpuMemory = Figure{float64(40+i) * gib, 48 * gib}
		}), []AlarmID{MemoryFills, GPUMemoryFills}},
	} {
		got := alarms(c.windows)
		var ids []AlarmID
		for _, a := range got {
			ids = append(ids, a.ID)
		}
		if fmt.Sprint(ids) != fmt.Sprint(c.want) {
			t.Errorf("%s: %+v, want %v", name, got, c.want)
		}
	}
	fills := alarms(end(7, func(w *window, i int) { w.memory.Value += float64(i) * gib / 4 }))
	if a := fills[0]; math.Abs(a.Value-gib/40) > 1 || math.Abs(float64(a.LeftNS)-500e9) > 1e9 {
		t.Errorf("%+v, want 1/40 GiB a second and 500 s left: 12.5 GiB are free", a)
	}
	slower := alarms(end(2, func(w *window, _ int) { w.pace = 3 }))
	if a := slower[0]; a.Value != 3 || math.Abs(a.Usual-5) > 0.06 {
		t.Errorf("%+v, want 3 in place of 5 steps/s", a)
	}
}

// Looks once a second at a training that makes 5 steps a second, and from 200 s on 2.
func TestAFollowerSaysThatStepsAreSlower(t *testing.T) {
	p := newProgram()
	p.b.Set(p.main, 0, p.cell(2), timeline.StatePython, false)
	steps, before := 1.0, 0
	for second := 1; second <= 240; second++ {
		if steps += 5; second > 200 {
			steps -= 3
		}
		at := timeline.Nanos(second) * 1000 * ms
		now := p.look(at, Progress{Steps: int64(steps), LastNS: start + int64(at)})
		if second <= 200 {
			before += len(now.Alarms)
		} else if second == 240 && (len(now.Alarms) != 1 || now.Alarms[0].ID != PaceFalls) {
			t.Errorf("alarms after 40 s at another pace: %+v", now.Alarms)
		}
	}
	if before > 0 {
		t.Errorf("%d alarms before", before)
	}
}

func TestAWorkerThatDiedIsAnAlarmOnce(t *testing.T) {
	p := newProgram()
	number := 1
	p.b.Describe(func(rec *timeline.Recording) {
		rec.Processes = append(rec.Processes,
			timeline.Process{PID: 8, ParentIndex: 0, Role: timeline.RoleLoaderWorker, Number: &number, End: 900 * ms, Signal: 9},
			timeline.Process{PID: 9, ParentIndex: 0, Role: timeline.RoleLoaderWorker, End: 900 * ms, Signal: 15}) // asked to end
	})
	p.b.Set(p.main, 0, p.cell(2), timeline.StatePython, false)
	p.look(1000*ms, Progress{})
	got := p.look(2000*ms, Progress{}).Alarms
	if len(got) != 1 || got[0].ID != WorkerDied || got[0].Signal != 9 || got[0].Who != "DataLoader worker 1" {
		t.Errorf("%+v, want worker 1, ended by signal 9, once", got)
	}
}
