package words

import (
	"math"
	"strconv"
	"strings"
)

// The one rule of figures: a number is taken as the decimal fraction of at most 15 digits that it is
// nearest to (the noise of binary fractions is beyond those), a change of unit moves its point, and it is
// rounded once, half away from zero. So 2.35 ms is 2.4 ms, 12.5 % are 13 %, in every language: the
// viewer's words.ts has the same functions, and testdata/figures.json holds both to them.

// scaled10 is v × 10^power, by its decimal digits.
func scaled10(v float64, power int) float64 {
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'e', 14, 64), "e")
	e, err := strconv.Atoi(exponent)
	if err != nil {
		return v // not a number, infinite
	}
	moved, _ := strconv.ParseFloat(mantissa+"e"+strconv.Itoa(e+power), 64)
	return moved
}

// Fixed writes v with so many decimals: "1.0"; zero has no sign. It is for figures whose unit follows in
// another place; Seconds, Percent, Quantity and the others bring theirs.
func Fixed(v float64, decimals int) string {
	n := math.Round(scaled10(v, decimals)) + 0 // −0 + 0 is 0
	return strconv.FormatFloat(scaled10(n, -decimals), 'f', decimals, 64)
}

// Short is Fixed without the zeros at its end.
func Short(v float64, decimals int) string { return trimZero(Fixed(v, decimals)) }

// Significant writes v with at most so many significant digits, but all of its whole part: 2.35, 12,346.
func Significant(v float64, digits int) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "?"
	case a >= 1e5:
		return large(v)
	case a >= 999.5:
		return Count(int64(math.Round(scaled10(v, 0))))
	case a == 0:
		return "0"
	}
	whole := int(math.Floor(math.Log10(math.Abs(v)))) + 1
	return Short(v, max(digits-whole, 0))
}

// large writes a number too large for its unit: 1.16e10.
func large(v float64) string {
	_, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'e', 14, 64), "e")
	e, _ := strconv.Atoi(exponent)
	mantissa := math.Round(scaled10(v, 2-e))
	if math.Abs(mantissa) >= 1000 {
		mantissa, e = mantissa/10, e+1
	}
	return Short(mantissa/100, 2) + "e" + strconv.Itoa(e)
}

func trimZero(s string) string {
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}
