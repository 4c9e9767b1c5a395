package live

import (
	"fmt"
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/interpret"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/wording"
)

// Options of a Follower; the zero value is usable.
type Options struct {
	// Line reads a line of a file of the target; nil: only the cells' own texts are known.
	Line func(file string, line int) string
	Home string // shortened to ~
}

// Follower keeps what looks at one recording have in common. One goroutine at a time.
type Follower struct {
	opts    Options
	lines   tally
	pace    pace
	until   int64 // CLOCK_MONOTONIC up to which the lines are counted
	outer   stay
	inner   stay
	used    map[int]bool // devices, so far
	history History
	watch   watch
}

// New begins to follow a recording.
func New(opts Options) *Follower {
	return &Follower{opts: opts, lines: tally{known: make(map[activity.Place]*entry)}, used: make(map[int]bool)}
}

// From is the instant of CLOCK_MONOTONIC from which on a look at an instant wants the recording.
func (f *Follower) From(at int64) int64 {
	from := at - int64(Window)
	if f.until > 0 {
		from = min(from, f.until)
	}
	return from
}

// Look takes a stretch of the recording, which began at an instant of CLOCK_MONOTONIC, and
// returns what it is doing at the stretch's end.
func (f *Follower) Look(stretch *timeline.Recording, began int64, marked Progress) Now {
	at := stretch.Origin + int64(stretch.Duration)
	rec := interpret.Of(stretch)
	v := &view{
		rec: rec, files: origin.New(rec), source: activity.NewSource(rec, f.opts.Line), names: report.Places(rec, f.opts.Home),
		places: make(map[timeline.NodeID]ownPlaces),
	}
	now := Now{ElapsedNS: at - began, Lines: []HotLine{}, Devices: []Device{}}
	if c := rec.Target.Cell; c != nil {
		now.Cell, now.Name = c.ExecutionCount, c.Name
	}
	main := subject(rec)
	if main != nil {
		f.lines.count(v, main, timeline.Nanos(max(f.until-rec.Origin, 0)))
		now.Line, now.Inner = f.position(v, main)
	}
	f.until = at
	now.Lines, now.Without = f.lines.hottest(mostLines)

	recent := rec
	if rec.Duration > Window {
		recent = rec.Slice(rec.Duration-Window, rec.Duration)
	}
	d := diagnose.Options{Line: f.opts.Line, Quick: true}.Run(recent)
	if main != nil {
		now.Doing = doing(&d, recent.Duration)
	}
	now.Steps = f.pace.steps(at, began, marked, &d)
	f.figures(&now, recent, &d)
	now.Idle = f.idle(v, recent, &d)
	f.remember(&now)
	f.watch.deaths(rec, diagnose.Killed, wording.Process)
	now.Alarms = f.watch.look(at, &now, marked)
	return now
}

// subject is the thread that the stretch is about; nil: none was seen.
func subject(rec *timeline.Recording) *timeline.Thread {
	if i := interpret.SubjectOf(rec).Thread; i >= 0 {
		return &rec.Threads[i]
	}
	return nil
}

// doing is what the thread did most.
func doing(d *diagnose.Diagnosis, duration timeline.Nanos) *Doing {
	sums := make(map[activity.Cause]timeline.Nanos)
	best := activity.Unknown
	for _, s := range d.Spent {
		if s.Cause != activity.Unknown {
			sums[s.Cause] += s.Nanos
		}
	}
	for _, s := range d.Spent { // in their order, so that equals do not take turns
		if sums[s.Cause] > sums[best] {
			best = s.Cause
		}
	}
	if sums[best] <= 0 || duration <= 0 {
		return nil
	}
	return &Doing{Cause: best, Share: float64(sums[best]) / float64(duration)}
}

// figures fills in the tracks' latest values.
func (f *Follower) figures(now *Now, rec *timeline.Recording, d *diagnose.Diagnosis) {
	for _, g := range d.GPUs {
		f.used[g.Device] = f.used[g.Device] || g.Used
		now.Devices = append(now.Devices, Device{Index: g.Device, Used: f.used[g.Device], Simulated: isSimulated(rec, g.Device)})
	}
	for i := range rec.Tracks {
		t := &rec.Tracks[i]
		value, ok := latest(t, rec.Duration)
		if !ok || t.Ended != "" {
			continue
		}
		figure := &Figure{Value: value, Limit: t.Limit}
		switch t.ID {
		case "cpu":
			now.CPU = figure
		case "rss":
			now.Memory = figure
		}
		at := slices.IndexFunc(now.Devices, func(d Device) bool { return d.Index == t.Device })
		if t.Device < 0 || at < 0 {
			continue
		}
		switch t.ID {
		case fmt.Sprintf("gpu%d.util", t.Device):
			share := value / 100
			now.Devices[at].Busy = &share
		case fmt.Sprintf("gpu%d.mem", t.Device):
			now.Devices[at].Memory = figure
		}
	}
}

func isSimulated(rec *timeline.Recording, device int) bool {
	return slices.ContainsFunc(rec.GPUs, func(g timeline.GPU) bool { return g.Index == device && g.Simulated })
}

// stale is how old a track's last value may be to be shown as that of now.
const stale = 3 * second

// latest is a track's mean over the last second for which it is known, a gauge's last value.
func latest(t *timeline.Track, duration timeline.Nanos) (value float64, ok bool) {
	points := t.Points
	for len(points) > 0 && math.IsNaN(points[len(points)-1].Value) {
		points = points[:len(points)-1]
	}
	if len(points) == 0 {
		return 0, false
	}
	last := points[len(points)-1]
	if last.At < duration-stale {
		return 0, false
	}
	if t.Kind == timeline.KindGauge {
		return last.Value, true
	}
	sum, length := 0.0, timeline.Nanos(0)
	for _, p := range slices.Backward(points) {
		if length >= second {
			break
		}
		if !math.IsNaN(p.Value) {
			sum += p.Value * float64(p.At-p.From)
			length += p.At - p.From
		}
	}
	return sum / float64(max(length, 1)), length > 0
}

// sureOf is the share of the idle time that a cause must have at least, by its bounds, to
// be named without "probably".
const sureOf = 0.5

// worthSaying is the share of the time for which devices must idle for its cause to be mentioned.
const worthSaying = 0.05

// idle is what the devices in use wait for. A device that did nothing in the whole stretch
// waits for what its program did meanwhile: there is nothing to divide.
func (f *Follower) idle(v *view, rec *timeline.Recording, d *diagnose.Diagnosis) *Idle {
	var busy, idle timeline.Nanos
	working := false
	for _, g := range d.GPUs {
		if f.used[g.Device] {
			busy, idle, working = busy+g.Busy, idle+g.Idle, working || g.Used
		}
	}
	if idle == 0 || float64(idle) < worthSaying*float64(busy+idle) {
		return nil
	}
	out := &Idle{Share: float64(idle) / float64(busy+idle)}
	var at activity.Place
	switch {
	case working && d.Idle != nil && len(d.Idle.Causes) > 0:
		c := d.Idle.Causes[0]
		at, out.Cause, out.OfIdle = c.Place, c.Cause, c.Share
		out.Sure = float64(c.Low) >= sureOf*float64(d.Idle.Total)
	case !working && len(d.Spent) > 0:
		s := d.Spent[0]
		at, out.Cause, out.OfIdle = s.Place, s.Cause, float64(s.Nanos)/float64(max(rec.Duration, 1))
		out.Sure = out.OfIdle >= sureOf
	default:
		return nil
	}
	if at.Line > 0 {
		out.Place, out.Text = v.names(at), v.source.Line(at.File, at.Line)
	}
	return out
}

// looksKept is for how many looks the history reaches back: a minute or more.
const looksKept = 60

func (f *Follower) remember(now *Now) {
	var cpu, busy *float64
	if c := now.CPU; c != nil && c.Limit > 0 {
		share := min(c.Value/c.Limit, 1)
		cpu = &share
	}
	busy = now.Busy()
	keep := func(list []*float64, v *float64) []*float64 {
		list = append(list, v)
		return list[max(len(list)-looksKept, 0):]
	}
	f.history.CPU, f.history.Busy = keep(f.history.CPU, cpu), keep(f.history.Busy, busy)
	now.History = History{slices.Clone(f.history.CPU), slices.Clone(f.history.Busy)}
}

// Busy is the mean activity of the devices in use; nil where none is, or it is not known.
func (n *Now) Busy() *float64 {
	sum, count := 0.0, 0
	for _, d := range n.Devices {
		if d.Used && d.Busy != nil {
			sum, count = sum+*d.Busy, count+1
		}
	}
	if count == 0 {
		return nil
	}
	sum /= float64(count)
	return &sum
}
