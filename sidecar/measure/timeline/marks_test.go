package timeline

import (
	"fmt"
	"testing"
)

func TestLeadingMarks(t *testing.T) {
	mark := func(process int, source MarkSource, at Nanos) Mark {
		return Mark{Kind: "step", Process: process, Source: source, Start: at - 1, End: at}
	}
	rec := &Recording{Marks: []Mark{
		mark(3, StepMarked, 1), mark(2, StepOptimizer, 2), mark(2, StepMarked, 3), mark(2, StepOptimizer, 4), mark(2, StepMarked, 5), mark(4, StepMarked, 6),
		{Kind: "region", Name: "load", Process: 2}, {Kind: "region", Name: "other", Process: 3},
	}}
	var got []string
	for _, m := range rec.LeadingMarks() {
		got = append(got, fmt.Sprint(m.Kind, m.Name, m.End))
	}
	if want := "[step3 step5 regionload0]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
	rec.Subject = &Subject{Process: 4}
	if got := rec.LeadingMarks(); len(got) != 1 || got[0].End != 6 {
		t.Errorf("%v, want the subject's", got)
	}
	rec.Subject = &Subject{Process: 1}
	if got := rec.LeadingMarks(); len(got) != 3 {
		t.Errorf("%v, want those of the first one that has any: the subject has none", got)
	}
	if (&Recording{}).LeadingMarks() != nil {
		t.Error("marks of a recording without any")
	}
}

// Of processes that a program started, with a training each, it is the one with most steps; of ranks it is the first one, and so is a
// program that trains itself.
func TestLeadingMarksOfChildren(t *testing.T) {
	rank := 0
	for name, c := range map[string]struct {
		first Process // of the marks
		want  int
	}{
		"a child":     {Process{}, 2},
		"a rank":      {Process{Rank: &rank}, 1},
		"the program": {Process{ParentIndex: -1}, 1},
	} {
		rec := &Recording{Processes: []Process{{ParentIndex: -1}, c.first, {}, {}}}
		for process, steps := range []int{0, 1, 3, 2} {
			for i := range steps {
				rec.Marks = append(rec.Marks, Mark{Kind: "step", Process: process, Start: Nanos(i), End: Nanos(i + 1)})
			}
		}
		if got := rec.LeadingMarks(); len(got) == 0 || got[0].Process != c.want {
			t.Errorf("%s: %+v, want those of process %d", name, got, c.want)
		}
	}
}
