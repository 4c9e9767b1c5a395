package cpython

import (
	"errors"
	"fmt"
)

const (
	maxLineTable    = 4 << 20 // bytes of co_linetable; a longer one is cut
	maxInstructions = 1 << 24 // what a corrupt table, or head, can make us believe
	maxFrameLen     = 1 << 24

	// Bytes of objects that most code objects have no more of: on the file's name, their own, and their line table.
	usualFile  = 256
	usualName  = 128
	usualLines = 512
)

// Code is a code object.
type Code struct {
	Addr      uint64
	Identity  Identity
	Function  string // co_qualname
	File      string // co_filename
	FirstLine int32
	Lines     LineTable
	FrameLen  uint64 // bytes of a frame of it, locals and stack included
	Locals    uint64 // of a frame: behind so many local variables its stack begins
	Count     int32  // instructions, caches counted

	// Before this instruction a frame is still being made (cells, or the generator
	// it will move into): CPython does not count it as called yet.
	FirstTraceable int32
}

var errNoCode = errors.New("not a code object")

// Code reads the code object at addr.
func (o *Objects) Code(addr uint64) (*Code, error) {
	head, err := o.codeHead(addr)
	if err != nil {
		return nil, err
	}
	l := o.layout
	c := &Code{
		Addr: addr, Count: int32(Word(head, varSize)),
		FirstLine: int32(Half(head, l.Code.FirstLine)), FirstTraceable: int32(Half(head, l.Code.FirstTraceable)),
	}
	if l.Code.FrameSize != 0 {
		c.FrameLen = uint64(Half(head, l.Code.FrameSize)) * WordSize
	} else {
		c.FrameLen = (uint64(Half(head, l.Code.StackSize))+uint64(Half(head, l.Code.LocalsCount)))*WordSize + l.Frame.Size
	}
	c.Locals = uint64(Half(head, l.Code.LocalsCount))
	if c.FrameLen < l.Frame.Size || c.FrameLen > maxFrameLen {
		return nil, fmt.Errorf("code object with frames of %d bytes", c.FrameLen)
	}
	o.mem.take(
		Range{addr, len(head)}, Range{Word(head, l.Code.Filename), usualFile}, Range{Word(head, l.Code.Qualname), usualName},
		Range{Word(head, l.Code.LineTable), usualLines})
	defer o.mem.drop()
	// The identity first: what is read after it belongs to it as long as it holds.
	if c.Identity, err = o.identify(addr, head); err != nil {
		return nil, err
	}
	if c.Function, err = o.Text(Word(head, l.Code.Qualname)); err != nil {
		return nil, fmt.Errorf("co_qualname: %w", err)
	}
	if c.File, err = o.Text(Word(head, l.Code.Filename)); err != nil {
		return nil, fmt.Errorf("co_filename: %w", err)
	}
	lines, err := o.bytes(Word(head, l.Code.LineTable), maxLineTable)
	if err != nil {
		return nil, fmt.Errorf("co_linetable: %w", err)
	}
	c.Lines = DecodeLineTable(lines, c.FirstLine)
	if c.File == "<magic-timeit>" && c.Function == "inner" {
		c.Lines.dropSetup()
	}
	return c, nil
}

// codeHead reads the head of a code object and checks that it is one. It is used
// again by the next call.
func (o *Objects) codeHead(addr uint64) ([]byte, error) {
	head := o.head[:o.layout.Code.Instructions]
	if !mayBeObject(addr) {
		return nil, fmt.Errorf("no code object at %#x", addr)
	}
	if err := ReadAt(o.mem, addr, head); err != nil {
		return nil, err
	}
	if typ := Word(head, objectType); typ != o.codeType {
		if o.codeType != 0 || o.nameOf(typ) != "code" {
			return nil, errNoCode
		}
		o.codeType = typ
	}
	if count := Word(head, varSize); count == 0 || count > maxInstructions {
		return nil, fmt.Errorf("code object with %d instructions", count)
	}
	return head, nil
}

// Instruction converts a frame's instruction pointer; ok is false when it does
// not point into the code object, as in a frame torn by the read.
func (c *Code) Instruction(l *Layout, instr uint64) (index int32, ok bool) {
	at := int64(instr-c.Addr-l.Code.Instructions) / InstrSize
	if instr < c.Addr || at < -1 || at >= int64(c.Count) {
		return 0, false
	}
	return int32(at), true
}

// Line returns the line of an instruction; before the first one it is the
// function's own.
func (c *Code) Line(instruction int32) int32 {
	if instruction < 0 {
		return c.FirstLine
	}
	return c.Lines.Line(instruction)
}

// Opcode reads the opcode of the call that a frame at an instruction has made, or of
// the instruction itself; 0 where there is none.
func (o *Objects) Opcode(c *Code, instruction int32) (byte, error) {
	at := int64(instruction) - int64(o.layout.CallCaches)
	if at < 0 {
		return 0, nil
	}
	var opcode [1]byte
	err := ReadAt(o.mem, c.Addr+o.layout.Code.Instructions+InstrSize*uint64(at), opcode[:])
	return opcode[0], err
}

// maxNames bounds the local variables, or attributes, that are looked at for a name.
const maxNames = 64

// Local returns the number of a local variable; -1 if there is none of that name among
// the first.
func (o *Objects) Local(c *Code, name string) (int, error) {
	tuple, err := ReadWord(o.mem, c.Addr+o.layout.Code.LocalNames)
	if err != nil {
		return 0, err
	}
	count, err := ReadWord(o.mem, tuple+varSize)
	if err != nil {
		return 0, err
	}
	for i := range min(count, maxNames) {
		at, err := ReadWord(o.mem, tuple+o.layout.TupleItems+i*WordSize)
		if err != nil {
			return 0, err
		}
		if text, err := o.Text(at); err == nil && text == name {
			return int(i), nil
		}
	}
	return -1, nil
}
