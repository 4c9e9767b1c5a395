package timeline

import (
	"cmp"
	"slices"
)

// Interval is a part of a recording, up to but without End. Lists of them are in order of
// time and do not overlap, unless something else is said.
type Interval struct{ Start, End Nanos }

// Between is the interval from start to end.
func Between(start, end Nanos) Interval { return Interval{start, end} }

// Nanos returns the interval's length.
func (i Interval) Nanos() Nanos { return i.End - i.Start }

// Total is the length of all of them.
func Total(list []Interval) (sum Nanos) {
	for _, i := range list {
		sum += i.Nanos()
	}
	return sum
}

// Joined orders any intervals by time, and joins those that overlap or touch.
func Joined(list []Interval) []Interval {
	list = slices.Clone(list)
	slices.SortFunc(list, byStart)
	var out []Interval
	for _, i := range list {
		if n := len(out); n > 0 && i.Start <= out[n-1].End {
			out[n-1].End = max(out[n-1].End, i.End)
			continue
		}
		out = append(out, i)
	}
	return out
}

// Longest are the longest of them, so many at most, in order of time.
func Longest(list []Interval, most int) []Interval {
	if len(list) <= most {
		return list
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b Interval) int { return cmp.Compare(b.Nanos(), a.Nanos()) })
	list = list[:most]
	slices.SortFunc(list, byStart)
	return list
}

func byStart(a, b Interval) int { return cmp.Compare(a.Start, b.Start) }

// Overlap calls visit for each interval that shares time with [start, end), and with how much.
func Overlap(list []Interval, start, end Nanos, visit func(i int, part Nanos)) {
	i, _ := slices.BinarySearchFunc(list, start, func(i Interval, t Nanos) int {
		if i.End <= t {
			return -1
		}
		return 1
	})
	for ; i < len(list) && list[i].Start < end; i++ {
		if part := min(list[i].End, end) - max(list[i].Start, start); part > 0 {
			visit(i, part)
		}
	}
}
