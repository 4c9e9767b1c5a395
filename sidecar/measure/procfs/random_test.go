package procfs

import "testing"

func FuzzRandomAddress(f *testing.F) {
	f.Add([]byte("\x19\x00\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, vector []byte) { randomAddress(vector) })
}
