package answers

import (
	"fmt"
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// stretch is a part of the recording: what the program's threads did, in which lines, and
// the figures.
func (a *asked) stretch() (string, []Row) {
	from, to := int64(math.Round(a.q.From*1e9)), int64(math.Round(a.q.To*1e9))
	states, lines := a.stretchOf(from, to)
	var rows []Row
	for s, ns := range states {
		if ns > 0 {
			r := spent(ns, to-from)
			r.Name = report.State(s).String()
			rows = append(rows, r)
		}
	}
	rows = slices.Concat(rows, a.linesOf(lines, to-from), a.devicesOf(from, to), a.figuresOf(from, to))
	return fmt.Sprintf("from %s to %s: states and own lines of the program's threads, idle GPUs, figures", words.Seconds(a.q.From), words.Seconds(a.q.To)), rows
}

// ownLine is a line of the user's own.
type ownLine struct{ file, line int }

// stretchOf sums what the subject's threads did in a stretch, and in which of the own lines.
func (a *asked) stretchOf(from, to int64) (states report.StateTimes, lines map[ownLine]int64) {
	states = make(report.StateTimes, report.NumStates)
	lines = make(map[ownLine]int64)
	for _, thread := range a.Subject.Threads {
		for _, s := range a.History(thread) {
			ns := min(s.End, to) - max(s.Start, from)
			if ns <= 0 {
				continue
			}
			states[s.State] += ns
			if at, ok := a.innermostOwn(s.Node); ok {
				lines[at] += ns
			}
		}
	}
	return states, lines
}

func (a *asked) innermostOwn(node int32) (ownLine, bool) {
	for ; node > 0; node = a.Parent(node) {
		frame := a.FrameOf(node)
		if fn := &a.View.Functions[a.FunctionOf(frame)]; fn.Code.Own() {
			return ownLine{fn.File, a.LineOf(frame)}, true
		}
	}
	return ownLine{}, false
}

func (a *asked) linesOf(lines map[ownLine]int64, of int64) []Row {
	var rows []Row
	for at, ns := range lines {
		r := spent(ns, of)
		r.Place, r.Code = a.place(&at.file, &at.line), a.code(&at.file, &at.line)
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b Row) int { return compareRows(a, b) })
	return rows
}

// compareRows orders rows by their time, equal ones by their place.
func compareRows(a, b Row) int {
	switch {
	case *a.Seconds > *b.Seconds, *a.Seconds == *b.Seconds && a.Place < b.Place:
		return -1
	case *a.Seconds == *b.Seconds && a.Place == b.Place:
		return 0
	}
	return 1
}

// devicesOf is for how long each GPU in use was idle, by its activity as the lane shows it.
func (a *asked) devicesOf(from, to int64) []Row {
	var rows []Row
	for i, d := range a.View.Devices {
		t := a.DeviceTrack(i, "gpu.util")
		if t == nil || !d.Used {
			continue
		}
		mean, _, known := over(t, from/1000, to/1000)
		if known == 0 {
			continue
		}
		r := spent(int64((1-mean/100)*known*1000), to-from)
		r.Name = fmt.Sprintf("GPU %d idle", d.Number)
		rows = append(rows, r)
	}
	return rows
}

// figuresOf are the means and peaks of the figures of the target, the machine and the GPUs.
func (a *asked) figuresOf(from, to int64) []Row {
	var rows []Row
	for i := range a.Tracks {
		t := &a.Tracks[i]
		if t.Thread != nil {
			continue
		}
		mean, peak, known := over(t, from/1000, to/1000)
		if known == 0 || peak == 0 {
			continue
		}
		name := t.ID
		if t.Device != nil {
			name += fmt.Sprintf(" of GPU %d", a.View.Devices[*t.Device].Number)
		}
		rows = append(rows, Row{Name: name, Says: "mean " + words.Quantity(mean, t.Unit) + ", peak " + words.Quantity(peak, t.Unit)})
	}
	return rows
}

// over is a track's mean and peak in a stretch of microseconds, and for how long of it they are known.
func over(t *report.Track, from, to int64) (mean, peak, known float64) {
	sum := 0.0
	last := int64(0)
	for i, at := range t.AtUS {
		us, v := float64(min(at, to)-max(last, from)), t.Value[i]
		last = at
		if us <= 0 || math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		sum += us * v
		known += us
		peak = max(peak, v)
	}
	if known > 0 {
		mean = sum / known
	}
	return mean, peak, known
}
