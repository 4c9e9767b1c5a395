package cpython

// ahead is a process's memory with places in it that were read by one call, before it is known what of them is needed:
// a call costs more than the bytes that it reads in vain, and while it lasts the process cannot map memory.
type ahead struct {
	Memory
	places []Range
	text   []byte // of them, one behind the other
}

// take reads the places, as far as they are mapped; until drop they are not read again.
func (a *ahead) take(places ...Range) {
	a.places = append(a.places[:0], places...)
	size := 0
	for _, p := range places {
		size += p.Len
	}
	if cap(a.text) < size {
		a.text = make([]byte, size)
	}
	n, err := a.Memory.Read(a.text[:size], places)
	if err != nil {
		n = 0
	}
	a.text = a.text[:n]
}

func (a *ahead) drop() { a.places = a.places[:0] }

// Read serves what lies in the places and reads what does not.
func (a *ahead) Read(buf []byte, ranges []Range) (int, error) {
	total := 0
	for _, r := range ranges {
		known := a.known(r)
		if known == nil {
			return a.Memory.Read(buf, ranges)
		}
		total += copy(buf[total:], known)
	}
	return total, nil
}

// known is what was read of a range; nil if it was not, or not to its end.
func (a *ahead) known(r Range) []byte {
	pos := 0
	for _, p := range a.places {
		if offset := r.Addr - p.Addr; r.Addr >= p.Addr && offset < uint64(p.Len) {
			from, to := pos+int(offset), pos+int(offset)+r.Len
			if int(offset)+r.Len <= p.Len && to <= len(a.text) {
				return a.text[from:to]
			}
		}
		pos += p.Len
	}
	return nil
}
