package wording

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/understand/significance"
)

// comparedPage is everything that a comparison says, below each other.
func comparedPage() string {
	var b strings.Builder
	less := Change{Before: 5.8, After: 3.3, Low: -2.9, High: -2.1, Verdict: significance.Less}
	more := Change{Before: 3.3, After: 5.8, Low: 2.1, High: 2.9, Verdict: significance.More}
	skewed := Change{Before: 3.3, After: 5.8, Low: 0.4, High: 2.9, Verdict: significance.More}
	same := Change{Before: 5.8, After: 5.7, Low: -0.4, High: 0.2}
	appeared := Change{After: 0.3, Low: 0.2, High: 0.4, Verdict: significance.New}
	gone := Change{Before: 0.3, Low: -0.4, High: -0.2, Verdict: significance.Gone}

	fmt.Fprint(&b, "# What comparisons say\n\n## The answer\n\n")
	for _, c := range []Change{less, more} {
		fmt.Fprintf(&b, "- %s\n", Compared(c, "2 lines"))
	}
	fmt.Fprintf(&b, "- %s\n- %s\n- %s\n", Compared(same, ""), Compared(same, ComparedParts(1, 0, 0, 0)), Compared(same, ComparedParts(3, 2, 1, 1)))
	fmt.Fprint(&b, "\n## What made it\n\n")
	for _, c := range []Change{less, more, appeared, gone} {
		fmt.Fprintf(&b, "- %s\n", ComparedMost("train.py:4", c))
	}
	fmt.Fprint(&b, "\n## A row's change\n\n")
	for _, c := range []Change{less, more, skewed, same, appeared, gone} {
		fmt.Fprintf(&b, "- %s\n", c.Words())
	}
	fmt.Fprint(&b, "\n## What the intervals rest on\n")
	for _, s := range []Sides{
		{Before: 1, After: 1, Level: 0.95, Assumed: 0.03}, {Before: 1, After: 1, Level: 0.95, Assumed: 0.03, StarvedBefore: 0.31},
		{Before: 1, After: 1, Level: 0.95, Assumed: 0.03, StarvedBefore: 0.31, StarvedAfter: 0.66},
		{Before: 1, After: 5, Level: 0.95, Assumed: 0.03}, {Before: 3, After: 5, Level: 0.95, StarvedAfter: 0.9},
	} {
		fmt.Fprintf(&b, "\n- %s\n", strings.Join(ComparedBy(s), "\n- "))
	}
	fmt.Fprint(&b, "\n## Figures\n\n")
	for _, id := range []string{"wall", "gpu-busy", "gpu-idle", "step", "step-data-wait", "step-gpu-busy", "step-gpu-idle"} {
		fmt.Fprintf(&b, "- `%s`: %s\n", id, ComparedFigure(id))
	}
	return b.String()
}

func TestComparedPage(t *testing.T) {
	const path = "testdata/comparison.md"
	got := comparedPage()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || got != string(want) {
		t.Errorf("%s differs (%v): read it again as a whole and rewrite it with -update", path, err)
	}
	if strings.Contains(got, "``") || strings.Contains(got, ": \n") || strings.Contains(got, "%!") {
		t.Errorf("something has no words:\n%s", got)
	}
}
