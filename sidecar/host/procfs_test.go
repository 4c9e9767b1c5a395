package host

import (
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

const statLine = "4711 (py (3) x) S 12 4711 4711 0 -1 4194304 901 33 7 2 150 50 30 20 20 0 5 0 987654 10000 200 18446744073709551615\n"

func TestParseStat(t *testing.T) {
	got, err := parseStat([]byte(statLine))
	if err != nil {
		t.Fatal(err)
	}
	want := stat{
		comm: "py (3) x", state: 'S', parent: 12, minor: 901, major: 7,
		own: timeline.Nanos(2 * time.Second), reaped: timeline.Nanos(500 * time.Millisecond), threads: 5, start: 987654,
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, bad := range []string{"", "1 (a", "1 (a) S", "1 (a) S 1 2 3 x x x x x x x x x x x x x x x x x x", ") ("} {
		if got, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q was read as %+v", bad, got)
		}
	}
}

func TestParseStatus(t *testing.T) {
	text := "Name:\tpy\nVmHWM:\t  2048 kB\nThreads:\t3\nvoluntary_ctxt_switches:\t17\nnonvoluntary_ctxt_switches:\t4\n"
	if got, want := parseStatus([]byte(text)), (status{2048 << 10, 17, 4, true}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := parseStatus([]byte("VmHWM: many kB\nno colon\n")); got != (status{}) {
		t.Errorf("noise was read as %+v", got)
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte(statLine))
	f.Add([]byte("1 ((()) R 0 0 0 0 0 0 0 0 0 0 -9223372036854775808 9223372036854775807 0 0 0 0 0 0 0 0"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := parseStat(text)
		if err == nil && (s.own < 0 || s.reaped < 0) {
			t.Errorf("%q: negative CPU time %+v", text, s)
		}
	})
}

func FuzzParseStatus(f *testing.F) {
	f.Add([]byte("VmHWM:\t  2048 kB\nvoluntary_ctxt_switches:\t17\n"))
	f.Fuzz(func(t *testing.T, text []byte) { parseStatus(text) })
}

func FuzzGroupFolders(f *testing.F) {
	f.Add("0::/user.slice/x\n")
	f.Add("5:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n")
	f.Add("0::/../../..\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, dir := range groupFolders(text, "/sys/fs/cgroup") {
			if len(dir) < len("/sys/fs/cgroup") || dir[:len("/sys/fs/cgroup")] != "/sys/fs/cgroup" {
				t.Errorf("%q leads to %s", text, dir)
			}
		}
	})
}
