package analyses

import (
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
)

// pathOf analyses the critical path of a script.
func pathOf(t *testing.T, s *script, by string) string {
	t.Helper()
	a := analyze(Options{Tables: CriticalPath()}, s.trace(t))
	path := a.Table(TableCriticalPath)
	var rows []int
	for r := range path.Len() {
		if path.TextAt("by", r) == by {
			rows = append(rows, r)
		}
	}
	var lines strings.Builder
	for line := range strings.Lines(cells(path.Rows(rows), "where", "name", "path_us", "step_us", "saved_us")) {
		lines.WriteString(strings.TrimSpace(line) + "\n")
	}
	return lines.String()
}

// A step that waits for its device at the end: the path is the host's until the first launch, then the device's.
func waitsAtTheEnd() *script {
	var s script
	s.on(1, "user_annotation", "ProfilerStep#1", 0, 100, "")
	s.on(1, "cpu_op", "aten::mm", 4, 12, "")
	s.launchFrom(1, 10, "gemm", 15, 40)
	s.on(1, "cpu_op", "aten::relu", 20, 10, "")
	s.launchFrom(1, 22, "elementwise", 56, 34)
	s.on(1, "cuda_runtime", "cudaDeviceSynchronize", 40, 52, `"correlation":99`)
	return &s
}

// The path has each part of the step once, by what took it; what would be saved is known of the first causes.
func TestCriticalPath(t *testing.T) {
	s := waitsAtTheEnd()
	check(t, "causes", pathOf(t, s, PathCause), `
		device aten::mm 40 40 29
		device aten::relu 34 34 34
		host  12 12 12
		host aten::mm 8 8 8
		delay launching 3 3 3
		host cudaDeviceSynchronize 2 2
		delay queued 1 1
	`)
	check(t, "parts", pathOf(t, s, PathPart), `
		device computing 74 74
		host host 22 22
		delay launching 3 3
		delay queued 1 1
	`)
	check(t, "categories", pathOf(t, s, PathCategory), `
		gemm 40 40
		elementwise 34 34
	`)
	check(t, "operators", pathOf(t, s, PathOperator), `
		aten::mm 48 48
		aten::relu 34 34
	`)
	check(t, "idle causes", pathOf(t, s, PathIdleCause), `
		not_launched 20 20
		launching 3 3
		inside_launch_call 2 2
		queued 1 1
	`)
}

// While the main thread waits for autograd, the path goes through autograd's thread; modules have the forward and backward part.
func TestCriticalPathThroughAutograd(t *testing.T) {
	s := aStep()
	check(t, "parts", pathOf(t, s, PathPart), `
		host host 241
		delay handed_over 61
		delay launching 8
		device computing 7
	`)
	check(t, "modules", pathOf(t, s, PathModule), `
		Net/Linear 60
		Net 19
	`)
}

// A collective on the path of the rank that came first is mostly waiting; on that of the last one it is the transfer.
func TestCollectivesOnThePath(t *testing.T) {
	var set []*kineto.Trace
	for rank := range 2 {
		s := script{rank: rank}
		s.launch(0, 20, "ncclDevKernel_AllReduce", 5, float64(100-60*rank), "")
		set = append(set, s.trace(t))
	}
	path := analyze(Options{Tables: CriticalPath()}, set...).Table(TableCriticalPath)
	got := ""
	for line := range strings.Lines(cells(path, "by", "rank", "name", "path_us")) {
		if strings.HasPrefix(line, PathCollective) {
			got += line
		}
	}
	check(t, "collectives", got, `
		collective 0 waiting for other ranks 60
		collective 0 transfer 40
		collective 1 transfer 40
		collective 1 waiting for other ranks 0
	`)
}
