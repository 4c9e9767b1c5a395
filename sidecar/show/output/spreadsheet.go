package output

import "strings"

// SpreadsheetText is a text for a cell of a CSV file. One that a spreadsheet would
// compute, for it begins as a formula does, gets an apostrophe: names of functions,
// kernels and files are foreign.
func SpreadsheetText(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r\n", rune(text[0])) {
		return "'" + text
	}
	return text
}
