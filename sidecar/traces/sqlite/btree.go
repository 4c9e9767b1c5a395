package sqlite

import (
	"encoding/binary"
	"fmt"
)

// The kinds of pages of a table (§1.6).
const (
	interiorPage = 0x05
	leafPage     = 0x0d
)

const (
	// deepest is how many levels a tree may have: with two children a page it would have more pages than a file can.
	deepest = 40
	// largestRow is how much of a row is read; what lies beyond is null.
	largestRow = 1 << 20
)

// walk is a walk through the tree of one table.
type walk struct {
	*File
	columns []column
	wanted  []int
	visit   func([]Value) bool
	seen    []uint64 // pages, a bit each
	values  []Value
	payload []byte
	err     error // the first one
	over    bool
}

func (f *File) walk(t table, wanted []int, visit func([]Value) bool) error {
	w := &walk{File: f, columns: t.columns, wanted: wanted, visit: visit, seen: make([]uint64, f.pages/64+1), values: make([]Value, len(wanted))}
	w.page(t.root, 0)
	return w.err
}

// damaged notes the first damage.
func (w *walk) damaged(page uint32, what string) {
	if w.err == nil {
		w.err = fmt.Errorf("%w: page %d %s", ErrDamaged, page, what)
	}
}

// take reads a page that was not read before.
func (w *walk) take(number uint32) []byte {
	if number == 0 || number > w.pages || w.seen[number/64]&(1<<(number%64)) != 0 {
		w.damaged(number, "is not there, or is in two places")
		return nil
	}
	w.seen[number/64] |= 1 << (number % 64)
	page := make([]byte, w.pageSize)
	if _, err := w.at.ReadAt(page, int64(number-1)*int64(w.pageSize)); err != nil {
		w.damaged(number, "cannot be read: "+err.Error())
		return nil
	}
	return page[:w.usable]
}

// page visits the rows below a page, in their order.
func (w *walk) page(number uint32, depth int) {
	if depth > deepest {
		w.damaged(number, "lies too deep")
		return
	}
	page := w.take(number)
	if page == nil {
		return
	}
	head := 0
	if number == 1 {
		head = headerSize
	}
	cells := int(binary.BigEndian.Uint16(page[head+3:]))
	switch page[head] {
	case leafPage:
		w.cells(number, page, head+8, cells, w.leaf())
	case interiorPage:
		w.cells(number, page, head+12, cells, func(cell []byte) int {
			w.page(binary.BigEndian.Uint32(cell), depth+1)
			return 0
		})
		if !w.over {
			w.page(binary.BigEndian.Uint32(page[head+8:]), depth+1)
		}
	default:
		w.damaged(number, "is of no table")
	}
}

// cells visits the cells of a page; visit returns how many bytes of the page the cell takes, negative where it is
// damaged.
func (w *walk) cells(number uint32, page []byte, pointers, n int, visit func(cell []byte) int) {
	if pointers+2*n > len(page) {
		w.damaged(number, "has more cells than room")
		return
	}
	room := len(page)
	for i := range n {
		at := int(binary.BigEndian.Uint16(page[pointers+2*i:]))
		if at < pointers || at+4 > len(page) {
			w.damaged(number, "has a cell outside itself")
			continue
		}
		took := visit(page[at:])
		if room -= max(0, took); took < 0 || room < 0 {
			w.damaged(number, "has a damaged cell")
			if room < 0 {
				return
			}
		}
		if w.over {
			return
		}
	}
}

// leaf visits the row of a cell (§1.6, table b-tree leaf cell).
func (w *walk) leaf() func(cell []byte) int {
	return func(cell []byte) int {
		size, n := varint(cell)
		id, m := varint(cell[n:])
		if n == 0 || m == 0 || size < 0 {
			return -1
		}
		body := cell[n+m:]
		local := w.local(size)
		if local > len(body) {
			return -1
		}
		payload := body[:local]
		if int64(local) < size {
			if local+4 > len(body) {
				return -1
			}
			payload = w.overflow(payload, binary.BigEndian.Uint32(body[local:]), min(size, largestRow))
		}
		if !w.decode(payload, size, id) {
			return -1
		}
		if !w.visit(w.values) {
			w.over = true
		}
		return n + m + local
	}
}

// local is how much of a payload lies in its cell (§1.6).
func (w *walk) local(size int64) int {
	usable := int64(w.usable)
	if size <= usable-35 {
		return int(size)
	}
	least := (usable-12)*32/255 - 23
	if most := least + (size-least)%(usable-4); most <= usable-35 {
		return int(most)
	}
	return int(least)
}

// overflow reads on in overflow pages until there are size bytes, or the chain ends.
func (w *walk) overflow(begin []byte, next uint32, size int64) []byte {
	w.payload = append(w.payload[:0], begin...)
	for next != 0 && int64(len(w.payload)) < size {
		page := w.take(next)
		if page == nil {
			break
		}
		w.payload = append(w.payload, page[4:]...)
		next = binary.BigEndian.Uint32(page)
	}
	return w.payload[:min(int64(len(w.payload)), size)]
}

// varint reads a number of 1 to 9 bytes (§1.6); n is 0 where it is cut off.
func varint(b []byte) (value int64, n int) {
	for n < 8 && n < len(b) {
		value = value<<7 | int64(b[n]&0x7f)
		n++
		if b[n-1] < 0x80 {
			return value, n
		}
	}
	if n == 8 && len(b) > 8 {
		return value<<8 | int64(b[8]), 9
	}
	return 0, 0
}
