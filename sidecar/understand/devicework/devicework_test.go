package devicework

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

func worked(device int, stream int64, start, end timeline.Nanos) timeline.DeviceActivity {
	return timeline.DeviceActivity{Interval: timeline.Between(start, end), Device: device, Stream: stream, Name: "k"}
}

func stretch(list ...timeline.Nanos) (out []timeline.Interval) {
	for i := 0; i < len(list); i += 2 {
		out = append(out, timeline.Between(list[i], list[i+1]))
	}
	return out
}

func recording(work ...timeline.DeviceWork) *timeline.Recording {
	return &timeline.Recording{Duration: 1000, Work: work}
}

func TestBusyIsTheUnionOfStreams(t *testing.T) {
	rec := recording(timeline.DeviceWork{PID: 1, Complete: stretch(-50, 2000), Activities: []timeline.DeviceActivity{
		worked(0, 7, 300, 400), worked(0, 8, 350, 500), worked(0, 7, -20, 10), worked(0, 7, 990, 1500),
		worked(0, 7, 600, 600), worked(0, 7, 700, 650), worked(0, 7, 0, 0), // no end, or one before the start: left out
	}})
	got := Of(rec)
	if len(got) != 1 || !reflect.DeepEqual(got[0].Busy, stretch(0, 10, 300, 500, 990, 1000)) || !reflect.DeepEqual(got[0].Exact, stretch(0, 1000)) {
		t.Errorf("got %+v", got)
	}
}

// Only where every process that used a device delivered is its activity exact.
func TestExactWhereAllDelivered(t *testing.T) {
	a := timeline.DeviceWork{PID: 1, Source: "CUPTI", Complete: stretch(0, 600), Activities: []timeline.DeviceActivity{worked(0, 7, 100, 200)}}
	b := timeline.DeviceWork{PID: 2, Source: "CUPTI", Complete: stretch(400, 1000), Activities: []timeline.DeviceActivity{worked(0, 7, 450, 480)}}
	if got := Of(recording(a, b)); len(got) != 1 || !reflect.DeepEqual(got[0].Exact, stretch(400, 600)) {
		t.Errorf("of two processes: %+v", got)
	}
	rec := recording(a)
	rec.GPUs = []timeline.GPU{{Index: 0, PIDs: []int{1, 3}}}
	if got := Of(rec); len(got) != 1 || got[0].Exact != nil {
		t.Errorf("beside a process that delivered nothing: %+v", got)
	}
}

// A device of which nothing was delivered is idle, unless the driver saw it work.
func TestADeviceWithoutWork(t *testing.T) {
	rec := recording(timeline.DeviceWork{PID: 1, Complete: stretch(0, 1000), Activities: []timeline.DeviceActivity{worked(0, 7, 100, 200)}})
	rec.GPUs = []timeline.GPU{{Index: 0, PIDs: []int{1}}, {Index: 1, PIDs: []int{1}}}
	rec.Work[0].Index = map[int]int{0: 0}
	rec.Tracks = []timeline.Track{{TrackSpec: timeline.TrackSpec{ID: "gpu1.util", Device: 1}, Points: []timeline.Point{{From: 0, At: 1000, Value: 2}}}}
	if got := Of(rec); len(got) != 2 || got[1].Busy != nil || !reflect.DeepEqual(got[1].Exact, stretch(0, 1000)) {
		t.Errorf("idle: %+v", got)
	}
	rec.Tracks[0].Points[0].Value = 90
	if got := Of(rec); len(got) != 1 {
		t.Errorf("at work as the driver saw it: %+v", got)
	}
}

// CUDA's numbers are those of the devices that the process may use, by the driver's list of processes.
func TestNumbersOfDevices(t *testing.T) {
	work := timeline.DeviceWork{PID: 1, Complete: stretch(0, 1000), Activities: []timeline.DeviceActivity{worked(0, 7, 100, 200), worked(1, 7, 300, 400)}}
	rec := recording(work)
	rec.GPUs = []timeline.GPU{{Index: 2, PIDs: []int{1}}, {Index: 5, PIDs: []int{1, 9}}, {Index: 6, PIDs: []int{9}}}
	if got := Of(rec); len(got) != 2 || got[0].Index != 2 || got[1].Index != 5 {
		t.Errorf("got %+v", got)
	}
	rec.Work[0].Index = map[int]int{0: 6, 1: 5}
	if got := Of(rec); got[len(got)-1].Index != 6 || !reflect.DeepEqual(got[len(got)-1].Busy, stretch(100, 200)) {
		t.Errorf("with numbers that the source knows: %+v", got)
	}
}

func TestExactActivityTakesThePlaceOfTheSampled(t *testing.T) {
	rec := recording(timeline.DeviceWork{PID: 1, Source: "CUPTI", DeviceName: "A100", Error: 300, Complete: stretch(200, 400, 600, 700), Activities: []timeline.DeviceActivity{
		worked(0, 7, 250, 300), worked(0, 7, 650, 800),
	}})
	rec.Tracks = []timeline.Track{{TrackSpec: timeline.TrackSpec{ID: "gpu0.util", Source: "NVML"}, Points: []timeline.Point{{From: 0, At: 500, Value: 40}, {From: 500, At: 1000, Value: 60}}}}
	got := Into(rec)
	want := []timeline.Point{
		{From: 0, At: 200, Value: 40}, {From: 200, At: 250}, {From: 250, At: 300, Value: 100}, {From: 300, At: 400}, {From: 400, At: 500, Value: 40},
		{From: 500, At: 600, Value: 60}, {From: 600, At: 650}, {From: 650, At: 700, Value: 100}, {From: 700, At: 1000, Value: 60},
	}
	if !reflect.DeepEqual(got.Tracks[0].Points, want) || got.Tracks[0].Source != "CUPTI, outside it NVML" {
		t.Errorf("the track is %+v", got.Tracks[0])
	}
	if len(rec.Tracks[0].Points) != 2 || len(rec.GPUs) != 0 {
		t.Error("the recording given was changed")
	}
	if g := got.GPUs[0]; g.Name != "A100" || !reflect.DeepEqual(g.PIDs, []int{1}) {
		t.Errorf("the device is %+v", g)
	}
	if note := got.Notes[0]; note.ID != timeline.NoteExact || !strings.Contains(note.Reason, " s (CUPTI), its place in the recording known to 0.3 µs") {
		t.Errorf("the note is %+v", note)
	}
}

// Windows and blocks beyond a limit are joined; busy time and the number of kernels stay.
func TestBoundsKeepBusyTime(t *testing.T) {
	var list []timeline.DeviceActivity
	for i := timeline.Nanos(0); i < 2000; i++ {
		list = append(list, worked(0, 7, 5000*i, 5000*i+1000+i))
	}
	rec := &timeline.Recording{Duration: 10e6, Work: []timeline.DeviceWork{{Complete: stretch(0, 4e6, 5e6, 10e6), Activities: list}}}
	d := Of(rec)[0]
	all := windows(&d)
	few, step := bounded(all, 40)
	busy := func(points []timeline.Point) (sum float64) {
		for _, p := range points {
			sum += p.Value / 100 * float64(p.At-p.From)
		}
		return sum
	}
	if step == 0 || len(few) > 40 || math.Abs(busy(few)-busy(all)) > 1 {
		t.Errorf("%d windows at %v, busy for %.0f, want %.0f", len(few), step, busy(few), busy(all))
	}
	for i, p := range few {
		if p.From < 5e6 && p.At > 4e6 {
			t.Errorf("window %d, %v to %v, is of the time between two stretches", i, p.From, p.At)
		}
	}
	kernels := 0
	l := Lanes(rec, 50)[0]
	for i, n := range l.Count {
		kernels += n
		if i > 0 && l.Start[i] < l.End[i-1] {
			t.Fatalf("block %d overlaps the one before", i)
		}
	}
	if len(l.Count) > 50 || kernels != len(list) {
		t.Errorf("%d blocks of %d kernels, want at most 50 of %d", len(l.Count), kernels, len(list))
	}
}
