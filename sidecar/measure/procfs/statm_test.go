package procfs

import (
	"os"
	"testing"
)

func TestParseStatm(t *testing.T) {
	for text, want := range map[string]int64{"5000 2 1 1 0 300 0\n": int64(2 * pageSize), "0 0 0 0 0 0 0\n": 0, "": 0, "x y": 0, "1": 0} {
		if got, ok := ParseStatm([]byte(text)); got != want || ok != (want > 0) {
			t.Errorf("%q: %d, %v", text, got, ok)
		}
	}
}

func TestResident(t *testing.T) {
	if got, ok := Resident(os.Getpid()); !ok || got < 1<<20 {
		t.Errorf("this process has %d bytes, %v", got, ok)
	}
	if got, ok := Resident(1 << 30); ok {
		t.Errorf("a process that is not there has %d bytes", got)
	}
}
