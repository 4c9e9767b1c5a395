package report

import (
	"cmp"
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

// Await is a line of the user's own at which tasks of event loops waited: the innermost such
// line among a task's coroutines.
type Await struct {
	File      int   `json:"file"`
	Line      int   `json:"line"`
	Function  *int  `json:"function"`
	Process   int   `json:"process"`
	WaitingNS int64 `json:"waiting_ns"`         // sum over the tasks
	SomeNS    int64 `json:"some_ns"`            // for which at least one waited there
	MaxTasks  int   `json:"max_tasks"`          // at once
	ReadyNS   int64 `json:"ready_ns,omitempty"` // sum over tasks whose wait was over, and whose loop was busy with others
}

// MeanTasks is how many tasks waited there while any did.
func (a *Await) MeanTasks() float64 {
	if a.SomeNS <= 0 {
		return 0
	}
	return float64(a.WaitingNS) / float64(a.SomeNS)
}

// TaskReading says how the tasks of event loops were read, as it was.
type TaskReading struct {
	Reads int64 `json:"reads"` // of all tasks
	// LongestNS is the longest time between two reads in which tasks may have changed.
	LongestNS int64 `json:"longest_ns"`
	MaxTasks  int   `json:"max_tasks"` // at once
	Cut       int64 `json:"cut"`       // tasks read whose innermost coroutines were not sure
	Lost      int64 `json:"lost"`      // tasks of which nothing was sure
	CPUNS     int64 `json:"cpu_ns"`    // that the reading used
}

// maxAwaitLines bounds the table; what is further down waited the least.
const maxAwaitLines = 500

// awaits fills Awaits and TaskReading.
func (b *builder) awaits() {
	own := func(id timeline.FrameID) bool { return b.names.code(b.rec.Frames[id]).Own() }
	lines := activity.Awaits(b.rec, own)
	for _, a := range lines[:min(len(lines), maxAwaitLines)] {
		b.wanted[a.Place] = true
		b.doc.Awaits = append(b.doc.Awaits, Await{
			File: b.codes.file(a.Place.File), Line: a.Place.Line, Function: pointer(b.codes.functionOf(a.Function)), Process: b.placed(a.Process),
			WaitingNS: int64(a.Waiting), SomeNS: int64(min(a.Some, b.rec.Duration)), MaxTasks: a.Most, ReadyNS: int64(a.Ready),
		})
	}
	sortAwaits(b.doc.Awaits)
	b.taskTracks(own)
	if t := b.rec.Tasks; t.Reads > 0 && len(lines) > 0 {
		b.doc.TaskReading = &TaskReading{Reads: t.Reads, LongestNS: int64(t.Longest), MaxTasks: t.Most, Cut: t.Cut, Lost: t.Lost, CPUNS: max(int64(t.CPU), 0)}
	}
}

// Tracks of the tasks of a coroutine, by what they did.
const (
	TasksWaiting = "tasks.waiting"
	TasksReady   = "tasks.ready"
	TasksRunning = "tasks.running"
)

const (
	taskParts     = 240 // values of such a track
	maxCoroutines = 8   // that have tracks, of the process that the recording is about, and of all others
)

// taskTracks are how many tasks of each coroutine of the user's own waited, were ready and ran.
func (b *builder) taskTracks(own func(timeline.FrameID) bool) {
	program := b.doc.Subject.Program
	var kept [2]int // of others, of the program
	for _, lane := range activity.TaskLanes(b.rec, own, taskParts) {
		process := b.placed(lane.Process)
		count := &kept[0]
		if process == program {
			count = &kept[1]
		}
		if *count++; *count > maxCoroutines {
			continue
		}
		for _, kind := range []struct {
			id     string
			values []float64
		}{{TasksWaiting, lane.Waiting}, {TasksReady, lane.Ready}, {TasksRunning, lane.Running}} {
			part := b.rec.Duration/taskParts + 1
			t := Track{
				ID: kind.id, Name: b.names.function(b.rec.Frames[lane.Function]), Kind: Rate, Unit: "tasks", Source: "tasks of event loops, and the threads that ran them",
				ResolutionNS: pointer(int64(part)), Process: &process,
			}
			sum, last := 0.0, int64(0)
			for i, v := range kind.values {
				at := min(microseconds(timeline.Nanos(i+1)*part), microseconds(b.rec.Duration))
				if sum += v; at > last {
					t.AtUS, t.Value, last = append(t.AtUS, at), append(t.Value, single(v)), at
				}
			}
			if sum > 0 {
				t.Mean, t.Peak = pointer(sum/taskParts), pointer(slices.Max(kind.values))
				b.doc.Tracks = append(b.doc.Tracks, t)
			}
		}
	}
}

// sortAwaits puts the line with the most waiting first.
func sortAwaits(list []Await) {
	slices.SortStableFunc(list, func(a, b Await) int { return cmp.Compare(b.WaitingNS, a.WaitingNS) })
}

// awaits checks the table of awaits.
func (c *checker) awaits() {
	for i := range c.d.Awaits {
		a := &c.d.Awaits[i]
		c.index("awaits.file", a.File, len(c.d.Files))
		c.indexOrNull("awaits.function", a.Function, len(c.d.Functions))
		c.index("awaits.process", a.Process, len(c.d.Processes))
		c.must(a.Line > 0 && a.Line <= math.MaxInt32, "awaits.line is %d", a.Line)
		c.amount("awaits.waiting_ns", a.WaitingNS)
		c.instant("awaits.some_ns", a.SomeNS)
		c.count("awaits.max_tasks", a.MaxTasks)
		c.amount("awaits.ready_ns", a.ReadyNS)
		c.must(a.MeanTasks() <= float64(a.MaxTasks)*1.000001, "awaits: more tasks on average than at once")
	}
	if t := c.d.TaskReading; t != nil {
		for _, v := range []int64{t.Reads, t.LongestNS, int64(t.MaxTasks), t.Cut, t.Lost, t.CPUNS} {
			c.amount("task_reading", v)
		}
	}
}
