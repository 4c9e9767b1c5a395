package timeline

import (
	"cmp"
	"slices"
)

// Interval is a part of a recording.
type Interval = IntervalOf[Nanos]

// IntervalOf is a part of a time that is counted in T, up to but without End. Lists of them are in
// order of time and do not overlap, unless something else is said.
type IntervalOf[T ~int64] struct{ Start, End T }

// Between is the interval from start to end.
func Between(start, end Nanos) Interval { return Interval{start, end} }

// Nanos returns the interval's length.
func (i IntervalOf[T]) Nanos() T { return i.End - i.Start }

// Total is the length of all of them.
func Total[T ~int64](list []IntervalOf[T]) (sum T) {
	for _, i := range list {
		sum += i.Nanos()
	}
	return sum
}

// Joined orders any intervals by time, and joins those that overlap or touch.
func Joined[T ~int64](list []IntervalOf[T]) []IntervalOf[T] {
	list = slices.Clone(list)
	slices.SortFunc(list, byStart[T])
	var out []IntervalOf[T]
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
func Longest[T ~int64](list []IntervalOf[T], most int) []IntervalOf[T] {
	if len(list) <= most {
		return list
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b IntervalOf[T]) int { return cmp.Compare(b.Nanos(), a.Nanos()) })
	list = list[:most]
	slices.SortFunc(list, byStart[T])
	return list
}

func byStart[T ~int64](a, b IntervalOf[T]) int { return cmp.Compare(a.Start, b.Start) }

// Common are the intervals that two lists share.
func Common[T ~int64](a, b []IntervalOf[T]) (shared []IntervalOf[T]) {
	for i, j := 0, 0; i < len(a) && j < len(b); {
		if both := (IntervalOf[T]{max(a[i].Start, b[j].Start), min(a[i].End, b[j].End)}); both.Nanos() > 0 {
			shared = append(shared, both)
		}
		if a[i].End < b[j].End {
			i++
		} else {
			j++
		}
	}
	return shared
}

// Clip cuts intervals down to what lies within a window.
func Clip[T ~int64](list []IntervalOf[T], window IntervalOf[T]) (inside []IntervalOf[T]) {
	Overlap(list, window.Start, window.End, func(i int, _ T) {
		inside = append(inside, IntervalOf[T]{max(list[i].Start, window.Start), min(list[i].End, window.End)})
	})
	return inside
}

// Without are the parts of the intervals that lie in none of the others.
func Without[T ~int64](list, others []IntervalOf[T]) (rest []IntervalOf[T]) {
	for _, i := range list {
		at := i.Start
		Overlap(others, i.Start, i.End, func(k int, _ T) {
			if o := others[k]; o.Start > at {
				rest = append(rest, IntervalOf[T]{at, o.Start})
			}
			at = others[k].End
		})
		if at < i.End {
			rest = append(rest, IntervalOf[T]{at, i.End})
		}
	}
	return rest
}

// Overlap calls visit for each interval that shares time with [start, end), and with how much.
func Overlap[T ~int64](list []IntervalOf[T], start, end T, visit func(i int, part T)) {
	i, _ := slices.BinarySearchFunc(list, start, func(i IntervalOf[T], t T) int {
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

// Median is the length in the middle, of an even number the longer one; 0 of none. It sorts the list.
func Median(lengths []Nanos) Nanos {
	if len(lengths) == 0 {
		return 0
	}
	slices.Sort(lengths)
	return lengths[len(lengths)/2]
}
