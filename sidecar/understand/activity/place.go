package activity

import (
	"cmp"
	"strings"
)

// Place is a line of the program; the zero value is none. File is as in the code
// object.
type Place struct {
	File string
	Line int
}

// Compare orders places by file and line.
func (a Place) Compare(b Place) int {
	return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
}
