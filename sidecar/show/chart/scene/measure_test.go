package scene

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

func FuzzFit(f *testing.F) {
	for _, s := range []string{"", "a", "\x00\xff", "\u202e", "é日👩‍👩‍👧", strings.Repeat("\u0301", 50)} {
		f.Add(s, 20.0)
	}
	f.Fuzz(func(t *testing.T, s string, room float64) {
		c := words.Clean(s, 50)
		if !utf8.ValidString(c) || utf8.RuneCountInString(c) > 51 {
			t.Errorf("Clean(%q) = %q", s, c)
		}
		for _, r := range c {
			if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
				t.Errorf("Clean(%q) keeps %U", s, r)
			}
		}
		for f, cut := range map[Face]string{Sans: Fit(c, room, 11, Sans), Bold: FitMiddle(c, room, 11, Bold)} {
			if w := WidthOf(cut, 11, f); cut != "" && w > room+0.01 {
				t.Errorf("%q is %v wide in a room of %v", cut, w, room)
			}
		}
		for _, line := range Wrap(c, room, 11, Mono, 3) {
			if w := WidthOf(line, 11, Mono); line != "" && w > room+0.01 {
				t.Errorf("line %q is %v wide in a room of %v", line, w, room)
			}
		}
	})
}

func TestFit(t *testing.T) {
	const size = 10
	whole := WidthOf("_next_data", size, Sans)
	for _, c := range []struct {
		room float64
		want string
	}{{whole, "_next_data"}, {whole - 1, "_next_d…"}, {0, ""}, {15, ""}, {24, "_n…"}} {
		if got := Fit("_next_data", c.room, size, Sans); got != c.want {
			t.Errorf("fit in %v = %q, want %q", c.room, got, c.want)
		}
	}
	if got := FitMiddle("ThreadPoolExecutor-0_12", 90, 11.5, Sans); !strings.HasSuffix(got, "…0_12") || WidthOf(got, 11.5, Sans) > 90 {
		t.Errorf("got %q", got)
	}
}

// The table of advances is of fonts that are not all here: what is certain is
// that it is not below DejaVu Sans' well-known figures.
func TestAdvancesBoundDejaVu(t *testing.T) {
	for r, want := range map[rune]float64{'W': 0.989, 'm': 0.974, '%': 0.950, ' ': 0.318, '_': 0.5, '@': 1.0, 'i': 0.278, '0': 0.636} {
		if got := advance(r, Sans); got < want {
			t.Errorf("advance(%q) = %v, less than DejaVu Sans' %v", r, got, want)
		}
		if r != '@' && advance(r, Bold) < advance(r, Sans)-0.005 {
			t.Errorf("bold %q is narrower than regular", r)
		}
	}
}
