package comparison

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/significance"
)

// tables are the rows of a comparison before anything is decided about them.
type tables struct{ whole, lines, functions, causes, steps []*row }

// gather puts the figures of all runs beside each other.
func gather(runs [2][]*figures) *tables {
	t := &tables{}
	// What a run has no figure of was not seen: 0, to the noise of one look.
	unseen := func(f *figures) significance.Reading {
		return significance.Reading{Noise: noiseOf(f.interval(f.v.Program()), 0)}
	}
	unknown := significance.Reading{Absent: true, Value: math.NaN()}
	t.whole = rowsOf(runs, func(f *figures) map[string]amount { return f.whole }, func(*figures, string) significance.Reading { return unknown })
	slices.SortStableFunc(t.whole, func(a, b *row) int { return wholeOrder[a.ID] - wholeOrder[b.ID] })
	t.lines = rowsOf(runs, func(f *figures) map[lineKey]amount { return f.lines }, func(f *figures, k lineKey) significance.Reading {
		r := unseen(f)
		r.Absent = !f.book.has(f.run, k.lineID)
		return r
	})
	t.functions = rowsOf(runs, func(f *figures) map[functionKey]amount { return f.functions }, func(f *figures, k functionKey) significance.Reading {
		r := unseen(f)
		r.Absent = !f.seen[functionKey{k.file, k.name, ""}]
		return r
	})
	t.causes = rowsOf(runs, func(f *figures) map[causeKey]amount { return f.causes }, func(f *figures, k causeKey) significance.Reading {
		if f.v.Idle == nil {
			return unknown
		}
		r := significance.Reading{Absent: !k.none && !f.book.has(f.run, k.at)}
		if f.v.Idle.WindowNS != nil {
			r.Noise = noiseOf(float64(*f.v.Idle.WindowNS), 0)
		}
		return r
	})
	t.steps = rowsOf(runs, func(f *figures) map[stepKey]amount { return f.steps }, func(f *figures, k stepKey) significance.Reading {
		if _, stepped := f.steps[stepKey{StepTime, k.name}]; stepped && k.id == DataWait {
			return significance.Reading{} // none waited
		}
		return unknown
	})
	t.whole, t.causes, t.steps = known(t.whole), known(t.causes), known(t.steps)
	return t
}

// known drops rows of which a run knows nothing, as of GPUs where none was watched: that
// is no 0, and nothing to compare with.
func known(rows []*row) []*row {
	return slices.DeleteFunc(rows, func(r *row) bool { return math.IsNaN(meanOf(r.readings[0])) || math.IsNaN(meanOf(r.readings[1])) })
}

var wholeOrder = map[string]int{WallTime: 0, GPUBusy: 1, GPUIdle: 2}

// rowsOf makes a row for each key that any run has.
func rowsOf[K comparable](runs [2][]*figures, of func(*figures) map[K]amount, missing func(*figures, K) significance.Reading) []*row {
	keys := make(map[K]bool)
	var order []K
	for _, side := range runs {
		for _, f := range side {
			var fresh []K
			for k := range of(f) {
				if !keys[k] {
					keys[k] = true
					fresh = append(fresh, k)
				}
			}
			slices.SortFunc(fresh, func(a, b K) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
			order = append(order, fresh...)
		}
	}
	rows := make([]*row, 0, len(order))
	for _, k := range order {
		r := &row{}
		for side, list := range runs {
			for _, f := range list {
				a, known := of(f)[k]
				if !known {
					r.readings[side] = append(r.readings[side], missing(f, k))
					continue
				}
				r.readings[side] = append(r.readings[side], a.reading())
				r.describe(f, a, side, k)
			}
		}
		rows = append(rows, r)
	}
	return rows
}

// describe takes over from the first run of a side what a row is about.
func (r *row) describe(f *figures, a amount, side int, key any) {
	switch k := key.(type) {
	case string:
		r.ID = k
	case lineKey:
		r.Role = k.role
		r.Edited = r.Edited || a.edited
	case functionKey:
		r.Role = k.role
		r.Name = f.v.FunctionName(a.function)
		if side == 1 && r.Function == nil {
			r.Function = f.index(a.function)
		}
	case causeKey:
		r.ID, r.Name = k.id, a.name
		r.Edited = r.Edited || a.edited
	case stepKey:
		r.ID, r.Name = k.id, k.name
		if r.Count == nil {
			r.Count = &[2]int{}
		}
		if r.Count[side] == 0 {
			r.Count[side] = a.count
		}
	}
	at := []**Place{&r.Change.Before, &r.Change.After}[side]
	if *at == nil && a.file >= 0 {
		*at = placeOf(f.v, a.file, a.line)
	}
}

// index is a function's index where it is asked for: of the first run after.
func (f *figures) index(function int) *int {
	if f.run != f.book.after[0] {
		return nil
	}
	return &function
}

func placeOf(v *report.View, file, line int) *Place {
	return &Place{File: v.FileName(&file), Line: line, Text: v.Text(file, line)}
}
