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
	addr      uint64
	identity  identity
	function  string // co_qualname
	file      string // co_filename
	firstLine int32
	lines     lineTable
	frameLen  uint64 // bytes of a frame of it, locals and stack included
	count     int32  // instructions, caches counted

	// Before this instruction a frame is still being made (cells, or the generator
	// it will move into): CPython does not count it as called yet.
	firstTraceable int32

	operations map[int32]operation // of the instructions looked at
	role       role
	locals     map[string]int // numbers of the local variables looked for; -1 for none of that name

	nameless   bool   // a module's or a statement's, or of a function without a name in one
	born       uint64 // the cache's epoch when it was first seen
	epoch      uint64 // the cache's when it was last compared
	generation uint64 // likewise
}

// codeCache keeps the code objects seen, by address. One goroutine at a time.
type codeCache struct {
	mem      Memory
	l        *layout
	byAddr   map[uint64]*codeObject
	typeAddr uint64 // of PyCode_Type, learnt from the first code object
	epoch    uint64 // grows a few times a second
	// generation is the interpreter's own count of code objects freed, where counts
	// says that there is one: unless it moves, all are what they were.
	generation uint64
	counts     bool
	head       [maxCodeSize]byte
	reads      uint64 // code objects read, to tell when one has changed
	// library has what was read of the code objects of other processes that run on in
	// the same program, which was forked; nil: there is none.
	library library
}

func newCodeCache(m Memory, l *layout) *codeCache {
	return &codeCache{mem: m, l: l, byAddr: make(map[uint64]*codeObject), epoch: 1}
}

// get returns the code object at addr, as it was when it was last looked at.
func (c *codeCache) get(addr uint64) (*codeObject, error) {
	if known := c.byAddr[addr]; known != nil {
		return known, nil
	}
	if code := c.adopt(addr); code != nil {
		return code, nil
	}
	return c.read(addr)
}

// read takes in what there is at addr now.
func (c *codeCache) read(addr uint64) (*codeObject, error) {
	delete(c.byAddr, addr)
	c.reads++
	head, err := c.readHead(addr)
	if err != nil {
		return nil, err
	}
	code, err := c.decode(addr, head)
	if err != nil {
		return nil, err
	}
	code.born, code.epoch, code.generation = c.epoch, c.epoch, c.generation
	if len(c.byAddr) >= maxCodes {
		clear(c.byAddr)
	}
	c.byAddr[addr] = code
	c.library.add(code)
	return code, nil
}

// readHead reads the head of a code object and checks that it is one.
func (c *codeCache) readHead(addr uint64) ([]byte, error) {
	head := c.head[:c.l.code.instructions]
	if addr < 4096 || addr%wordSize != 0 {
		return nil, fmt.Errorf("no code object at %#x", addr)
	}
	if err := readAt(c.mem, addr, head); err != nil {
		return nil, err
	}
	if typ := word(head, objectType); typ != c.typeAddr {
		if err := c.learnType(typ); err != nil {
			return nil, err
		}
	}
	if count := word(head, varSize); count == 0 || count > maxInstructions {
		return nil, fmt.Errorf("code object with %d instructions", count)
	}
	return head, nil
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

func (c *codeCache) decode(addr uint64, head []byte) (*codeObject, error) {
	l := c.l
	code := &codeObject{
		addr: addr, count: int32(word(head, varSize)),
		firstLine: int32(half(head, l.code.firstLine)), firstTraceable: int32(half(head, l.code.firstTraceable)),
	}
	file, name, table := word(head, l.code.filename), word(head, l.code.qualname), word(head, l.code.lineTable)
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
	if code.identity, err = c.identify(addr, head); err != nil {
		return nil, err
	}
	if code.function, err = readString(c.mem, l, name); err != nil {
		return nil, fmt.Errorf("co_qualname: %w", err)
	}
	if code.file, err = readString(c.mem, l, file); err != nil {
		return nil, fmt.Errorf("co_filename: %w", err)
	}
	lines, err := c.readBytes(table, maxLineTable)
	if err != nil {
		return nil, fmt.Errorf("co_linetable: %w", err)
	}
	code.lines = decodeLineTable(lines, code.firstLine)
	code.role = roleOf(code.function, code.file)
	code.nameless = strings.HasPrefix(code.function, "<")
	return code, nil
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
	if instr < code || at < -1 || at >= int64(c.count) {
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
