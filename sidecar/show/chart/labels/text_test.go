package labels

import "testing"

// Blanks before a comment that is aligned with others take no room.
func TestCodeHasSingleSpaces(t *testing.T) {
	if got, want := Code("big = concatenate(parts)        # 200 MB"), "big = concatenate(parts) # 200 MB"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
