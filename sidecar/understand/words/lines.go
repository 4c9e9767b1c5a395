package words

import (
	"regexp"
	"strings"
	"unicode"
)

// Sparks are the heights of a curve that is drawn in characters, the lowest first.
var Sparks = []rune("▁▂▃▄▅▆▇█")

// Spark is the character for a share of a curve's height.
func Spark(share float64) rune {
	return Sparks[min(max(int(share*float64(len(Sparks))), 0), len(Sparks)-1)]
}

// Writer writes lines of at most Width columns.
type Writer struct {
	strings.Builder
	Width int
}

// The columns that a text may have.
const (
	MinWidth = 60
	MaxWidth = 200
)

// NewWriter writes lines of so many columns, within MinWidth and MaxWidth.
func NewWriter(width int) Writer { return Writer{Width: min(max(width, MinWidth), MaxWidth)} }

// Line writes one line; what does not fit is cut.
func (w *Writer) Line(s string) {
	w.WriteString(strings.TrimRight(Cut(s, w.Width), " "))
	w.WriteByte('\n')
}

// Paragraph writes text on as many lines as it needs.
func (w *Writer) Paragraph(indent, s string) {
	for _, line := range Wrap(s, w.Width-Columns(indent)) {
		w.Line(indent + line)
	}
}

// Wrap breaks a text between its words into lines of at most so many columns; a word that is
// longer is a line of its own.
func Wrap(s string, columns int) (lines []string) {
	for _, word := range Unbroken(s) {
		if n := len(lines) - 1; n >= 0 && Columns(lines[n])+1+Columns(word) <= columns {
			lines[n] += " " + word
			continue
		}
		lines = append(lines, word)
	}
	return lines
}

// withUnit is the end of a number with its unit: "1.8 s", "93 %", "(2.0 MB/s)".
var withUnit = regexp.MustCompile(`(\d) ((?:%|[nµm]?s|min|h|d|[kMGT]?i?B(?:/s)?)(?:\W|$))`)

// Unbroken are the words of a sentence, numbers with their units.
func Unbroken(s string) []string {
	const noBreak = "\u00a0"
	words := strings.FieldsFunc(withUnit.ReplaceAllString(s, "${1}"+noBreak+"${2}"), func(r rune) bool { return r != 0xa0 && unicode.IsSpace(r) })
	for i := range words {
		words[i] = strings.ReplaceAll(words[i], noBreak, " ")
	}
	return words
}
