package cpython

import "errors"

// Layout of greenlet's objects, the same in its releases since 2.0 for what is read here
// (greenlet.h, TGreenlet.hpp): an object points to its state, which begins with the pointer to
// its class's functions and points back. Where in it the suspended frame and the main greenlet
// are differs from release to release and from CPython to CPython, so that they are looked for,
// and what is found is checked.
const (
	greenletState = 32                // PyGreenlet.pimpl
	stateSelf     = 8                 // Greenlet._self, behind the virtual table
	stateFirst    = 16                // the fields behind it
	stateSize     = 320               // of a UserGreenlet, or more
	frameOf       = 24                // PyFrameObject.f_frame (internal/pycore_frame.h)
	lowestAddress = uint64(4096)      // below it nothing is mapped
	highestUser   = uint64(1)<<56 - 1 // nor above it for a process
	typeFrame     = "frame"           // tp_name of PyFrame_Type
)

// ErrNoGreenlet: an object is no greenlet, or of a release with another layout.
var ErrNoGreenlet = errors.New("no greenlet whose layout is known")

// state reads a greenlet's state.
func (o *Objects) greenletState(greenlet uint64) (state uint64, fields []byte, err error) {
	if state, err = ReadWord(o.mem, greenlet+greenletState); err != nil {
		return 0, nil, err
	}
	if !isAddress(state) {
		return 0, nil, ErrNoGreenlet
	}
	fields = make([]byte, stateSize)
	if err := ReadAt(o.mem, state, fields); err != nil {
		return 0, nil, err
	}
	if Word(fields, stateSelf) != greenlet {
		return 0, nil, ErrNoGreenlet
	}
	return state, fields, nil
}

func isAddress(word uint64) bool {
	return word >= lowestAddress && word <= highestUser && word%WordSize == 0
}

// MainGreenlet returns the greenlet in which the thread of another one began: that one points to
// it, and it has functions of its own.
func (o *Objects) MainGreenlet(greenlet uint64) (uint64, error) {
	_, fields, err := o.greenletState(greenlet)
	if err != nil {
		return 0, err
	}
	for at := uint64(stateFirst); at < stateSize; at += WordSize {
		other := Word(fields, at)
		if !isAddress(other) || other == greenlet {
			continue
		}
		if _, theirs, err := o.greenletState(other); err == nil && Word(theirs, 0) != Word(fields, 0) && o.TypeName(other) == "greenlet.greenlet" {
			return other, nil
		}
	}
	return 0, ErrNoGreenlet
}

// SuspendedGreenlet is where a greenlet was left. While it is suspended, its frames are linked without those
// that lay on the C stack (greenlet 3.0: expose_frames in TGreenlet.cpp; CPython 3.11 has none).
type SuspendedGreenlet struct {
	Frame uint64 // innermost _PyInterpreterFrame
	// Proof holds what Was in it while the greenlet is suspended there.
	Proof Range
	Was   []byte
}

// SuspendedGreenlet reads where a greenlet was left; ok is false where it runs, has ended or has not begun.
func (o *Objects) SuspendedGreenlet(greenlet uint64) (s SuspendedGreenlet, ok bool, err error) {
	state, fields, err := o.greenletState(greenlet)
	if err != nil {
		return s, false, err
	}
	first, end := uint64(stateFirst), uint64(stateSize)
	if o.greenletFrame != 0 {
		first, end = o.greenletFrame, o.greenletFrame+WordSize
	}
	for at := first; at < end; at += WordSize {
		object := Word(fields, at)
		if !isAddress(object) || o.TypeName(object) != typeFrame {
			continue
		}
		frame, err := ReadWord(o.mem, object+frameOf)
		if err != nil || !isAddress(frame) {
			continue
		}
		o.greenletFrame = at
		s.Frame = frame
		s.Proof, s.Was = Range{state + at, WordSize}, fields[at:at+WordSize]
		return s, true, nil
	}
	return s, false, nil
}

// Linked is a frame of the chain that a suspended greenlet's innermost one begins.
type Linked struct {
	Code, Instr, Previous uint64
	Shim                  bool
	Proof                 Range
	Was                   []byte
}

// Linked reads the frame at an address.
func (o *Objects) Linked(at uint64) (f Linked, err error) {
	l := o.layout
	f.Proof, f.Was = Range{at, int(l.Frame.Size)}, make([]byte, l.Frame.Size)
	if err := ReadAt(o.mem, at, f.Was); err != nil {
		return f, err
	}
	f.Code, f.Instr, f.Previous = Word(f.Was, l.Frame.Code)&^l.Frame.CodeTag, Word(f.Was, l.Frame.Instr), Word(f.Was, l.Frame.Previous)
	f.Shim = f.Was[l.Frame.Owner] >= OwnerShim
	return f, nil
}
