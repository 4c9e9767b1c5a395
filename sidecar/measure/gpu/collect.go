package gpu

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Sink is what the collector writes to; *timeline.Builder is one.
type Sink interface {
	Track(timeline.TrackSpec) *timeline.TrackWriter
	Since(monotonic int64) timeline.Nanos
	Note(id timeline.NoteID, what, reason string)
	Describe(change func(*timeline.Recording))
}

// Options of Collect; the zero value is usable.
type Options struct {
	Interval time.Duration // between figures; 0 = 100 ms. Activity is read as finely as the source offers
	Later    time.Duration // between figures from timeline.FirstFigures on; 0 = the same
	PIDs     func() []int  // the target and its descendants; nil = none known
	// Memory is called with each reading of a device's, by Info.Index, from several goroutines; nil = nobody asks.
	Memory func(device int, m Memory)
}

const (
	processInterval = time.Second
	slowInterval    = 500 * time.Millisecond
	energyInterval  = 2 * time.Second // 3 to 4 ms of CPU each on an H100; at the end once more
	leaveTimeout    = 300 * time.Millisecond
)

// Collect writes the lanes of every device into sink until ctx is done, then
// reads what is left and returns. It waits for the driver to be ready; where
// there is none it leaves a note and returns the reason.
//
// A call that hangs in the driver is left behind: Collect returns 300 ms after
// ctx at the latest, with a note.
func (d *Driver) Collect(ctx context.Context, sink Sink, opts Options) error {
	select {
	case <-d.Ready():
	case <-ctx.Done():
		err := errors.New("NVML was still starting when the recording ended")
		sink.Note(timeline.NoteUnavailable, "GPU lanes", err.Error())
		return err
	}
	if err := d.Err(); err != nil {
		id := timeline.NoteUnavailable
		if errors.Is(err, errNotInstalled) {
			id = timeline.NoteAbsent
		}
		sink.Note(id, "GPU lanes", err.Error())
		return err
	}
	return collect(ctx, d.Devices(), sink, opts)
}

func collect(ctx context.Context, devices []Device, sink Sink, opts Options) error {
	if opts.Interval <= 0 {
		opts.Interval = timeline.DefaultFigureInterval
	}
	var pending sync.WaitGroup
	for _, device := range devices {
		pending.Go(func() {
			// A thread of its own, so that its CPU time is the polling's cost.
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			newGroup(device, len(devices), sink, opts).run(ctx)
		})
	}
	done := make(chan struct{})
	go func() {
		pending.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-done:
		return nil
	case <-time.After(leaveTimeout):
		err := errors.New("the driver did not answer in time; the last figures are missing")
		sink.Note(timeline.NoteUnavailable, "GPU lanes", err.Error())
		return err
	}
}

// group is the lanes of one device. It is used by one goroutine.
type group struct {
	device     Device
	info       Info
	began      time.Time
	sink       Sink
	opts       Options
	activities []Activity // the one in use first
	activityAt time.Time  // when to read it next
	windows    [numMetrics]*timeline.TrackWriter
	gauges     []*gauge
	processes  gauge // matches processes; its track is gpuN.mem.self
	known      timeline.GPU
	matched    bool // a process of the target was seen on the device
	unmatched  int  // most processes seen while none was the target's
	total      uint64
	joules     float64 // at the first reading
	energy     energyState
	errors     Errors // nil: the driver reports none
	errorsAt   time.Time
	reading    pace // of activities
	figuring   pace // of gauges
	lost       bool
}

func newGroup(device Device, devices int, sink Sink, opts Options) *group {
	g := &group{device: device, began: time.Now(), info: device.Info(), sink: sink, opts: opts}
	g.reading, g.figuring = newPace(activityBudget(devices)), newPace(figureShare)
	g.known = timeline.GPU{
		Index: g.info.Index, UUID: g.info.UUID, Name: g.info.Name, Driver: g.info.Driver,
		Simulated: g.info.Simulated, OtherProcesses: -1,
	}
	slow := max(opts.Interval, slowInterval)
	g.gauges = []*gauge{
		{name: "mem", unit: "B", every: opts.Interval, read: g.readMemory},
		{name: "power", unit: "W", every: slow, read: device.Power},
		{name: "energy", unit: "J", every: max(opts.Interval, energyInterval), read: g.readEnergy},
		{name: "clock", unit: "MHz", every: slow, read: device.Clock},
		{name: "temp", unit: "°C", every: slow, read: device.Temperature},
		{name: "throttle", unit: "", every: slow, read: g.readThrottle},
	}
	g.processes = gauge{name: "mem.self", unit: "B", every: max(opts.Interval, processInterval), read: g.readProcesses}
	g.gauges = append(g.gauges, &g.processes)
	return g
}

func (g *group) id(lane string) string { return fmt.Sprintf("gpu%d.%s", g.info.Index, lane) }

func (g *group) run(ctx context.Context) {
	g.open()
	g.describe()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for !g.lost {
		select {
		case <-ctx.Done():
			g.finish()
			return
		case <-timer.C:
		}
		now := time.Now()
		next := earlier(
			g.reading.of(func() time.Time { return g.readActivity(now) }),
			g.figuring.of(func() time.Time { return g.readGauges(now) }))
		g.slower(&g.reading, g.id("util"), "reading activity took more than 4 % of a core, or of its share of all: it is")
		g.slower(&g.figuring, g.id("*"), "reading the figures took more than 1 % of a core: they are")
		if next.IsZero() { // every lane has ended
			<-ctx.Done()
			break
		}
		timer.Reset(time.Until(next))
	}
	g.closeActivities()
}

// readGauges reads all figures that are due and returns when to come again.
func (g *group) readGauges(now time.Time) (next time.Time) {
	for _, lane := range g.gauges {
		next = earlier(next, g.readGauge(lane, now))
	}
	return earlier(next, g.readErrors(now))
}

// slower lets the report say that something is read less often from now on, where that is so.
func (g *group) slower(p *pace, lane, why string) {
	if p.tooCostly() {
		g.sink.Note(timeline.NoteSlower, lane, fmt.Sprintf("%s read %d times less often", why, p.factor))
	}
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

// open chooses the finest source of activity.
func (g *group) open() {
	activities, err := g.device.Activities()
	if err != nil {
		g.sink.Note(timeline.NoteFailed, g.id("util"), err.Error())
		g.lost = errors.Is(err, ErrLost)
	}
	g.activities = activities
	g.errors, _ = g.device.Errors()
}

func (g *group) closeActivities() {
	g.closeErrors()
	for _, a := range g.activities {
		a.Close()
	}
	g.activities = nil
}

// describe writes what is known of the device into the recording. The list is
// made anew each time: snapshots share the old one.
func (g *group) describe() {
	known := g.known
	known.PIDs, known.Xids = slices.Clone(known.PIDs), slices.Clone(known.Xids)
	g.sink.Describe(func(r *timeline.Recording) {
		list := slices.DeleteFunc(slices.Clone(r.GPUs), func(o timeline.GPU) bool { return o.Index == known.Index })
		list = append(list, known)
		slices.SortFunc(list, func(a, b timeline.GPU) int { return a.Index - b.Index })
		r.GPUs = list
	})
}

// readActivity reads the source in use, or the next one if it failed, and returns
// when to come again.
func (g *group) readActivity(now time.Time) time.Time {
	if now.Before(g.activityAt) || len(g.activities) == 0 {
		return g.activityAt
	}
	a := g.activities[0]
	windows, err := a.Read()
	if err != nil {
		g.activityFailed(a, err)
		return now // the next source at once; there may be none
	}
	g.write(a, windows)
	g.activityAt = now.Add(time.Duration(g.reading.factor) * a.Period())
	return g.activityAt
}

func (g *group) activityFailed(a Activity, err error) {
	if errors.Is(err, ErrLost) {
		g.endAll(err)
		return
	}
	a.Close()
	g.activities = g.activities[1:]
	if len(g.activities) == 0 {
		for _, w := range g.windows {
			if w != nil {
				w.End(err.Error())
			}
		}
		if g.windows[Util] == nil {
			g.sink.Note(timeline.NoteFailed, g.id("util"), err.Error())
		}
		g.activityAt = time.Time{}
		return
	}
	g.sink.Note(timeline.NoteReplaced, g.id("util"), fmt.Sprintf("%s, then %s was used: %v", a.Source(), g.activities[0].Source(), err))
}

var laneOf = [numMetrics]struct{ name, unit string }{
	Util: {"util", "%"}, SM: {"sm", "%"}, Tensor: {"tensor", "%"}, Occupancy: {"occupancy", "%"},
	DRAM: {"dram", "%"}, PCIeTx: {"pcie.tx", "B/s"}, PCIeRx: {"pcie.rx", "B/s"},
}

// utilPoints keeps 100 ms windows for 1.8 hours before they are thinned: the
// attribution of idle time lives on them.
const utilPoints = 1 << 16

func (g *group) write(a Activity, windows []Window) {
	for _, w := range windows {
		from, at := max(g.sink.Since(w.From), 0), g.sink.Since(w.At)
		if at <= 0 {
			continue
		}
		for m, value := range w.Values {
			if math.IsNaN(value) {
				continue // unknown stretches stay unfilled
			}
			if g.windows[m] == nil {
				g.windows[m] = g.windowTrack(Metric(m), a, time.Duration(at-from))
			}
			g.windows[m].AddWindow(from, at, value)
		}
	}
	if len(windows) > 0 && (g.known.Source != a.Source() || g.known.Resolution == 0) {
		g.known.Source, g.known.Resolution = a.Source(), a.Resolution()
		g.describe()
	}
}

func (g *group) windowTrack(m Metric, a Activity, length time.Duration) *timeline.TrackWriter {
	spec := timeline.TrackSpec{
		ID: g.id(laneOf[m].name), Kind: timeline.KindRate, Unit: laneOf[m].unit,
		Source: a.Source(), Resolution: a.Resolution(), Device: g.info.Index,
	}
	if spec.Resolution == 0 { // not measured yet
		spec.Resolution = length
	}
	if spec.Unit == "%" {
		spec.Limit = 100
	}
	if m == Util {
		spec.MaxPoints = utilPoints
	}
	return g.sink.Track(spec)
}

func (g *group) finish() {
	g.errorsAt = time.Time{}
	g.readErrors(time.Now())
	if len(g.activities) > 0 {
		a := g.activities[0]
		if windows, err := a.Finish(); err == nil {
			g.write(a, windows)
			g.known.Resolution = a.Resolution()
		} else {
			g.activityFailed(a, err)
		}
	}
	for _, lane := range g.gauges {
		lane.at = time.Time{}
		if !g.lost && !lane.ended {
			g.readGauge(lane, time.Now())
		}
		if !g.lost && !lane.ended && lane.failures > 0 {
			g.endGauge(lane) // there is no time for another try
		}
	}
	if !g.matched && g.unmatched > 0 && g.opts.PIDs != nil {
		g.sink.Note(timeline.NoteUnmatched, g.id("mem.self"), fmt.Sprintf("none of the %d processes the driver lists on this GPU is one of the program's: "+
			"it may number them in another pid namespace, or the program did not use it", g.unmatched))
	}
	g.describe()
	g.closeActivities()
}

// endAll ends every lane: the device will not answer again.
func (g *group) endAll(err error) {
	g.lost = true
	g.known.Lost = max(g.sink.Since(timeline.Monotonic()), 1)
	for _, w := range g.windows {
		if w != nil {
			w.End(err.Error())
		}
	}
	for _, lane := range g.gauges {
		if lane.track != nil && !lane.ended {
			lane.track.End(err.Error())
		}
	}
	g.sink.Note(timeline.NoteFailed, g.id("*"), err.Error())
	g.describe()
}
