package pystack

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
)

const (
	elfHeaderLen  = 64
	elfProgLen    = 56
	elfSymbolLen  = 24
	maxProgs      = 64
	maxDynamic    = 256
	maxChain      = 4096 // symbols looked at in one hash bucket
	maxSymbolName = 64
)

// dynamicSymbols looks symbols up by the GNU hash table of an executable or
// library that lies in memory at base, as the dynamic linker does. A symbol
// that is not there is left out.
func dynamicSymbols(m Memory, base uint64, names ...string) (map[string]uint64, error) {
	bias, dynamic, err := dynamicSection(m, base)
	if err != nil {
		return nil, err
	}
	table, err := readDynamic(m, bias, dynamic)
	if err != nil {
		return nil, err
	}
	found := make(map[string]uint64)
	for _, name := range names {
		value, err := table.lookup(m, name)
		if err != nil {
			return found, err
		}
		if value != 0 {
			found[name] = bias + value
		}
	}
	return found, nil
}

// dynamicSection returns the load bias and the address of PT_DYNAMIC.
func dynamicSection(m Memory, base uint64) (bias, dynamic uint64, err error) {
	var head [elfHeaderLen]byte
	if err := cpython.ReadAt(m, base, head[:]); err != nil {
		return 0, 0, err
	}
	if string(head[:4]) != elf.ELFMAG || elf.Class(head[4]) != elf.ELFCLASS64 || elf.Data(head[5]) != elf.ELFDATA2LSB {
		return 0, 0, errors.New("not a 64-bit little-endian ELF file")
	}
	count := int(binary.LittleEndian.Uint16(head[56:]))
	if count > maxProgs || binary.LittleEndian.Uint16(head[54:]) != elfProgLen {
		return 0, 0, errors.New("ELF program headers of unknown form")
	}
	progs := make([]byte, count*elfProgLen)
	if err := cpython.ReadAt(m, base+binary.LittleEndian.Uint64(head[32:]), progs); err != nil {
		return 0, 0, err
	}
	haveBias := false
	var vaddr uint64
	for p := progs; len(p) > 0; p = p[elfProgLen:] {
		switch elf.ProgType(binary.LittleEndian.Uint32(p)) {
		case elf.PT_LOAD:
			if !haveBias && binary.LittleEndian.Uint64(p[8:]) == 0 {
				bias, haveBias = base-binary.LittleEndian.Uint64(p[16:])&^0xfff, true
			}
		case elf.PT_DYNAMIC:
			vaddr = binary.LittleEndian.Uint64(p[16:])
		}
	}
	if !haveBias || vaddr == 0 {
		return 0, 0, errors.New("ELF file without dynamic section")
	}
	return bias, bias + vaddr, nil
}

// dynamicTable holds the addresses of what a lookup needs.
type dynamicTable struct{ hash, symbols, strings uint64 }

func readDynamic(m Memory, bias, at uint64) (t dynamicTable, err error) {
	var entry [16]byte
	for range maxDynamic {
		if err := cpython.ReadAt(m, at, entry[:]); err != nil {
			return t, err
		}
		at += uint64(len(entry))
		value := binary.LittleEndian.Uint64(entry[8:])
		if value < bias { // glibc relocates these in place, others leave them as in the file
			value += bias
		}
		switch elf.DynTag(binary.LittleEndian.Uint64(entry[:])) {
		case elf.DT_GNU_HASH:
			t.hash = value
		case elf.DT_SYMTAB:
			t.symbols = value
		case elf.DT_STRTAB:
			t.strings = value
		case elf.DT_NULL:
			if t.hash == 0 || t.symbols == 0 || t.strings == 0 {
				return t, errors.New("ELF file without GNU hash table")
			}
			return t, nil
		}
	}
	return t, errors.New("ELF dynamic section has no end")
}

func gnuHash(name string) uint32 {
	h := uint32(5381)
	for i := range len(name) {
		h = h*33 + uint32(name[i])
	}
	return h
}

// lookup returns a symbol's value, 0 when there is none of the name.
func (t dynamicTable) lookup(m Memory, name string) (uint64, error) {
	var head [16]byte
	if err := cpython.ReadAt(m, t.hash, head[:]); err != nil {
		return 0, err
	}
	buckets := uint64(binary.LittleEndian.Uint32(head[0:]))
	first := binary.LittleEndian.Uint32(head[4:])
	bloom := uint64(binary.LittleEndian.Uint32(head[8:]))
	if buckets == 0 || buckets > 1<<24 || bloom > 1<<24 {
		return 0, fmt.Errorf("GNU hash table with %d buckets", buckets)
	}
	bucketAt := t.hash + 16 + 8*bloom
	chainAt := bucketAt + 4*buckets
	hash := gnuHash(name)
	index, err := readUint32(m, bucketAt+4*(uint64(hash)%buckets))
	if err != nil || index < first {
		return 0, err
	}
	for range maxChain {
		h, err := readUint32(m, chainAt+4*uint64(index-first))
		if err != nil {
			return 0, err
		}
		if h|1 == hash|1 {
			if value, ok, err := t.symbol(m, index, name); ok || err != nil {
				return value, err
			}
		}
		if h&1 != 0 {
			return 0, nil
		}
		index++
	}
	return 0, errors.New("GNU hash chain has no end")
}

// symbol returns the value of symbol index if that is its name and it is defined.
func (t dynamicTable) symbol(m Memory, index uint32, name string) (value uint64, ok bool, err error) {
	var s [elfSymbolLen]byte
	if err := cpython.ReadAt(m, t.symbols+elfSymbolLen*uint64(index), s[:]); err != nil {
		return 0, false, err
	}
	text := make([]byte, min(len(name), maxSymbolName)+1)
	if err := cpython.ReadAt(m, t.strings+uint64(binary.LittleEndian.Uint32(s[:])), text); err != nil {
		return 0, false, err
	}
	if string(text) != name+"\x00" || binary.LittleEndian.Uint16(s[6:]) == uint16(elf.SHN_UNDEF) {
		return 0, false, nil
	}
	return binary.LittleEndian.Uint64(s[8:]), true, nil
}

func readUint32(m Memory, addr uint64) (uint32, error) {
	var b [4]byte
	if err := cpython.ReadAt(m, addr, b[:]); err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b[:]), nil
}
