package analyses

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/place"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// functionTime is what one Python function took on the main thread.
type functionTime struct {
	calls             int
	self, total, mine int64 // ns; mine: as the innermost function of the user's code, only of such
}

// functionTimes are a recording's, by "file(line): function".
type functionTimes struct {
	byName map[string]functionTime
	note   string
}

// observePythonFunctions sums the main thread's frames up. Of a recursion the
// total counts the outermost call only.
func observePythonFunctions(r *recording) functionTimes {
	frames := r.frames()
	if frames == nil {
		return functionTimes{note: "no Python frames: profile with with_stack=True"}
	}
	self := frames.self()
	names := r.t.Python.Name
	bySym := map[kineto.Sym]*functionTime{}
	of := func(sym kineto.Sym) *functionTime {
		if bySym[sym] == nil {
			bySym[sym] = &functionTime{}
		}
		return bySym[sym]
	}
	for i, row := range frames.rows {
		if frames.thread[row] != frames.main || !r.keeps(frames.start[row]) {
			continue
		}
		f := of(names[row])
		f.calls++
		f.self += self[i]
		if !frames.inItself(int32(i)) {
			f.total += max(0, frames.dur[row])
		}
		if own := frames.own[i]; own != 0 {
			of(own).mine += self[i]
		}
	}
	times := functionTimes{byName: map[string]functionTime{}}
	for sym, f := range bySym {
		name := withoutAddress(r.t.Text(sym))
		times.byName[name] = times.byName[name].plus(*f)
	}
	return times
}

func (f functionTime) plus(o functionTime) functionTime {
	return functionTime{f.calls + o.calls, f.self + o.self, f.total + o.total, f.mine + o.mine}
}

// address is what a built-in method's name says of its object.
var address = regexp.MustCompile(` at 0x[0-9a-f]+>$`)

// withoutAddress makes one name of a built-in method of many objects.
func withoutAddress(name string) string { return address.ReplaceAllString(name, ">") }

// inItself reports whether a frame is a recursive call.
func (s *pythonStacks) inItself(frame int32) bool {
	name := s.t.Python.Name[s.rows[frame]]
	for up := s.parent[frame]; up >= 0; up = s.parent[up] {
		if s.t.Python.Name[s.rows[up]] == name {
			return true
		}
	}
	return false
}

// answerPythonFunctions lists the functions of each rank, by the time that is
// the user's to change, then by their own.
func answerPythonFunctions(a asked[functionTimes]) []*table.Table {
	t := table.New(TablePythonFunctions, "Python functions of the main thread",
		&table.Column{Name: "rank", Kind: table.Int},
		&table.Column{Name: "function", Kind: table.Text},
		&table.Column{Name: "file", Kind: table.Text, Optional: true},
		&table.Column{Name: "line", Kind: table.Int}, // where the function starts
		&table.Column{Name: "calls", Kind: table.Int},
		&table.Column{Name: "own_us", Kind: table.Micros}, // with the library code it calls; of the user's functions
		&table.Column{Name: "self_us", Kind: table.Micros},
		&table.Column{Name: "total_us", Kind: table.Micros})
	var why notes
	for _, rank := range a.ranks {
		sums, note := map[string]functionTime{}, ""
		for _, part := range rank.parts {
			note = part.note
			for name, f := range part.byName {
				sums[name] = sums[name].plus(f)
			}
		}
		if len(sums) > 0 {
			note = ""
		}
		why.add(rank.rank, note)
		names := sortedKeys(sums)
		slices.SortStableFunc(names, func(a, b string) int {
			return cmp.Or(cmp.Compare(sums[b].mine, sums[a].mine), cmp.Compare(sums[b].self, sums[a].self), strings.Compare(a, b))
		})
		for _, name := range names {
			f := sums[name]
			p, _ := place.Parse(name)
			t.Add(rank.rank, p.Function, p.File, known(int64(p.Line), p.Line > 0), f.calls, micros(f.mine), micros(f.self), micros(f.total))
		}
	}
	t.Note = why.String()
	return []*table.Table{t}
}
