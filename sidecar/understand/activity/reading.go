package activity

import (
	"cmp"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Reading is one thread with what its spans mean.
type Reading struct {
	*timeline.Thread // nil: none was seen
	stacks           *Stacks
	History          *History
	Ended            timeline.Nanos // when the script's own code had ended; the duration where it had not
}

// CutAt is how long the thread computed at a place with a stack that could not be
// read to its end: in something the place called, as far as that is known.
func (t *Reading) CutAt(at Place) (sum timeline.Nanos) {
	here := make(map[timeline.NodeID]bool)
	for _, s := range t.Spans {
		if !s.Truncated || !onCPU.has(s.State) {
			continue
		}
		in, known := here[s.Node]
		if !known {
			in = t.stacks.Charged(t.stacks.Stack(s.Node)) == at
			here[s.Node] = in
		}
		if in {
			sum += s.End - s.Start
		}
	}
	return sum
}

// FunctionTime is the time in the lines of a function of the user's own, and where its def is.
type FunctionTime struct {
	Name  string
	Place Place
	Nanos timeline.Nanos
	// Most is the function's line with the most time, of MostNanos; of a line itself there is none.
	Most      Place
	MostNanos timeline.Nanos
}

// OwnFunctions are the functions of the user's own in whose lines the thread spent its time in states
// that fit, those with most first. A comprehension belongs to its function; a module is none.
func (t *Reading) OwnFunctions(fits func(Cause) bool) []FunctionTime {
	type function struct{ file, name string }
	sums := make(map[function]*FunctionTime)
	lines := make(map[function]map[Place]timeline.Nanos)
	for length, frame := range EachSpan(t, func(stack []timeline.FrameID, cause Cause, _ Place) (f timeline.Frame) {
		if i := t.stacks.ownest(stack); i >= 0 && fits(cause) {
			f = t.stacks.Rec.Frames[stack[i]]
		}
		return f
	}) {
		name, _, _ := strings.Cut(frame.Function, ".<locals>.<")
		if name == "" || strings.HasPrefix(name, "<") {
			continue
		}
		key, at := function{frame.File, name}, Place{frame.File, frame.FirstLine}
		if sums[key] == nil {
			sums[key], lines[key] = &FunctionTime{Name: name, Place: at}, make(map[Place]timeline.Nanos)
		}
		f := sums[key]
		f.Nanos += length
		lines[key][Place{frame.File, frame.Line}] += length
		if at.Line < f.Place.Line {
			f.Place = at
		}
	}
	list := make([]FunctionTime, 0, len(sums))
	for key, f := range sums {
		f.Place, f.Most = t.stacks.definition(f.Place), MostOf(lines[key])
		f.MostNanos = lines[key][f.Most]
		list = append(list, *f)
	}
	slices.SortFunc(list, func(a, b FunctionTime) int {
		return cmp.Or(cmp.Compare(b.Nanos, a.Nanos), a.Place.Compare(b.Place), strings.Compare(a.Name, b.Name))
	})
	return list
}

// OwnLines are the lines of the user's own that the thread's time in states that fit is charged to, those with
// most first; they have no name.
func (t *Reading) OwnLines(fits func(Cause) bool) (list []FunctionTime) {
	sums := make(map[Place]timeline.Nanos)
	for _, s := range t.History.Stretches {
		if st := t.History.States[s.State]; fits(st.Cause) && st.Place.Line > 0 {
			sums[st.Place] += s.End - s.Start
		}
	}
	for at, sum := range sums {
		list = append(list, FunctionTime{Place: at, Nanos: sum})
	}
	slices.SortFunc(list, func(a, b FunctionTime) int {
		return cmp.Or(cmp.Compare(b.Nanos, a.Nanos), a.Place.Compare(b.Place))
	})
	return list
}

// mostDecorators is how many lines of decorators are looked at.
const mostDecorators = 20

// definition is the line of a function's def: its code's first line is that of its first decorator.
func (s *Stacks) definition(first Place) Place {
	at := first
	for range mostDecorators {
		switch line := strings.TrimSpace(s.source.Line(at.File, at.Line)); {
		case strings.HasPrefix(line, "def "), strings.HasPrefix(line, "async def "):
			return at
		case line == "" || at == first && !strings.HasPrefix(line, "@"):
			return first // the text is not known, or it is no def: a lambda
		}
		at.Line++
	}
	return first
}

// StackTime sums the thread's time under frames that fit, with the place that
// has most of it.
func (t *Reading) StackTime(fits func(timeline.Frame) bool) (sum timeline.Nanos, top Place, there timeline.Nanos, where []timeline.Interval) {
	if t.Thread == nil {
		return 0, Place{}, 0, nil
	}
	type found struct {
		in bool
		at Place
	}
	known := make(map[timeline.NodeID]found)
	places := make(map[Place]timeline.Nanos)
	for _, s := range t.Spans {
		f, ok := known[s.Node]
		if !ok {
			stack := t.stacks.Stack(s.Node)
			f.at = t.stacks.Charged(stack)
			for _, id := range stack {
				f.in = f.in || fits(t.stacks.Rec.Frames[id])
			}
			known[s.Node] = f
		}
		if !f.in {
			continue
		}
		sum += s.End - s.Start
		where = append(where, timeline.Between(s.Start, s.End))
		places[f.at] += s.End - s.Start
	}
	top = Most(places, Place.Compare)
	return sum, top, places[top], where
}
