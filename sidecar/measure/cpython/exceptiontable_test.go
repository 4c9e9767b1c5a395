package cpython

import (
	"slices"
	"testing"
)

// The table is of 3.12's
//
//	with a:
//	    for x in xs:
//	        with b:
//	            f()
func TestHandlers(t *testing.T) {
	table := DecodeHandlers([]byte{
		0x84, 0x03, 0x1e, 0x03, // 4–7, one value and the instruction
		0x87, 0x05, 0x10, 0x07, // 7–12, three
		0x8c, 0x02, 0x1e, 0x03, // 12–14, one
		0x90, 0x02, 0x41, 0x00, 0x00, // 16–18, none: a try statement of the function's own
		0x80 | 0x41, 0x00, 0x02, 0x1e, 0x05, // 64–66, two
	})
	var got []int
	for _, i := range []int32{0, 3, 4, 6, 7, 11, 12, 14, 17, 63, 64, 65, 66, 1 << 20} {
		got = append(got, table.Kept(i))
	}
	if want := []int{0, 0, 1, 1, 3, 3, 1, 0, 0, 0, 2, 2, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func FuzzHandlers(f *testing.F) {
	f.Add([]byte{0x84, 0x03, 0x1e, 0x03, 0x87, 0x05, 0x10, 0x07})
	f.Add([]byte{0xc4, 0x43, 0x03, 0x1e, 0x47, 0x03, 0x84})
	f.Fuzz(func(t *testing.T, b []byte) {
		end := int32(0)
		for _, h := range DecodeHandlers(b) {
			if h.start < end || h.end <= h.start || h.kept <= 0 || h.kept > maxKept {
				t.Fatalf("%+v behind %d", h, end)
			}
			end = h.end
		}
		if got := DecodeHandlers(b).Kept(end); got != 0 {
			t.Fatalf("behind the end: %d values", got)
		}
	})
}
