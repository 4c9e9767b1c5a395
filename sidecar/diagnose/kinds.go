package diagnose

import (
	"cmp"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// KindIdle is the idle time of one kind of cause, with bounds as CauseIdle's.
type KindIdle struct {
	Kind             Kind
	Nanos, Low, High timeline.Nanos
	// The same by cause alone, and by line alone, each bounded for itself: the causes
	// of a line share its windows, and their bounds do not add up to the line's.
	Causes []IdlePart
	Lines  []IdlePart
}

// IdlePart is the part of a kind's idle time that has one cause, or that is at one
// line. Most comes first where there are several.
type IdlePart struct {
	Cause            Cause // of a line: none
	Place            Place // of a cause: zero. Of lines, those too small for rows of their own have the zero value together
	Nanos, Low, High timeline.Nanos
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
	k.Nanos, k.Low, k.High = k.Nanos/n, k.Low/n, k.High/n
	k.Causes, k.Lines = slices.Clone(k.Causes), slices.Clone(k.Lines)
	for _, parts := range [][]IdlePart{k.Causes, k.Lines} {
		for i := range parts {
			p := &parts[i]
			p.Nanos, p.Low, p.High = p.Nanos/n, p.Low/n, p.High/n
		}
	}
	return k
}

// tighten brings the bounds nearer where a model allows.
func (k *KindIdle) tighten(width timeline.Nanos) {
	k.Low, k.High = max(k.Low, k.Nanos-width), min(k.High, k.Nanos+width)
	for _, parts := range [][]IdlePart{k.Causes, k.Lines} {
		for i := range parts {
			p := &parts[i]
			p.Low, p.High = max(p.Low, p.Nanos-width), min(p.High, p.Nanos+width)
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
		list = append(list, KindIdle{Kind: g.of, Nanos: g.idle, Low: g.low, High: g.high})
	}
	for _, g := range groups(a, func(state int) Cause { return a.host.states[state].cause }) {
		k := &list[row[g.of.Kind()]]
		k.Causes = append(k.Causes, IdlePart{Cause: g.of, Nanos: g.idle, Low: g.low, High: g.high})
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
		k.Lines = append(k.Lines, IdlePart{Place: g.of.at, Nanos: g.idle, Low: g.low, High: g.high})
	}
	return finishKinds(list, a.idle)
}

// group is the idle time of host states that have something in common.
type group[T comparable] struct {
	of              T
	idle, low, high timeline.Nanos
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
		list[groupOf[seg.state]].idle += seg.idle
	}
	low, high := a.bounds(groupOf, len(list))
	for i := range list {
		list[i].low, list[i].high = low[i], high[i]
	}
	return list
}

// mergeKind adds a row to the one of the same kind, or appends it.
func mergeKind(list []KindIdle, k KindIdle) []KindIdle {
	for i := range list {
		if o := &list[i]; o.Kind == k.Kind {
			o.Nanos += k.Nanos
			o.Low += k.Low
			o.High += k.High
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
		list[i].Nanos += p.Nanos
		list[i].Low += p.Low
		list[i].High += p.High
	}
	return list
}

// finishKinds leaves out the kinds that no window saw, orders the others and keeps
// bounds around them.
func finishKinds(list []KindIdle, idle timeline.Nanos) []KindIdle {
	list = slices.DeleteFunc(list, func(k KindIdle) bool { return k.High == 0 && k.Nanos == 0 })
	slices.SortStableFunc(list, func(x, y KindIdle) int { return cmp.Compare(y.Nanos, x.Nanos) })
	for i := range list {
		k := &list[i]
		k.Low, k.High = min(k.Low, k.Nanos), max(min(k.High, idle), k.Nanos)
		k.Causes, k.Lines = finishParts(k.Causes, idle), finishParts(k.Lines, idle)
	}
	return list
}

// finishParts does the same for a kind's parts.
func finishParts(parts []IdlePart, idle timeline.Nanos) []IdlePart {
	parts = slices.DeleteFunc(parts, func(p IdlePart) bool { return p.High == 0 && p.Nanos == 0 })
	slices.SortStableFunc(parts, func(x, y IdlePart) int { return cmp.Compare(y.Nanos, x.Nanos) })
	for i := range parts {
		p := &parts[i]
		p.Low, p.High = min(p.Low, p.Nanos), max(min(p.High, idle), p.Nanos)
	}
	return parts
}
