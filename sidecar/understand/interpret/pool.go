package interpret

import (
	"cmp"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// Pool is the workers of one role that work for one process.
type Pool struct {
	Role    timeline.Role
	Owner   int   // index in Recording.Processes; -1: not known
	Members []int // likewise, by number, then by start
}

// Of returns the pools of a recording, those of the owner that stands first, first.
func Of(rec *timeline.Recording) []Pool {
	var out []Pool
	for i := range rec.Processes {
		p := &rec.Processes[i]
		if i == 0 || !p.IsWorker() {
			continue
		}
		owner := ownerOf(rec, i)
		at := slices.IndexFunc(out, func(o Pool) bool { return o.Role == p.Role && o.Owner == owner })
		if at < 0 {
			at = len(out)
			out = append(out, Pool{Role: p.Role, Owner: owner})
		}
		out[at].Members = append(out[at].Members, i)
	}
	for _, pool := range out {
		slices.SortStableFunc(pool.Members, func(a, b int) int { return cmp.Compare(numberOf(rec, a), numberOf(rec, b)) })
	}
	slices.SortStableFunc(out, func(a, b Pool) int { return cmp.Compare(a.Owner, b.Owner) })
	return out
}

func numberOf(rec *timeline.Recording, i int) int {
	if n := rec.Processes[i].Number; n != nil {
		return *n
	}
	return 0
}

// Account is what the members of a pool did during some time, as their main threads tell.
type Account struct {
	Alive     timeline.Nanos // that members lived, and were read, all together; the following add up to it
	Starting  timeline.Nanos // not yet in the pool's loop, or importing what a task needs to be unpickled
	Starved   timeline.Nanos // in the loop, without work: waiting for a task
	InLibrary timeline.Nanos // waiting to give a result away, or being in the library's own code
	Working   timeline.Nanos // in what they were started for

	Members []Share // by member that lived meanwhile, as in Pool.Members: how long it worked
	Lines   []Line  // where they worked, the longest first
}

// Share is one member's part.
type Share struct {
	Process int
	Working timeline.Nanos
}

// Line is a line of the user's own code, or of the library they called where none of
// theirs is on the stack.
type Line struct {
	Function, File string
	Line           int
	Own            bool
	Time           timeline.Nanos
	Waiting        timeline.Nanos // of that, neither on a CPU nor wanting one
}

// maxLines bounds Account.Lines.
const maxLines = 20

// During tells what a pool did in some intervals, in order and without overlap.
func (p Pool) During(rec *timeline.Recording, where []timeline.Interval) Account {
	r := newReader(rec)
	var a Account
	lines := make(map[Line]*Line)
	for _, i := range p.Members {
		share := Share{Process: i}
		alive := false
		for _, t := range rec.Threads {
			if !t.Main || t.Process != i {
				continue
			}
			for _, s := range t.Spans {
				length := timeline.Nanos(0)
				timeline.Overlap(where, s.Start, s.End, func(_ int, part timeline.Nanos) { length += part })
				if length == 0 || s.Node == timeline.RootNode {
					continue
				}
				alive = true
				a.Alive += length
				stack := r.stack(s.Node)
				switch {
				case stack.loop < 0 && p.Role != timeline.RoleWorker && p.Role != timeline.RoleRank, stack.importing:
					a.Starting += length
				case stack.starved && !busy(s.State):
					a.Starved += length
				case stack.onlyLibrary:
					a.InLibrary += length
				default:
					a.Working += length
					share.Working += length
					one := lines[stack.line]
					if one == nil {
						one = &stack.line
						lines[stack.line] = &Line{Function: one.Function, File: one.File, Line: one.Line, Own: one.Own}
						one = lines[stack.line]
					}
					one.Time += length
					if !busy(s.State) {
						one.Waiting += length
					}
				}
			}
		}
		if alive {
			a.Members = append(a.Members, share)
		}
	}
	for _, l := range lines {
		a.Lines = append(a.Lines, *l)
	}
	slices.SortFunc(a.Lines, func(x, y Line) int {
		return cmp.Or(cmp.Compare(y.Time, x.Time), cmp.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line))
	})
	a.Lines = a.Lines[:min(len(a.Lines), maxLines)]
	return a
}

// Imbalance is how much longer the member that worked most worked than they did on
// average, as a share of its time: what an even split could save at most. 0 where that
// cannot be said.
func (a *Account) Imbalance() (share float64, most Share) {
	sum := timeline.Nanos(0)
	for _, m := range a.Members {
		sum += m.Working
		if m.Working > most.Working {
			most = m
		}
	}
	if len(a.Members) < 2 || most.Working == 0 {
		return 0, most
	}
	return 1 - float64(sum)/float64(len(a.Members))/float64(most.Working), most
}

func busy(s timeline.State) bool {
	return s == timeline.StatePython || s == timeline.StateNative || s == timeline.StateGIL || s == timeline.StateOff
}

// reader reads stacks, each once.
type reader struct {
	rec   *timeline.Recording
	files *origin.Files
	means []origin.Meanings // by FrameID
	known map[timeline.NodeID]stack
}

// stack is what one stack shows of a worker.
type stack struct {
	loop        int  // depth of the pool's loop; -1: it is not on it
	starved     bool // it is where the loop waits for a task
	onlyLibrary bool // above the loop there is only the library that runs it
	// importing: above the loop modules are imported, by nothing of the user's own.
	importing bool
	line      Line
}

func newReader(rec *timeline.Recording) *reader {
	r := &reader{rec: rec, files: origin.New(rec), means: make([]origin.Meanings, len(rec.Frames)), known: make(map[timeline.NodeID]stack)}
	for i, f := range rec.Frames {
		r.means[i] = r.files.Means(f)
	}
	return r
}

func (r *reader) stack(node timeline.NodeID) stack {
	if known, ok := r.known[node]; ok {
		return known
	}
	var path []timeline.FrameID // leaf first
	for n := node; n != timeline.RootNode && int(n) < len(r.rec.Nodes); n = r.rec.Nodes[n].Parent {
		if at := r.rec.Nodes[n].Frame; int(at) < len(r.rec.Frames) {
			path = append(path, at)
		}
		if r.rec.Nodes[n].Parent >= n { // a damaged file
			break
		}
	}
	s := stack{loop: -1}
	for i, f := range path {
		if _, ok := loopOf(r.means[f]); ok {
			s.loop = i
			break
		}
	}
	above := path
	if s.loop >= 0 {
		above = path[:s.loop]
		s.onlyLibrary = !slices.ContainsFunc(above, func(f timeline.FrameID) bool { return r.means[f]&origin.Transports == 0 })
		s.starved = s.onlyLibrary && slices.ContainsFunc(above, func(f timeline.FrameID) bool { return r.means[f]&origin.TakesTask != 0 })
	}
	s.line = r.line(above)
	s.importing = s.loop >= 0 && !s.line.Own && slices.ContainsFunc(above, func(f timeline.FrameID) bool { return r.means[f]&origin.Imports != 0 })
	r.known[node] = s
	return s
}

// line is the innermost of the user's own, else the outermost there is.
func (r *reader) line(path []timeline.FrameID) Line {
	for _, id := range path {
		if f := r.rec.Frames[id]; r.files.Own(f.File) {
			return Line{Function: f.Function, File: f.File, Line: f.Line, Own: true}
		}
	}
	for i := len(path) - 1; i >= 0; i-- {
		if f := r.rec.Frames[path[i]]; r.means[path[i]]&origin.Transports == 0 {
			return Line{Function: f.Function, File: f.File, Line: f.Line}
		}
	}
	return Line{}
}
