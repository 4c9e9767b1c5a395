package labels

import (
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Code is a source line as it is shown: with single spaces, as a picture shows them, so that the blanks before a comment
// that is aligned with others take no room.
func Code(text string) string {
	return words.Clean(strings.Join(strings.Fields(text), " "), words.MaxName)
}

// Join puts two remarks side by side.
func Join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + " · " + b
}
