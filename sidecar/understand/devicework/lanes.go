package devicework

import (
	"cmp"
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// MaxBlocks bounds the blocks of all lanes.
const MaxBlocks = 20_000

// Lane is what one stream of one device ran, in columns of equal length sorted
// by start; the blocks do not overlap.
type Lane struct {
	Device int   // timeline.GPU.Index
	Stream int64 // as in the source
	// Resolution is 0 when every event has a block of its own; else events
	// closer together than it were joined, and Count shows how many.
	Resolution time.Duration
	Start, End []timeline.Nanos
	Name       []int // index into Names; the longest of joined events
	Launched   []Launched
	Count      []int
	Names      []string
}

// Lanes are the streams of the devices that did work, by device and stream, thinned until all together have at
// most so many blocks.
func Lanes(rec *timeline.Recording, most int) []Lane {
	type key struct {
		device int
		stream int64
	}
	byStream := make(map[key][]piece)
	for _, d := range Of(rec) {
		for _, p := range d.work {
			byStream[key{d.Index, p.stream}] = append(byStream[key{d.Index, p.stream}], p)
		}
	}
	var keys []key
	for k := range byStream {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b key) int { return cmp.Or(cmp.Compare(a.device, b.device), cmp.Compare(a.stream, b.stream)) })
	step := time.Duration(0)
	for {
		var list []Lane
		total := 0
		for _, k := range keys {
			l := lane(byStream[k], step)
			l.Device, l.Stream, l.Resolution = k.device, k.stream, step
			total += len(l.Start)
			list = append(list, l)
		}
		// A step longer than any recording leaves one block per stream.
		if total <= most || step > 1<<40 {
			return list
		}
		step = max(2*step, time.Microsecond)
	}
}

// lane joins a stream's events that are shorter than step and closer together.
func lane(events []piece, step time.Duration) Lane {
	var l Lane
	index := map[string]int{}
	longest := timeline.Nanos(0) // event in the block being built
	name := func(s string) int {
		i, ok := index[s]
		if !ok {
			i = len(l.Names)
			index[s] = i
			l.Names = append(l.Names, s)
		}
		return i
	}
	for _, e := range events {
		n := len(l.Start) - 1
		if n >= 0 && (e.Start < l.End[n] || step > 0 && e.End-l.Start[n] <= timeline.Nanos(step)) {
			l.End[n] = max(l.End[n], e.End)
			l.Count[n]++
			if e.Nanos() > longest {
				longest = e.Nanos()
				l.Name[n], l.Launched[n] = name(e.name), e.launch
			}
			continue
		}
		longest = e.Nanos()
		l.Start, l.End = append(l.Start, e.Start), append(l.End, e.End)
		l.Name, l.Count, l.Launched = append(l.Name, name(e.name)), append(l.Count, 1), append(l.Launched, e.launch)
	}
	return l
}
