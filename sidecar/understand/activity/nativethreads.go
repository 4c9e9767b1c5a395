package activity

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// NativeThreads are threads of one name that run no Python: those of a library.
type NativeThreads struct {
	Name  string // without the number at its end; empty: they have the process's own name, which says nothing
	Count int
	CPU   timeline.Nanos // that they used while no thread of their process was in a native call
}

const (
	// worthNative is the share of the recording, and leastNative the CPU time, from which on such threads are worth a word.
	worthNative = 0.1
	leastNative = timeline.Nanos(250 * time.Millisecond)
)

// BusyNative finds the threads without Python that used much CPU time, most first. What they used while Python threads
// were in native calls is left out: that is BLAS, OpenMP and whatever else such a call divides its work among.
func BusyNative(rec *timeline.Recording) []NativeThreads {
	type key struct {
		process int
		name    string
	}
	sums := make(map[key]*NativeThreads)
	calls := make(map[int][]timeline.Interval) // by process
	for i := range rec.Tracks {
		t := &rec.Tracks[i]
		var tid int
		if n, _ := fmt.Sscanf(t.ID, "thread.%d.cpu", &tid); n != 1 || runsPython(rec, t.PID, tid) {
			continue
		}
		native, known := calls[t.Process]
		if !known {
			native = nativeCalls(rec, t.Process)
			calls[t.Process] = native
		}
		used := timeline.Nanos(0)
		for _, p := range t.Points {
			if !(p.Value > 0) {
				continue
			}
			alone := timeline.Total(timeline.Without([]timeline.Interval{timeline.Between(p.From, p.At)}, native))
			used += timeline.Nanos(p.Value * float64(alone))
		}
		k := key{t.Process, withoutNumber(t.Name)}
		if sums[k] == nil {
			sums[k] = &NativeThreads{Name: k.name}
		}
		sums[k].Count++
		sums[k].CPU += used
	}
	var out []NativeThreads
	for _, s := range sums {
		if s.CPU >= leastNative && float64(s.CPU) >= worthNative*float64(rec.Duration) {
			out = append(out, *s)
		}
	}
	slices.SortFunc(out, func(a, b NativeThreads) int { return cmp.Or(cmp.Compare(b.CPU, a.CPU), cmp.Compare(a.Name, b.Name)) })
	return out
}

func runsPython(rec *timeline.Recording, pid, tid int) bool {
	return slices.ContainsFunc(rec.Threads, func(t timeline.Thread) bool { return t.PID == pid && t.NativeID == tid })
}

// nativeCalls is when threads of a process were in native calls.
func nativeCalls(rec *timeline.Recording, process int) (list []timeline.Interval) {
	for i := range rec.Threads {
		if rec.Threads[i].Process != process {
			continue
		}
		for _, s := range rec.Threads[i].Spans {
			if s.State == timeline.StateNative {
				list = append(list, timeline.Between(s.Start, s.End))
			}
		}
	}
	return timeline.Joined(list)
}
