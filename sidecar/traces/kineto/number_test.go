package kineto

import (
	"math/big"
	"strconv"
	"strings"
	"testing"
)

func TestParseNanos(t *testing.T) {
	for _, c := range []struct {
		text string
		want int64
		ok   bool
	}{
		{"0", 0, true},
		{"1669783687464181", 1669783687464181000, true}, // float64 has 0.25 µs steps here
		{"1669783687464181.123", 1669783687464181123, true},
		{"4026150068633.613", 4026150068633613, true},
		{"12.5", 12500, true},
		{"12.", 12000, true},
		{"0.0004", 0, true},
		{"0.0005", 1, true},
		{"-0.0005", -1, true},
		{"-5", -5000, true},
		{"1e3", 1000000, true},
		{"1.5E-3", 2, true},
		{"1e-30", 0, true},
		{"9223372036854775.807", 9223372036854775807, true},
		{"9223372036854776", 0, false},
		{"1e300", 0, false},
		{"", 0, false}, {"-", 0, false}, {".", 0, false}, {"NaN", 0, false},
		{"null", 0, false}, {"1.2.3", 0, false}, {"1e", 0, false}, {"12a", 0, false},
	} {
		got, ok := parseNanos([]byte(c.text))
		if got != c.want || ok != c.ok {
			t.Errorf("parseNanos(%q) = %d, %v; want %d, %v", c.text, got, ok, c.want, c.ok)
		}
	}
}

func TestParseIdentifier(t *testing.T) {
	for _, c := range []struct {
		text string
		want int64
		ok   bool
	}{
		{"7", 7, true}, {"-1", -1, true}, {"0x7", 7, true}, {"0xFFFFFFFF", 4294967295, true},
		{"4294967295", 4294967295, true}, {"7.0", 7, true},
		{"18446744073709551615", -1, true}, // a 64-bit hash keeps its bits
		{"18446744073709551616", 0, false}, {"1" + strings.Repeat("0", 40), 0, false},
		{"0x", 0, false}, {"0xg", 0, false}, {"default", 0, false}, {"", 0, false},
	} {
		got, ok := parseIdentifier([]byte(c.text))
		if got != c.want || ok != c.ok {
			t.Errorf("parseIdentifier(%q) = %d, %v; want %d, %v", c.text, got, ok, c.want, c.ok)
		}
	}
}

// FuzzParseNanos compares with exact rational arithmetic.
func FuzzParseNanos(f *testing.F) {
	for _, seed := range []string{"0", "1.5", "-12.345678", "1669783687464181.123", "1e3", "99999999999999999999e-9",
		"0.00049999999999999999999999", "9223372036854775.8075", "00012", "1E+2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := parseNanos([]byte(text))
		if strings.ContainsAny(text, "/_xXpPiIbBoO") || len(text) > 60 {
			return // forms only Go reads
		}
		if e := strings.IndexAny(text, "eE"); e >= 0 {
			if n, err := strconv.Atoi(text[e+1:]); err != nil || n > 400 || n < -400 {
				return
			}
		}
		exact, isNumber := new(big.Rat).SetString(text)
		if !ok {
			if isNumber && exact.Cmp(big.NewRat(1e15, 1)) < 0 && exact.Cmp(big.NewRat(-1e15, 1)) > 0 && significant(text) <= 19 {
				t.Fatalf("parseNanos(%q) refused", text)
			}
			return
		}
		if !isNumber {
			t.Fatalf("parseNanos(%q) = %d, but that is no number", text, got)
		}
		exact.Mul(exact, big.NewRat(1000, 1))
		diff := exact.Sub(exact, new(big.Rat).SetInt64(got))
		if diff.Abs(diff).Cmp(big.NewRat(1, 2)) > 0 && significant(text) <= 19 {
			t.Fatalf("parseNanos(%q) = %d, off by %s ns", text, got, diff.FloatString(3))
		}
	})
}

// significant counts the digits of a number's mantissa.
func significant(text string) (n int) {
	for _, c := range text {
		if c == 'e' || c == 'E' {
			break
		}
		if '0' <= c && c <= '9' {
			n++
		}
	}
	return n
}

// FuzzParseIdentifier compares with arbitrary precision.
func FuzzParseIdentifier(f *testing.F) {
	for _, seed := range []string{"0", "-1", "18446744073709551615", "0x7", "0xFFFFFFFFFFFFFFFF", "1e3", "7.0", "2.5", "99999999999999999999"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := parseIdentifier([]byte(text))
		plain := strings.Trim(text, "0123456789") == "" && text != ""
		if !plain || len(text) > 100 {
			return
		}
		want, _ := new(big.Int).SetString(text, 10)
		if ok != want.IsUint64() || ok && uint64(got) != want.Uint64() {
			t.Fatalf("parseIdentifier(%q) = %d, %v", text, got, ok)
		}
	})
}
