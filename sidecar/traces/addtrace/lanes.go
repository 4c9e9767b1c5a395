package addtrace

import (
	"cmp"
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// Lane is what one stream of one device ran, in columns of equal length sorted
// by start; the blocks do not overlap.
type Lane struct {
	Device int   // the recording's number
	Stream int64 // as in the trace
	// Resolution is 0 when every event has a block of its own; else events
	// closer together than it were joined, and Count shows how many.
	Resolution time.Duration
	Start, End []timeline.Nanos
	Name       []int // index into Names; the longest of joined events
	Count      []int
	Names      []string
}

// Kernels are the lanes as a report carries them: report.Options takes them. What
// lies outside of the recording is left out.
func (m *Merged) Kernels() []report.KernelLane {
	var out []report.KernelLane
	for _, l := range m.Lanes {
		out = append(out, m.kernels(l))
	}
	return out
}

func (m *Merged) kernels(l Lane) report.KernelLane {
	out := report.KernelLane{
		Device: l.Device, Stream: l.Stream, ResolutionNS: int64(l.Resolution), Names: append([]string{}, l.Names...),
		GapNS: report.Column{}, LengthNS: report.Column{}, Name: report.Column{}, Count: report.Column{},
	}
	at := timeline.Nanos(0)
	for i := range l.Start {
		start, end := max(l.Start[i], at), min(l.End[i], m.Recording.Duration)
		if start > end {
			continue
		}
		out.GapNS, out.LengthNS = append(out.GapNS, int64(start-at)), append(out.LengthNS, int64(end-start))
		out.Name, out.Count = append(out.Name, int64(l.Name[i])), append(out.Count, int64(l.Count[i]))
		at = end
	}
	return out
}

// lanes sorts events by stream and thins them until all together fit.
func lanes(devices []deviceEvents, trace *kineto.Trace, limit int) []Lane {
	type key struct {
		device int
		stream int64
	}
	byStream := map[key][]event{}
	for _, d := range devices {
		for _, e := range d.events {
			byStream[key{d.device, e.stream}] = append(byStream[key{d.device, e.stream}], e)
		}
	}
	var keys []key
	for k := range byStream {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b key) int {
		if a.device != b.device {
			return a.device - b.device
		}
		return compare(timeline.Nanos(a.stream), timeline.Nanos(b.stream), 0, 0)
	})
	step := time.Duration(0)
	for {
		var list []Lane
		total := 0
		for _, k := range keys {
			l := lane(byStream[k], trace, step)
			l.Device, l.Stream, l.Resolution = k.device, k.stream, step
			total += len(l.Start)
			list = append(list, l)
		}
		// A step longer than any recording leaves one block per stream.
		if total <= limit || step > 1<<40 {
			return list
		}
		step = max(2*step, time.Microsecond)
	}
}

// joinLanes appends what streams ran in a later trace to what they ran before.
func joinLanes(all, later []Lane) []Lane {
	for _, l := range later {
		at := slices.IndexFunc(all, func(o Lane) bool { return o.Device == l.Device && o.Stream == l.Stream })
		if at < 0 {
			all = append(all, l)
			continue
		}
		o := &all[at]
		number := make(map[string]int, len(o.Names))
		for i, name := range o.Names {
			number[name] = i
		}
		for _, name := range l.Names {
			if _, known := number[name]; !known {
				number[name] = len(o.Names)
				o.Names = append(o.Names, name)
			}
		}
		for _, name := range l.Name {
			o.Name = append(o.Name, number[l.Names[name]])
		}
		o.Start, o.End, o.Count = append(o.Start, l.Start...), append(o.End, l.End...), append(o.Count, l.Count...)
		o.Resolution = max(o.Resolution, l.Resolution)
	}
	slices.SortStableFunc(all, func(a, b Lane) int { return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Stream, b.Stream)) })
	return all
}

// lane joins a stream's events that are shorter than step and closer together.
func lane(events []event, trace *kineto.Trace, step time.Duration) Lane {
	var l Lane
	index := map[kineto.Sym]int{}
	longest := timeline.Nanos(0) // event in the block being built
	name := func(s kineto.Sym) int {
		i, ok := index[s]
		if !ok {
			i = len(l.Names)
			index[s] = i
			l.Names = append(l.Names, trace.Text(s))
		}
		return i
	}
	for _, e := range events {
		n := len(l.Start) - 1
		if n >= 0 && (e.start < l.End[n] || step > 0 && e.end-l.Start[n] <= timeline.Nanos(step)) {
			l.End[n] = max(l.End[n], e.end)
			l.Count[n]++
			if e.end-e.start > longest {
				longest = e.end - e.start
				l.Name[n] = name(e.name)
			}
			continue
		}
		longest = e.end - e.start
		l.Start, l.End = append(l.Start, e.start), append(l.End, e.end)
		l.Name, l.Count = append(l.Name, name(e.name)), append(l.Count, 1)
	}
	return l
}
