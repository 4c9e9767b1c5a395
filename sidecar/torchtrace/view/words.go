package view

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/omni-perf/omni-perf/sidecar/torchtrace/table"
)

// plain makes foreign text safe to show on one line: control, format and
// direction characters become visible blanks.
func plain(text string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r == '\uFFFD' || unicode.IsGraphic(r) && !unicode.Is(unicode.Zl, r) && !unicode.Is(unicode.Zp, r):
			return r
		}
		return '␣'
	}, strings.ToValidUTF8(text, "\uFFFD"))
	return clean
}

// short cuts text to a number of columns, the rest told by an ellipsis.
func short(text string, columns int) string {
	text = plain(text)
	if columnsIn(text) <= columns {
		return text
	}
	used := 0
	for i, r := range text {
		if used += runeWidth(r); used > columns-1 {
			return text[:i] + "…"
		}
	}
	return text
}

// columnsIn counts terminal columns.
func columnsIn(text string) int {
	n := 0
	for _, r := range text {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	switch {
	case unicode.Is(unicode.Mn, r):
		return 0
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3,
		r >= 0xf900 && r <= 0xfaff, r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60,
		r >= 0x1f300 && r <= 0x1faff:
		return 2
	}
	return 1
}

// duration writes microseconds with three significant digits.
func duration(us float64) string {
	switch a := math.Abs(us); {
	case math.IsNaN(us):
		return "–"
	case a >= 1e6:
		return digits(us/1e6) + " s"
	case a >= 1e3:
		return digits(us/1e3) + " ms"
	}
	return digits(us) + " µs"
}

func digits(v float64) string {
	switch a := math.Abs(v); {
	case v == math.Trunc(v) && a < 1e6:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

func bytesText(n float64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for ; math.Abs(n) >= 1024 && i < len(units)-1; i++ {
		n /= 1024
	}
	return digits(n) + " " + units[i]
}

// flopText writes floating-point operations, or with a unit of time those in it.
func flopText(n float64, per string) string {
	prefixes := []string{"", "k", "M", "G", "T", "P"}
	i := 0
	for ; n >= 1000 && i < len(prefixes)-1; i++ {
		n /= 1000
	}
	return digits(n) + " " + prefixes[i] + "FLOP" + per
}

func percentText(p float64) string {
	if math.IsNaN(p) {
		return "–"
	}
	return strconv.FormatFloat(p, 'f', 1, 64) + " %"
}

// counted groups thousands.
func counted(n int64) string {
	text := strconv.FormatInt(n, 10)
	start := 0
	if n < 0 {
		start = 1
	}
	for i := len(text) - 3; i > start; i -= 3 {
		text = text[:i] + " " + text[i:]
	}
	return text
}

// identifiers are columns whose numbers name something.
var identifiers = []string{"rank", "device", "stream", "step", "first_step", "last_step", "cycle", "process", "line",
	"correlation", "straggler", "slowest_rank", "min_rank", "max_rank"}

// cellText is a table's value for people.
func cellText(c *table.Column, row int) string {
	switch v := c.Value(row).(type) {
	case string:
		return plain(v)
	case int64:
		switch {
		case c.Kind == table.Bytes:
			return bytesText(float64(v))
		case slices.Contains(identifiers, c.Name):
			return strconv.FormatInt(v, 10)
		}
		return counted(v)
	case float64:
		switch c.Kind {
		case table.Micros:
			return duration(v)
		case table.Percent:
			return percentText(v)
		case table.Ratio:
			return shareText(v)
		case table.Flop:
			return flopText(v, "")
		case table.FlopPerS:
			return flopText(v, "/s")
		case table.GBps:
			return digits(v) + " GB/s"
		}
		return digits(v)
	}
	return "–"
}

// heading is a column's name for people: units are with the values.
func heading(c *table.Column) string {
	name := c.Name
	for _, suffix := range []string{"_us", "_bytes", "_gbps", "_pctg"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return strings.ReplaceAll(name, "_", " ")
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
