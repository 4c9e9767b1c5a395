package addtrace

import (
	"fmt"
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
)

// sourceOf is what the merged track says it comes from.
func sourceOf(trace *kineto.Trace) string {
	if trace.From != kineto.FromTorch {
		return "trace of another profiler"
	}
	return "torch.profiler trace"
}

// replaceActivity puts the exact busy series of one device into rec: windows of
// 100 % and 0 % that end on the nanosecond, where the trace covers. Sampled is the
// recording before any trace was added; again says that another one was, of this device.
func replaceActivity(rec, sampled *timeline.Recording, again bool, d deviceEvents, covered timeline.Interval, trace *kineto.Trace, opts Options) {
	id := fmt.Sprintf("gpu%d.util", d.device)
	spec := timeline.TrackSpec{
		ID: id, Kind: timeline.KindRate, Unit: "%", Source: sourceOf(trace), Resolution: time.Nanosecond,
		Device: d.device, Limit: 100, MaxPoints: opts.MaxWindows,
	}
	exact, step := bounded(windows(d.events, covered), opts.MaxWindows)
	track := timeline.Track{TrackSpec: spec, Peak: 100, Step: step, Points: exact}
	if step > 0 {
		track.Resolution = step
	}
	at := trackOf(rec, id)
	if at < 0 {
		rec.Tracks = append(rec.Tracks, track)
	} else {
		before := rec.Tracks[at]
		track.Points = spliced(before.Points, exact, covered)
		if i := trackOf(sampled, id); i >= 0 && sampled.Tracks[i].Source != "" && len(track.Points) > len(exact) {
			track.Source += ", outside it " + sampled.Tracks[i].Source
		}
		if again {
			track.Step = max(track.Step, before.Step)
			track.Resolution = max(track.Resolution, before.Resolution)
		}
		rec.Tracks[at] = track
	}
	gpu := slices.IndexFunc(rec.GPUs, func(g timeline.GPU) bool { return g.Index == d.device })
	if gpu < 0 {
		rec.GPUs = append(rec.GPUs, timeline.GPU{Index: d.device, Name: deviceName(trace), OtherProcesses: -1})
		slices.SortFunc(rec.GPUs, func(a, b timeline.GPU) int { return a.Index - b.Index })
		gpu = slices.IndexFunc(rec.GPUs, func(g timeline.GPU) bool { return g.Index == d.device })
	}
	rec.GPUs[gpu].Source, rec.GPUs[gpu].Resolution = track.Source, track.Resolution
	if pid := rec.Target.PID; pid != 0 && !slices.Contains(rec.GPUs[gpu].PIDs, pid) {
		// The trace is the target's own, so the device was in use by it.
		rec.GPUs[gpu].PIDs = append(slices.Clone(rec.GPUs[gpu].PIDs), pid)
	}
}

func trackOf(rec *timeline.Recording, id string) int {
	return slices.IndexFunc(rec.Tracks, func(t timeline.Track) bool { return t.ID == id })
}

func deviceName(trace *kineto.Trace) string {
	if len(trace.Meta.Devices) > 0 {
		return trace.Meta.Devices[0]
	}
	return ""
}

// windows turns events, sorted by start, into busy and idle windows that cover
// the span without gaps.
func windows(events []event, covered timeline.Interval) []timeline.Point {
	var points []timeline.Point
	at := covered.Start
	until := func(end timeline.Nanos, value float64) {
		if end > at {
			points = append(points, timeline.Point{From: at, At: end, Value: value})
			at = end
		}
	}
	for i := 0; i < len(events); {
		start, end := events[i].start, events[i].end
		for i++; i < len(events) && events[i].start <= end; i++ {
			end = max(end, events[i].end)
		}
		until(min(start, covered.End), 0)
		until(min(end, covered.End), 100)
	}
	until(covered.End, 0)
	return points
}

// bounded joins neighbouring windows until at most limit are left: the joined
// ones carry the mean, so that busy time stays exact. The step is the length
// that windows were joined up to, 0 if none was.
func bounded(points []timeline.Point, limit int) ([]timeline.Point, time.Duration) {
	var step timeline.Nanos
	for len(points) > limit {
		step = max(2*step, timeline.Nanos(time.Microsecond))
		joined := points[:0:0]
		for _, p := range points {
			if n := len(joined); n > 0 && p.At-joined[n-1].From <= step {
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

// spliced keeps the samples outside the covered span; a window that reaches
// over an edge is cut there.
func spliced(sampled, exact []timeline.Point, covered timeline.Interval) []timeline.Point {
	var points []timeline.Point
	for _, p := range sampled {
		if p.From < covered.Start {
			p.At = min(p.At, covered.Start)
			points = append(points, p)
		}
	}
	points = append(points, exact...)
	for _, p := range sampled {
		if p.At > covered.End {
			p.From = max(p.From, covered.End)
			points = append(points, p)
		}
	}
	return points
}
