package specimen

import (
	"math"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// Limits of a reduced recording.
type Limits struct {
	Spans  int // of a thread
	Points int // of a track; the activity of GPUs is kept whole
	// Grain is what times of spans and activity are rounded to; 0: as they are.
	Grain timeline.Nanos
	// Imports means to keep what modules do while they are imported.
	Imports bool
}

// DefaultLimits keep shares of time within a percent.
var DefaultLimits = Limits{Spans: 400, Points: 40, Imports: true}

// TrainingLimits keep every step of a training.
var TrainingLimits = Limits{Spans: 1 << 30, Points: 40, Grain: 20_000}

// tracksKept are the figures that a diagnosis reads.
var tracksKept = []string{"cpu", "cpu.children", "cpu.system", "rss", "mem.system", "swap"}

// Reduce returns a small recording that gives the same diagnosis by and large.
// rename maps the names of files and folders to ones that belong to nobody.
func Reduce(rec *timeline.Recording, limits Limits, rename func(string) string) *timeline.Recording {
	out := *rec
	out.Origin, out.StartedAt, out.Notes = 0, rec.StartedAt.Truncate(0), nil
	out.Threads = nil
	for _, t := range rec.Threads {
		t.Spans = rounded(thinned(t.Spans, rec.Duration, limits.Spans), limits.Grain)
		out.Threads = append(out.Threads, t)
	}
	out.Tracks = nil
	for _, t := range rec.Tracks {
		gpu := strings.HasPrefix(t.ID, "gpu") && (strings.HasSuffix(t.ID, ".util") || strings.HasSuffix(t.ID, ".mem") || strings.HasSuffix(t.ID, ".throttle"))
		if gpu || slices.Contains(tracksKept, t.ID) {
			if !strings.HasSuffix(t.ID, ".util") {
				t.Points = joined(t.Points, t.Kind, limits.Points)
			}
			t.Points = roundedPoints(t.Points, limits.Grain)
			out.Tracks = append(out.Tracks, t)
		}
	}
	out.Processes = slices.Clone(rec.Processes)
	keepUsedStacks(&out, limits.Imports)
	renameAll(&out, rename)
	return &out
}

// thinned resamples a thread's history at scattered instants of a grid, so that
// shares of time stay what they are.
func thinned(spans []timeline.Span, duration timeline.Nanos, limit int) []timeline.Span {
	if len(spans) <= limit {
		return slices.Clone(spans)
	}
	step := max(duration/timeline.Nanos(limit), 1)
	const golden = 0.6180339887498949 // scatters without repeating
	var out []timeline.Span
	at, phase := 0, 0.5
	for start := timeline.Nanos(0); start < duration; start += step {
		phase = math.Mod(phase+golden, 1)
		when := start + timeline.Nanos(phase*float64(step))
		for at < len(spans) && spans[at].End <= when {
			at++
		}
		if at == len(spans) || spans[at].Start > when {
			continue
		}
		s := spans[at]
		s.Start, s.End = start, min(start+step, duration)
		if n := len(out); n > 0 && out[n-1].End == s.Start && out[n-1].Node == s.Node && out[n-1].State == s.State && out[n-1].Wait == s.Wait && out[n-1].On == s.On {
			out[n-1].End = s.End
			continue
		}
		out = append(out, s)
	}
	// The thread's life is what it was.
	if n := len(out); n > 0 {
		out[0].Start = max(out[0].Start, spans[0].Start)
		out[n-1].End = min(max(out[n-1].End, spans[len(spans)-1].End), duration)
	}
	return out
}

// rounded puts the ends of spans on a grid. What follows without a gap still does;
// what becomes empty is left out.
func rounded(spans []timeline.Span, grain timeline.Nanos) []timeline.Span {
	if grain <= 0 {
		return spans
	}
	var out []timeline.Span
	for _, s := range spans {
		if s.Start, s.End = s.Start/grain*grain, s.End/grain*grain; s.Start < s.End {
			out = append(out, s)
		}
	}
	return out
}

func roundedPoints(points []timeline.Point, grain timeline.Nanos) []timeline.Point {
	if grain <= 0 {
		return points
	}
	var out []timeline.Point
	for _, p := range points {
		instant := p.From == p.At
		if p.From, p.At = p.From/grain*grain, p.At/grain*grain; p.From < p.At || instant {
			out = append(out, p)
		}
	}
	return out
}

// joined merges a track's points until they are few.
func joined(points []timeline.Point, kind string, limit int) []timeline.Point {
	for len(points) > limit {
		var out []timeline.Point
		for i := 0; i < len(points); i += 2 {
			p := points[i]
			if i+1 < len(points) {
				q := points[i+1]
				if kind == timeline.KindGauge {
					p = q
				} else {
					a, b := float64(p.At-p.From), float64(q.At-q.From)
					p = timeline.Point{From: p.From, At: q.At, Value: (p.Value*a + q.Value*b) / (a + b)}
				}
			}
			out = append(out, p)
		}
		points = out
	}
	return slices.Clone(points)
}

// keepUsedStacks leaves out the nodes and frames that no span and no await refers to, and without
// imports what is called by the import system.
func keepUsedStacks(rec *timeline.Recording, imports bool) {
	nodes := map[timeline.NodeID]timeline.NodeID{timeline.RootNode: timeline.RootNode}
	frames := make(map[timeline.FrameID]timeline.FrameID)
	newNodes, newFrames := make([]timeline.Node, 1), []timeline.Frame{}
	files := origin.New(rec)
	var keep func(timeline.NodeID) timeline.NodeID
	keep = func(id timeline.NodeID) timeline.NodeID {
		if new, done := nodes[id]; done {
			return new
		}
		n := rec.Nodes[id]
		parent := keep(n.Parent)
		if !imports && parent != timeline.RootNode && files.Means(newFrames[newNodes[parent].Frame])&origin.Imports != 0 {
			nodes[id] = parent
			return parent
		}
		frame, known := frames[n.Frame]
		if !known {
			frame = timeline.FrameID(len(newFrames))
			frames[n.Frame] = frame
			newFrames = append(newFrames, rec.Frames[n.Frame])
		}
		nodes[id] = timeline.NodeID(len(newNodes))
		newNodes = append(newNodes, timeline.Node{Parent: parent, Frame: frame})
		return nodes[id]
	}
	for _, t := range rec.Threads {
		for i := range t.Spans {
			t.Spans[i].Node = keep(t.Spans[i].Node)
		}
	}
	rec.Awaits = slices.Clone(rec.Awaits)
	for i := range rec.Awaits {
		rec.Awaits[i].Node = keep(rec.Awaits[i].Node)
	}
	rec.Nodes, rec.Frames = newNodes, newFrames
}

// renameAll gives everything that names a file another name.
func renameAll(rec *timeline.Recording, rename func(string) string) {
	for i := range rec.Frames {
		rec.Frames[i].File = rename(rec.Frames[i].File)
	}
	rec.CodeFiles = slices.Clone(rec.CodeFiles)
	rec.CodeFiles = slices.DeleteFunc(rec.CodeFiles, func(f timeline.CodeFile) bool { return !f.Missing })
	for i := range rec.CodeFiles {
		rec.CodeFiles[i].Name = rename(rec.CodeFiles[i].Name)
	}
	rec.Installation = timeline.Installation{
		Prefixes: each(rec.Installation.Prefixes, rename), Standard: each(rec.Installation.Standard, rename), Extension: rename(rec.Installation.Extension),
	}
	rec.Target.Interpreter, rec.Target.Argv = rename(rec.Target.Interpreter), each(rec.Target.Argv, rename)
}

func each(list []string, rename func(string) string) []string {
	var out []string
	for _, s := range list {
		out = append(out, rename(s))
	}
	return out
}
