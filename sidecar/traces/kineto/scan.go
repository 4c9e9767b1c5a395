package kineto

import (
	"bytes"

	"github.com/omni-perf/omni-perf/sidecar/understand/jsonstream"
)

// The scanner works on a window of the file: it takes the bytes, a position,
// and returns the next position, or one of these.
const (
	short = jsonstream.Short // the window ends before the value does
	bad   = -2               // not JSON, not even the near-JSON that is tolerated
)

// fault is a deviation from JSON that the scanner read over.
type fault uint8

const (
	faultTrailingComma fault = iota
	faultMissingComma
	faultQuotes
	faultControl
	faultUTF8
	faultEscape
	faultBigInteger
	faultTime
	faultNoTime
	faultNegative
	faultPhase
	faultPair
	faultForeign
	faultDuplicate
	faults
)

// skipSpace returns the position of the next byte that is no white space; it
// may be len(b).
func skipSpace(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' {
		i++
	}
	return i
}

// skipString returns the position behind the closing quote of the string that
// starts at b[i] == '"'. The text lies in b[i+1 : next-1].
func skipString(b []byte, i int) (next int) {
	i++
	for {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return short
		}
		i += n + 1
		if b[i-2] != '\\' {
			return i
		}
		// The quote is part of the text if an odd number of backslashes
		// precede it.
		slashes := 1
		for b[i-2-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i
		}
	}
}

// skipQuoted is skipString for a value inside an object, tolerating quotes
// that were not escaped: the string ends at a quote behind which the object
// goes on. repaired: there were such quotes.
func skipQuoted(b []byte, i int) (next int, repaired bool) {
	next = skipString(b, i)
	if next < 0 {
		return next, false
	}
	j := skipSpace(b, next)
	if j == len(b) {
		return short, false
	}
	if c := b[j]; c == ',' || c == '}' || c == ']' {
		return next, false
	}
	const longest = 1 << 16 // a repair never swallows more than this
	for {
		line := b[next:min(len(b), next+longest)]
		n := bytes.IndexAny(line, "\"\n")
		switch {
		case n < 0 && len(line) < longest:
			return short, false
		case n < 0 || line[n] == '\n':
			return bad, false
		}
		next += n + 1
		if ends, known := objectGoesOn(b, next); !known {
			return short, false
		} else if ends {
			return next, true
		}
	}
}

// objectGoesOn reports whether what is behind a quote is what follows a value: a comma and a key, or the end of the
// object or list. known is false where b ends before that shows.
func objectGoesOn(b []byte, behind int) (goesOn, known bool) {
	j := skipSpace(b, behind)
	isNext := false
	if j < len(b) && b[j] == ',' {
		j = skipSpace(b, j+1)
		isNext = j < len(b) && b[j] == '"'
	} else {
		isNext = j < len(b) && (b[j] == '}' || b[j] == ']')
	}
	return isNext, j < len(b)
}

// structural marks the bytes at which skipValue must look.
var structural = [256]bool{'"': true, '{': true, '}': true, '[': true, ']': true, ',': true}

// skipValue returns the position behind the value at b[i]: for a number or a
// word, the position of the byte that ends it.
func skipValue(b []byte, i int) int {
	if i >= len(b) {
		return short
	}
	switch b[i] {
	case '"':
		next, _ := skipQuoted(b, i)
		return next
	case '{', '[':
		return skipNested(b, i)
	}
	return skipScalar(b, i)
}

// skipScalar returns the position behind a number or a word.
func skipScalar(b []byte, i int) int {
	for j := i; j < len(b); j++ {
		if c := b[j]; c == ',' || c == '}' || c == ']' || c <= ' ' {
			if j == i {
				return bad
			}
			return j
		} else if c == '"' || c == '{' || c == '[' || c == ':' {
			return bad
		}
	}
	return short
}

// skipNested returns the position behind the object or list at b[i].
func skipNested(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		c := b[i]
		if !structural[c] {
			i++
			continue
		}
		switch c {
		case '"':
			if i = skipString(b, i); i < 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return short
}

// walkObject calls visit for each member of the object at the start of b; it
// stops silently at the first fault. For the small objects beside traceEvents.
func walkObject(b []byte, visit func(key, value []byte)) {
	i := skipSpace(b, 0)
	if i == len(b) || b[i] != '{' {
		return
	}
	i++
	for {
		for i < len(b) && (b[i] <= ' ' || b[i] == ',') {
			i++
		}
		if i == len(b) || b[i] != '"' {
			return
		}
		end := skipString(b, i)
		if end < 0 {
			return
		}
		key := b[i+1 : end-1]
		if i = skipSpace(b, end); i == len(b) || b[i] != ':' {
			return
		}
		i = skipSpace(b, i+1)
		next := skipValue(b, i)
		if next < 0 {
			return
		}
		visit(key, b[i:next])
		i = next
	}
}

// unquote strips the quotes of a JSON string; other values stay as they are.
func unquote(value []byte) []byte {
	if len(value) >= 2 && value[0] == '"' {
		return value[1 : len(value)-1]
	}
	return value
}
