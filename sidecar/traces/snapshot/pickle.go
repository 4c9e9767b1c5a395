package snapshot

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Limits bound what a pickle may make the reader do. Zero means the default.
type Limits struct {
	Bytes   int64 // of the pickle; 4 GiB
	Objects int   // values it builds; 200 million
	Depth   int   // values under construction at once; 100,000
}

func (l Limits) withDefaults() Limits {
	if l.Bytes <= 0 {
		l.Bytes = 4 << 30
	}
	if l.Objects <= 0 {
		l.Objects = 200_000_000
	}
	if l.Depth <= 0 {
		l.Depth = 100_000
	}
	return l
}

// Errors that a caller can distinguish.
var (
	ErrNoPickle = errors.New("not a memory snapshot: the file is no pickle")
	ErrNotPlain = errors.New("not a memory snapshot: its pickle has an instruction that names or calls something in Python, which a snapshot does not need and which could run code")
	ErrOther    = errors.New("not a memory snapshot: the pickle has neither segments nor device_traces; write one with torch.cuda.memory._dump_snapshot(path)")
	ErrDamaged  = errors.New("the memory snapshot is damaged")
	ErrTooLarge = errors.New("the memory snapshot is larger than this reader allows")
)

// runsCode are the instructions of pickle that import, call, build or ask for
// something, by their names in Python's pickletools.
var runsCode = map[byte]string{
	'c': "GLOBAL", 0x93: "STACK_GLOBAL", 'i': "INST", 'o': "OBJ", 0x81: "NEWOBJ", 0x92: "NEWOBJ_EX",
	'R': "REDUCE", 'b': "BUILD", 0x82: "EXT1", 0x83: "EXT2", 0x84: "EXT4", 'P': "PERSID", 'Q': "BINPERSID",
	0x97: "NEXT_BUFFER", 0x98: "READONLY_BUFFER",
}

// otherwiseKnown are the instructions of pickle that are harmless and that no
// snapshot has: those of protocols 0 and 1, sets, bytes of Python 2.
const otherwiseKnown = "FILSTUVgpdla12\x8b\x8f\x90\x91\x96\x8e"

const protoOpcode = 0x80

// refusal says why an instruction is not passed on.
func refusal(op byte, at int64) error {
	if name, ok := runsCode[op]; ok {
		return fmt.Errorf("%w (%s at byte %d)", ErrNotPlain, name, at)
	}
	if strings.IndexByte(otherwiseKnown, op) >= 0 {
		return fmt.Errorf("not a memory snapshot: its pickle has an instruction that torch does not write (0x%02x at byte %d)", op, at)
	}
	return fmt.Errorf("%w: byte %d, 0x%02x, is no instruction of a pickle", ErrDamaged, at, op)
}

// operand says what follows an opcode in the stream.
type operand uint8

const (
	refused operand = iota // zero value: not needed for plain data, or unsafe
	nothing                // no operand
	fixed1                 // 1, 2, 4, 8: bytes of a number
	fixed2
	fixed4
	fixed8
	counted1 // length in 1, 4 or 8 bytes, then the text
	counted4
	counted8
)

// grammar is the part of pickle that plain data of protocols 2 to 5 needs.
// What is missing here (GLOBAL, REDUCE, BUILD, NEWOBJ, persistent ids, …) names,
// calls or asks for something and is refused before anything looks at it.
var grammar = [256]struct {
	operand operand
	effect  effect
}{
	0x80: {fixed1, keep},                                                // PROTO
	0x95: {fixed8, keep},                                                // FRAME
	'(':  {nothing, openMark},                                           // MARK
	'.':  {nothing, keep},                                               // STOP
	'0':  {nothing, drop},                                               // POP
	'N':  {nothing, push}, 0x88: {nothing, push}, 0x89: {nothing, push}, // NONE, NEWTRUE, NEWFALSE
	'K': {fixed1, push}, 'M': {fixed2, push}, 'J': {fixed4, push}, // BININT1, 2, 4
	0x8a: {counted1, push},                                                 // LONG1
	'G':  {fixed8, push},                                                   // BINFLOAT
	'X':  {counted4, push}, 0x8c: {counted1, push}, 0x8d: {counted8, push}, // unicode
	'B': {counted4, push}, 'C': {counted1, push}, // bytes
	']': {nothing, push}, '}': {nothing, push}, ')': {nothing, push}, // EMPTY_LIST, _DICT, _TUPLE
	't':  {nothing, closeTuple},                                          // TUPLE
	0x85: {nothing, keep}, 0x86: {nothing, drop}, 0x87: {nothing, drop2}, // TUPLE1 to 3
	'a': {nothing, drop}, 's': {nothing, drop2}, // APPEND, SETITEM
	'e': {nothing, closeInto}, 'u': {nothing, closeInto}, // APPENDS, SETITEMS
	'h': {fixed1, push}, 'j': {fixed4, push}, // BINGET, LONG_BINGET
	'q': {fixed1, keep}, 'r': {fixed4, keep}, 0x94: {nothing, keep}, // BINPUT, LONG_BINPUT, MEMOIZE
}

// effect is what an opcode does to the height of the unpickler's stack.
type effect uint8

const (
	keep effect = iota
	push
	drop
	drop2
	openMark
	closeTuple // down to the mark, then the tuple
	closeInto  // down to the mark, into the container below
)

// plainPickle passes on the instructions of a pickle, unchanged or rewritten,
// and refuses those that plain data does not need.
//
// The rewriting: lists and dicts become persistent references, because og-rek
// copies a list header when a list that is still being filled is memoised, and
// stacks shared by many events would come out empty. With each container a
// pointer of ours they keep their identity:
//
//	EMPTY_LIST   NONE, BINPERSID               load(None)      → *list
//	EMPTY_DICT   NEWFALSE, BINPERSID           load(false)     → *dict
//	APPENDS      TUPLE, TUPLE2, BINPERSID      load((l, (…)))  → l, filled
//	APPEND       TUPLE1, TUPLE2, BINPERSID
//	SETITEMS     as APPENDS
//	SETITEM      TUPLE2, TUPLE2, BINPERSID
//
// Pickles note every value for later reference and use few of the notes. A first
// pass collects which are used (uses); the second passes on no others, which
// saves more memory than the values need.
type plainPickle struct {
	r       *bufio.Reader
	limits  Limits
	uses    map[uint32]bool // notes that are referred to
	surveys bool            // first pass: uses is being filled, nothing is passed on
	noted   uint32          // MEMOIZE's next number
	read    int64
	objects int
	height  int
	marks   []int
	out     []byte // not yet handed on
	copying int64  // bytes of a text still to pass on
	done    bool
}

// survey reads a whole pickle, refuses what must be refused and returns the
// notes it uses.
func survey(r io.Reader, limits Limits) (map[uint32]bool, error) {
	p := &plainPickle{r: bufio.NewReaderSize(r, 1<<16), limits: limits, uses: map[uint32]bool{}, surveys: true}
	for !p.done {
		if err := p.instruction(); err != nil {
			return nil, err
		}
		if p.copying > 0 {
			if _, err := p.r.Discard(int(p.copying)); err != nil {
				return nil, unexpected(err)
			}
			p.copying = 0
		}
	}
	return p.uses, nil
}

func newPlainPickle(r io.Reader, limits Limits, uses map[uint32]bool) *plainPickle {
	return &plainPickle{r: bufio.NewReaderSize(r, 1<<16), limits: limits, uses: uses}
}

// Read implements io.Reader for og-rek.
func (p *plainPickle) Read(b []byte) (int, error) {
	for len(p.out) == 0 && p.copying == 0 {
		if p.done {
			return 0, io.EOF
		}
		if err := p.instruction(); err != nil {
			return 0, err
		}
	}
	if len(p.out) > 0 {
		n := copy(b, p.out)
		p.out = p.out[n:]
		return n, nil
	}
	n, err := p.r.Read(b[:min(int64(len(b)), p.copying)])
	p.copying -= int64(n)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// instruction reads instructions until some 4 KiB are ready to hand on, or a
// long text follows.
func (p *plainPickle) instruction() error {
	p.out = p.out[:0]
	for len(p.out) < 4096 && p.copying == 0 && !p.done {
		op, err := p.r.ReadByte()
		if err != nil {
			return unexpected(err)
		}
		at := p.read
		p.read++
		g := grammar[op]
		if g.operand == refused {
			return refusal(op, at)
		}
		if err := p.account(g.effect); err != nil {
			return err
		}
		if op == memoize {
			p.note(p.noted)
			continue
		}
		if rewritten := rewrite(op); rewritten != "" {
			p.out = append(p.out, rewritten...)
			continue
		}
		if err := p.pass(op, g.operand); err != nil {
			return err
		}
		p.done = op == '.'
	}
	return nil
}

const long1 = 0x8a // an integer of up to 255 bytes

// Instructions on notes.
const (
	memoize   = 0x94 // under the next free number
	put       = 'q'
	longPut   = 'r'
	refer     = 'h'
	longRefer = 'j'
)

// note passes on the noting of the value on top under a number, if that is used.
func (p *plainPickle) note(number uint32) {
	p.noted++
	if !p.surveys && p.uses[number] {
		p.out = binary.LittleEndian.AppendUint32(append(p.out, longPut), number)
	}
}

func rewrite(op byte) string {
	switch op {
	case ']':
		return "NQ"
	case '}':
		return "\x89Q"
	case 'e', 'u':
		return "t\x86Q"
	case 'a':
		return "\x85\x86Q"
	case 's':
		return "\x86\x86Q"
	}
	return ""
}

// account follows the height of the stack and the number of values.
func (p *plainPickle) account(e effect) error {
	switch e {
	case push:
		p.height++
		p.objects++
	case drop:
		p.height--
		if n := len(p.marks); n > 0 && p.marks[n-1] >= p.height { // POP takes a mark too
			p.marks = p.marks[:n-1]
		}
	case drop2:
		p.height -= 2
	case openMark:
		p.marks = append(p.marks, p.height)
		p.height++
	case closeTuple, closeInto:
		if len(p.marks) == 0 {
			return fmt.Errorf("%w: a list ends that never began", ErrDamaged)
		}
		p.height = p.marks[len(p.marks)-1]
		p.marks = p.marks[:len(p.marks)-1]
		if e == closeTuple {
			p.height++
		}
		p.objects++
	}
	if p.height > p.limits.Depth || p.objects > p.limits.Objects || p.read > p.limits.Bytes {
		return ErrTooLarge
	}
	return nil
}

// pass hands on one instruction with its operand.
func (p *plainPickle) pass(op byte, kind operand) error {
	width := [...]int{refused: 0, nothing: 0, fixed1: 1, fixed2: 2, fixed4: 4, fixed8: 8, counted1: 1, counted4: 4, counted8: 8}[kind]
	var number [8]byte
	if _, err := io.ReadFull(p.r, number[:width]); err != nil {
		return unexpected(err)
	}
	p.read += int64(width)
	switch n := binary.LittleEndian.Uint32(number[:4]); op {
	case put, longPut:
		p.note(n)
		return nil
	case refer, longRefer:
		if p.surveys {
			p.uses[n] = true
		}
	}
	if kind < counted1 {
		p.out = append(append(p.out, op), number[:width]...)
		return nil
	}
	length := binary.LittleEndian.Uint64(number[:])
	if length > uint64(p.limits.Bytes) || length > 1<<31 {
		return ErrTooLarge
	}
	p.read += int64(length)
	if op == long1 && length <= 8 {
		return p.number(int(length))
	}
	if kind == counted8 { // og-rek knows texts of up to 4 GiB only
		op, width = 'X', 4
	}
	p.out = append(append(p.out, op), number[:width]...)
	if length <= 512 {
		at := len(p.out)
		p.out = append(p.out, make([]byte, length)...)
		if _, err := io.ReadFull(p.r, p.out[at:]); err != nil {
			return unexpected(err)
		}
		return nil
	}
	p.copying = int64(length)
	return nil
}

// number passes on a long that fits 64 bits as decimal INT, which og-rek reads
// without big numbers.
func (p *plainPickle) number(length int) error {
	var digits [8]byte
	if _, err := io.ReadFull(p.r, digits[:length]); err != nil {
		return unexpected(err)
	}
	shift := 8 * (8 - length) // sign extension
	n := int64(binary.LittleEndian.Uint64(digits[:])) << shift >> shift
	p.out = append(strconv.AppendInt(append(p.out, 'I'), n, 10), '\n')
	return nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: the file ends in the middle of it (%w)", ErrDamaged, io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("reading the memory snapshot: %w", err)
}
