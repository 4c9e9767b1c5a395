package gpuidle

import (
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

// KindTime is the idle time of one kind of cause.
type KindTime struct {
	Kind activity.Kind
	Bounded
	// The same by cause alone, and by line alone, each bounded for itself: the causes
	// of a line share its windows, and their bounds do not add up to the line's.
	Causes []Part
	Lines  []Part
}

// Part is the part of a kind's idle time that has one cause, or that is at one
// line. Most comes first where there are several.
type Part struct {
	Cause activity.Cause // of a line: none
	Place activity.Place // of a cause: zero. Of lines, those too small for rows of their own have the zero value together
	Bounded
}

// Alternative is a kind of cause that may be the one with most of a GPU's idle time.
type Alternative struct {
	Kind  activity.Kind
	Cause activity.Cause // that surely has nearly all of the kind's time; empty where none has
	Place activity.Place // likewise
	Bounded
	Share float64 // of the idle time
}

// First is the part that surely has most: its lower bound exceeds the upper bounds
// of all others.
func First(parts []Part) (Part, bool) {
	if len(parts) == 0 || slices.ContainsFunc(parts[1:], func(p Part) bool { return p.High >= parts[0].Low }) {
		return Part{}, false
	}
	return parts[0], true
}

// MainCause is the one that surely has nearly all of the kind's time.
func (k *KindTime) MainCause() (Part, bool) {
	c, ok := First(k.Causes)
	return c, ok && float64(c.Nanos) >= activity.NearlyAll*float64(k.Nanos)
}

// MainLine is the user's line that surely has most of the kind's time.
func (k *KindTime) MainLine() (Part, bool) {
	l, ok := First(k.Lines)
	return l, ok && l.Place != (activity.Place{})
}

// Alternative is the kind with its one cause and line where it has such.
func (k KindTime) Alternative() Alternative {
	a := Alternative{Kind: k.Kind, Bounded: k.Bounded}
	if c, ok := k.MainCause(); ok {
		a.Cause, a.Bounded = c.Cause, c.Bounded
	}
	if l, ok := k.MainLine(); ok && float64(l.Nanos) >= activity.NearlyAll*float64(k.Nanos) {
		a.Place = l.Place
	}
	return a
}

// Rivals are the kinds whose upper bounds reach the lower bound of the first.
func Rivals(kinds []KindTime) []KindTime {
	if len(kinds) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(kinds[1:]), func(k KindTime) bool { return k.High < kinds[0].Low })
}

// Over is the mean over n devices.
func (k KindTime) Over(n timeline.Nanos) KindTime {
	k.Causes, k.Lines = slices.Clone(k.Causes), slices.Clone(k.Lines)
	k.each(func(b *Bounded) { *b = Bounded{b.Nanos / n, b.Low / n, b.High / n} })
	return k
}

// each visits the kind's own time and those of its parts.
func (k *KindTime) each(visit func(*Bounded)) {
	visit(&k.Bounded)
	for _, parts := range [][]Part{k.Causes, k.Lines} {
		for i := range parts {
			visit(&parts[i].Bounded)
		}
	}
}

// kinds sums the segments up by kind of cause, most first.
func (a *attribution) kinds() []KindTime {
	idle := make([]timeline.Nanos, len(a.history.States))
	for _, seg := range a.segments {
		idle[seg.state] += seg.idle
	}
	var list []KindTime
	row := make(map[activity.Kind]int)
	for _, g := range groups(a, func(state int) activity.Kind { return a.history.States[state].Cause.Kind() }) {
		row[g.of] = len(list)
		list = append(list, KindTime{Kind: g.of, Bounded: g.Bounded})
	}
	for _, g := range groups(a, func(state int) activity.Cause { return a.history.States[state].Cause }) {
		k := &list[row[g.of.Kind()]]
		k.Causes = append(k.Causes, Part{Cause: g.of, Bounded: g.Bounded})
	}
	type line struct {
		kind activity.Kind
		at   activity.Place
	}
	for _, g := range groups(a, func(state int) line {
		st := a.history.States[state]
		if float64(idle[state]) < smallShare*float64(a.idle) {
			st.Place = activity.Place{} // too small for a row of its own
		}
		return line{st.Cause.Kind(), st.Place}
	}) {
		k := &list[row[g.of.kind]]
		k.Lines = append(k.Lines, Part{Place: g.of.at, Bounded: g.Bounded})
	}
	return finishKinds(list, a.idle)
}

// group is the idle time of host states that have something in common.
type group[T comparable] struct {
	of T
	Bounded
}

// groups divides the host's states by what of says of each and sums them up.
func groups[T comparable](a *attribution, of func(state int) T) []group[T] {
	var list []group[T]
	index := make(map[T]int)
	groupOf := make([]int, len(a.history.States))
	for state := range a.history.States {
		key := of(state)
		i, known := index[key]
		if !known {
			i = len(list)
			index[key] = i
			list = append(list, group[T]{of: key})
		}
		groupOf[state] = i
	}
	for _, seg := range a.segments {
		list[groupOf[seg.state]].Nanos += seg.idle
	}
	low, high := a.bounds(groupOf, len(list))
	for i := range list {
		list[i].Low, list[i].High = low[i], high[i]
	}
	return list
}

// mergeKind adds a row to the one of the same kind, or appends it.
func mergeKind(list []KindTime, k KindTime) []KindTime {
	for i := range list {
		if o := &list[i]; o.Kind == k.Kind {
			o.add(k.Bounded)
			o.Causes, o.Lines = mergeParts(o.Causes, k.Causes), mergeParts(o.Lines, k.Lines)
			return list
		}
	}
	k.Causes, k.Lines = slices.Clone(k.Causes), slices.Clone(k.Lines)
	return append(list, k)
}

func mergeParts(list, more []Part) []Part {
	for _, p := range more {
		i := slices.IndexFunc(list, func(o Part) bool { return o.Cause == p.Cause && o.Place == p.Place })
		if i < 0 {
			list = append(list, p)
			continue
		}
		list[i].add(p.Bounded)
	}
	return list
}

// finishKinds leaves out the kinds that no window saw, orders the others and keeps
// bounds around them.
func finishKinds(list []KindTime, idle timeline.Nanos) []KindTime {
	list = mostFirst(list, func(k *KindTime) *Bounded { return &k.Bounded })
	for i := range list {
		k := &list[i]
		for _, parts := range []*[]Part{&k.Causes, &k.Lines} {
			*parts = mostFirst(*parts, func(p *Part) *Bounded { return &p.Bounded })
		}
		k.each(func(b *Bounded) { b.within(idle) })
	}
	return list
}
