package pystack

import (
	"errors"
	"fmt"
	"strings"
)

const (
	maxLineTable = 4 << 20 // bytes of co_linetable; a longer one is cut
	maxCodes     = 1 << 16 // cached code objects; beyond, the cache starts anew
)

// codeObject is what is known of one code object of the target.
type codeObject struct {
	key       codeKey
	function  string // co_qualname
	file      string // co_filename
	firstLine int32
	lines     lineTable
	frameLen  uint64 // bytes of a frame of it, locals and stack included

	// Before this instruction a frame is still being made (cells, or the generator
	// it will move into): CPython does not count it as called yet.
	firstTraceable int32

	operations map[int32]operation // of the instructions looked at

	// Code objects made at run time come and go, and their addresses are used
	// again, by a frame at the same place too.
	shortLived bool
	text       uint64 // checksum of the beginnings of its file and function name
	born       uint64 // the cache's epoch when it was first seen
	epoch      uint64 // the cache's when the key was last compared
	generation uint64 // likewise
}

// codeKey tells a code object from another that took its address.
type codeKey struct {
	filename, name uint64 // addresses
	firstLine      int32
	instructions   int32 // caches counted
}

// codeCache keeps the code objects seen, by address. One goroutine at a time.
type codeCache struct {
	mem      Memory
	l        *layout
	byAddr   map[uint64]*codeObject
	typeAddr uint64 // of PyCode_Type, learnt from the first code object
	// epoch grows a few times a second: what a new frame runs is compared again.
	epoch uint64
	// generation is the interpreter's own count of code objects freed (3.14+);
	// unless it moves, all is as it was.
	generation uint64
	head       [maxCodeSize]byte
	reads      uint64 // code objects read, to tell when one has changed
}

func newCodeCache(m Memory, l *layout) *codeCache {
	return &codeCache{mem: m, l: l, byAddr: make(map[uint64]*codeObject), epoch: 1}
}

// get returns the code object at addr. isNew says that the frame asking was not
// there at the last sample.
func (c *codeCache) get(addr uint64, isNew bool) (*codeObject, error) {
	known := c.byAddr[addr]
	if known != nil && (known.epoch == c.epoch || !isNew) && !c.doubtful(known) {
		return known, nil
	}
	key, head, err := c.readKey(addr)
	if err != nil {
		delete(c.byAddr, addr)
		return nil, err
	}
	if known != nil && known.key == key {
		text, err := c.textAt(key)
		if err != nil {
			return nil, err
		}
		if text == known.text {
			known.epoch, known.generation = c.epoch, c.generation
			return known, nil
		}
	}
	code, err := c.read(key, head)
	if err != nil {
		return nil, err
	}
	code.born, code.epoch, code.generation = c.epoch, c.epoch, c.generation
	if len(c.byAddr) >= maxCodes {
		clear(c.byAddr)
	}
	c.byAddr[addr] = code
	return code, nil
}

// settledEpochs is for how long a code object must stay to be compared once an
// epoch only.
const settledEpochs = 2

// doubtful tells a code object that may have been freed since it was compared.
func (c *codeCache) doubtful(code *codeObject) bool {
	return code.shortLived && (c.epoch-code.born < settledEpochs || code.epoch != c.epoch) || code.generation != c.generation
}

// readKey reads the head of a code object and checks that it is one.
func (c *codeCache) readKey(addr uint64) (key codeKey, head []byte, err error) {
	head = c.head[:c.l.code.instructions]
	if addr < 4096 || addr%wordSize != 0 {
		return key, nil, fmt.Errorf("no code object at %#x", addr)
	}
	if err := readAt(c.mem, addr, head); err != nil {
		return key, nil, err
	}
	key, err = c.parseKey(head)
	return key, head, err
}

// parseKey takes the key from a copied head.
func (c *codeCache) parseKey(head []byte) (key codeKey, err error) {
	if typ := word(head, objectType); typ != c.typeAddr {
		if err := c.learnType(typ); err != nil {
			return key, err
		}
	}
	count := word(head, varSize)
	if count == 0 || count > maxInstructions {
		return key, fmt.Errorf("code object with %d instructions", count)
	}
	return codeKey{
		filename: word(head, c.l.code.filename), name: word(head, c.l.code.name),
		firstLine: int32(half(head, c.l.code.firstLine)), instructions: int32(count),
	}, nil
}

// learnType accepts a type as the one of code objects by its name.
func (c *codeCache) learnType(typ uint64) error {
	if c.typeAddr != 0 {
		return errors.New("not a code object")
	}
	at, err := readWord(c.mem, typ+c.l.typeName)
	if err != nil {
		return err
	}
	var name [5]byte
	if err := readAt(c.mem, at, name[:]); err != nil {
		return err
	}
	if string(name[:]) != "code\x00" {
		return errors.New("not a code object")
	}
	c.typeAddr = typ
	return nil
}

func (c *codeCache) read(key codeKey, head []byte) (*codeObject, error) {
	l := c.l
	code := &codeObject{key: key, firstLine: key.firstLine, firstTraceable: int32(half(head, l.code.firstTraceable))}
	qualname, table := word(head, l.code.qualname), word(head, l.code.lineTable)
	if l.code.frameSize != 0 {
		code.frameLen = uint64(half(head, l.code.frameSize)) * wordSize
	} else {
		code.frameLen = uint64(half(head, l.code.stackSize))*wordSize +
			uint64(half(head, l.code.nLocalsPlus))*wordSize + l.frame.size
	}
	if code.frameLen < l.frame.size || code.frameLen > 1<<24 {
		return nil, fmt.Errorf("code object with frames of %d bytes", code.frameLen)
	}
	var err error
	if code.function, err = readString(c.mem, l, qualname); err != nil {
		return nil, fmt.Errorf("co_qualname: %w", err)
	}
	if code.file, err = readString(c.mem, l, key.filename); err != nil {
		return nil, fmt.Errorf("co_filename: %w", err)
	}
	lines, err := c.readBytes(table, maxLineTable)
	if err != nil {
		return nil, fmt.Errorf("co_linetable: %w", err)
	}
	code.lines = decodeLineTable(lines, code.firstLine)
	if code.text, err = c.textAt(key); err != nil {
		return nil, err
	}
	c.reads++
	code.shortLived = strings.HasPrefix(code.file, "<") && !strings.HasPrefix(code.file, "<frozen ")
	return code, nil
}

// textLen is how much of a string object is read to compare it.
const textLen = 96

// textAt is the checksum of a code object's names as they are now.
func (c *codeCache) textAt(key codeKey) (uint64, error) {
	var b [2 * textLen]byte
	_, err := c.mem.Read(b[:], []Range{{key.filename + varSize, textLen}, {key.name + varSize, textLen}})
	return c.l.checksum(b[:]), err
}

// checksum is FNV-1a over the lengths and the beginnings of two strings, copied
// from varSize on. What follows a short one is another object's, and changes.
func (l *layout) checksum(b []byte) uint64 {
	sum := uint64(14695981039346656037)
	for ; len(b) >= textLen; b = b[textLen:] {
		chars, state := word(b, l.str.length-varSize), half(b, l.str.state-varSize)
		start := l.str.compact - varSize
		if state&strASCIIBit != 0 {
			start = l.str.ascii - varSize
		}
		end := min(start+min(chars, textLen)*uint64(state>>strKindShift&strKindMask), textLen)
		for _, c := range b[start:max(start, end)] {
			sum = (sum ^ uint64(c)) * 1099511628211
		}
		sum = (sum ^ chars) * 1099511628211
	}
	return sum
}

// readBytes returns the contents of a bytes object.
func (c *codeCache) readBytes(addr uint64, limit uint64) ([]byte, error) {
	size, err := readWord(c.mem, addr+varSize)
	if err != nil {
		return nil, err
	}
	// In steps, so that a size gone wild costs no more than what is mapped.
	const step = 64 << 10
	var out []byte
	for size = min(size, limit); uint64(len(out)) < size; {
		part := make([]byte, min(size-uint64(len(out)), step))
		if err := readAt(c.mem, addr+c.l.bytesData+uint64(len(out)), part); err != nil {
			return nil, err
		}
		out = append(out, part...)
	}
	return out, nil
}

// instruction converts a frame's instruction pointer; ok is false when it does
// not point into the code object, as in a frame torn by the read.
func (c *codeObject) instruction(l *layout, code, instr uint64) (index int32, ok bool) {
	at := int64(instr-code-l.code.instructions) / instrSize
	if instr < code || at < -1 || at >= int64(c.key.instructions) {
		return 0, false
	}
	return int32(at), true
}

// line returns the line of an instruction; before the first one it is the
// function's own.
func (c *codeObject) line(instruction int32) int32 {
	if instruction < 0 {
		return c.firstLine
	}
	return c.lines.line(instruction)
}
