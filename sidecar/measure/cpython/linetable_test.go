package cpython

import (
	"slices"
	"testing"
)

func TestLineTable(t *testing.T) {
	table := DecodeLineTable([]byte{
		0x80 | 0<<3 | 1, 0x12, // short form, 2 instructions on the same line
		0x80 | 11<<3, 4, 8, // one line on, 1 instruction
		0x80 | 15<<3 | 3,   // 4 instructions without a line
		0x80 | 13<<3, 0x07, // 3 lines back
		0x80 | 14<<3, 0x54, 0x01, 0x00, 0x01, 0x02, // 42 lines on, with an end
	}, 10)
	var got []int32
	for i := range int32(11) {
		got = append(got, table.Line(i))
	}
	if want := []int32{10, 10, 11, 0, 0, 0, 0, 8, 50, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The table has what that of %%timeit's function has, for a set-up of one statement and a body of two lines.
func TestTheSetupOfTimeitHasNoLineOfTheBody(t *testing.T) {
	table := DecodeLineTable([]byte{
		0x80, 0x00, // RESUME, line 1
		0x80 | 3<<3 | 7, 0x09, // the set-up, line 1
		0x80 | 12<<3 | 7, 9, 17, // the clock, line 3
		0x80 | 11<<3 | 3, 4, 8, // the loop, line 4
		0x80 | 13<<3 | 3, 0x07, // the body, line 1
		0x80 | 11<<3 | 3, 4, 8, // the body, line 2
	}, 1)
	table.dropSetup()
	var got []int32
	for _, i := range []int32{0, 5, 10, 18, 22, 26} {
		got = append(got, table.Line(i))
	}
	if want := []int32{0, 0, 3, 4, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func FuzzLineTable(f *testing.F) {
	f.Add([]byte{0x80, 0x01, 0xf8, 0xe8, 0x02}, int32(1))
	f.Add([]byte{0xf0, 0x7f, 0x7f, 0x7f, 0x3f, 0x01, 0x01, 0x01}, int32(1))
	f.Fuzz(func(t *testing.T, b []byte, firstLine int32) {
		table := DecodeLineTable(b, firstLine)
		end := int32(0)
		for _, e := range table {
			if e.end <= end || e.line < 0 {
				t.Fatalf("entry %+v behind %d", e, end)
			}
			if got := table.Line(end); got != e.line {
				t.Fatalf("first instruction of %+v is at line %d", e, got)
			}
			end = e.end
		}
		if got := table.Line(end); got != 0 {
			t.Fatalf("behind the end: line %d", got)
		}
		if int(end) > 8*len(b) {
			t.Fatalf("%d instructions of %d bytes", end, len(b))
		}
	})
}
