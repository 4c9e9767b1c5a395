package chart

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// trackLane is a figure over time.
type trackLane struct {
	index        int    // of the report's tracks
	id           string // clean; of the report's track
	name         string
	sources      [][]string // lines under the name; ways to say each, the most informative first
	value, aside string     // at the right: mean or peak, and what it is measured against
	about        string     // tooltip
	who          string     // the process, where it is not the program's; among sources, too
	ended        string     // why its figures stop before the end; empty otherwise
	paint        scene.Paint
	tall, low    bool
	peaks        bool // of points that are merged the largest is shown, not their mean
	points       []scene.Point
	base, top    float64             // values at the lane's lower and upper edge
	short        string              // value without the words that its sources have
	extent       string              // the least and the largest value, where base is not 0
	idle         []timeline.Interval // shades this lane alone
	marks        []growthMark
}

// growthMark is a stretch of a curve that has something to say.
type growthMark struct {
	from, to float64 // seconds
	about    string
}

// trackSpec says how a known track is shown.
type trackSpec struct {
	name  string
	paint scene.Paint
	min   float64 // a peak below has nothing to say
	peak  bool    // the peak is the figure of interest, not the mean
}

// leastTraffic is what must have moved for a lane of bytes a second: a file or two that
// are read within one window make a high peak, and nothing that anybody waited for.
const leastTraffic = 250e3

// hostSpecs are the host's lanes by the track's ID. Tracks that are not here, or
// per device below, are in the report only.
var hostSpecs = []struct {
	id string
	trackSpec
}{
	{"cpu", trackSpec{"CPU", scene.PaintCPU, 0, false}},
	{"cpu.children", trackSpec{"CPU, children", scene.PaintCPU, 0.01, false}},
	{gilWaitTrack, trackSpec{"GIL wait", scene.PaintGIL, 0.2, false}},
	{"rss", trackSpec{"RSS", scene.PaintMemory, 1, true}},
	{"own.children", trackSpec{"memory, children", scene.PaintMemory, 1, true}},
	{"rss.children", trackSpec{"RSS, children", scene.PaintMemory, 1, true}}, // of older reports: it counts shared pages in each
	{"swap", trackSpec{"swap, machine", scene.PaintMemory, 64 << 20, true}},
	{"disk.read", trackSpec{"disk read", scene.PaintTraffic, 100e3, false}},
	{"disk.write", trackSpec{"disk write", scene.PaintTraffic, 100e3, false}},
	{"net.recv", trackSpec{"net in, machine", scene.PaintTraffic, 100e3, false}},
	{"net.sent", trackSpec{"net out, machine", scene.PaintTraffic, 100e3, false}},
}

// utilTrack is a device's activity.
const utilTrack = "gpu.util"

// deviceSpecs are the lanes of one GPU by the track's ID.
var deviceSpecs = []struct {
	id string
	trackSpec
}{
	{utilTrack, trackSpec{"", scene.PaintGPU, 0, false}},
	{"gpu.sm", trackSpec{"SM active", scene.PaintGPU, 0.5, false}},
	{"gpu.tensor", trackSpec{"tensor cores", scene.PaintGPU, 0.5, false}},
	{"gpu.mem", trackSpec{"memory", scene.PaintGPUMemory, 1, true}},
}

const (
	fullGPUs = 2  // devices with all their lanes; beyond, one lane each
	maxGPUs  = 16 // devices shown
)

// tracksOf chooses the lanes: the GPUs', then the host's.
func tracksOf(r *report.View, gpus gpuSummary, duration float64) []trackLane {
	var lanes []trackLane
	for i := range min(len(r.Devices), maxGPUs) {
		lanes = append(lanes, gpuLanes(r, i, gpus, duration)...)
	}
	for _, spec := range hostSpecs {
		t := r.HostTrack(spec.id)
		if t == nil {
			continue
		}
		lane, ok := laneOf(r, t, spec.trackSpec, duration)
		if ok && spec.id == gilWaitTrack {
			ok = nameWaiters(r, &lane)
		}
		if spec.id == residentTrack {
			lane.marks = growthMarks(r)
			lane.low = lane.low && len(lane.marks) == 0
		}
		if ok {
			lanes = append(lanes, lane)
		}
	}
	return append(append(lanes, taskLanes(r, duration)...), paceLanes(r, duration)...)
}

// paceSpecs are the lanes of a training's pace, of which the first that is known is shown.
var paceSpecs = []string{report.PaceSamples, report.PaceTokens, report.PaceSteps}

// paceLanes is the course of the leading training's pace.
func paceLanes(r *report.View, duration float64) []trackLane {
	for _, id := range paceSpecs {
		if t := r.HostTrack(id); t != nil {
			if lane, ok := laneOf(r, t, trackSpec{"pace", scene.PaintTraffic, 0, false}, duration); ok {
				lane.aside = "peak " + words.Significant(*t.Peak, 3)
				counted, per, _ := strings.Cut(t.Unit, "/")
				lane.sources = [][]string{{strings.Replace(lane.sources[0][0], "steps", counted, 1), counted}}
				lane.short = words.Significant(*t.Mean, 3) + "/" + per
				return []trackLane{lane}
			}
		}
	}
	return nil
}

// taskSpecs are the lanes of a coroutine's tasks, by the track's ID.
var taskSpecs = map[string]trackSpec{
	report.TasksWaiting: {"waiting", scene.PaintWait, 0, false},
	report.TasksReady:   {"ready", scene.PaintGIL, 0, false},
	report.TasksRunning: {"running", scene.PaintPython, 0, false},
}

const (
	maxTaskLanes = 6
	// worthTasks is the mean number of tasks from which on a lane says something.
	worthTasks = 0.02
)

// taskLanes are what the tasks of coroutines did, in the program's process first, where several waited at once or the loop was busy.
func taskLanes(r *report.View, duration float64) (lanes []trackLane) {
	processes := []int{r.Program()}
	for i := range r.Tracks {
		t := &r.Tracks[i]
		if _, known := taskSpecs[t.ID]; known && t.Process != nil && !slices.Contains(processes, *t.Process) {
			processes = append(processes, *t.Process)
		}
	}
	for _, process := range processes {
		of := taskLanesOf(r, process, duration)
		lanes = append(lanes, of[:min(len(of), maxTaskLanes-len(lanes))]...)
	}
	return lanes
}

// taskLanesOf are those of one process.
func taskLanesOf(r *report.View, process int, duration float64) (lanes []trackLane) {
	several := false
	for i := range r.Tracks {
		t := &r.Tracks[i]
		spec, known := taskSpecs[t.ID]
		if !known || t.Process == nil || *t.Process != process || t.Mean == nil || *t.Mean < worthTasks {
			continue
		}
		spec.name = words.Clean(t.Name, 30) + " " + spec.name
		lane, ok := laneOf(r, t, spec, duration)
		if !ok {
			continue
		}
		if process != r.Program() {
			lane.who = words.Clean(r.ProcessName(process), 40)
			lane.sources = append([][]string{{"in " + lane.who, lane.who}}, lane.sources...)
			lane.about += "\nin " + lane.who
		}
		atOnce := t.Peak != nil && *t.Peak > 1
		if atOnce || process == r.Program() { // there may be many other processes
			lanes = append(lanes, lane)
		}
		several = several || atOnce || t.ID == report.TasksReady
	}
	if !several {
		return nil // the thread's own stacks show as much
	}
	return lanes
}

// residentTrack is the target's resident memory.
const residentTrack = "rss"

// growthMarks are the stretches in which the lines grew that made most of the program's memory, in order of time and none
// over another.
func growthMarks(r *report.View) (marks []growthMark) {
	lines, grown, _ := programsMemory(r)
	if grown < worthMemory {
		return nil
	}
	for i := range lines {
		m := &lines[i]
		about := linePlace(r, m.File, m.Line) + "  " + words.Clean(r.Text(m.File, m.Line), 100) + "\n" + words.Quantity(float64(m.GrownBytes), "B") + " of resident growth in all"
		for _, e := range m.Evidence {
			marks = append(marks, growthMark{report.Seconds(e[0]), report.Seconds(e[1]), about})
		}
	}
	slices.SortStableFunc(marks, func(a, b growthMark) int { return cmp.Compare(a.from, b.from) })
	return marks
}

// gilWaitTrack is the number of threads that wait for the GIL.
const gilWaitTrack = "gil.wait"

// leastGILWait is the share of the recording for which a thread must have waited for the GIL to be named.
const leastGILWait = 0.005

// nameWaiters says below the lane's name which threads waited for the GIL; false where none of the program's own did
// to speak of, but the notebook's machinery, which waits whenever a line holds the GIL for long.
func nameWaiters(r *report.View, lane *trackLane) bool {
	gil := func(t int) int64 { return r.Threads[t].StateNS[report.StateGIL] }
	var waiters []int
	for t := range r.Threads {
		if th := &r.Threads[t]; !th.Internal && th.Process == r.Program() && float64(gil(t)) >= leastGILWait*float64(r.DurationNS) {
			waiters = append(waiters, t)
		}
	}
	if len(waiters) == 0 {
		return false
	}
	slices.SortStableFunc(waiters, func(a, b int) int { return cmp.Compare(gil(b), gil(a)) })
	name := threadName(r, &r.Threads[waiters[0]])
	who := []string{"of " + name, name}
	if more := len(waiters) - 1; more > 0 {
		who = []string{fmt.Sprintf("of %s + %d more", name, more), fmt.Sprintf("%s + %d", name, more), words.Plural(len(waiters), "thread", "threads")}
	}
	lane.sources = append([][]string{who}, lane.sources...)
	lane.about += "\n" + who[0]
	return true
}

func gpuLanes(r *report.View, device int, gpus gpuSummary, duration float64) []trackLane {
	gpu, devices := &r.Devices[device], len(r.Devices)
	var lanes []trackLane
	memory := ""
	for _, spec := range deviceSpecs {
		if !gpu.Used && spec.id != utilTrack {
			break // of others' work its activity is enough
		}
		t := r.DeviceTrack(device, spec.id)
		if t == nil {
			continue
		}
		lane, ok := laneOf(r, t, spec.trackSpec, duration)
		if !ok {
			continue
		}
		lane.id = fmt.Sprintf("gpu%d.%s", gpu.Number, strings.TrimPrefix(lane.id, "gpu."))
		switch {
		case spec.id == utilTrack:
			lane.name = fmt.Sprintf("GPU %d", gpu.Number)
			lane.tall = devices <= fullGPUs
			lane.sources = gpuSources(gpu, t, lane.tall)
			lane.aside = "engine active"
			if known := gpu.BusyNS + gpu.IdleNS; known > 0 {
				lane.value = words.Percent(float64(gpu.BusyNS) / float64(known))
			}
			lane.idle = gpus.idle[device]
			lane.about = lane.name + lane.about + aboutGPU(gpu) // a device has no name among the specs
		case lane.paint == scene.PaintGPUMemory && devices > fullGPUs:
			memory = lane.value
			continue
		case devices > fullGPUs:
			continue
		}
		lanes = append(lanes, lane)
	}
	if memory != "" && len(lanes) > 0 {
		lanes[0].aside = memory
	}
	return lanes
}

// gpuSources are the lines below a device's name, each with ways to say it, the
// most informative first.
func gpuSources(gpu *report.Device, t *report.Track, two bool) [][]string {
	source := words.Clean(gpu.Source, 40)
	if source == "" {
		source = words.Clean(t.Source, 40)
	}
	res := ""
	if resolutionOf(t) > 0 { // a trace's times are exact
		res = " " + words.Resolution(report.Seconds(*t.ResolutionNS))
	}
	brief, _, _ := strings.Cut(source, " ")
	name := shortGPU(gpu.Name)
	if gpu.Simulated {
		name = "simulated"
	}
	if two || name == "" {
		return [][]string{{name}, {source + res, brief + res, brief}}
	}
	return [][]string{{name + " · " + brief + res, name + " ·" + res, name}}
}

func aboutGPU(gpu *report.Device) string {
	s := "\n" + words.Clean(gpu.Name, 80)
	if gpu.Simulated && !strings.Contains(s, "simulated") {
		s += " (simulated)"
	}
	if gpu.Others != nil && *gpu.Others > 0 {
		s += "\nshared with " + words.Plural(*gpu.Others, "process", "processes") + " that are not the target's"
	}
	return s
}

// laneOf is a track's lane; false when it has nothing to say.
func laneOf(r *report.View, t *report.Track, spec trackSpec, duration float64) (trackLane, bool) {
	points, mean, peak := pointsOf(t, duration)
	if v := figure(t.Mean); isNumber(v) {
		mean = v
	}
	if len(points) == 0 || !(peak > 0) || peak < spec.min || t.Unit == "B/s" && mean*duration < leastTraffic {
		return trackLane{}, false
	}
	if v := figure(t.Peak); isNumber(v) {
		peak = max(peak, v)
	}
	atLeast := ""
	if p := t.Process; t.ID == residentTrack && p != nil {
		if most, least := r.Processes[*p].PeakMemory(); most != nil { // between two of the track's readings
			peak = max(peak, float64(*most))
			if least {
				atLeast = "≥ "
			}
		}
	}
	limit := 0.0
	if t.Limit != nil {
		limit = max(*t.Limit, 0)
	}
	sources := sourcesOf(t)
	lane := trackLane{
		index: trackIndex(r, t), id: words.Clean(t.ID, 60), name: spec.name, paint: spec.paint, points: points, peaks: t.Kind == report.Gauge,
		top: topOf(peak, limit, t.Unit), sources: [][]string{sources},
	}
	lane.value, lane.aside = figuresOf(t, spec, points, mean, peak, limit)
	lane.value = atLeast + lane.value
	if change := changeOf(r, t, points, duration); spec.paint == scene.PaintMemory && change != "" {
		lane.aside = "peak, " + change
	}
	if t.Kind == report.Gauge {
		lane.low = true
		least := leastOf(points, peak)
		if lane.base, lane.top = scaleOf(least, peak, lane.top); lane.base > 0 {
			lane.extent = words.QuantityRange(least, peak, t.Unit)
		}
	}
	lane.about = fmt.Sprintf("%s: mean %s, peak %s%s\n%s", spec.name, words.Quantity(mean, t.Unit), atLeast, words.Quantity(peak, t.Unit), sources[0])
	lane.markEnd(t, duration)
	return lane, true
}

// markEnd says where and why a track ended before its recording.
func (l *trackLane) markEnd(t *report.Track, duration float64) {
	last := l.points[len(l.points)-1].To
	if t.Ended == nil || duration-last <= max(0.05*duration, 2*resolutionOf(t)) {
		return
	}
	l.ended = "ended at " + words.Seconds(last) + ": " + words.Clean(*t.Ended, words.MaxName)
	l.about += "\n" + l.ended
	l.sources = [][]string{{"ended at " + words.Seconds(last), "ended early"}}
}

// figuresOf are the figure of a track's lane and what is written beside it.
func figuresOf(t *report.Track, spec trackSpec, points []scene.Point, mean, peak, limit float64) (value, aside string) {
	switch value = words.Quantity(mean, t.Unit); {
	case spec.peak && limit > 0:
		value, aside = words.Quantity(peak, t.Unit), "peak, of "+words.Quantity(limit, t.Unit)
	case spec.peak:
		value, aside = words.Quantity(peak, t.Unit), "peak"
	case t.Unit == "tasks":
		aside = "peak " + words.Short(peak, 1)
		if peak >= 10 { // a mean over a part of the lane's width, as all of its values are
			aside = "peak " + words.Short(peak, 0)
		}
	case t.Unit == "cores" && limit > 0:
		aside = "of " + words.Short(limit, 2)
	default:
		aside = "peak " + words.Quantity(peak, t.Unit)
	}
	return value, aside
}

// fewReadings is how long a cell lasts of which the track of memory may lack most of what it changed by.
const fewReadings = 1.0

// changeOf is how much a track of memory changed by, as elsewhere in the report where that is of resident memory; empty where
// the difference is little, or not known.
func changeOf(r *report.View, t *report.Track, points []scene.Point, duration float64) string {
	if t.ID == residentTrack && t.Process != nil {
		if kept := r.Processes[*t.Process].KeptBytes; kept != nil {
			return signed(float64(*kept))
		}
		if r.Target().Cell != nil && duration < fewReadings {
			return ""
		}
	}
	return grown(points)
}

// grown is how much more the last known value of a gauge of bytes is than the first; empty
// where the difference is little.
func grown(points []scene.Point) string {
	known := slices.DeleteFunc(slices.Clone(points), func(p scene.Point) bool { return !isNumber(p.Value) })
	if len(known) < 2 {
		return ""
	}
	return signed(known[len(known)-1].Value - known[0].Value)
}

func signed(change float64) string {
	switch {
	case change >= 1<<20:
		return "+" + words.Quantity(change, "B")
	case change <= -1<<20:
		return "−" + words.Quantity(-change, "B")
	}
	return ""
}

// trackIndex is a track's index in its report.
func trackIndex(r *report.View, t *report.Track) int {
	return slices.IndexFunc(r.Tracks, func(o report.Track) bool {
		return o.ID == t.ID && same(o.Device, t.Device) && same(o.Thread, t.Thread) && o.Name == t.Name
	})
}

func same(a, b *int) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }

// sourcesOf says where a track's figures come from, in ways of falling length.
func sourcesOf(t *report.Track) []string {
	source := words.Clean(t.Source, 60)
	brief, _, _ := strings.Cut(source, " ")
	if strings.HasPrefix(source, "/proc/") {
		brief = "/proc"
	}
	res := resolutionOf(t)
	if res <= 0 {
		return []string{source, brief}
	}
	if source == "" {
		return []string{words.Resolution(res)}
	}
	return []string{source + " · " + words.Resolution(res), brief + " · " + words.Resolution(res), words.Resolution(res)}
}

// topOf is a lane's scale: its limit when the figure comes near it or is a share
// of it, else its peak with a little air.
func topOf(peak, limit float64, unit string) float64 {
	if limit > 0 && (unit == "%" || peak >= 0.5*limit) {
		return max(peak, limit)
	}
	return peak * 1.1
}

// A gauge that changes by less than vanishes of its peak would look flat on a scale from 0; one that changes by
// less than still is.
const (
	vanishes = 0.5
	still    = 0.01
)

// scaleOf is a gauge's scale: from 0 to top, or, where the change would vanish on it, from just below the least
// value to just above the peak.
func scaleOf(least, peak, top float64) (base, upper float64) {
	change := peak - least
	if change >= vanishes*peak || change < still*peak {
		return 0, top
	}
	return max(least-0.1*change, 0), peak + 0.1*change
}

// leastOf is the least value of a curve with that peak.
func leastOf(points []scene.Point, peak float64) float64 {
	least := peak
	for _, p := range points {
		if isNumber(p.Value) {
			least = min(least, p.Value)
		}
	}
	return least
}

// brief is what is said to the right of a lane that has room for one line: where its scale does not begin at 0 the
// least and the largest value.
func (t *trackLane) brief() string {
	if t.base > 0 {
		return t.extent
	}
	return t.value
}

// values are ways to write the figure beside the lane, the best one first: none loses its unit for want of room.
func (t *trackLane) values() []string {
	switch {
	case t.low:
		return []string{t.brief(), t.value}
	case t.short != "":
		return []string{t.value, t.short}
	}
	return []string{t.value}
}

func isNumber(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// resolutionOf is in seconds, 0 where it is not known.
func resolutionOf(t *report.Track) float64 {
	if t.ResolutionNS == nil {
		return 0
	}
	return report.Seconds(*t.ResolutionNS)
}

// pointsOf reads a track's points, and their mean and peak.
func pointsOf(t *report.Track, duration float64) (points []scene.Point, mean, peak float64) {
	last, sum, known := 0.0, 0.0, 0.0
	for i, us := range t.AtUS {
		at, v := min(float64(us)/1e6, duration), t.Value[i]
		if isNumber(v) {
			v = max(v, 0)
			peak = max(peak, v)
			sum += v * (at - last)
			known += at - last
		}
		points = append(points, scene.Point{From: last, To: at, Value: v})
		last = at
	}
	if known > 0 {
		mean = sum / known
	}
	return points, mean, peak
}
