package specimen

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Trainings are the ways in which trainings/train.py trains.
var Trainings = []string{"plain", "workers", "item", "launches", "accumulation", "validation", "checkpoint", "compiled", "trainer", "lightning"}

// Window is a device of a training, by the length of its windows.
type Window struct {
	Device int
	Length time.Duration
}

// Windows are the devices of trainingGPUs. The second is read by GPM, whose windows
// are a little longer than 100 ms.
var Windows = []Window{{0, 20 * time.Millisecond}, {1, 103 * time.Millisecond}, {2, 167 * time.Millisecond}, {3, time.Second}}

// trainingGPUs is the script of the fake library for them.
const trainingGPUs = "device A\nperiod_ms 20\ndevice B\ngpm 1\ndevice C\nperiod_ms 167\ndevice D\nperiod_ms 1000\n"

// Training is the program of a training with steps of a length, for some seconds.
func Training(folder, variant string, step, length time.Duration) (*Program, error) {
	p := &Program{
		Name: fmt.Sprintf("%s %d", variant, step.Milliseconds()), Needs: []string{"torch"}, GPU: trainingGPUs, Whole: true,
		Arguments: []string{variant, fmt.Sprint(step.Milliseconds()), fmt.Sprint(length.Seconds())},
	}
	switch variant {
	case "trainer":
		p.Needs = append(p.Needs, "transformers", "accelerate")
	case "lightning":
		p.Needs = append(p.Needs, "lightning")
	}
	for _, t := range []struct{ kind, file string }{{"library devices.py", "devices.py"}, {"script", "train.py"}} {
		source, err := os.ReadFile(filepath.Join(folder, t.file))
		if err != nil {
			return nil, err
		}
		p.Texts = append(p.Texts, Text{t.kind, string(source)})
	}
	return p, nil
}

// Exact is the device whose activity is not measured but known: in the recording
// of a training on simulated devices it is what all of them truly did.
const Exact = 15

// AddExact adds the true activity to a recording, from the feed by which the
// program drove the fake library's device 0.
func AddExact(rec *timeline.Recording, feed []byte) {
	t := timeline.Track{TrackSpec: timeline.TrackSpec{
		ID: fmt.Sprintf("gpu%d.util", Exact), Kind: timeline.KindRate, Unit: "%", Source: "the program", Device: Exact, Limit: 100,
	}, Peak: 100}
	last, percent := timeline.Nanos(0), 0.0
	add := func(to timeline.Nanos) {
		if to = min(max(to, 0), rec.Duration); to > last {
			t.Points = append(t.Points, timeline.Point{From: last, At: to, Value: percent})
			last = to
		}
	}
	lines := bufio.NewScanner(bytes.NewReader(feed))
	for lines.Scan() {
		var at int64
		var gpu int
		var value float64
		if n, err := fmt.Sscanf(lines.Text(), "%d %d %g", &at, &gpu, &value); n < 3 || err != nil || gpu != 0 {
			continue
		}
		add(timeline.Nanos(at - rec.Origin))
		percent = value
	}
	add(rec.Duration)
	rec.Tracks = append(slices.Clone(rec.Tracks), t)
	rec.GPUs = append(slices.Clone(rec.GPUs), timeline.GPU{Index: Exact, Name: "exact", PIDs: []int{rec.Target.PID}})
}

// Only returns the recording as if one of its devices were the only one. The
// exact one is cut to the time in which another was measured.
func Only(rec *timeline.Recording, device, measured int) *timeline.Recording {
	out := *rec
	out.GPUs = slices.DeleteFunc(slices.Clone(rec.GPUs), func(g timeline.GPU) bool { return g.Index != device })
	out.Tracks = nil
	from, to := timeline.Nanos(math.MaxInt64), timeline.Nanos(0)
	for _, t := range rec.Tracks {
		if t.ID == fmt.Sprintf("gpu%d.util", measured) && len(t.Points) > 0 {
			from, to = t.Points[0].From, t.Points[len(t.Points)-1].At
		}
	}
	for _, t := range rec.Tracks {
		if t.Device >= 0 && t.Device != device {
			continue
		}
		if t.Device == Exact {
			var cut []timeline.Point
			for _, p := range t.Points {
				if p.From, p.At = max(p.From, from), min(p.At, to); p.From < p.At {
					cut = append(cut, p)
				}
			}
			t.Points = cut
		}
		out.Tracks = append(out.Tracks, t)
	}
	return &out
}

// Loop is when the exact device began to work and when it ended: the training
// without its set-up, as a cell of its own is recorded.
func Loop(rec *timeline.Recording) (from, to timeline.Nanos) {
	for _, t := range rec.Tracks {
		for _, p := range t.Points {
			if t.Device != Exact || p.Value == 0 {
				continue
			}
			if from == 0 {
				from = p.From
			}
			to = p.At
		}
	}
	return from, to
}

// Between is the recording of a part of the time.
func Between(rec *timeline.Recording, from, to timeline.Nanos) *timeline.Recording {
	out := *rec
	out.Duration, out.Origin = to-from, rec.Origin+int64(from)
	cut := func(start, end timeline.Nanos) (timeline.Nanos, timeline.Nanos) {
		return max(start, from) - from, min(end, to) - from
	}
	out.Threads = slices.Clone(rec.Threads)
	for i := range out.Threads {
		var kept []timeline.Span
		for _, s := range out.Threads[i].Spans {
			if s.Start, s.End = cut(s.Start, s.End); s.Start < s.End {
				kept = append(kept, s)
			}
		}
		out.Threads[i].Spans = kept
	}
	out.Tracks = slices.Clone(rec.Tracks)
	for i := range out.Tracks {
		var kept []timeline.Point
		for _, p := range out.Tracks[i].Points {
			if p.From < from || p.At > to {
				if out.Tracks[i].Device != Exact {
					continue // a window is whole
				}
			}
			if p.From, p.At = cut(p.From, p.At); p.From <= p.At {
				kept = append(kept, p)
			}
		}
		out.Tracks[i].Points = kept
	}
	out.Processes = slices.Clone(rec.Processes)
	for i := range out.Processes {
		p := &out.Processes[i]
		if p.Start -= from; p.End > 0 {
			p.End = max(p.End-from, 1)
		}
	}
	return &out
}
