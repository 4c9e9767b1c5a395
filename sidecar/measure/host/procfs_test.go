package host

import (
	"strings"
	"testing"
)

func TestParseStatus(t *testing.T) {
	text := "Name:\tpy\nVmHWM:\t  2048 kB\nThreads:\t3\nvoluntary_ctxt_switches:\t17\nnonvoluntary_ctxt_switches:\t4\n"
	if got, want := parseStatus([]byte(text)), (status{2048 << 10, 17, 4, true}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := parseStatus([]byte("VmHWM: many kB\nno colon\n")); got != (status{}) {
		t.Errorf("noise was read as %+v", got)
	}
}

func FuzzParseStatus(f *testing.F) {
	f.Add([]byte("VmHWM:\t  2048 kB\nvoluntary_ctxt_switches:\t17\n"))
	f.Fuzz(func(t *testing.T, text []byte) { parseStatus(text) })
}

func FuzzGroupFolders(f *testing.F) {
	f.Add("0::/user.slice/x\n")
	f.Add("5:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n")
	f.Add("0::/../../..\n")
	f.Add("5:cpu/../../..:/x\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, dir := range groupFolders(text, "/sys/fs/cgroup") {
			if dir != "/sys/fs/cgroup" && !strings.HasPrefix(dir, "/sys/fs/cgroup/") {
				t.Errorf("%q leads to %s", text, dir)
			}
		}
	})
}
