package kineto

import (
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// describe settles what is known only when all events are read.
func (t *Trace) describe() {
	t.First, t.Last = math.MaxInt64, math.MinInt64
	for _, columns := range [][2][]int64{
		{t.Device.Start, t.Device.Dur}, {t.Calls.Start, t.Calls.Dur}, {t.Ops.Start, t.Ops.Dur}, {t.Python.Start, t.Python.Dur},
	} {
		for row, start := range columns[0] {
			t.First, t.Last = min(t.First, start), max(t.Last, start+max(0, columns[1][row]))
		}
	}
	if t.First > t.Last {
		t.First, t.Last = 0, 0
	}
	t.Process = Process{PID: t.busiestPID()}
	t.Process.Host = t.Meta.Host
	if t.Process.Host == "" {
		t.Process.Host = hostInName(t.File, t.Process.PID)
	}
}

// busiestPID is the process of most operators, else of most runtime calls:
// devices have process numbers of their own in a trace.
func (t *Trace) busiestPID() int64 {
	perThread := make([]int, len(t.Threads))
	for row, thread := range t.Ops.Thread {
		if t.Ops.Class[row] <= OpAnnotation {
			perThread[thread]++
		}
	}
	if slices.Max(append(perThread, 0)) == 0 {
		for _, thread := range slices.Concat(t.Calls.Thread, t.Python.Thread) {
			perThread[thread]++
		}
	}
	perPID := map[int64]int{}
	for thread, n := range perThread {
		perPID[t.Threads[thread].PID] += n
	}
	busiest, most := int64(-1), 0
	for pid, n := range perPID {
		if n > most || n == most && n > 0 && pid < busiest {
			busiest, most = pid, n
		}
	}
	return busiest
}

// handlerName is what torch.profiler.tensorboard_trace_handler calls a file:
// host_pid.time.pt.trace.json.
var handlerName = regexp.MustCompile(`^(.+)_(\d{1,10})\.\d+\.pt\.trace\.json`)

// hostInName takes the host from such a name; the process's number proves that
// it is one.
func hostInName(file string, pid int64) string {
	m := handlerName.FindStringSubmatch(filepath.Base(file))
	if m == nil || m[2] != strconv.FormatInt(pid, 10) {
		return ""
	}
	return m[1]
}
