package chart

import (
	"math"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestSeconds(t *testing.T) {
	for _, c := range []struct {
		s    float64
		want string
	}{
		{0, "0 s"}, {4e-6, "4 µs"}, {412e-6, "412 µs"}, {0.0015, "1.5 ms"}, {0.047, "47 ms"}, {0.0996, "0.10 s"}, {0.474, "0.47 s"},
		{0.999, "1.0 s"}, {6.62, "6.6 s"}, {13.4, "13.4 s"}, {99.96, "100 s"}, {119, "119 s"}, {120, "2 min"}, {125.4, "2 min 5 s"},
		{3599.7, "1 h"}, {11520, "3 h 12 min"}, {86400 * 6.17, "6 d 4 h"}, {86400 * 7, "7 d"}, {math.NaN(), "?"}, {math.Inf(1), "?"}, {1e9, "1.16e+04 d"},
	} {
		if got := seconds(c.s); got != c.want {
			t.Errorf("seconds(%v) = %q, want %q", c.s, got, c.want)
		}
	}
}

func TestPercent(t *testing.T) {
	for _, c := range []struct {
		share float64
		want  string
	}{{0, "0 %"}, {0.0002, "<0.1 %"}, {0.004, "0.4 %"}, {0.0096, "1 %"}, {0.766, "77 %"}, {0.998, "99 %"}, {1, "100 %"}, {math.NaN(), "? %"}} {
		if got := percent(c.share); got != c.want {
			t.Errorf("percent(%v) = %q, want %q", c.share, got, c.want)
		}
	}
}

func TestFigure(t *testing.T) {
	for _, c := range []struct {
		v    float64
		unit string
		want string
	}{
		{80 << 30, "B", "80 GiB"}, {11.2 * (1 << 30), "B", "11.2 GiB"}, {559 << 20, "B", "559 MiB"}, {12, "B", "12 B"},
		{48e6, "B/s", "48 MB/s"}, {999.6e6, "B/s", "1.0 GB/s"}, {1.02, "cores", "1.02 cores"}, {1, "cores", "1 core"}, {30.4, "cores", "30.4 cores"},
		{36, "%", "36 %"}, {341.7, "W", "342 W"}, {math.NaN(), "B", "?"}, {0, "B/s", "0 B/s"},
	} {
		if got := figure(c.v, c.unit); got != c.want {
			t.Errorf("figure(%v, %q) = %q, want %q", c.v, c.unit, got, c.want)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -4321: "-4,321", math.MinInt64: "-9,223,372,036,854,775,808"} {
		if got := count(n); got != want {
			t.Errorf("count(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestClean(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"plain", "plain"}, {"tab\there", "tab here"}, {"nul\x00", "nul�"}, {"\x1b[31m", "�[31m"}, {"\xff", "�"}, {"\xed\xa0\x80", "���"},
		{"\u202eevil", "�evil"}, {"\u2066x\u2069", "�x�"}, {"e\u0301\u0302\u0303\u0304", "e\u0301\u0302"}, {"日本", "日本"}, {"שלום", "שלום"}, {"\ufeffbom", "�bom"},
	} {
		if got := clean(c.in, 100); got != c.want {
			t.Errorf("clean(%q) = %q, want %q", c.in, got, c.want)
		}
	}
	if got := clean(strings.Repeat("x", 10_000), 10); got != "xxxxxxxxxx…" {
		t.Errorf("got %q", got)
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{"", "a", "\x00\xff", "\u202e", "é日👩‍👩‍👧", strings.Repeat("\u0301", 50)} {
		f.Add(s, 20.0)
	}
	f.Fuzz(func(t *testing.T, s string, room float64) {
		c := clean(s, 50)
		if !utf8.ValidString(c) || utf8.RuneCountInString(c) > 51 {
			t.Errorf("clean(%q) = %q", s, c)
		}
		for _, r := range c {
			if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
				t.Errorf("clean(%q) keeps %U", s, r)
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
	if step, label := tickStep(60, 15); step != 5 || label(0) != "0 s" || label(55) != "55 s" || label(60) != "1:00" {
		t.Errorf("60 s: %v %q %q %q", step, label(0), label(55), label(60))
	}
}
