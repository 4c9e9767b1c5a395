package snapshot

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"strings"
)

// Limits bound what a pickle may make the reader do. Zero means the default.
type Limits struct {
	Bytes   int64 // of the pickle; 4 GiB
	Objects int   // members of lists and dicts that are kept at once, and members looked at; 200 million
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

// instructions reads a pickle instruction by instruction and refuses those that plain data does not need.
type instructions struct {
	r      *bufio.Reader
	limits Limits
	read   int64

	op      byte
	number  uint64 // the operand, or the length of the text
	operand operand
}

func newInstructions(r io.Reader, limits Limits) *instructions {
	return &instructions{r: bufio.NewReaderSize(r, 1<<18), limits: limits}
}

// next reads an instruction up to its text, which the caller must read.
func (in *instructions) next() error {
	op, err := in.r.ReadByte()
	if err != nil {
		return unexpected(err)
	}
	at := in.read
	in.read++
	in.op, in.operand, in.number = op, grammar[op].operand, 0
	width := operandWidth[in.operand]
	switch {
	case in.operand == refused:
		return refusal(op, at)
	case width == 0:
		return nil
	case width == 1:
		b, err := in.r.ReadByte()
		if err != nil {
			return unexpected(err)
		}
		in.number = uint64(b)
	default:
		b, err := in.r.Peek(width)
		if err != nil {
			return unexpected(err)
		}
		var number [8]byte
		copy(number[:], b)
		in.number = binary.LittleEndian.Uint64(number[:])
		in.r.Discard(width) // no error: they were peeked at
	}
	in.read += int64(width)
	if in.operand >= counted1 {
		if in.number > uint64(in.limits.Bytes) || in.number > 1<<31 {
			return ErrTooLarge
		}
		in.read += int64(in.number)
	}
	if in.read > in.limits.Bytes {
		return ErrTooLarge
	}
	return nil
}

// hasText reports whether a text of in.number bytes follows.
func (in *instructions) hasText() bool { return in.operand >= counted1 }

var operandWidth = [...]int{refused: 0, nothing: 0, fixed1: 1, fixed2: 2, fixed4: 4, fixed8: 8, counted1: 1, counted4: 4, counted8: 8}

// Instructions with a meaning of their own.
const (
	stop      = '.'
	memoize   = 0x94 // under the next free number
	put       = 'q'
	longPut   = 'r'
	refer     = 'h'
	longRefer = 'j'
	emptyDict = '}'
)

// surveyed is what a first pass finds out about a pickle: it refuses what must be refused before anything is built, and lists
// the notes that are used. Pickles note every value for later reference and use few of the notes.
type surveyed struct {
	used  []uint64 // a bit per note
	dicts int

	objects, height int
	marks           []int
}

// survey reads a whole pickle.
func survey(r io.Reader, limits Limits) (*surveyed, error) {
	in := newInstructions(r, limits)
	s := &surveyed{}
	for in.op != stop {
		if err := in.next(); err != nil {
			return nil, err
		}
		if err := s.account(grammar[in.op].effect, limits); err != nil {
			return nil, err
		}
		switch in.op {
		case refer, longRefer:
			s.use(uint32(in.number))
		case emptyDict:
			s.dicts++
		}
		if in.hasText() {
			if _, err := in.r.Discard(int(in.number)); err != nil {
				return nil, unexpected(err)
			}
		}
	}
	return s, nil
}

// use marks a note as used. One whose number no value can have is found to be unknown later.
func (s *surveyed) use(note uint32) {
	word := int(note / 64)
	if word >= len(s.used) {
		if int(note) > s.objects {
			return
		}
		s.used = append(s.used, make([]uint64, word+1-len(s.used))...)
	}
	s.used[word] |= 1 << (note % 64)
}

// account follows the height of the stack and the number of values.
func (s *surveyed) account(e effect, limits Limits) error {
	switch e {
	case push:
		s.height++
		s.objects++
	case drop:
		s.height--
		if n := len(s.marks); n > 0 && s.marks[n-1] >= s.height { // POP takes a mark too
			s.marks = s.marks[:n-1]
		}
	case drop2:
		s.height -= 2
	case openMark:
		s.marks = append(s.marks, s.height)
		s.height++
	case closeTuple, closeInto:
		if len(s.marks) == 0 {
			return fmt.Errorf("%w: a list ends that never began", ErrDamaged)
		}
		s.height = s.marks[len(s.marks)-1]
		s.marks = s.marks[:len(s.marks)-1]
		if e == closeTuple {
			s.height++
		}
		s.objects++
	}
	if s.height > limits.Depth {
		return ErrTooLarge
	}
	return nil
}

// notes are the values that are used again, by their number.
type notes struct {
	used   []uint64
	before []uint32 // by word of used: how many bits are set in the words before it
	values []value
	next   uint32 // MEMOIZE's number
}

func newNotes(s *surveyed) *notes {
	n := &notes{used: s.used, before: make([]uint32, len(s.used))}
	all := 0
	for i, word := range s.used {
		n.before[i] = uint32(all)
		all += bits.OnesCount64(word)
	}
	n.values = make([]value, all)
	return n
}

// at is where a note's value is; -1 if it is never used.
func (n *notes) at(note uint32) int {
	word, bit := int(note/64), uint64(1)<<(note%64)
	if word >= len(n.used) || n.used[word]&bit == 0 {
		return -1
	}
	return int(n.before[word]) + bits.OnesCount64(n.used[word]&(bit-1))
}

func (n *notes) put(note uint32, v value) {
	n.next++
	if at := n.at(note); at >= 0 {
		n.values[at] = v
	}
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: the file ends in the middle of it (%w)", ErrDamaged, io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("reading the memory snapshot: %w", err)
}
