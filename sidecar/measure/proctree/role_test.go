package proctree

import (
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

func TestCommandOf(t *testing.T) {
	for line, want := range map[string]string{
		"pip install x":                              "pip",
		"/usr/bin/ffmpeg -i a":                       "ffmpeg",
		"-bash":                                      "bash",
		"/v/bin/python /v/bin/pip install x":         "pip",
		"python3.12 -m pip install x":                "pip",
		"python -X importtime -W ignore /p/train.py": "train.py",
		"python -c import":                           "python",
		"python3":                                    "python3",
		"":                                           "",
	} {
		if got := commandOf(strings.Fields(line)); got != want {
			t.Errorf("%q runs %q, want %q", line, got, want)
		}
	}
}

func TestExitOf(t *testing.T) {
	for status, want := range map[uint64][2]int{0: {0, 0}, 1 << 8: {1, 0}, 9: {137, 9}, 0x8b: {139, 11}} {
		if got, signal := exitOf(status); *got != want[0] || signal != want[1] {
			t.Errorf("wait status %#x is exit %d by signal %d, want %v", status, *got, signal, want)
		}
	}
}

func TestRoles(t *testing.T) {
	python := func(image byte, rank int, line string) *facts {
		return &facts{comm: "python3", executable: "/usr/bin/python3", arguments: strings.Split(line, " "), image: Image{image}, rank: rank}
	}
	kernel := python(1, -1, "python3 -m ipykernel_launcher -f kernel.json")
	forkserver := python(2, -1, "python3 -c from·multiprocessing.forkserver·import·main;·main(4,5,[],**{})")
	rank1 := python(4, 1, "python3 train.py")
	profiler := &facts{comm: "omni-perf", executable: "/v/bin/omni-perf", arguments: []string{"omni-perf", "run", "train.py"}, rank: 2}
	for name, k := range map[string]struct {
		self, parent *facts
		parentRole   timeline.Role
		want         timeline.Role
		number       int // -1: none
	}{
		"fork":                      {python(1, -1, "python3 -m ipykernel_launcher -f kernel.json"), kernel, timeline.RoleKernel, timeline.RoleWorker, -1},
		"spawn":                     {python(3, -1, "python3 -c from·multiprocessing.spawn·import·spawn_main;·spawn_main(tracker_fd=5) --multiprocessing-fork"), kernel, timeline.RoleKernel, timeline.RoleWorker, -1},
		"fork server":               {forkserver, kernel, timeline.RoleKernel, timeline.RoleForkServer, -1},
		"forked by the fork server": {python(2, -1, strings.Join(forkserver.arguments, " ")), forkserver, timeline.RoleForkServer, timeline.RoleWorker, -1},
		"of which memory is secret": {&facts{arguments: forkserver.arguments, rank: -1, executable: "/usr/bin/python3"}, &facts{}, timeline.RoleForkServer, timeline.RoleWorker, -1},
		"loky":                      {python(5, -1, "python3 -m joblib.externals.loky.backend.popen_loky_posix --process-name LokyProcess-3 --pipe 9"), kernel, timeline.RoleKernel, timeline.RolePoolWorker, 3},
		"tracker":                   {python(6, -1, "python3 -c from·multiprocessing.resource_tracker·import·main;main(4)"), kernel, timeline.RoleKernel, timeline.RoleTracker, -1},
		"another script":            {python(7, -1, "python3 other.py"), kernel, timeline.RoleKernel, timeline.RoleChild, -1},
		"another program":           {&facts{comm: "ffmpeg", executable: "/usr/bin/ffmpeg", arguments: []string{"ffmpeg"}, rank: -1}, kernel, timeline.RoleKernel, timeline.RoleChild, -1},
		"rank":                      {rank1, python(8, -1, "python3 /v/bin/torchrun train.py"), timeline.RoleScript, timeline.RoleRank, 1},
		"worker of a rank":          {python(4, 1, "python3 train.py"), rank1, timeline.RoleRank, timeline.RoleWorker, -1},
		"shell around a rank":       {&facts{comm: "sh", executable: "/bin/dash", arguments: []string{"sh"}, rank: 2}, nil, "", timeline.RoleChild, -1},
		"profiler before a rank":    {profiler, python(8, -1, "python3 /v/bin/torchrun train.py"), timeline.RoleScript, timeline.RoleProfiler, -1},
		"rank behind a profiler":    {python(9, 2, "python3 train.py"), profiler, timeline.RoleProfiler, timeline.RoleRank, 2},
		"script behind a profiler":  {python(9, -1, "python3 train.py"), profiler, timeline.RoleProfiler, timeline.RoleChild, -1},
		"a look at its syntax":      {python(9, 2, "python3 -I -S -W ignore -c import·sys;compile(sys.stdin.buffer.read(),name) train.py"), profiler, timeline.RoleProfiler, timeline.RoleProfiler, -1},
		"rank within a shell":       {python(9, 2, "python3 train.py"), &facts{comm: "sh", executable: "/bin/dash", rank: 2}, timeline.RoleChild, timeline.RoleRank, 2},
	} {
		got, number := roleOf(k.self, k.parent, k.parentRole)
		n := -1
		if number != nil {
			n = *number
		}
		if got != k.want || n != k.number {
			t.Errorf("%s: %s %d, want %s %d", name, got, n, k.want, k.number)
		}
	}
}
