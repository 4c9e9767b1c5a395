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
