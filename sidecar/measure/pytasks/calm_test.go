package pytasks

import (
	"testing"
	"time"
)

// Tasks that do not change are read ever less often, and hardly ever where reading them takes from the program.
func TestTasksThatDoNotChangeAreSeldomRead(t *testing.T) {
	for _, test := range []struct {
		name string
		free float64
		idle int // processes without tasks
		so   time.Duration
		want time.Duration
	}{
		{"at first", 0, 1, 10 * time.Millisecond, 0},
		{"a CPU is free", 1, 1, time.Minute, quietEvery},
		{"64 processes have none", 1, 64, time.Minute, 64 * lookEach},
		{"no CPU is free, in a short recording", 0, 1, 15 * time.Second, quietEvery},
		{"no CPU is free", 0, 1, time.Minute, calmEvery},
	} {
		s := &series{r: &round{c: &Collector{Spare: func() (free, cores float64) { return test.free, 2 }}, begun: 1, idle: test.idle}}
		var pause time.Duration
		for at := int64(1); at <= int64(test.so); at += int64(readEvery) {
			pause = s.pause(&Snapshot{}, at)
		}
		if pause != test.want {
			t.Errorf("%s: %v to the next read, want %v", test.name, pause, test.want)
		}
		if changed := s.pause(&Snapshot{Tasks: []Task{{Addr: 8}}}, int64(test.so)+1); changed != 0 {
			t.Errorf("%s: %v to the next read after a change", test.name, changed)
		}
	}
}
