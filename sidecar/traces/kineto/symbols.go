package kineto

import (
	"bytes"
	"hash/maphash"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Symbols interns the strings of one trace. Names repeat thousands of times,
// so a lookup compares raw JSON bytes and only a string seen for the first
// time is decoded, checked and copied. Not safe for concurrent writers.
type Symbols struct {
	texts []string // decoded; texts[0] is ""
	raw   []string // as in the file, between the quotes
	slots []slot   // open addressing, len a power of two
	seed  maphash.Seed
}

type slot struct {
	hash uint32
	sym  Sym // 0: free
}

// newSymbols makes an empty table.
func newSymbols() *Symbols {
	return &Symbols{
		texts: []string{""}, raw: []string{""},
		slots: make([]slot, 1<<10), seed: maphash.MakeSeed(),
	}
}

// Text returns a symbol's string, "" if there is no such symbol.
func (s *Symbols) Text(sym Sym) string {
	if int(sym) >= len(s.texts) {
		return ""
	}
	return s.texts[sym]
}

// Len is the number of symbols, "" included.
func (s *Symbols) Len() int { return len(s.texts) }

// Find returns the symbol of a text without JSON escapes, 0 if unknown.
func (s *Symbols) Find(text string) Sym {
	for i, t := range s.texts {
		if t == text {
			return Sym(i)
		}
	}
	return 0
}

// intern returns the symbol of a raw JSON string. damage is non-empty when it
// is new and had to be repaired.
func (s *Symbols) intern(raw []byte) (sym Sym, damage string) {
	if len(raw) == 0 {
		return 0, ""
	}
	h := uint32(maphash.Bytes(s.seed, raw))
	mask := uint32(len(s.slots) - 1)
	i := h & mask
	for ; s.slots[i].sym != 0; i = (i + 1) & mask {
		if s.slots[i].hash == h && s.raw[s.slots[i].sym] == string(raw) {
			return s.slots[i].sym, ""
		}
	}
	kept := string(raw)
	text := kept
	// Control characters stay: whoever shows the text escapes them.
	for _, c := range raw {
		if c < ' ' {
			damage = damageControl
			break
		}
	}
	if bytes.IndexByte(raw, '\\') >= 0 {
		var bad string
		if text, bad = unescape(kept); bad != "" {
			damage = bad
		}
	}
	if clean, bad := repairText(text); bad != "" {
		text, damage = clean, bad
	}
	sym = Sym(len(s.texts))
	s.texts = append(s.texts, text)
	s.raw = append(s.raw, kept)
	s.slots[i] = slot{h, sym}
	if len(s.texts)*2 > len(s.slots) {
		s.rehash()
	}
	return sym, damage
}

// add gives a text that no file has between quotes a symbol of its own. The caller remembers it: intern does not find it.
func (s *Symbols) add(text string) Sym {
	sym := Sym(len(s.texts))
	s.texts, s.raw = append(s.texts, text), append(s.raw, "")
	return sym
}

func (s *Symbols) rehash() {
	old := s.slots
	s.slots = make([]slot, 2*len(old))
	mask := uint32(len(s.slots) - 1)
	for _, e := range old {
		if e.sym == 0 {
			continue
		}
		i := e.hash & mask
		for s.slots[i].sym != 0 {
			i = (i + 1) & mask
		}
		s.slots[i] = e
	}
}

// What intern had to repair.
const (
	damageUTF8    = "UTF-8"
	damageControl = "control"
	damageEscape  = "escape"
)

// repairText makes a string valid UTF-8.
func repairText(text string) (clean, damage string) {
	if !utf8.ValidString(text) {
		return strings.ToValidUTF8(text, "\uFFFD"), damageUTF8
	}
	return text, ""
}

// unescape decodes JSON escapes. A backslash that starts no escape is kept as
// it is (Windows paths written raw), a lone surrogate becomes U+FFFD.
func unescape(raw string) (text, damage string) {
	var out strings.Builder
	out.Grow(len(raw))
	for i := 0; i < len(raw); {
		c := raw[i]
		if c != '\\' || i+1 == len(raw) {
			out.WriteByte(c)
			i++
			continue
		}
		if at := strings.IndexByte(`"\/bfnrt`, raw[i+1]); at >= 0 {
			out.WriteByte("\"\\/\b\f\n\r\t"[at])
			i += 2
			continue
		}
		r, ok := hex4(raw[i:])
		if !ok {
			out.WriteByte('\\')
			damage = damageEscape
			i++
			continue
		}
		i += 6
		if utf16.IsSurrogate(r) {
			low, ok := hex4(raw[i:])
			if pair := utf16.DecodeRune(r, low); ok && pair != utf8.RuneError {
				r = pair
				i += 6
			} else {
				r, damage = utf8.RuneError, damageEscape
			}
		}
		out.WriteRune(r)
	}
	return out.String(), damage
}

// hex4 reads \uXXXX at the start of s.
func hex4(s string) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range []byte(s[2:6]) {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
