package cpython

// Held is a word of memory that was read, and holds for as long as it is the same.
type Held struct{ Addr, Value uint64 }

// Place is where an object has the address of an attribute's value, and what that was.
type Place struct{ Addr, Value uint64 }

// PyObject.ob_refcnt (object.h): an object that was deallocated has 0, up to 3.11 in 64 bits, from 3.12 on in the lower 32.
const (
	Refcount     = 0
	RefcountMask = 1<<32 - 1
)

// Places finds where an object has attributes, one behind the other. For as long as the words of held are the same, and the object is one,
// the values of the attributes are there.
func (o *Objects) Places(object uint64, names ...string) (places []Place, held []Held, err error) {
	if !mayBeObject(object) {
		return nil, nil, errNoName
	}
	hold := []uint64{object + objectType, object - dictPointer}
	if o.layout.Version.Minor == 11 {
		hold = append(hold, object-dictPointer-WordSize) // where its values lie
	}
	keys, values, dict, err := o.table(object)
	if err != nil {
		return nil, nil, err
	}
	if dict != 0 {
		hold = append(hold, dict+dictKeys, dict+dictValues)
	}
	for _, at := range hold {
		value, err := ReadWord(o.mem, at)
		if err != nil {
			return nil, nil, err
		}
		held = append(held, Held{at, value})
	}
	for _, name := range names {
		place, value, err := o.value(keys, values, name)
		if err != nil {
			return nil, nil, err
		}
		places = append(places, Place{place, value})
	}
	return places, held, nil
}

// SemLockObject of Modules/_multiprocessing/semaphore.c: handle, last_tid, count, maxvalue.
const (
	semaphoreHandle = 16
	semaphoreMost   = 36
	semaphoreSize   = 40
)

// Semaphore returns where the value of a semaphore of multiprocessing lies, in memory that its processes share, and the most
// it can be. The lower 32 bits of the word are the value: struct new_sem of glibc's internaltypes.h where a processor has atomic operations
// of 64 bits; the first int of musl's sem_t.
func (o *Objects) Semaphore(object uint64) (value uint64, most uint32, ok bool) {
	if !mayBeObject(object) || o.TypeName(object) != "_multiprocessing.SemLock" {
		return 0, 0, false
	}
	var b [semaphoreSize]byte
	if ReadAt(o.mem, object, b[:]) != nil {
		return 0, 0, false
	}
	value, most = Word(b[:], semaphoreHandle), Half(b[:], semaphoreMost)
	return value, most, mayBeObject(value)
}

// Deque returns where the length of a collections.deque lies, in a word: ob_size, as Modules/_collectionsmodule.c keeps it.
func (o *Objects) Deque(object uint64) (length uint64, ok bool) {
	return object + varSize, mayBeObject(object) && o.TypeName(object) == "collections.deque"
}

// Digits returns the word of an int object's first two digits.
func (o *Objects) Digits(object uint64) (Held, bool) {
	if !mayBeObject(object) || o.TypeName(object) != "int" {
		return Held{}, false
	}
	value, err := ReadWord(o.mem, object+longDigit)
	return Held{object + longDigit, value}, err == nil
}
