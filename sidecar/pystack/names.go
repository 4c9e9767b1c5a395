package pystack

import (
	"errors"
	"strings"
)

// Layout of dictionaries and instance attributes, the same from 3.11 to 3.15
// but for where an object's values lie (see attributes).
const (
	keysIndexLog = 9  // PyDictKeysObject.dk_log2_index_bytes
	keysKind     = 10 // dk_kind: 0 general, 1 and 2 with strings only
	keysCount    = 24 // dk_nentries
	keysIndices  = 32 // dk_indices; the entries follow
	keysEntry    = 16 // bytes of an entry with string keys: key, value
	dictKeys     = 32 // PyDictObject.ma_keys
	dictValues   = 40 // ma_values
	dictPointer  = 24 // an object's dictionary pointer lies this far before it
	maxKeys      = 64 // attributes looked at
)

var errNoName = errors.New("no name to be found")

// threadName returns what threading calls a thread: the attribute _name of the
// Thread object, which is the first local of the thread's first frame,
// Thread._bootstrap.
func (r *reader) threadName(t *thread) (string, error) {
	if len(t.stack) == 0 {
		return "", errNoName
	}
	root := &t.stack[0]
	if root.object.function != "Thread._bootstrap" || !strings.HasSuffix(root.object.file, "threading.py") {
		return "", errNoName
	}
	object, err := readWord(r.mem, root.addr+r.l.frame.locals)
	if err != nil {
		return "", err
	}
	name, err := r.attribute(object&^r.l.codeTag, "_name")
	if err != nil {
		return "", err
	}
	return readString(r.mem, r.l, name)
}

// attribute returns the address of an instance attribute's value.
func (r *reader) attribute(object uint64, name string) (uint64, error) {
	values, dict, err := r.attributes(object)
	if err != nil {
		return 0, err
	}
	if values != 0 {
		typ, err := readWord(r.mem, object+objectType)
		if err != nil {
			return 0, err
		}
		keys, err := readWord(r.mem, typ+r.l.cachedKeys)
		if err != nil {
			return 0, err
		}
		return r.value(keys, values, name)
	}
	if dict == 0 {
		return 0, errNoName
	}
	keys, err := readWord(r.mem, dict+dictKeys)
	if err != nil {
		return 0, err
	}
	if values, err = readWord(r.mem, dict+dictValues); err != nil {
		return 0, err
	}
	if values != 0 && r.l.version.minor >= 13 {
		values += wordSize // its header
	}
	return r.value(keys, values, name)
}

// attributes returns where an object keeps its attributes: the address of the
// first of its values, in the order of its type's keys, or its dictionary.
func (r *reader) attributes(object uint64) (values, dict uint64, err error) {
	pointer, err := readWord(r.mem, object-dictPointer)
	if err != nil {
		return 0, 0, err
	}
	switch {
	case r.l.version.minor == 11: // the values' pointer lies before the dictionary's
		values, err = readWord(r.mem, object-dictPointer-wordSize)
		return values, pointer, err
	case r.l.version.minor == 12: // one pointer for both
		if pointer&1 != 0 {
			return pointer + 1, 0, nil
		}
		return 0, pointer, nil
	case pointer != 0:
		return 0, pointer, nil
	}
	return object + 16 + wordSize, 0, nil // within the object, behind its head and theirs
}

// value looks a name up in a table of keys; values is where the values lie, or
// 0 where each entry has its own.
func (r *reader) value(keys, values uint64, name string) (uint64, error) {
	var head [keysIndices]byte
	if err := readAt(r.mem, keys, head[:]); err != nil {
		return 0, err
	}
	if kind := head[keysKind]; kind == 0 || kind > 2 || head[keysIndexLog] > 16 {
		return 0, errNoName
	}
	entries := make([]byte, keysEntry*min(word(head[:], keysCount), maxKeys))
	if err := readAt(r.mem, keys+keysIndices+1<<head[keysIndexLog], entries); err != nil {
		return 0, err
	}
	for i := 0; len(entries) > 0; i, entries = i+1, entries[keysEntry:] {
		key := word(entries, 0)
		if text, err := readString(r.mem, r.l, key); err != nil || text != name {
			continue
		}
		if values != 0 {
			return readWord(r.mem, values+wordSize*uint64(i))
		}
		return word(entries, wordSize), nil
	}
	return 0, errNoName
}
