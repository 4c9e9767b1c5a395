package program

import "testing"

// The values are ipykernel's own: ipykernel.compiler.murmur2_x86(text, 0xC70F6907).
func TestCellsAreNamedAsIpykernelNamesThem(t *testing.T) {
	for text, want := range map[string]uint32{
		"":                3990065800,
		"a":               2167009006,
		"ab":              2805137849,
		"abc":             3350977461,
		"abcd":            804720481,
		"x = 1\nprint(x)": 4252719672,
		"für x in y: näh": 493149360,
	} {
		if got := murmur2(text, 0xC70F6907); got != want {
			t.Errorf("hash of %q is %d, want %d", text, got, want)
		}
	}
}
