package addtrace

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/interpret"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// restored is what a report knows of the recording it was made of, as far as the
// diagnosis of idle time asks for it: stacks, tracks, devices, steps. What no report
// has is lost: in which system call a thread waited, and why a device was slow.
type restored struct {
	*timeline.Recording
	view *report.View
	raw  []string       // each file's name in the recording
	file map[string]int // the inverse
}

// home stands for the user's home folder, which a report shows as ~.
const home = "/home/~"

func restore(v *report.View) *restored {
	r := &restored{Recording: &timeline.Recording{StartedAt: v.StartedAt, Duration: timeline.Nanos(v.DurationNS)}, view: v, file: make(map[string]int)}
	r.clock()
	r.files()
	r.target()
	r.stacks()
	r.figures()
	r.owners()
	r.about()
	return r
}

// about is whom the report is about, and its pools: they were decided when it was made.
func (r *restored) about() {
	s := r.view.Subject
	r.Subject = &timeline.Subject{
		Process: s.Process, Thread: r.view.MainThread(), Program: s.Program, Runs: s.Threads, Why: timeline.SubjectReason(s.Why),
		Launcher: interpret.IsLauncher(r.Recording),
	}
	for _, p := range r.view.Pools {
		pool := timeline.Pool{Role: timeline.Role(p.Role), Command: p.Command, Owner: -1, Members: p.Members, AtOnce: p.AtOnce}
		if p.Owner != nil {
			pool.Owner = *p.Owner
		}
		r.Pools = append(r.Pools, pool)
	}
}

// clock relates the recording's clock to the wall clock by the report's bridge.
func (r *restored) clock() {
	c := r.view.Hosts[r.view.Target().Host].Clock
	r.Origin = c.MonotonicNS
	bridge := timeline.Bridge{Offset: c.MonotonicNS - c.WallNS, Error: int64(time.Millisecond)}
	if c.ErrorNS != nil {
		bridge.Error = *c.ErrorNS
	}
	r.Wall.Begin = bridge
	if c.EndMonotonicNS != nil && c.EndWallNS != nil {
		r.Wall.End = timeline.Bridge{Offset: *c.EndMonotonicNS - *c.EndWallNS, Error: bridge.Error}
	}
}

// bridge is the relation over the whole recording: between its begin and its end the
// wall clock may have been adjusted.
func (r *restored) bridge() timeline.Bridge {
	b := r.Wall.Begin
	if end := r.Wall.End; end != (timeline.Bridge{}) {
		drift := end.Offset - b.Offset
		b.Offset += drift / 2
		b.Error += max(drift, -drift) / 2
	}
	return b
}

// files gives each file a name that is like the one it had, and its own.
func (r *restored) files() {
	for i, f := range r.view.Files {
		name := f.Name
		if rest, ok := strings.CutPrefix(name, "~/"); ok {
			name = home + "/" + rest
		}
		if f.Code == report.CodeCell && f.ExecutionCount != nil {
			name = fmt.Sprintf("/cell/%d.py", i)
			r.Sources = append(r.Sources, timeline.Source{File: name, ExecutionCount: *f.ExecutionCount})
		}
		if _, taken := r.file[name]; taken {
			name = fmt.Sprintf("/file%d/%s", i, strings.TrimPrefix(name, "/"))
		}
		r.raw = append(r.raw, name)
		r.file[name] = i
	}
}

func (r *restored) target() {
	t := r.view.Target()
	r.Target = timeline.Target{PID: r.pid(t.Process), PythonVersion: t.PythonVersion, Interpreter: t.Interpreter}
	for _, arg := range t.Argv {
		if rest, ok := strings.CutPrefix(arg, "~/"); ok {
			arg = home + "/" + rest
		}
		r.Target.Argv = append(r.Target.Argv, arg)
	}
	if t.Cell != nil {
		r.Target.Cell = &timeline.Cell{File: r.raw[t.Cell.File]}
		if t.Cell.ExecutionCount != nil {
			r.Target.Cell.ExecutionCount = *t.Cell.ExecutionCount
		}
	}
	for i, p := range r.view.Processes {
		out := timeline.Process{
			PID: r.pid(i), ParentIndex: -1, Role: timeline.Role(p.Role), Number: p.RoleNumber, Rank: p.Rank, Command: p.Command,
			Start: timeline.Nanos(p.StartNS), CPU: -1, Exit: p.ExitCode,
		}
		if p.Parent != nil {
			out.Parent, out.ParentIndex = r.pid(*p.Parent), *p.Parent
		}
		if p.EndNS != nil {
			out.End = timeline.Nanos(*p.EndNS)
		}
		if p.CPUNS != nil {
			out.CPU = timeline.Nanos(*p.CPUNS)
		}
		r.Processes = append(r.Processes, out)
	}
}

// pid is a number for a process that no other has: two of a report may have had the
// same, one after the other.
func (r *restored) pid(process int) int { return process + 1 }

// process is the inverse of pid.
func (r *restored) process(pid int) int { return pid - 1 }

func (r *restored) stacks() {
	for i := range r.view.Frames.Function {
		f := r.view.Functions[r.view.FunctionOf(i)]
		r.Frames = append(r.Frames, timeline.Frame{Function: f.Name, File: r.raw[f.File], Line: r.view.LineOf(i), FirstLine: f.FirstLine})
	}
	for n := range r.view.Nodes.Parent {
		r.Nodes = append(r.Nodes, timeline.Node{Parent: timeline.NodeID(r.view.Nodes.Parent[n]), Frame: timeline.FrameID(r.view.Nodes.Frame[n])})
	}
	for i, t := range r.view.Threads {
		out := timeline.Thread{PID: r.pid(t.Process), Process: t.Process, NativeID: t.NativeID, Name: t.Name, Main: t.Main, RunsCell: t.RunsCell, Internal: t.Internal, OnCPU: -1}
		if t.OnCPUNS != nil {
			out.OnCPU = timeline.Nanos(*t.OnCPUNS)
		}
		if t.Leaf != nil {
			out.Leaf = *t.Leaf
		}
		for _, s := range r.view.History(i) {
			out.Spans = append(out.Spans, timeline.Span{
				Start: timeline.Nanos(s.Start), End: timeline.Nanos(s.End), Node: timeline.NodeID(s.Node),
				State: timeline.State(min(int(s.State), timeline.NumStates-1)), Truncated: s.Incomplete,
			})
		}
		r.Threads = append(r.Threads, out)
	}
}

// figures are the devices, the tracks and the steps.
func (r *restored) figures() {
	for _, d := range r.view.Devices {
		g := timeline.GPU{Index: d.Number, UUID: d.UUID, Name: d.Name, Driver: d.Driver, Source: d.Source, OtherProcesses: -1, Simulated: d.Simulated}
		if d.ResolutionNS != nil {
			g.Resolution = time.Duration(*d.ResolutionNS)
		}
		if d.Others != nil {
			g.OtherProcesses = *d.Others
		}
		if d.LostAtNS != nil {
			g.Lost = timeline.Nanos(*d.LostAtNS)
		}
		for _, x := range d.Xids {
			g.Xids = append(g.Xids, timeline.Xid{At: timeline.Nanos(x.AtNS), Code: x.Code})
		}
		for _, p := range d.Processes {
			g.PIDs = append(g.PIDs, r.pid(p))
		}
		if d.Used && len(g.PIDs) == 0 { // where the driver lists no process
			g.PIDs = []int{r.Target.PID}
		}
		r.GPUs = append(r.GPUs, g)
	}
	for i := range r.view.Tracks {
		r.Tracks = append(r.Tracks, r.track(&r.view.Tracks[i]))
	}
	for _, s := range r.view.Steps {
		r.Marks = append(r.Marks, timeline.Mark{Kind: "step", Name: s.Name, Start: timeline.Nanos(s.StartNS), End: timeline.Nanos(s.EndNS)})
	}
}

func (r *restored) track(t *report.Track) timeline.Track {
	out := timeline.Track{TrackSpec: timeline.TrackSpec{ID: t.ID, Kind: timeline.KindGauge, Unit: t.Unit, Source: t.Source, Device: -1}, Peak: math.NaN()}
	if t.Kind == report.Rate {
		out.Kind = timeline.KindRate
	}
	if t.Device != nil {
		out.Device = r.view.Devices[*t.Device].Number
		out.ID = fmt.Sprintf("gpu%d.%s", out.Device, strings.TrimPrefix(t.ID, "gpu."))
	}
	if t.Process != nil {
		out.PID, out.Process = r.pid(*t.Process), *t.Process
		if what, ok := strings.CutPrefix(t.ID, "process."); ok {
			out.ID = fmt.Sprintf("process.%d.%s", out.Process, what)
		}
	}
	if t.Thread != nil {
		out.ID = fmt.Sprintf("thread.%d.%s", r.view.Threads[*t.Thread].NativeID, strings.TrimPrefix(t.ID, "thread."))
	}
	if t.Limit != nil {
		out.Limit = *t.Limit
	}
	if t.ResolutionNS != nil {
		out.Resolution = time.Duration(*t.ResolutionNS)
	}
	if t.Peak != nil {
		out.Peak = *t.Peak
	}
	from := timeline.Nanos(0)
	for i, us := range t.AtUS {
		at := min(timeline.Nanos(us)*1000, r.Duration)
		if out.Kind == timeline.KindGauge {
			from = at
		}
		if v := t.Value[i]; !math.IsNaN(v) && (out.Kind == timeline.KindGauge || at > from) {
			out.Points = append(out.Points, timeline.Point{From: from, At: at, Value: v})
		}
		from = at
	}
	return out
}

// owners adds the facts by which each file has the owner that the report says.
func (r *restored) owners() {
	files := origin.New(r.Recording)
	for i, f := range r.view.Files {
		switch own := files.Own(r.raw[i]); {
		case own && !f.Code.Own():
			r.CodeFiles = append(r.CodeFiles, timeline.CodeFile{Name: r.raw[i], Missing: true})
		case !own && f.Code.Own():
			r.Sources = append(r.Sources, timeline.Source{File: r.raw[i]})
		}
	}
}

// line is the text of a line, by the name of its file in the recording.
func (r *restored) line(file string, line int) string {
	if i, ok := r.file[file]; ok {
		return r.view.Text(i, line)
	}
	return ""
}
