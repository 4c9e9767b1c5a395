package timeline

import (
	"fmt"
	"slices"
	"testing"
)

func TestIntervals(t *testing.T) {
	joined := Joined([]Interval{{7, 9}, {1, 3}, {2, 4}, {4, 5}, {8, 8}})
	if got := fmt.Sprint(joined, Total(joined)); got != "[{1 5} {7 9}] 6" {
		t.Errorf("joined %s", got)
	}
	if got := fmt.Sprint(Longest([]Interval{{0, 2}, {3, 4}, {5, 9}}, 2)); got != "[{0 2} {5 9}]" {
		t.Errorf("longest %s", got)
	}
	for _, c := range []struct {
		start, end Nanos
		want       string
	}{
		{0, 1, ""}, {0, 2, "0:1 "}, {5, 7, ""}, {4, 8, "0:1 1:1 "}, {2, 100, "0:3 1:2 "}, {9, 12, ""}, {3, 3, ""},
	} {
		got := ""
		Overlap(joined, c.start, c.end, func(i int, part Nanos) { got += fmt.Sprintf("%d:%d ", i, part) })
		if got != c.want {
			t.Errorf("from %d to %d: %q, want %q", c.start, c.end, got, c.want)
		}
	}
}

func TestCommonIsWhatListsShare(t *testing.T) {
	a := []Interval{{0, 3}, {5, 9}}
	b := []Interval{{2, 6}, {8, 20}}
	if got, want := Common(a, b), []Interval{{2, 3}, {5, 6}, {8, 9}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := Common([]Interval{{0, 3}}, []Interval{{3, 5}}); got != nil {
		t.Errorf("of two that touch: %v", got)
	}
}

func TestWithoutIsWhatTheOthersLeave(t *testing.T) {
	list := []Interval{{0, 4}, {6, 10}, {20, 30}}
	for _, c := range []struct{ others, want []Interval }{
		{nil, list},
		{[]Interval{{0, 30}}, nil},
		{[]Interval{{4, 6}, {10, 20}}, list}, // they only touch
		{[]Interval{{2, 7}, {22, 23}, {25, 40}}, []Interval{{0, 2}, {7, 10}, {20, 22}, {23, 25}}},
	} {
		if got := Without(list, c.others); !slices.Equal(got, c.want) {
			t.Errorf("without %v: %v, want %v", c.others, got, c.want)
		}
	}
}
