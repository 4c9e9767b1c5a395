package pytasks

import (
	"errors"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
)

// Layout of what is the same from 3.11 to 3.15 and no version describes: PySetObject of
// cpython/setobject.h, PyWeakReference of cpython/weakrefobject.h, PyDictObject of
// cpython/dictobject.h with struct _dictkeysobject of internal/pycore_dict.h.
const (
	objectType = 8 // PyObject.ob_type

	setMask  = 32 // PySetObject.mask
	setTable = 40 // PySetObject.table
	setEntry = 16 // bytes of a setentry: key, hash

	weakTarget = 16 // PyWeakReference.wr_object

	dictKeys   = 32 // PyDictObject.ma_keys
	dictValues = 40 // PyDictObject.ma_values
	keysLog    = 9  // dk_log2_index_bytes
	keysKind   = 10 // dk_kind: 0 general, 1 and 2 with strings only
	keysCount  = 24 // dk_nentries
	keysHead   = 32 // dk_indices; the entries follow
)

const (
	maxEntries = 1 << 18 // of a set or dictionary; a larger one is taken for torn
	maxTasks   = 1 << 17
)

var errTorn = errors.New("a container changed while it was read")

// members returns the keys of a set.
func (r *Reader) members(set uint64) ([]uint64, error) {
	var head [setTable + cpython.WordSize]byte
	if err := cpython.ReadAt(r.mem, set, head[:]); err != nil {
		return nil, err
	}
	mask, table := cpython.Word(head[:], setMask), cpython.Word(head[:], setTable)
	if mask >= maxEntries || mask&(mask+1) != 0 {
		return nil, errTorn
	}
	entries := make([]byte, (mask+1)*setEntry)
	if err := cpython.ReadAt(r.mem, table, entries); err != nil {
		return nil, err
	}
	var keys []uint64
	for ; len(entries) > 0; entries = entries[setEntry:] {
		if key, hash := cpython.Word(entries, 0), cpython.Word(entries, cpython.WordSize); key != 0 && hash != ^uint64(0) {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// living returns what the members of a WeakSet refer to.
func (r *Reader) living(weakSet uint64) ([]uint64, error) {
	set, err := r.objects.Attribute(weakSet, "data")
	if err != nil {
		return nil, err
	}
	refs, err := r.members(set)
	if err != nil {
		return nil, err
	}
	if err := r.batch.read(refs, weakTarget+cpython.WordSize); err != nil {
		return nil, err
	}
	var out []uint64
	for i := range refs {
		if at := cpython.Word(r.batch.of(i, weakTarget+cpython.WordSize), weakTarget); at != 0 {
			out = append(out, at)
		}
	}
	return out, nil
}

type item struct{ key, value uint64 }

// items returns the entries of a dictionary that is not an object's attributes. Those that were taken out are 0.
func (r *Reader) items(dict uint64) ([]item, error) {
	_, items, _, err := r.itemsSince(dict, 0, 0)
	return items, err
}

// itemsSince returns those entries that follow the first ones of a table, in the order in which they were put in, or
// all if the dictionary has another table by now, and how many there are in all.
func (r *Reader) itemsSince(dict, was, seen uint64) (table uint64, out []item, count uint64, err error) {
	var head [dictValues + cpython.WordSize]byte
	if err := cpython.ReadAt(r.mem, dict, head[:]); err != nil {
		return 0, nil, 0, err
	}
	table = cpython.Word(head[:], dictKeys)
	var keys [keysHead]byte
	if err := cpython.ReadAt(r.mem, table, keys[:]); err != nil {
		return 0, nil, 0, err
	}
	size, skip := uint64(16), uint64(0)
	if keys[keysKind] == 0 {
		size, skip = 24, cpython.WordSize // the hash comes first
	}
	count = cpython.Word(keys[:], keysCount)
	if cpython.Word(head[:], dictValues) != 0 || count > maxEntries || keys[keysLog] > 24 {
		return 0, nil, 0, errTorn
	}
	if table != was || seen > count {
		seen = 0
	}
	entries := make([]byte, (count-seen)*size)
	if err := cpython.ReadAt(r.mem, table+keysHead+1<<keys[keysLog]+seen*size, entries); err != nil {
		return 0, nil, 0, err
	}
	for ; len(entries) > 0; entries = entries[size:] {
		out = append(out, item{cpython.Word(entries, skip), cpython.Word(entries, skip+cpython.WordSize)})
	}
	return table, out, count, nil
}

// lookup returns the value of a name in a dictionary; 0 if it has none.
func (r *Reader) lookup(dict uint64, name string) (uint64, error) {
	items, err := r.items(dict)
	if err != nil {
		return 0, err
	}
	found, err := r.named(items, []string{name})
	if err != nil {
		return 0, err
	}
	return found[0], nil
}

// named returns the values that entries of a dictionary have for names; 0 where there is none. The entries' names are
// read by one call.
func (r *Reader) named(items []item, names []string) ([]uint64, error) {
	text := int(r.l.Str.ASCII)
	longest := 0
	for _, name := range names {
		longest = max(longest, len(name))
	}
	size := text + longest
	addrs := make([]uint64, len(items))
	for i := range items {
		addrs[i] = items[i].key
	}
	if err := r.batch.read(addrs, size); err != nil {
		return nil, err
	}
	found := make([]uint64, len(names))
	for i := range items {
		b := r.batch.of(i, size)
		if b == nil {
			continue
		}
		for k, name := range names {
			if cpython.Word(b, r.l.Str.Length) == uint64(len(name)) && string(b[text:text+len(name)]) == name {
				found[k] = items[i].value
			}
		}
	}
	return found, nil
}
