package cpython

import (
	"bytes"
	"testing"
)

// calls counts the reads of a memory whose byte at an address is the address's lowest.
type calls int

func (c *calls) Read(buf []byte, ranges []Range) (int, error) {
	*c++
	total := 0
	for _, r := range ranges {
		for i := range r.Len {
			if r.Addr+uint64(i) >= 5000 {
				return total, nil
			}
			buf[total] = byte(r.Addr + uint64(i))
			total++
		}
	}
	return total, nil
}

func TestWhatWasReadAhead(t *testing.T) {
	var memory calls
	a := &ahead{Memory: &memory}
	a.take(Range{1000, 100}, Range{3000, 50}, Range{4990, 20}) // the last one is not mapped to its end
	for _, test := range []struct {
		name   string
		ranges []Range
		calls  calls
	}{
		{"within a place", []Range{{1010, 20}}, 1},
		{"in several places", []Range{{3040, 10}, {1000, 100}}, 1},
		{"beyond the end of one", []Range{{1090, 11}}, 2},
		{"in a place and in none", []Range{{1000, 8}, {2000, 8}}, 2},
		{"as far as it is mapped", []Range{{4990, 10}}, 1},
		{"further", []Range{{4990, 11}}, 2},
		{"before it", []Range{{999, 1}}, 2},
	} {
		memory = 1
		size := 0
		for _, r := range test.ranges {
			size += r.Len
		}
		got, want := make([]byte, size), make([]byte, size)
		n, _ := a.Read(got, test.ranges)
		var fresh calls
		m, _ := fresh.Read(want, test.ranges)
		if n != m || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes %v, want %d %v", test.name, n, got, m, want)
		}
		if memory != test.calls {
			t.Errorf("%s: %d calls, want %d", test.name, memory, test.calls)
		}
	}
	a.drop()
	memory = 0
	if _, _ = a.Read(make([]byte, 8), []Range{{1000, 8}}); memory != 1 {
		t.Error("what was dropped is read again")
	}
}
