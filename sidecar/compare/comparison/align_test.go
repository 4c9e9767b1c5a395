package comparison

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

func textLines(s string) []numbered {
	var lines []*string
	for _, l := range strings.Split(s, "\n") {
		lines = append(lines, &l)
	}
	return linesOf(lines)
}

func TestAlign(t *testing.T) {
	for _, c := range []struct {
		name   string
		a, b   string
		to     map[int]int
		edited map[int]bool
	}{
		{"the same", "a\nb", "a\nb", map[int]int{1: 1, 2: 2}, map[int]bool{}},
		{"a line more on top", "a\nb", "new\na\nb", map[int]int{1: 2, 2: 3}, map[int]bool{}},
		{"a line less", "a\nx = 1\nb", "a\nb", map[int]int{1: 1, 3: 2}, map[int]bool{}},
		{"blank lines do not count", "a\n\n\nb", "a\nb", map[int]int{1: 1, 4: 2}, map[int]bool{}},
		{"an edited line", "a\ntime.sleep(0.02)\nb", "a\ntime.sleep(0.05)\nb", map[int]int{1: 1, 2: 2, 3: 3}, map[int]bool{2: true}},
		{"edited and moved down", "a\nfor x in loader:\nb", "a\nimport os\nfor x in fast_loader:\nb", map[int]int{1: 1, 2: 3, 3: 4}, map[int]bool{2: true}},
		{"replaced by something else", "a\nx = slow()\nb", "a\nimport json\nb", map[int]int{1: 1, 3: 3}, map[int]bool{}},
		{"one of equal lines went", "f()\nf()\ng()", "f()\ng()", map[int]int{1: 1, 3: 2}, map[int]bool{}},
		{"nothing to compare with", "a", "", map[int]int{}, map[int]bool{}},
		{"space at the end", "a  ", "a", map[int]int{1: 1}, map[int]bool{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := align(textLines(c.a), textLines(c.b))
			if !reflect.DeepEqual(got.to, c.to) || !reflect.DeepEqual(got.edited, c.edited) {
				t.Errorf("got %v, edited %v; want %v, %v", got.to, got.edited, c.to, c.edited)
			}
		})
	}
}

// Whatever was changed: a line goes to one line at most, in order, and what is said to be
// equal is.
func TestAlignKeepsOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	random := func() []numbered {
		var lines []string
		for range r.IntN(30) {
			lines = append(lines, strings.Repeat(string(rune('a'+r.IntN(4))), 1+r.IntN(3)))
		}
		return textLines(strings.Join(lines, "\n"))
	}
	for range 2000 {
		a, b := random(), random()
		al := align(a, b)
		texts := make(map[int]string)
		for _, l := range b {
			texts[l.number] = l.text
		}
		last := 0
		for _, l := range a {
			to, ok := al.to[l.number]
			if !ok {
				continue
			}
			if to <= last || !al.edited[l.number] && texts[to] != l.text {
				t.Fatalf("%v and %v: %v", a, b, al)
			}
			last = to
		}
	}
}

func TestTextsThatNobodyWroteTakeNoTime(t *testing.T) {
	long := make([]*string, 1<<16)
	for i := range long {
		s := strings.Repeat("x", i%7+1)
		long[i] = &s
	}
	align(linesOf(long), linesOf(long[5:]))
}

func TestStableName(t *testing.T) {
	for name, want := range map[string]string{
		"/v/lib/python3.12/site-packages/torch/nn.py": "torch/nn.py", "/usr/lib/python3/dist-packages/numpy/core.py": "numpy/core.py",
		"~/.pyenv/versions/3.13.0/lib/python3.13t/json/encoder.py": "json/encoder.py", "~/project/train.py": "~/project/train.py", "<frozen os>": "<frozen os>",
	} {
		if got := stableName(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}
