package timeline

import "testing"

func TestResidentMemoryIsReadOfAllThatKnowIt(t *testing.T) {
	b := NewBuilder(Options{Origin: 1})
	b.Describe(func(r *Recording) {
		r.Processes = []Process{{PID: 7}, {PID: 8}}
		r.Processes[0].Memory.Growth.Largest = 30 << 20
	})
	add := func(id string, pid, place int, values ...float64) {
		w := b.Track(TrackSpec{ID: id, Kind: KindGauge, Unit: "B", PID: pid, Process: place, Device: -1})
		for i, v := range values {
			w.Add(Nanos(i)*Nanos(1e9), v*(1<<20))
		}
	}
	add("rss", 7, 0, 10, 25, 12)
	add("rss.peak", 7, 0, 20, 32)
	add("process.1.rss", 8, 1, 5, 40, 6)
	rec := b.Snapshot(Nanos(3e9))
	if got, want := rec.Resident(0), (Resident{Largest: 30 << 20, First: 20 << 20, Mark: 32 << 20}); got != want || !got.Rose() {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, want := rec.Resident(1), (Resident{Largest: 40 << 20}); got != want || got.Rose() {
		t.Errorf("%+v, want %+v", got, want)
	}
}
