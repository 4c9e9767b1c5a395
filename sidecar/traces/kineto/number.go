package kineto

import "math"

// Timestamps are decimal microseconds with up to three decimals. Read as
// float64 they lose their nanoseconds (0.25 µs steps at today's epoch), so the
// text is read as an integer number of nanoseconds.

// parseNanos reads the decimal text of microseconds as nanoseconds, rounding
// half away from zero beyond the third decimal. It reports false for a text
// that is no JSON number or outside ±292 years.
func parseNanos(text []byte) (ns int64, ok bool) {
	// The usual case: digits, at most one point, one to three decimals.
	var n uint64
	i := 0
	for ; i < len(text) && i < 18 && text[i]-'0' <= 9; i++ {
		n = n*10 + uint64(text[i]-'0')
	}
	switch {
	case i == 0 || i == 18:
	case i == len(text):
		if n > math.MaxInt64/1000 {
			return 0, false
		}
		return int64(n) * 1000, true
	case text[i] == '.' && len(text)-i-1 <= 3 && i+1 < len(text) && n < math.MaxInt64/1000-1:
		scale := uint64(1000)
		for _, c := range text[i+1:] {
			if c-'0' > 9 {
				return parseScaled(text, 3)
			}
			scale /= 10
			n = n*10 + uint64(c-'0')
		}
		return int64(n * scale), true
	}
	return parseScaled(text, 3)
}

// parseInteger reads a JSON number that should be an integer. Values from 2^63
// to 2^64-1 (hashes) keep their bits; a fraction is rounded.
func parseInteger(text []byte) (n int64, ok bool) {
	var u uint64
	i := 0
	for ; i < len(text) && i < 18 && text[i]-'0' <= 9; i++ {
		u = u*10 + uint64(text[i]-'0')
	}
	if i == len(text) && i > 0 {
		return int64(u), true
	}
	return parseScaled(text, 0)
}

// parseScaled reads any JSON number as integer text × 10^shift, rounding half
// away from zero.
func parseScaled(text []byte, shift int) (n int64, ok bool) {
	negative := false
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		negative = text[0] == '-'
		text = text[1:]
	}
	u, exp, dropped, i := mantissa(text)
	if i == 0 {
		return 0, false
	}
	if i < len(text) {
		e, good := parseExponent(text[i:])
		if !good {
			return 0, false
		}
		exp += e
	}
	u, ok = scaleDecimal(u, exp+shift, dropped)
	if !ok {
		return 0, false
	}
	if negative {
		if u > math.MaxInt64 {
			return 0, false
		}
		return -int64(u), true
	}
	if u > math.MaxInt64 && shift != 0 {
		return 0, false
	}
	return int64(u), true
}

// mantissa reads the digits at the beginning of text, of which there may be a fraction, as u × 10^exp. dropped is the
// first digit that did not fit into u, -1 if all did; length is 0 where there are no digits.
func mantissa(text []byte) (u uint64, exp, dropped, length int) {
	dropped = -1
	digits, point := 0, false
	for ; length < len(text); length++ {
		c := text[length]
		if c == '.' && !point {
			point = true
			continue
		}
		if c-'0' > 9 {
			break
		}
		digits++
		d := uint64(c - '0')
		if dropped < 0 && (u < math.MaxUint64/10 || u == math.MaxUint64/10 && d <= math.MaxUint64%10) {
			u = u*10 + d
			if point {
				exp--
			}
			continue
		}
		if dropped < 0 {
			dropped = int(d)
		}
		if !point {
			exp++
		}
	}
	if digits == 0 {
		length = 0
	}
	return u, exp, dropped, length
}

// parseExponent reads "e-3"; huge exponents are clamped, which is enough to
// overflow or vanish.
func parseExponent(text []byte) (exp int, ok bool) {
	if text[0] != 'e' && text[0] != 'E' {
		return 0, false
	}
	text = text[1:]
	sign := 1
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		if text[0] == '-' {
			sign = -1
		}
		text = text[1:]
	}
	if len(text) == 0 {
		return 0, false
	}
	for _, c := range text {
		if c-'0' > 9 {
			return 0, false
		}
		exp = min(exp*10+int(c-'0'), 1<<20)
	}
	return sign * exp, true
}

// scaleDecimal returns u × 10^exp, where dropped is the digit that would have
// followed u (-1: none).
func scaleDecimal(u uint64, exp, dropped int) (uint64, bool) {
	if exp < 0 {
		var last uint64
		for ; exp < 0 && (u > 0 || last > 0); exp++ {
			last = u % 10
			u /= 10
		}
		if exp == 0 && last >= 5 {
			u++
		}
		return u, true
	}
	if dropped >= 0 && exp > 0 {
		return 0, false // more digits than 64 bits hold
	}
	for ; exp > 0 && u > 0; exp-- {
		if u > math.MaxUint64/10 {
			return 0, false
		}
		u *= 10
	}
	if dropped >= 5 && u < math.MaxUint64 {
		u++
	}
	return u, true
}

// parseIdentifier reads a stream, correlation or thread written as number or
// as text, decimal or 0x hexadecimal.
func parseIdentifier(text []byte) (n int64, ok bool) {
	if len(text) > 2 && text[0] == '0' && text[1]|0x20 == 'x' {
		var u uint64
		if len(text) > 18 {
			return 0, false
		}
		for _, c := range text[2:] {
			switch {
			case c-'0' <= 9:
				c -= '0'
			case c|0x20 >= 'a' && c|0x20 <= 'f':
				c = c | 0x20 - 'a' + 10
			default:
				return 0, false
			}
			u = u<<4 | uint64(c)
		}
		return int64(u), true
	}
	return parseInteger(text)
}
