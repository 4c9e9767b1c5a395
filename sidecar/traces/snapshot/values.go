package snapshot

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// value is one of a pickle.
type value struct {
	kind   valueKind
	n      int64 // of an integer itself; of a text its number; of a truth 0 or 1
	object *object
}

type valueKind uint8

const (
	nothingKnown valueKind = iota // None, bytes, tuples: what a snapshot has no use of
	unset                         // a note that no value has been given yet
	truthValue
	integer
	textValue
	listValue
	dictValue
)

// object is a list or dict. Nearly all dicts of a snapshot are events, and nearly all others frames: these are read when they are
// complete and keep no members.
type object struct {
	items []value // of a list; of a dict key, value, key, value …
	// first and end are the events that a list of nothing else has, where they follow one another.
	first, end int32
	event      int32 // of a dict: index of the event that it is, from 1
	frame      int32 // of a dict: index of the frame that it is, from 1
	stack      StackID
	isStack    bool // of a list: stack is what it is
}

// machine is the unpickler.
type machine struct {
	in     *instructions
	notes  *notes
	stack  []value
	marks  []int
	reader *reader
	text   []byte
}

// run executes a pickle and returns its value.
func (m *machine) run() (value, error) {
	for {
		if err := m.in.next(); err != nil {
			return value{}, err
		}
		if m.in.op == stop {
			if len(m.stack) == 0 {
				return value{}, errStack
			}
			return m.stack[len(m.stack)-1], nil
		}
		if err := m.step(); err != nil {
			return value{}, err
		}
	}
}

var errStack = fmt.Errorf("%w: an instruction lacks its values", ErrDamaged)

func (m *machine) push(v value) { m.stack = append(m.stack, v) }

// pop takes off values, none below a mark.
func (m *machine) pop(n int) ([]value, error) {
	floor := 0
	if k := len(m.marks); k > 0 {
		floor = m.marks[k-1]
	}
	at := len(m.stack) - n
	if at < floor {
		return nil, errStack
	}
	values := m.stack[at:]
	m.stack = m.stack[:at]
	return values, nil
}

// popMark takes off the values above the last mark, and that.
func (m *machine) popMark() ([]value, error) {
	k := len(m.marks)
	if k == 0 || m.marks[k-1] > len(m.stack) {
		return nil, errStack
	}
	at := m.marks[k-1]
	m.marks = m.marks[:k-1]
	values := m.stack[at:]
	m.stack = m.stack[:at]
	return values, nil
}

// step executes an instruction.
func (m *machine) step() error {
	in := m.in
	switch op := in.op; op {
	case 0x80, 0x95: // PROTO, FRAME
	case '(':
		m.marks = append(m.marks, len(m.stack))
	case '0':
		if k := len(m.marks); k > 0 && m.marks[k-1] == len(m.stack) {
			m.marks = m.marks[:k-1]
			return nil
		}
		_, err := m.pop(1)
		return err
	case 'N', ')', 'G':
		m.push(floating(in))
	case 0x88, 0x89:
		m.push(value{kind: truthValue, n: int64(0x89 - op)})
	case 'K', 'M':
		m.push(value{kind: integer, n: int64(in.number)})
	case 'J':
		m.push(value{kind: integer, n: int64(int32(in.number))})
	case ']':
		m.push(value{kind: listValue, object: &object{}})
	case emptyDict:
		m.push(value{kind: dictValue, object: &object{}})
	case 0x8a, 'X', 0x8c, 0x8d, 'B', 'C':
		return m.readText()
	case put, longPut, memoize:
		return m.note()
	case refer, longRefer:
		return m.refer()
	default:
		return m.combine(op)
	}
	return nil
}

// floating is the value of BINFLOAT, whose bytes are in the other order; of NONE and EMPTY_TUPLE it is nothing.
func floating(in *instructions) value {
	if in.op != 'G' {
		return value{}
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], in.number)
	f := math.Float64frombits(binary.BigEndian.Uint64(b[:]))
	if math.IsNaN(f) || math.Abs(f) >= 1<<63 {
		return value{kind: integer}
	}
	return value{kind: integer, n: int64(f)}
}

// readText reads the text of an instruction: a long number, a text, or bytes, which nobody needs.
func (m *machine) readText() error {
	length := int(m.in.number)
	if cap(m.text) < length {
		m.text = make([]byte, length)
	}
	m.text = m.text[:length]
	if _, err := io.ReadFull(m.in.r, m.text); err != nil {
		return unexpected(err)
	}
	switch m.in.op {
	case 0x8a:
		m.push(value{kind: integer, n: longOf(m.text)})
	case 'B', 'C':
		m.push(value{})
	default:
		m.push(value{kind: textValue, n: int64(m.reader.texts.number(m.text))})
	}
	return nil
}

// longOf is the lower half of a number in two's complement, if it has more than 64 bits.
func longOf(b []byte) int64 {
	var digits [8]byte
	if n := len(b); n > 0 && b[n-1]&0x80 != 0 {
		digits = [8]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	}
	copy(digits[:], b)
	return int64(binary.LittleEndian.Uint64(digits[:]))
}

func (m *machine) note() error {
	if len(m.stack) == 0 {
		return errStack
	}
	number := uint32(m.in.number)
	if m.in.op == memoize {
		number = m.notes.next
	}
	m.notes.put(number, m.stack[len(m.stack)-1])
	return nil
}

func (m *machine) refer() error {
	at := m.notes.at(uint32(m.in.number))
	if at < 0 || m.notes.values[at].kind == unset {
		return fmt.Errorf("%w: it refers to a value that was never noted", ErrDamaged)
	}
	m.push(m.notes.values[at])
	return nil
}

// combine executes the instructions that take values off the stack.
func (m *machine) combine(op byte) error {
	var values []value
	var err error
	switch op {
	case 't', 'e', 'u':
		values, err = m.popMark()
	case 's', 0x86:
		values, err = m.pop(2)
	case 'a', 0x85:
		values, err = m.pop(1)
	case 0x87:
		values, err = m.pop(3)
	}
	if err != nil {
		return err
	}
	if op == 't' || op >= 0x85 {
		m.push(value{})
		return nil
	}
	if len(m.stack) == 0 {
		return errStack
	}
	into := m.stack[len(m.stack)-1]
	switch {
	case into.kind == listValue && (op == 'a' || op == 'e'):
		return m.reader.extend(into.object, values)
	case into.kind == dictValue && (op == 's' || op == 'u'):
		return m.reader.fill(into.object, values)
	}
	return fmt.Errorf("%w: values are added to something that is no list or dict", ErrDamaged)
}

// append adds values to a list.
func (o *object) append(values []value) {
	for i := range values {
		v := &values[i]
		if v.kind == dictValue && v.object.event > 0 && len(o.items) == 0 {
			at := v.object.event - 1
			if o.first == o.end {
				o.first, o.end = at, at
			}
			if at == o.end {
				o.end++
				continue
			}
		}
		if o.first < o.end { // no longer one event after the other
			for at := o.first; at < o.end; at++ {
				o.items = append(o.items, value{kind: dictValue, object: &object{event: at + 1}})
			}
			o.first, o.end = 0, 0
		}
		o.items = append(o.items, *v)
	}
}

// get returns a member of a dict.
func (o *object) get(k memberName) value {
	for i := len(o.items) - 2; i >= 0; i -= 2 {
		if o.items[i].kind == textValue && o.items[i].n == int64(k) {
			return o.items[i+1]
		}
	}
	return value{}
}
