package pytasks

import (
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
)

const (
	// mergeGap is the distance up to which neighbouring objects are read as one range:
	// a range costs as much as a few kilobytes do.
	mergeGap = 2 << 10
	// maxMerged bounds a range, so that one that is not mapped costs little.
	maxMerged = 256 << 10
)

// batch reads many objects of one size by few system calls.
type batch struct {
	mem    cpython.Memory
	order  []int // of addrs, by address
	ranges []cpython.Range
	first  []int // of each range: its first object in order
	at     []int // of each address: where it lies in buf; -1: it is not mapped
	buf    []byte
}

// read reads size bytes at each address.
func (b *batch) read(addrs []uint64, size int) error {
	b.plan(addrs, size)
	total := 0
	for _, r := range b.ranges {
		total += r.Len
	}
	b.buf = slices.Grow(b.buf[:0], total)[:total]
	read := 0 // ranges done
	done := 0 // bytes of them
	for read < len(b.ranges) {
		n, err := b.mem.Read(b.buf[done:], b.ranges[read:])
		if err != nil {
			return err
		}
		for read < len(b.ranges) && n >= b.ranges[read].Len {
			b.place(addrs, read, done)
			n -= b.ranges[read].Len
			done += b.ranges[read].Len
			read++
		}
		if read < len(b.ranges) {
			if err := b.single(addrs, read, done, size); err != nil {
				return err
			}
			done += b.ranges[read].Len
			read++
		}
	}
	return nil
}

// plan makes the ranges: objects that lie close to each other share one.
func (b *batch) plan(addrs []uint64, size int) {
	b.order, b.ranges, b.first = b.order[:0], b.ranges[:0], b.first[:0]
	b.at = slices.Grow(b.at[:0], len(addrs))[:len(addrs)]
	for i, addr := range addrs {
		b.at[i] = -1
		if addr >= minAddress && addr < maxAddress {
			b.order = append(b.order, i)
		}
	}
	slices.SortFunc(b.order, func(i, j int) int {
		switch {
		case addrs[i] < addrs[j]:
			return -1
		case addrs[i] > addrs[j]:
			return 1
		}
		return 0
	})
	for k, i := range b.order {
		addr := addrs[i]
		if n := len(b.ranges); n > 0 {
			last := &b.ranges[n-1]
			if end := last.Addr + uint64(last.Len); addr <= end+mergeGap && addr+uint64(size)-last.Addr <= maxMerged {
				last.Len = max(last.Len, int(addr-last.Addr)+size)
				continue
			}
		}
		b.ranges, b.first = append(b.ranges, cpython.Range{Addr: addr, Len: size}), append(b.first, k)
	}
}

// place notes where the objects of a range lie in the buffer.
func (b *batch) place(addrs []uint64, r, done int) {
	for _, i := range b.objects(r) {
		b.at[i] = done + int(addrs[i]-b.ranges[r].Addr)
	}
}

func (b *batch) objects(r int) []int {
	end := len(b.order)
	if r+1 < len(b.first) {
		end = b.first[r+1]
	}
	return b.order[b.first[r]:end]
}

// single reads the objects of a range one by one, as some of it is not mapped.
func (b *batch) single(addrs []uint64, r, done, size int) error {
	for _, i := range b.objects(r) {
		at := done + int(addrs[i]-b.ranges[r].Addr)
		n, err := b.mem.Read(b.buf[at:], []cpython.Range{{Addr: addrs[i], Len: size}})
		if err != nil {
			return err
		}
		if n == size {
			b.at[i] = at
		}
	}
	return nil
}

// of returns what was read of an address by its place in the list; nil if it is not mapped.
func (b *batch) of(i, size int) []byte {
	if b.at[i] < 0 {
		return nil
	}
	return b.buf[b.at[i] : b.at[i]+size]
}

// Addresses of objects lie between these.
const (
	minAddress = 1 << 12
	maxAddress = 1 << 57
)
