package labels

import "github.com/omni-perf/omni-perf/sidecar/understand/words"

// Code is a source line as it is shown.
func Code(text string) string { return words.Clean(text, words.MaxName) }

// Join puts two remarks side by side.
func Join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + " · " + b
}
