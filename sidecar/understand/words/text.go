package words

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxName bounds a name taken from the user's program, in characters: longer
// than any line of a chart, short enough for a tooltip.
const MaxName = 240

// Clean makes text from the user's program fit to be shown: one line of valid
// UTF-8 without control characters, directional overrides or towers of
// combining marks, at most limit characters.
func Clean(s string, limit int) string {
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

// isUnshowable recognises characters that change the text around them or are not
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

// Sentence makes a sentence of a fragment: a capital first, a stop at the end. What begins with the name of a file keeps it.
func Sentence(s string) string {
	if s = strings.TrimSpace(s); s == "" {
		return ""
	}
	if word, _, _ := strings.Cut(s, " "); !strings.ContainsAny(strings.TrimRight(word, ".,"), "./_*~:") {
		first, size := utf8.DecodeRuneInString(s)
		s = string(unicode.ToUpper(first)) + s[size:]
	}
	if !strings.HasSuffix(s, ".") && !strings.HasSuffix(s, "!") && !strings.HasSuffix(s, "?") {
		s += "."
	}
	return s
}

// LastLine is the last line of a text, as of what a program said before it failed.
func LastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// ShortFile is a file's name in a narrow column: "Cell [5]" stays,
// "~/project/train.py" becomes "train.py".
func ShortFile(file string) string {
	file = Clean(file, MaxName)
	if file == "" || strings.HasPrefix(file, "Cell [") || strings.HasPrefix(file, "<") {
		return file
	}
	return path.Base(strings.ReplaceAll(file, `\`, "/"))
}
