package cpython

import "errors"

// Layout of dictionaries and instance attributes, the same from 3.11 to 3.15
// but for where an object's values lie (see attributes): struct _dictkeysobject of
// internal/pycore_dict.h, PyDictObject of cpython/dictobject.h.
const (
	keysIndexLog = 9  // PyDictKeysObject.dk_log2_index_bytes
	keysKind     = 10 // dk_kind: 0 general, 1 and 2 with strings only
	keysCount    = 24 // dk_nentries
	keysIndices  = 32 // dk_indices; the entries follow
	keysEntry    = 16 // bytes of an entry with string keys: key, value
	dictKeys     = 32 // PyDictObject.ma_keys
	dictValues   = 40 // ma_values
	dictPointer  = 24 // an object's dictionary pointer lies this far before it
)

var errNoName = errors.New("no name to be found")

// Attribute returns the address of an instance attribute's value.
func (o *Objects) Attribute(object uint64, name string) (uint64, error) {
	keys, values, _, err := o.table(object)
	if err != nil {
		return 0, err
	}
	_, value, err := o.value(keys, values, name)
	return value, err
}

// table returns the table of an object's attributes, as value takes it, and its dictionary; 0: it has none.
func (o *Objects) table(object uint64) (keys, values, dict uint64, err error) {
	if values, dict, err = o.attributes(object); err != nil {
		return 0, 0, 0, err
	}
	if values != 0 {
		typ, err := ReadWord(o.mem, object+objectType)
		if err != nil {
			return 0, 0, 0, err
		}
		keys, err = ReadWord(o.mem, typ+o.layout.CachedKeys)
		return keys, values, 0, err
	}
	if dict == 0 {
		return 0, 0, 0, errNoName
	}
	if keys, err = ReadWord(o.mem, dict+dictKeys); err != nil {
		return 0, 0, 0, err
	}
	if values, err = ReadWord(o.mem, dict+dictValues); err != nil {
		return 0, 0, 0, err
	}
	if values != 0 && o.layout.Version.Minor >= 13 {
		values += WordSize // its header
	}
	return keys, values, dict, nil
}

// attributes returns where an object keeps its attributes: the address of the
// first of its values, in the order of its type's keys, or its dictionary.
func (o *Objects) attributes(object uint64) (values, dict uint64, err error) {
	pointer, err := ReadWord(o.mem, object-dictPointer)
	if err != nil {
		return 0, 0, err
	}
	switch {
	case o.layout.Version.Minor == 11: // the values' pointer lies before the dictionary's
		values, err = ReadWord(o.mem, object-dictPointer-WordSize)
		return values, pointer, err
	case o.layout.Version.Minor == 12: // one pointer for both
		if pointer&1 != 0 {
			return pointer + 1, 0, nil
		}
		return 0, pointer, nil
	case pointer != 0:
		return 0, pointer, nil
	}
	return object + 16 + WordSize, 0, nil // within the object, behind its head and theirs
}

// value looks a name up in a table of keys, and returns the address of its value and where that address lies; values is where
// the values lie, or 0 where each entry has its own.
func (o *Objects) value(keys, values uint64, name string) (place, value uint64, err error) {
	if at, ok := o.names[named{keys, name}]; ok {
		var entry [keysEntry]byte
		if err := ReadAt(o.mem, at.entry, entry[:]); err == nil && Word(entry[:], 0) == at.key {
			if values != 0 {
				return o.placed(values + WordSize*at.index)
			}
			return at.entry + WordSize, Word(entry[:], WordSize), nil
		}
		delete(o.names, named{keys, name})
	}
	var head [keysIndices]byte
	if err := ReadAt(o.mem, keys, head[:]); err != nil {
		return 0, 0, err
	}
	if kind := head[keysKind]; kind == 0 || kind > 2 || head[keysIndexLog] > 16 {
		return 0, 0, errNoName
	}
	first := keys + keysIndices + 1<<head[keysIndexLog]
	entries := make([]byte, keysEntry*min(Word(head[:], keysCount), maxNames))
	if err := ReadAt(o.mem, first, entries); err != nil {
		return 0, 0, err
	}
	for i := 0; len(entries) > 0; i, entries = i+1, entries[keysEntry:] {
		key := Word(entries, 0)
		if text, err := o.Text(key); err != nil || text != name {
			continue
		}
		o.remember(named{keys, name}, nameAt{entry: first + keysEntry*uint64(i), key: key, index: uint64(i)})
		if values != 0 {
			return o.placed(values + WordSize*uint64(i))
		}
		return first + keysEntry*uint64(i) + WordSize, Word(entries, WordSize), nil
	}
	return 0, 0, errNoName
}

func (o *Objects) placed(at uint64) (place, value uint64, err error) {
	value, err = ReadWord(o.mem, at)
	return at, value, err
}

// named is a name that was looked up in a table of keys, and nameAt where it was: the entry holds
// for as long as it has the same key.
type (
	named struct {
		keys uint64
		name string
	}
	nameAt struct{ entry, key, index uint64 }
)

const maxNamed = 1 << 10

func (o *Objects) remember(name named, at nameAt) {
	if o.names == nil || len(o.names) >= maxNamed {
		o.names = make(map[named]nameAt)
	}
	o.names[name] = at
}

// Type objects and what describes their slots: PyTypeObject.tp_dict (cpython/object.h),
// PyMemberDescrObject.d_member (cpython/descrobject.h), PyMemberDef.offset (descrobject.h).
const (
	typeDict         = 264
	descriptorMember = 40
	memberOffset     = 16
	maxSlot          = 1 << 12
)

// Slot returns where in the objects of a class the value of one of its own __slots__ lies.
func (o *Objects) Slot(class uint64, name string) (uint64, error) {
	dict, err := ReadWord(o.mem, class+typeDict)
	if err != nil {
		return 0, err
	}
	keys, err := ReadWord(o.mem, dict+dictKeys)
	if err != nil {
		return 0, err
	}
	_, descriptor, err := o.value(keys, 0, name)
	if err != nil {
		return 0, err
	}
	member, err := ReadWord(o.mem, descriptor+descriptorMember)
	if err != nil || o.TypeName(descriptor) != "member_descriptor" {
		return 0, errors.Join(errNoName, err)
	}
	offset, err := ReadWord(o.mem, member+memberOffset)
	if err != nil || offset > maxSlot || offset%WordSize != 0 {
		return 0, errors.Join(errNoName, err)
	}
	return offset, nil
}

// PyCellObject.ob_ref (cpython/cellobject.h), and PyLongObject.long_value.ob_digit
// (cpython/longintrepr.h): both begin behind the object's head, of a long behind lv_tag,
// which is ob_size in 3.11. A digit has 30 bits.
const (
	cellContent = 16
	longTag     = varSize
	longDigit   = longTag + WordSize
	digitBits   = 30

	maxDigits     = 3                          // of 63 bits
	leastLong     = longDigit + 4 - objectType // bytes from the type on to the first digit, which each has
	signMask      = 3                          // 3.12+: of lv_tag; the next bit marks the small ints that 3.14 keeps for ever
	longSizeShift = 3                          // 3.12+: bits of lv_tag below the number of digits
)

// Content returns what a cell holds, the variable of a function that inner functions use,
// too; of any other object it returns the object.
func (o *Objects) Content(object uint64) (uint64, error) {
	if o.TypeName(object) != "cell" {
		return object, nil
	}
	return ReadWord(o.mem, object+cellContent)
}

// Integer returns the value of an int or bool object that is not negative and less than 2**63; ok is false for any other.
func (o *Objects) Integer(object uint64) (value int64, ok bool) {
	if !mayBeObject(object) {
		return 0, false
	}
	var long [longDigit + 4*maxDigits - objectType]byte // from its type on
	n, err := o.mem.Read(long[:], []Range{{object + objectType, len(long)}})
	if err == nil && n < len(long) { // one with less digits may lie at the end of what is mapped
		n, err = o.mem.Read(long[:], []Range{{object + objectType, leastLong}})
	}
	if name := o.nameOf(Word(long[:], 0)); err != nil || n < leastLong || name != "int" && name != "bool" {
		return 0, false
	}
	digits := Word(long[:], longTag-objectType)
	if o.layout.Version.Minor != 11 {
		if sign := digits & signMask; sign > 1 { // 0 is positive, 1 zero
			return 0, false
		}
		digits >>= longSizeShift
	}
	if digits > maxDigits || digits > 1 && n < len(long) {
		return 0, false
	}
	for i := range digits {
		digit := int64(Half(long[:], longDigit-objectType+4*i))
		if digit >= 1<<digitBits || i == 2 && digit > 7 {
			return 0, false
		}
		value |= digit << (digitBits * i)
	}
	return value, true
}

// SmallInt returns the value of an int object from 1 to 2**30 - 1; 0 for any other object.
func (o *Objects) SmallInt(object uint64) int {
	value, ok := o.Integer(object)
	if !ok || value >= 1<<digitBits || o.TypeName(object) != "int" {
		return 0
	}
	return int(value)
}
