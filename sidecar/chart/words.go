package chart

import (
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName bounds a name taken from the user's program, in characters: longer
// than any line of a chart, short enough for a tooltip.
const maxName = 240

// clean makes text from the user's program fit to be shown: one line of valid
// UTF-8 without control characters, directional overrides or towers of
// combining marks, at most limit characters.
func clean(s string, limit int) string {
	if len(s) <= limit && isPlain(s) {
		return s
	}
	var b strings.Builder
	n, marks := 0, 0
	for _, r := range s {
		if unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Me, r) {
			if marks++; marks > 2 {
				continue
			}
		} else {
			marks = 0
		}
		if n++; n > limit {
			return strings.TrimRight(b.String(), " ") + "…"
		}
		switch {
		case r == '\t' || r == '\n' || r == '\r':
			b.WriteByte(' ')
		case r == utf8.RuneError || isUnshowable(r):
			b.WriteRune(utf8.RuneError)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// isUnshowable tells characters that change the text around them or are not
// allowed in XML.
func isUnshowable(r rune) bool {
	switch {
	case unicode.IsControl(r),
		r == 0x061C, r == 0x200E, r == 0x200F, // directional marks
		r >= 0x2028 && r <= 0x202E, // separators, embeddings, overrides
		r >= 0x2060 && r <= 0x206F, // isolates and invisible operators
		r >= 0xFFF0 && r <= 0xFFFB, r == 0xFEFF,
		r&0xFFFE == 0xFFFE,                    // noncharacters
		r >= 0xE0000,                          // tags and private planes
		r == 0xFDFA, r == 0xFDFB, r == 0xFDFD, // ligatures many characters wide
		r == 0x2E3A, r == 0x2E3B,
		r >= 0x12000 && r <= 0x1254F: // cuneiform: up to five characters wide
		return true
	}
	return false
}

// seconds says a length of time in few characters: 412 µs, 47 ms, 0.47 s, 6.6 s,
// 13.4 s, 2 min 5 s, 3 h 12 min, 6 d 4 h.
func seconds(s float64) string {
	switch abs := math.Abs(s); {
	case math.IsNaN(s) || math.IsInf(s, 0):
		return "?"
	case abs == 0:
		return "0 s"
	case abs < 0.9995e-3:
		return fmt.Sprintf("%.0f µs", s*1e6)
	case abs < 0.00995:
		return fmt.Sprintf("%.1f ms", s*1e3)
	case abs < 0.0995:
		return fmt.Sprintf("%.0f ms", s*1e3)
	case abs < 0.995:
		return fmt.Sprintf("%.2f s", s)
	case abs < 99.95:
		return fmt.Sprintf("%.1f s", s)
	case abs < 119.5:
		return fmt.Sprintf("%.0f s", s)
	case abs < 3599.5:
		return twoUnits(s, 60, "min", 1, "s")
	case abs < 2*86400-30:
		return twoUnits(s, 3600, "h", 60, "min")
	case abs < 1e7:
		return twoUnits(s, 86400, "d", 3600, "h")
	}
	return fmt.Sprintf("%.3g d", s/86400)
}

func twoUnits(s, big float64, bigName string, small float64, smallName string) string {
	n := math.Round(s / small)
	per := big / small
	whole, rest := math.Floor(n/per), math.Mod(n, per)
	if rest == 0 {
		return fmt.Sprintf("%.0f %s", whole, bigName)
	}
	return fmt.Sprintf("%.0f %s %.0f %s", whole, bigName, rest, smallName)
}

// resolution says the distance of two readings: 1 ms, 100 ms, 1 s.
func resolution(s float64) string {
	if s > 0 && s < 0.9995 {
		if s < 0.9995e-3 {
			return trimZero(fmt.Sprintf("%.1f", s*1e6)) + " µs"
		}
		if s > 0.01 {
			return fmt.Sprintf("%.0f ms", s*1e3)
		}
		return trimZero(fmt.Sprintf("%.1f", s*1e3)) + " ms"
	}
	if s < 60 {
		return trimZero(fmt.Sprintf("%.1f", s)) + " s"
	}
	return seconds(s)
}

// percent says a share of 1.
func percent(share float64) string {
	p := share * 100
	switch {
	case math.IsNaN(p) || math.IsInf(p, 0):
		return "? %"
	case p == 0:
		return "0 %"
	case math.Abs(p) < 0.1:
		return "<0.1 %"
	case math.Abs(p) < 0.95:
		return fmt.Sprintf("%.1f %%", p)
	case math.Abs(p) >= 1e5:
		return fmt.Sprintf("%.3g %%", p)
	case p > 99.5 && p < 100: // not quite all of it
		return "99 %"
	}
	return fmt.Sprintf("%.0f %%", p)
}

// scaled says v with a prefix: steps of 1000 ("k") or 1024 ("Ki").
func scaled(v, base float64, prefixes []string, unit string) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "?"
	}
	i := 0
	for math.Abs(v) >= 999.5 && i < len(prefixes)-1 {
		v /= base
		i++
	}
	if math.Abs(v) >= 1e5 {
		return fmt.Sprintf("%.3g %s%s", v, prefixes[i], unit)
	}
	digits := 0
	if a := math.Abs(v); i > 0 && a < 99.95 && a != math.Trunc(a) || a > 0 && a < 9.95 && i == 0 && a != math.Trunc(a) {
		digits = 1
	}
	return strings.TrimSpace(strconv.FormatFloat(v, 'f', digits, 64) + " " + prefixes[i] + unit)
}

var (
	binaryPrefixes  = []string{"", "Ki", "Mi", "Gi", "Ti", "Pi"}
	decimalPrefixes = []string{"", "k", "M", "G", "T", "P"}
)

// figure says a track's value: memory in binary units as torch and free do,
// rates in decimal ones.
func figure(v float64, unit string) string {
	switch unit {
	case "B":
		return scaled(v, 1024, binaryPrefixes, "B")
	case "B/s":
		return scaled(v, 1000, decimalPrefixes, "B/s")
	case "%":
		return percent(v / 100)
	case "cores":
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return "?"
		}
		if v == 1 {
			return "1 core"
		}
		if v < 9.95 {
			return trimZero(fmt.Sprintf("%.2f", v)) + " cores"
		}
		return fmt.Sprintf("%.4g cores", v)
	}
	return scaled(v, 1000, decimalPrefixes, clean(unit, 12))
}

func trimZero(s string) string {
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// count says a number with thousands apart.
func count(n int64) string {
	s := strconv.FormatInt(n, 10)
	head, digits := "", s
	if n < 0 {
		head, digits = "-", s[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return head + digits
}

// plural says "1 step", "2 steps".
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(int64(n)) + " " + many
}

// shortFile is a file's name as it stands in a narrow column: "Cell [5]" stays,
// "~/project/train.py" becomes "train.py".
func shortFile(file string) string {
	file = clean(file, maxName)
	if strings.HasPrefix(file, "Cell [") || strings.HasPrefix(file, "<") {
		return file
	}
	return path.Base(strings.ReplaceAll(file, `\`, "/"))
}
