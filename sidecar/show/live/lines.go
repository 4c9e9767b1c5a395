package live

import (
	"cmp"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

const (
	mostLines = 5    // that a look shows
	keptLines = 4096 // that are summed apart; a program with more has no hot one
)

// view is a stretch as its lines are read.
type view struct {
	rec    *timeline.Recording
	files  *origin.Files
	source *activity.Source
	names  func(activity.Place) string
	places map[timeline.NodeID]ownPlaces
}

// ownPlaces are the outermost and the innermost of the user's own lines on a stack; zero: none is.
type ownPlaces struct {
	outer, inner         activity.Place
	outerFunc, innerFunc string
}

func (v *view) own(node timeline.NodeID) ownPlaces {
	if p, ok := v.places[node]; ok {
		return p
	}
	var p ownPlaces
	for id := node; id != timeline.RootNode; id = v.rec.Nodes[id].Parent {
		f := v.rec.Frames[v.rec.Nodes[id].Frame]
		if f.Line <= 0 || f.Phase != timeline.PhaseNone || !v.files.Own(f.File) {
			continue
		}
		p.outer, p.outerFunc = activity.Place{File: f.File, Line: f.Line}, f.Function
		if p.inner.Line == 0 {
			p.inner, p.innerFunc = p.outer, p.outerFunc
		}
	}
	v.places[node] = p
	return p
}

func (v *view) position(at activity.Place, function string) *Position {
	if at.Line <= 0 {
		return nil
	}
	if function == moduleLevel {
		function = ""
	}
	function = strings.ReplaceAll(function, ".<locals>", "") // they do not show what is local to a call
	return &Position{Place: v.names(at), Function: function, Text: v.source.Line(at.File, at.Line)}
}

const moduleLevel = "<module>"

// tally sums the time of lines up.
type tally struct {
	known map[activity.Place]*entry
	seen  timeline.Nanos // all that was counted …
	none  timeline.Nanos // … of it without a line
}

// entry is a line with its names, which are those of when it was first seen.
type entry struct {
	HotLine
}

// count adds what a thread did since an instant of the stretch.
func (t *tally) count(v *view, thread *timeline.Thread, since timeline.Nanos) {
	for _, s := range slices.Backward(thread.Spans) {
		if s.End <= since {
			break
		}
		length := s.End - max(s.Start, since)
		t.seen += length
		p := v.own(s.Node)
		e := t.known[p.inner]
		switch {
		case p.inner.Line == 0:
			t.none += length
			continue
		case e == nil && len(t.known) >= keptLines:
			continue
		case e == nil:
			position := v.position(p.inner, p.innerFunc)
			e = &entry{HotLine{Place: position.Place, Function: position.Function, Text: position.Text}}
			t.known[p.inner] = e
		}
		e.SelfNS += int64(length)
	}
}

// hottest are the lines with most time, and the share of the time without one.
func (t *tally) hottest(most int) (lines []HotLine, without float64) {
	lines = []HotLine{}
	if t.seen == 0 {
		return lines, 0
	}
	for _, e := range t.known {
		line := e.HotLine
		line.Share = float64(line.SelfNS) / float64(t.seen)
		lines = append(lines, line)
	}
	slices.SortFunc(lines, func(a, b HotLine) int {
		return cmp.Or(cmp.Compare(b.SelfNS, a.SelfNS), cmp.Compare(a.Place, b.Place), cmp.Compare(a.Text, b.Text))
	})
	return lines[:min(len(lines), most)], float64(t.none) / float64(t.seen)
}

// stay is a place with the instant since when the program has been there.
type stay struct {
	at    activity.Place
	since int64 // CLOCK_MONOTONIC
}

// position finds where the thread spent most of the last second.
func (f *Follower) position(v *view, thread *timeline.Thread) (line, inner *Position) {
	from := max(v.rec.Duration-second, 0)
	outers := make(map[activity.Place]timeline.Nanos)
	inners := make(map[[2]activity.Place]timeline.Nanos)
	var best, deepest ownPlaces
	for _, s := range thread.Spans {
		if s.End <= from {
			continue
		}
		p, length := v.own(s.Node), s.End-max(s.Start, from)
		outers[p.outer] += length
		inners[[2]activity.Place{p.outer, p.inner}] += length
		if p.outer.Line > 0 && (best.outer.Line == 0 || outers[p.outer] > outers[best.outer]) {
			best = p
		}
	}
	if best.outer.Line == 0 {
		f.outer, f.inner = stay{}, stay{}
		return nil, nil
	}
	for _, s := range thread.Spans {
		p := v.own(s.Node)
		key := func(p ownPlaces) timeline.Nanos { return inners[[2]activity.Place{p.outer, p.inner}] }
		if p.outer == best.outer && key(p) > 0 && (deepest.inner.Line == 0 || key(p) > key(deepest)) {
			deepest = p
		}
	}
	line = v.position(best.outer, best.outerFunc)
	line.SinceNS = f.outer.stays(v, thread, best.outer, func(p ownPlaces) activity.Place { return p.outer })
	if deepest.inner != deepest.outer {
		inner = v.position(deepest.inner, deepest.innerFunc)
		inner.SinceNS = f.inner.stays(v, thread, deepest.inner, func(p ownPlaces) activity.Place { return p.inner })
	} else {
		f.inner = stay{}
	}
	return line, inner
}

// stays returns for how long the thread has been at a place, up to now, and remembers it; 0
// if it is not there now. Where it was there all the stretch, it came when the look before
// found it.
func (s *stay) stays(v *view, thread *timeline.Thread, at activity.Place, of func(ownPlaces) activity.Place) int64 {
	before := *s
	*s = stay{}
	since := timeline.Nanos(-1)
	for _, span := range slices.Backward(thread.Spans) {
		if of(v.own(span.Node)) != at {
			break
		}
		since = span.Start
	}
	if since < 0 {
		return 0
	}
	*s = stay{at, v.rec.Origin + int64(since)}
	const slack = 50e6 // the stretch begins with the first sample in it
	if before.at == at && since <= slack && before.since < s.since {
		s.since = before.since
	}
	return v.rec.Origin + int64(v.rec.Duration) - s.since
}
