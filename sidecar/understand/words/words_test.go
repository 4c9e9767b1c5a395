package words

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestSeconds(t *testing.T) {
	for _, c := range []struct {
		s    float64
		want string
	}{
		{0, "0 s"}, {5e-9, "5 ns"}, {0.5e-6, "0.5 µs"}, {4e-6, "4 µs"}, {9.96e-6, "10 µs"}, {412e-6, "412 µs"}, {0.0015, "1.5 ms"}, {0.047, "47 ms"}, {0.0996, "0.10 s"}, {0.474, "0.47 s"},
		{0.999, "1.0 s"}, {6.62, "6.6 s"}, {13.4, "13.4 s"}, {99.96, "100 s"}, {119, "119 s"}, {120, "2 min"}, {125.4, "2 min 5 s"},
		{3599.7, "1 h"}, {11520, "3 h 12 min"}, {86400 * 6.17, "6 d 4 h"}, {86400 * 7, "7 d"}, {math.NaN(), "?"}, {math.Inf(1), "?"}, {1e9, "11,574 d"}, {1e15, "1.16e10 d"},
	} {
		if got := Seconds(c.s); got != c.want {
			t.Errorf("Seconds(%v) = %q, want %q", c.s, got, c.want)
		}
	}
}

func TestPercent(t *testing.T) {
	for _, c := range []struct {
		share float64
		want  string
	}{{0, "0 %"}, {0.0002, "<0.1 %"}, {0.004, "0.4 %"}, {0.0096, "1 %"}, {0.766, "77 %"}, {0.998, "99 %"}, {1, "100 %"}, {math.NaN(), "? %"}} {
		if got := Percent(c.share); got != c.want {
			t.Errorf("Percent(%v) = %q, want %q", c.share, got, c.want)
		}
	}
}

func TestQuantity(t *testing.T) {
	for _, c := range []struct {
		v    float64
		unit string
		want string
	}{
		{80 << 30, "B", "80 GiB"}, {11.2 * (1 << 30), "B", "11.2 GiB"}, {559 << 20, "B", "559 MiB"}, {12, "B", "12 B"},
		{48e6, "B/s", "48 MB/s"}, {999.6e6, "B/s", "1.0 GB/s"}, {1.02, "cores", "1.02 cores"}, {1, "cores", "1 core"}, {30.4, "cores", "30.4 cores"},
		{36, "%", "36 %"}, {341.7, "W", "342 W"}, {math.NaN(), "B", "?"}, {0, "B/s", "0 B/s"},
	} {
		if got := Quantity(c.v, c.unit); got != c.want {
			t.Errorf("Quantity(%v, %q) = %q, want %q", c.v, c.unit, got, c.want)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -4321: "-4,321", math.MinInt64: "-9,223,372,036,854,775,808"} {
		if got := Count(n); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestCoresUsed(t *testing.T) {
	for _, c := range []struct {
		used, limit float64
		want        string
	}{{1.95, 2, "2.0 of 2 cores"}, {0.25, 1, "0.3 of 1 core"}, {0.25, 2.5, "0.3 of 2.5 cores"}, {1, 0, "1 core"}, {1.95, 0, "2 cores"}, {0, 0, "0 cores"}} {
		if got := CoresUsed(c.used, c.limit); got != c.want {
			t.Errorf("%v of %v: got %q, want %q", c.used, c.limit, got, c.want)
		}
	}
}

func TestSignificant(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1.234: "1.23", 1.235: "1.24", 12.35: "12.4", 99.95: "100", 9.995: "10", 350: "350", 999.5: "1,000", 12345.5: "12,346",
		0.01235: "0.0124", -2.345: "-2.35", 1e9: "1e9", math.NaN(): "?",
	} {
		if got := Significant(v, 3); got != want {
			t.Errorf("%v: got %q, want %q", v, got, want)
		}
	}
}

func TestClean(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"plain", "plain"}, {"tab\there", "tab here"}, {"nul\x00", "nul�"}, {"\x1b[31m", "�[31m"}, {"\xff", "�"}, {"\xed\xa0\x80", "���"},
		{"\u202eevil", "�evil"}, {"\u2066x\u2069", "�x�"}, {"e\u0301\u0302\u0303\u0304", "e\u0301\u0302"}, {"日本", "日本"}, {"שלום", "שלום"}, {"\ufeffbom", "�bom"},
	} {
		if got := Clean(c.in, 100); got != c.want {
			t.Errorf("Clean(%q) = %q, want %q", c.in, got, c.want)
		}
	}
	if got := Clean(strings.Repeat("x", 10_000), 10); got != "xxxxxxxxxx…" {
		t.Errorf("got %q", got)
	}
}

func TestPartsAndRanges(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{PartOf(1.9, 2.1), "1.9 of 2.1 s"}, {PartOf(0.047, 2.1), "47 ms of 2.1 s"}, {PartOf(2.1, 2.1), "all of 2.1 s"}, {PartOf(125, 240), "2 min 5 s of 4 min"},
		{Between(0.1, 2), "0.1–2.0 s"}, {Between(1, 2), "1.0–2.0 s"}, {Between(0, 2), "0.0–2.0 s"}, {Between(2, 2), "2.0 s"}, {Between(0.4, 125), "0.4 s–2 min 5 s"}, {Between(0.0004, 0.047), "0–47 ms"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestChanges(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Signed(1.2), "+1.2 s"}, {Signed(-0.047), "−47 ms"}, {Signed(0), "0 s"}, {Signed(math.NaN()), "?"},
		{SignedPercent(0.18), "+18 %"}, {SignedPercent(-0.004), "−0.4 %"}, {SignedPercent(0), "0 %"}, {SignedPercent(math.Inf(1)), "+? %"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestLists(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{List(nil), ""}, {List([]string{"a"}), "a"}, {List([]string{"a", "b"}), "a and b"}, {List([]string{"a", "b", "c"}), "a, b and c"},
		{Alternatives([]string{"a", "b", "c"}), "a, b or c"},
		{Numbers(nil), ""}, {Numbers([]int{0}), "0"}, {Numbers([]int{1, 0}), "0 and 1"}, {Numbers([]int{3, 1, 2, 2}), "1–3"},
		{Numbers([]int{0, 2, 4, 5, 6, 7}), "0, 2 and 4–7"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestSentence(t *testing.T) {
	for in, want := range map[string]string{"": "", "the end": "The end.", "Is it?": "Is it?", "éa.": "Éa.", "x.json: no events": "x.json: no events.", "runs: no trace": "runs: no trace.", "none.": "None."} {
		if got := Sentence(in); got != want {
			t.Errorf("Sentence(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestColumns(t *testing.T) {
	for s, want := range map[string]int{"abc": 3, "日本": 4, "e\u0301": 1, "👩‍👩‍👧": 2, "🇫🇷": 2, "▁█": 2, "…": 1} {
		if got := Columns(s); got != want {
			t.Errorf("Columns(%q) = %d, want %d", s, got, want)
		}
	}
	if got, want := Cut("日本語の本", 6), "日本…"; got != want {
		t.Errorf("Cut = %q, want %q", got, want)
	}
	for n, want := range map[int]string{30: "project/models/train.py:123", 13: "…train.py:123", 1: "…", 0: ""} {
		if got := CutFront("project/models/train.py:123", n); got != want {
			t.Errorf("CutFront to %d = %q, want %q", n, got, want)
		}
	}
	if got, want := Pad("ab", 4)+"|"+PadLeft("ab", 4)+"|"+Pad("日本語", 4)+"|", "ab  |  ab|日… |"; got != want {
		t.Errorf("Pad = %q, want %q", got, want)
	}
}

// Cut keeps its promise whatever the text.
func FuzzCut(f *testing.F) {
	for _, s := range []string{"", "a", "日本語", "👩‍👩‍👧👩‍👩‍👧", "e\u0301\u0301", "\x00\xff"} {
		f.Add(s, 3)
	}
	f.Fuzz(func(t *testing.T, s string, n int) {
		s, n = Clean(s, 60), min(max(n, 1), 80)
		if got := Columns(Cut(s, n)); got > n {
			t.Errorf("Cut(%q, %d) has %d columns", s, n, got)
		}
		if got := Columns(Pad(s, n)); got != n {
			t.Errorf("Pad(%q, %d) has %d columns", s, n, got)
		}
	})
}

func TestARangeNamesItsUnitOnce(t *testing.T) {
	for _, test := range []struct {
		from, to float64
		want     string
	}{{14.2 * (1 << 20), 14.6 * (1 << 20), "14.2 – 14.6 MiB"}, {900 << 20, 1.5 * (1 << 30), "900 MiB – 1.5 GiB"}} {
		if got := QuantityRange(test.from, test.to, "B"); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

func TestNumbersKeepTheirUnits(t *testing.T) {
	text := "native code 2.2 s · waiting for the GIL 93 ms · GPU 7 % of 3 cores, 1.5 MB/s"
	want := []string{"native", "code", "2.2 s", "·", "waiting", "for", "the", "GIL", "93 ms", "·", "GPU", "7 %", "of", "3", "cores,", "1.5 MB/s"}
	if got := Unbroken(text); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLastLine(t *testing.T) {
	for text, want := range map[string]string{"": "", "\n \n": "", "one": "one", "Traceback\n  line\nOSError: full\n\n": "OSError: full"} {
		if got := LastLine(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
