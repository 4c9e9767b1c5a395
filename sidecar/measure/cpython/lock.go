package cpython

import "bytes"

// Lock is a threading.Lock or RLock.
type Lock struct {
	Addr uint64
	// Recursive says that it is an RLock, and Owner which thread has it, as PyThreadState.thread_id; 0: none.
	Recursive bool
	Owner     uint64
	// state is the address of its semaphore, or its mutex (Modules/_threadmodule.c).
	state uint64
	class uint64 // its type
}

// Both begin alike: lockobject.lock_lock, rlockobject.rlock_lock and rlock_owner with the address of a semaphore; in the
// later micro versions of 3.13 lockobject.lock (PyMutex), and from 3.14 on rlockobject.lock of which mutex and thread,
// too (_PyRecursiveMutex, internal/pycore_lock.h).
const (
	lockState = 16
	lockOwner = 24
	lockSize  = 32

	mutexWaitedFor = 3 // _Py_LOCKED and _Py_HAS_PARKED (cpython/pylock.h)
)

// What a with statement leaves on its frame's stack leads to what it has entered: PyCFunctionObject.m_ml and m_self (cpython/methodobject.h),
// PyMethodObject.im_func and im_self (cpython/classobject.h), PyDescrObject.d_type and d_name (cpython/descrobject.h),
// PyFunctionObject.func_name (cpython/funcobject.h).
const (
	boundFunction  = 16
	boundTo        = 24
	descriptorType = 16
	descriptorName = 24
	functionName   = 32

	exitMethod = "__exit__"
)

// Lock reads the lock that an object is, or is made of; ok is false if it is something else.
func (o *Objects) Lock(object uint64) (l Lock, ok bool) {
	for range 3 { // a method of a condition of a lock
		if !mayBeObject(object) {
			return l, false
		}
		switch name := o.TypeName(object); name {
		case "_thread.lock", "_thread.RLock":
			class, err := ReadWord(o.mem, object+objectType)
			if err != nil {
				return l, false
			}
			return o.Again(Lock{Addr: object, Recursive: name == "_thread.RLock", class: class})
		case "Condition": // threading's
			var err error
			if object, err = o.Attribute(object, "_lock"); err != nil {
				return l, false
			}
		case "builtin_function_or_method", "method":
			var err error
			if object, err = ReadWord(o.mem, object+boundTo); err != nil {
				return l, false
			}
		default:
			return l, false
		}
	}
	return l, false
}

// Again reads a lock that was known to be one.
func (o *Objects) Again(l Lock) (Lock, bool) {
	var b [lockSize - objectType]byte
	want := b[:lockOwner-objectType]
	if l.Recursive {
		want = b[:]
	}
	if ReadAt(o.mem, l.Addr+objectType, want) != nil || Word(b[:], 0) != l.class {
		return Lock{}, false
	}
	l.state, l.Owner = Word(b[:], lockState-objectType), Word(b[:], lockOwner-objectType)
	return l, true
}

// WaitedFor reports whether a thread can be waiting for the lock that is blocked at an address in the kernel: at that of
// its semaphore. What waits for a mutex is blocked at an address of its own; the mutex shows that there is such a thread.
func (o *Objects) WaitedFor(l Lock, futex uint64) bool {
	minor := o.layout.Version.Minor
	if minor >= 14 || minor == 13 && !l.Recursive && l.state&mutexWaitedFor != 0 { // semaphores are aligned
		return l.state&mutexWaitedFor == mutexWaitedFor
	}
	return l.state == futex && futex != 0
}

// Entered calls yield with each lock that with statements have entered which left values on a frame's stack, and the
// number of the value: up to 3.13 the bound __exit__ of each, later __exit__ and what it is called with.
func (o *Objects) Entered(stack []uint64, yield func(i int, l Lock)) {
	for i, value := range stack {
		value &^= o.layout.Frame.CodeTag
		switch {
		case o.layout.Version.Minor <= 13:
			if !o.isExit(value) {
				continue
			}
		case i == 0 || !o.isExit(stack[i-1]&^o.layout.Frame.CodeTag):
			continue
		}
		if l, ok := o.Lock(value); ok {
			yield(i, l)
		}
	}
}

// Class is the name of the class that an object is of, or that a method belongs to; empty if it cannot be read.
func (o *Objects) Class(object uint64) string {
	if !mayBeObject(object) {
		return ""
	}
	switch name := o.TypeName(object); name {
	case "builtin_function_or_method":
		self, err := ReadWord(o.mem, object+boundTo)
		if err != nil || !mayBeObject(self) {
			return ""
		}
		return o.TypeName(self)
	case "method_descriptor":
		class, err := ReadWord(o.mem, object+descriptorType)
		if err != nil {
			return ""
		}
		return o.nameOf(class)
	default:
		return name
	}
}

// isExit recognises the method that a with statement calls at its end.
func (o *Objects) isExit(callable uint64) bool {
	if !mayBeObject(callable) {
		return false
	}
	var name uint64
	var err error
	switch o.TypeName(callable) {
	case "builtin_function_or_method":
		var text [len(exitMethod) + 1]byte
		if name, err = ReadWord(o.mem, callable+boundFunction); err != nil {
			return false
		}
		if name, err = ReadWord(o.mem, name); err != nil || ReadAt(o.mem, name, text[:]) != nil {
			return false
		}
		return bytes.Equal(text[:], []byte(exitMethod+"\x00"))
	case "method":
		if callable, err = ReadWord(o.mem, callable+boundFunction); err == nil {
			name, err = ReadWord(o.mem, callable+functionName)
		}
	case "function":
		name, err = ReadWord(o.mem, callable+functionName)
	case "method_descriptor":
		name, err = ReadWord(o.mem, callable+descriptorName)
	default:
		return false
	}
	if err != nil {
		return false
	}
	text, err := o.TextUpTo(name, uint64(len(exitMethod)))
	return err == nil && text == exitMethod
}
