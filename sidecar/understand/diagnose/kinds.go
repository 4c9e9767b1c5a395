package diagnose

import (
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// KindIdle is the idle time of one kind of cause.
type KindIdle struct {
	Kind Kind
	Bounded
	// The same by cause alone, and by line alone, each bounded for itself: the causes
	// of a line share its windows, and their bounds do not add up to the line's.
	Causes []IdlePart
	Lines  []IdlePart
}

// IdlePart is the part of a kind's idle time that has one cause, or that is at one
// line. Most comes first where there are several.
type IdlePart struct {
	Cause Cause // of a line: none
	Place Place // of a cause: zero. Of lines, those too small for rows of their own have the zero value together
	Bounded
}

// nearlyAll is the share of a time from which on one part of it stands for all.
const nearlyAll = 0.9

// first is the part that surely has most: its lower bound exceeds the upper bounds
// of all others.
func first(parts []IdlePart) (IdlePart, bool) {
	if len(parts) == 0 || slices.ContainsFunc(parts[1:], func(p IdlePart) bool { return p.High >= parts[0].Low }) {
		return IdlePart{}, false
	}
	return parts[0], true
}

// cause is the one that surely has nearly all of the kind's time.
func (k *KindIdle) cause() (IdlePart, bool) {
	c, ok := first(k.Causes)
	return c, ok && float64(c.Nanos) >= nearlyAll*float64(k.Nanos)
}

// line is the user's line that surely has most of the kind's time.
func (k *KindIdle) line() (IdlePart, bool) {
	l, ok := first(k.Lines)
	return l, ok && l.Place != (Place{})
}

// rivals are the kinds whose upper bounds reach the lower bound of the first.
func rivals(kinds []KindIdle) []KindIdle {
	if len(kinds) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(kinds[1:]), func(k KindIdle) bool { return k.High < kinds[0].Low })
}

// over is the mean over n devices.
func (k KindIdle) over(n timeline.Nanos) KindIdle {
	k.Causes, k.Lines = slices.Clone(k.Causes), slices.Clone(k.Lines)
	k.each(func(b *Bounded) { *b = Bounded{b.Nanos / n, b.Low / n, b.High / n} })
	return k
}

// each visits the kind's own time and those of its parts.
func (k *KindIdle) each(visit func(*Bounded)) {
	visit(&k.Bounded)
	for _, parts := range [][]IdlePart{k.Causes, k.Lines} {
		for i := range parts {
			visit(&parts[i].Bounded)
		}
	}
}

// kinds sums the segments up by kind of cause, most first.
func (a *attribution) kinds() []KindIdle {
	idle := make([]timeline.Nanos, len(a.host.states))
	for _, seg := range a.segments {
		idle[seg.state] += seg.idle
	}
	var list []KindIdle
	row := make(map[Kind]int)
	for _, g := range groups(a, func(state int) Kind { return a.host.states[state].cause.Kind() }) {
		row[g.of] = len(list)
		list = append(list, KindIdle{Kind: g.of, Bounded: g.Bounded})
	}
	for _, g := range groups(a, func(state int) Cause { return a.host.states[state].cause }) {
		k := &list[row[g.of.Kind()]]
		k.Causes = append(k.Causes, IdlePart{Cause: g.of, Bounded: g.Bounded})
	}
	type line struct {
		kind Kind
		at   Place
	}
	for _, g := range groups(a, func(state int) line {
		st := a.host.states[state]
		if float64(idle[state]) < smallShare*float64(a.idle) {
			st.at = Place{} // too small for a row of its own
		}
		return line{st.cause.Kind(), st.at}
	}) {
		k := &list[row[g.of.kind]]
		k.Lines = append(k.Lines, IdlePart{Place: g.of.at, Bounded: g.Bounded})
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
	groupOf := make([]int, len(a.host.states))
	for state := range a.host.states {
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
func mergeKind(list []KindIdle, k KindIdle) []KindIdle {
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

func mergeParts(list, more []IdlePart) []IdlePart {
	for _, p := range more {
		i := slices.IndexFunc(list, func(o IdlePart) bool { return o.Cause == p.Cause && o.Place == p.Place })
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
func finishKinds(list []KindIdle, idle timeline.Nanos) []KindIdle {
	list = mostFirst(list, func(k *KindIdle) *Bounded { return &k.Bounded })
	for i := range list {
		k := &list[i]
		for _, parts := range []*[]IdlePart{&k.Causes, &k.Lines} {
			*parts = mostFirst(*parts, func(p *IdlePart) *Bounded { return &p.Bounded })
		}
		k.each(func(b *Bounded) { b.within(idle) })
	}
	return list
}
