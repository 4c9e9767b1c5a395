package devicework

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// MaxWindows bounds the points of a device's activity: 0 and 100 % in turn.
const MaxWindows = 1 << 14

// Into returns the recording with exact activity in its tracks, in place of the sampled one where it is known, and
// with a note of what is exact. The given one stays as it is.
func Into(rec *timeline.Recording) *timeline.Recording {
	devices := Of(rec)
	if len(devices) == 0 {
		return rec
	}
	out := *rec
	out.Tracks, out.GPUs, out.Notes = slices.Clone(rec.Tracks), slices.Clone(rec.GPUs), slices.Clone(rec.Notes)
	for i := range devices {
		replaceActivity(&out, &devices[i])
	}
	if reason := exact(rec); reason != "" {
		out.Notes = append(out.Notes, timeline.Note{ID: timeline.NoteExact, What: What, Reason: reason})
	}
	return &out
}

// replaceActivity puts the exact busy series of one device into rec: windows of 100 % and 0 % that end on the
// nanosecond.
func replaceActivity(rec *timeline.Recording, d *Device) {
	exact, step := bounded(windows(d), MaxWindows)
	if len(exact) == 0 {
		return
	}
	source := words.List(d.sources)
	if source == "" {
		source = words.List(sources(rec))
	}
	track := timeline.Track{
		TrackSpec: timeline.TrackSpec{
			ID: trackID(d.Index), Kind: timeline.KindRate, Unit: "%", Source: source,
			Resolution: max(time.Nanosecond, step), Device: d.Index, Limit: 100, MaxPoints: MaxWindows,
		},
		Peak: 100, Step: step, Points: exact,
	}
	if at := trackOf(rec, d.Index); at < 0 {
		rec.Tracks = append(rec.Tracks, track)
	} else {
		before := rec.Tracks[at]
		if track.Points = spliced(before.Points, exact, d.Exact); before.Source != "" && len(track.Points) > len(exact) {
			track.Source += ", outside it " + before.Source
		}
		rec.Tracks[at] = track
	}
	gpu := slices.IndexFunc(rec.GPUs, func(g timeline.GPU) bool { return g.Index == d.Index })
	if gpu < 0 {
		gpu, _ = slices.BinarySearchFunc(rec.GPUs, d.Index, func(g timeline.GPU, index int) int { return g.Index - index })
		rec.GPUs = slices.Insert(rec.GPUs, gpu, timeline.GPU{Index: d.Index, OtherProcesses: -1})
	}
	g := &rec.GPUs[gpu]
	g.Source, g.Resolution = track.Source, track.Resolution
	for _, pid := range d.workers {
		if pid != 0 && !slices.Contains(g.PIDs, pid) {
			g.PIDs = append(slices.Clone(g.PIDs), pid)
		}
	}
	for _, w := range rec.Work {
		if g.Name == "" {
			g.Name = w.DeviceName
		}
	}
}

func trackID(index int) string { return fmt.Sprintf("gpu%d.util", index) }

func trackOf(rec *timeline.Recording, index int) int {
	return slices.IndexFunc(rec.Tracks, func(t timeline.Track) bool { return t.ID == trackID(index) })
}

// windows are a device's busy and idle windows, which cover its exact stretches without gaps.
func windows(d *Device) []timeline.Point {
	var points []timeline.Point
	for _, stretch := range d.Exact {
		at := stretch.Start
		until := func(end timeline.Nanos, value float64) {
			if end > at {
				points = append(points, timeline.Point{From: at, At: end, Value: value})
				at = end
			}
		}
		for _, busy := range timeline.Clip(d.Busy, stretch) {
			until(busy.Start, 0)
			until(busy.End, 100)
		}
		until(stretch.End, 0)
	}
	return points
}

// bounded joins neighbouring windows until at most limit are left: the joined
// ones carry the mean, so that busy time stays exact. The step is the length
// that windows were joined up to, 0 if none was.
func bounded(points []timeline.Point, limit int) ([]timeline.Point, time.Duration) {
	var step timeline.Nanos
	for len(points) > limit && step < 1<<60 {
		step = max(2*step, timeline.Nanos(time.Microsecond))
		joined := points[:0:0]
		for _, p := range points {
			if n := len(joined); n > 0 && p.From == joined[n-1].At && p.At-joined[n-1].From <= step {
				joined[n-1] = join(joined[n-1], p)
				continue
			}
			joined = append(joined, p)
		}
		points = joined
	}
	return points, time.Duration(step)
}

func join(p, q timeline.Point) timeline.Point {
	a, b := float64(p.At-p.From), float64(q.At-q.From)
	return timeline.Point{From: p.From, At: q.At, Value: (p.Value*a + q.Value*b) / (a + b)}
}

// spliced keeps the samples outside the exact stretches, cut where they reach over an edge.
func spliced(sampled, exact []timeline.Point, stretches []timeline.Interval) []timeline.Point {
	points := slices.Concat(exact, Outside(sampled, stretches))
	slices.SortFunc(points, func(a, b timeline.Point) int { return cmp.Compare(a.From, b.From) })
	return points
}

// Outside are the parts of a rate's windows that lie in none of the stretches.
func Outside(points []timeline.Point, stretches []timeline.Interval) (out []timeline.Point) {
	for _, p := range points {
		for _, rest := range timeline.Without([]timeline.Interval{{Start: p.From, End: p.At}}, stretches) {
			out = append(out, timeline.Point{From: rest.Start, At: rest.End, Value: p.Value})
		}
	}
	return out
}
