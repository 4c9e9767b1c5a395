package words

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// units of lengths of time below 119.5 s: each up to where, rounded, the next one begins.
var units = []struct {
	below    float64
	name     string
	power    int // of ten, from seconds
	decimals int
	trimmed  bool
}{
	{0.0995e-6, " ns", 9, 0, false},
	{9.95e-6, " µs", 6, 1, true},
	{0.9995e-3, " µs", 6, 0, false},
	{0.00995, " ms", 3, 1, false},
	{0.0995, " ms", 3, 0, false},
	{0.995, " s", 0, 2, false},
	{99.95, " s", 0, 1, false},
	{119.5, " s", 0, 0, false},
}

// Seconds says a length of time in few characters: 0.5 µs, 412 µs, 47 ms, 0.47 s, 6.6 s,
// 13.4 s, 2 min 5 s, 3 h 12 min, 6 d 4 h.
func Seconds(s float64) string {
	s = scaled10(s, 0)
	switch {
	case math.IsNaN(s) || math.IsInf(s, 0):
		return "?"
	case s == 0:
		return "0 s"
	case s < 0:
		return "-" + Seconds(-s)
	}
	for _, u := range units {
		if s < u.below {
			text := Fixed(scaled10(s, u.power), u.decimals)
			if u.trimmed {
				text = trimZero(text)
			}
			return text + u.name
		}
	}
	switch {
	case s < 3599.5:
		return twoUnits(s, 60, "min", 1, "s")
	case s < 2*86400-30:
		return twoUnits(s, 3600, "h", 60, "min")
	case s < 1e7:
		return twoUnits(s, 86400, "d", 3600, "h")
	case s < 1e12:
		return Count(int64(math.Round(s/86400))) + " d"
	}
	return large(s/86400) + " d"
}

// Signed says a change of a length of time: +1.2 s, −47 ms.
func Signed(s float64) string { return sign(s) + Seconds(math.Abs(s)) }

// SignedPercent says a change by a share of 1: +18 %, −0.4 %.
func SignedPercent(share float64) string { return sign(share) + Percent(math.Abs(share)) }

func sign(v float64) string {
	switch {
	case v < 0:
		return "−"
	case v > 0:
		return "+"
	}
	return ""
}

// Duration is Seconds of a time.Duration.
func Duration(d time.Duration) string { return Seconds(d.Seconds()) }

// Decimal writes a number as it is typed for an option, without an exponent: "0.00005".
func Decimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// PartOf says a part of a length of time and the whole in the same unit where
// they have one: "1.9 of 2.1 s", "47 ms of 2.1 s".
func PartOf(part, whole float64) string {
	a, b := Seconds(part), Seconds(whole)
	if a == b {
		return "all of " + b
	}
	return shareUnit(a, b, " of ")
}

// Between says two lengths of time as a range: "0.1–2.0 s", "0–47 ms". The lower
// one has as many digits as the upper one deserves.
func Between(low, high float64) string {
	a, b := Seconds(low), Seconds(high)
	switch {
	case a == b:
		return a
	case strings.HasSuffix(b, " ms") && high >= low:
		a = Fixed(scaled10(low, 3), 0) + " ms"
	case strings.HasSuffix(b, " s") && high >= 0.995 && low < 0.995:
		a = Fixed(low, 1) + " s"
	}
	return shareUnit(a, b, "–")
}

// shareUnit leaves out the first unit where both figures have the same one.
func shareUnit(a, b, between string) string {
	number, unit, one := strings.Cut(a, " ")
	if _, other, _ := strings.Cut(b, " "); one && unit == other {
		return number + between + b
	}
	return a + between + b
}

func twoUnits(s, big float64, bigName string, small float64, smallName string) string {
	n := math.Round(s / small)
	per := big / small
	whole, rest := math.Floor(n/per), math.Mod(n, per)
	if rest == 0 {
		return Fixed(whole, 0) + " " + bigName
	}
	return Fixed(whole, 0) + " " + bigName + " " + Fixed(rest, 0) + " " + smallName
}

// Resolution says the distance of two readings: 1 ms, 100 ms, 1 s.
func Resolution(s float64) string {
	switch {
	case s > 0 && s < 0.9995e-3:
		return Short(scaled10(s, 6), 1) + " µs"
	case s > 0 && s <= 0.01:
		return Short(scaled10(s, 3), 1) + " ms"
	case s > 0 && s < 0.9995:
		return Fixed(scaled10(s, 3), 0) + " ms"
	case s < 60:
		return Short(s, 1) + " s"
	}
	return Seconds(s)
}

// Percent says a share of 1. What is not quite all of it is 99 %.
func Percent(share float64) string { return percent(scaled10(share, 2)) }

// percent says hundredths.
func percent(p float64) string {
	switch a := math.Abs(p); {
	case math.IsNaN(p) || math.IsInf(p, 0):
		return "? %"
	case p == 0:
		return "0 %"
	case a < 0.1:
		return "<0.1 %"
	case a < 0.95:
		return Fixed(p, 1) + " %"
	case a >= 1e5:
		return large(p) + " %"
	case p >= 99.5 && p < 100:
		return "99 %"
	}
	return Fixed(p, 0) + " %"
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
	v = scaled10(v, 0)
	a, digits := math.Abs(v), 0
	if a >= 1e5 {
		return large(v) + " " + prefixes[i] + unit
	}
	if a != math.Trunc(a) && (a < 9.95 || i > 0 && a < 99.95) {
		digits = 1
	}
	return strings.TrimSpace(Fixed(v, digits) + " " + prefixes[i] + unit)
}

var (
	binaryPrefixes  = []string{"", "Ki", "Mi", "Gi", "Ti", "Pi"}
	decimalPrefixes = []string{"", "k", "M", "G", "T", "P"}
)

// Quantity says a figure with its unit: memory in binary units as torch and free
// do, rates in decimal ones.
func Quantity(v float64, unit string) string {
	switch unit {
	case "B":
		return scaled(v, 1024, binaryPrefixes, "B")
	case "B/s":
		return scaled(v, 1000, decimalPrefixes, "B/s")
	case "%":
		return percent(scaled10(v, 0))
	case "cores":
		return Cores(v)
	}
	return scaled(v, 1000, decimalPrefixes, Clean(unit, 12))
}

// QuantityRange writes two figures of one unit with it once, where they share it: 14.2 – 14.6 MiB.
func QuantityRange(from, to float64, unit string) string {
	low, high := Quantity(from, unit), Quantity(to, unit)
	if number, prefix, ok := strings.Cut(low, " "); ok && strings.HasSuffix(high, " "+prefix) {
		low = number
	}
	return low + " – " + high
}

// Cores says how many CPUs' worth of time: 1 core, 1.9 cores, 30.4 cores.
func Cores(v float64) string {
	v = scaled10(v, 0)
	switch a := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "?"
	case v == 1:
		return "1 core"
	case a < 99.995:
		return Short(v, 2) + " cores"
	case a < 1e5:
		return Short(v, 1) + " cores"
	}
	return large(v) + " cores"
}

// CoresUsed says how many CPUs were in use, of how many where that is known: "1.9 of 2 cores", "1 core".
func CoresUsed(used, limit float64) string {
	if limit > 0 {
		return Fixed(used, 1) + " of " + Cores(limit)
	}
	if n := Short(used, 1); n != "1" {
		return n + " cores"
	}
	return "1 core"
}

// Count says a number with its thousands apart.
func Count(n int64) string {
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

// Plural says "1 step", "2 steps".
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(int64(n)) + " " + many
}

// List says "a", "a and b", "a, b and c".
func List(items []string) string { return listed(items, "and") }

// Alternatives says "a", "a or b", "a, b or c".
func Alternatives(items []string) string { return listed(items, "or") }

func listed(items []string, last string) string {
	if len(items) < 2 {
		return strings.Join(items, "")
	}
	return strings.Join(items[:len(items)-1], ", ") + " " + last + " " + items[len(items)-1]
}

// Numbers says a set of numbers, neighbours joined: "0", "0 and 2", "1–3",
// "0, 2 and 4–7".
func Numbers(set []int) string {
	set = slices.Clone(set)
	slices.Sort(set)
	set = slices.Compact(set)
	var parts []string
	for i := 0; i < len(set); {
		j := i
		for j+1 < len(set) && set[j+1] == set[j]+1 {
			j++
		}
		switch j - i {
		case 0:
			parts = append(parts, strconv.Itoa(set[i]))
		case 1:
			parts = append(parts, strconv.Itoa(set[i]), strconv.Itoa(set[j]))
		default:
			parts = append(parts, fmt.Sprintf("%d–%d", set[i], set[j]))
		}
		i = j + 1
	}
	return List(parts)
}
