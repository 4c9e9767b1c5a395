package timeline

import (
	"reflect"
	"testing"
)

func TestWorkIsCutWithItsRecording(t *testing.T) {
	b := NewBuilder(Options{Origin: 1000})
	activity := func(start, end Nanos, name string) DeviceActivity {
		return DeviceActivity{Interval: Between(start, end), Name: name}
	}
	b.AddWork(DeviceWork{
		PID: 7, Source: "CUPTI", Complete: []Interval{Between(0, 40), Between(60, 100)},
		Activities: []DeviceActivity{activity(70, 90, "late"), activity(-5, 30, "early"), activity(95, 99, "after")},
	})
	b.AddWork(DeviceWork{PID: 8, Complete: []Interval{Between(0, 10)}, Activities: []DeviceActivity{activity(2, 4, "other")}})
	rec := b.Snapshot(100)
	if len(rec.Work) != 2 || len(rec.Work[0].Activities) != 3 {
		t.Fatalf("the snapshot has %+v", rec.Work)
	}
	got := rec.Slice(20, 80).Work
	want := []DeviceWork{{
		PID: 7, Source: "CUPTI", Complete: []Interval{Between(0, 20), Between(40, 60)},
		Activities: []DeviceActivity{activity(50, 60, "late"), activity(0, 10, "early")},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the slice has\n%+v, want\n%+v", got, want)
	}
	if empty := rec.Slice(45, 55).Work; empty != nil {
		t.Errorf("a slice without work has %+v", empty)
	}
}
