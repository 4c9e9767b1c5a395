package chart

import (
	"slices"
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
		for f, cut := range map[face]string{sans: fit(c, room, 11, sans), bold: fitMiddle(c, room, 11, bold)} {
			if w := widthOf(cut, 11, f); cut != "" && w > room+0.01 {
				t.Errorf("%q is %v wide in a room of %v", cut, w, room)
			}
		}
		for _, line := range wrap(c, room, 11, mono, 3) {
			if w := widthOf(line, 11, mono); line != "" && w > room+0.01 {
				t.Errorf("line %q is %v wide in a room of %v", line, w, room)
			}
		}
	})
}

func TestFit(t *testing.T) {
	const size = 10
	whole := widthOf("_next_data", size, sans)
	for _, c := range []struct {
		room float64
		want string
	}{{whole, "_next_data"}, {whole - 1, "_next_d…"}, {0, ""}, {15, ""}, {24, "_n…"}} {
		if got := fit("_next_data", c.room, size, sans); got != c.want {
			t.Errorf("fit in %v = %q, want %q", c.room, got, c.want)
		}
	}
	if got := fitMiddle("ThreadPoolExecutor-0_12", 90, 11.5, sans); !strings.HasSuffix(got, "…0_12") || widthOf(got, 11.5, sans) > 90 {
		t.Errorf("got %q", got)
	}
}

func TestNumbersKeepTheirUnits(t *testing.T) {
	text := "native code 2.2 s · waiting for the GIL 93 ms · GPU 7 % of 3 cores, 1.5 MB/s"
	want := []string{"native", "code", "2.2 s", "·", "waiting", "for", "the", "GIL", "93 ms", "·", "GPU", "7 %", "of", "3", "cores,", "1.5 MB/s"}
	if got := unbroken(text); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The table of advances is of fonts that are not all here: what is certain is
// that it is not below DejaVu Sans' well-known figures.
func TestAdvancesBoundDejaVu(t *testing.T) {
	for r, want := range map[rune]float64{'W': 0.989, 'm': 0.974, '%': 0.950, ' ': 0.318, '_': 0.5, '@': 1.0, 'i': 0.278, '0': 0.636} {
		if got := advance(r, sans); got < want {
			t.Errorf("advance(%q) = %v, less than DejaVu Sans' %v", r, got, want)
		}
		if r != '@' && advance(r, bold) < advance(r, sans)-0.005 {
			t.Errorf("bold %q is narrower than regular", r)
		}
	}
}

func TestTicksAreRoundAndFewerThanAsked(t *testing.T) {
	for d := 1e-6; d < 1e9; d *= 1.37 {
		step, label := tickStep(d, 15)
		if n := d / step; n > 15.01 || n < 1 && d > 1e-5 {
			t.Errorf("%v s: %v ticks", d, n)
		}
		seen := make(map[string]bool)
		for i := 0; float64(i)*step <= d; i++ {
			l := label(float64(i) * step)
			if seen[l] {
				t.Errorf("%v s: two ticks read %q", d, l)
			}
			seen[l] = true
		}
	}
	if step, label := tickStep(1.03, 15); step != 0.1 || label(0.3) != "0.3 s" || label(1) != "1 s" {
		t.Errorf("1.03 s: %v %q %q", step, label(0.3), label(1))
	}
	const days = 86400.0
	for at, want := range map[float64]string{0: "0 h", days: "24 h", 2 * days: "2.0 d", 2.25 * days: "2.3 d", 2.5 * days: "2.5 d"} {
		if step, label := tickStep(3*days, 15); step != 6*3600 || label(at) != want {
			t.Errorf("3 d: step %v, %v s reads %q, want %q", step, at, label(at), want)
		}
	}
	if step, label := tickStep(7200, 15); step != 600 || label(3000) != "50 min" || label(4200) != "1:10 h" {
		t.Errorf("2 h: %v %q %q", step, label(3000), label(4200))
	}
	if step, label := tickStep(60, 15); step != 5 || label(0) != "0 s" || label(55) != "55 s" || label(60) != "1:00" {
		t.Errorf("60 s: %v %q %q %q", step, label(0), label(55), label(60))
	}
}
