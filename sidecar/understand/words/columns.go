package words

import (
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// Columns counts a text's columns in a terminal, by grapheme clusters.
// Characters of ambiguous width are narrow, as terminals show them outside East
// Asian locales.
func Columns(s string) int { return displaywidth.String(s) }

// Cut shortens a text to n columns, an ellipsis in place of the rest.
func Cut(s string, n int) string { return displaywidth.TruncateString(s, n, "…") }

// CutFront shortens a text to n columns, an ellipsis in place of its beginning: of a path the file and the line stay.
func CutFront(s string, n int) string {
	if Columns(s) <= n {
		return s
	}
	for at := range s {
		if tail := "…" + s[at:]; at > 0 && Columns(tail) <= n {
			return tail
		}
	}
	return strings.Repeat("…", max(0, min(n, 1)))
}

// Pad fills a text with spaces on its right to n columns, or cuts it. A space can
// join the character before it, so what is missing is counted again.
func Pad(s string, n int) string {
	s = Cut(s, n)
	for missing := n - Columns(s); missing > 0; missing = n - Columns(s) {
		s += strings.Repeat(" ", missing)
	}
	return s
}

// PadLeft is Pad with the spaces on the left.
func PadLeft(s string, n int) string {
	s = Cut(s, n)
	return strings.Repeat(" ", max(n-Columns(s), 0)) + s
}
