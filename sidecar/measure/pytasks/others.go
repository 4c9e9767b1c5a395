package pytasks

import (
	"errors"
	"fmt"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
)

// other is a library with event loops of its own. A variable of a module, a threading.local, has what runs in a thread
// under a name: nothing, or None, where no loop runs.
type other struct {
	name, module, variable, runs string
	read                         func(r *Reader, runs uint64) (lost int, err error) // nil: its tasks are not read
}

var others = []other{
	{"trio", "trio._core._run", "GLOBAL_RUN_CONTEXT", "runner", (*Reader).readTrio},
	{"curio", "curio.meta", "_locals", "kernel", nil},
}

// readOthers reads the tasks of other libraries' loops, and says why those of loops that run are not read.
func (r *Reader) readOthers(s *Snapshot) error {
	for i := range others {
		o := &others[i]
		loops, err := r.loopsOf(o)
		if err != nil {
			return err
		}
		if len(loops) == 0 {
			continue
		}
		if o.read == nil {
			s.Unread = append(s.Unread, fmt.Errorf("those of %s, whose loop ran, are not read", o.name))
			continue
		}
		for _, loop := range loops {
			lost, err := o.read(r, loop)
			if err == nil {
				s.Lost += lost
				r.torn = 0
				continue
			}
			if r.torn++; r.torn <= maxFailures && !errors.Is(err, errTrio) {
				return err
			}
			s.Unread = append(s.Unread, fmt.Errorf("those of %s, whose loop ran, are not read: %w", o.name, err))
		}
	}
	return nil
}

// loopsOf returns what runs a library's tasks, of each thread in which one does.
func (r *Reader) loopsOf(o *other) (loops []uint64, err error) {
	module := r.modules.at[o.module]
	if module == 0 {
		return nil, nil
	}
	if r.locals[o.name] == 0 {
		dict, err := cpython.ReadWord(r.mem, module+moduleDict)
		if err != nil {
			return nil, err
		}
		local, err := r.lookup(dict, o.variable)
		if err != nil || local == 0 || !r.isA(local, "_thread._local") { // it may be in the middle of its import
			return nil, err
		}
		r.locals[o.name] = local
	}
	dicts, err := cpython.ReadWord(r.mem, r.locals[o.name]+r.localDicts())
	if err != nil {
		return nil, err
	}
	threads, err := r.items(dicts)
	if err != nil {
		return nil, err
	}
	for _, t := range threads[:min(len(threads), maxLoops)] {
		if t.value == 0 {
			continue
		}
		loop, err := r.lookup(t.value, o.runs)
		if err != nil {
			return nil, err
		}
		if loop != 0 && r.objects.TypeName(loop) != "NoneType" {
			loops = append(loops, loop)
		}
	}
	return loops, nil
}

// localDicts is where a threading.local has the dictionary of its threads' dictionaries: localobject.dummies, from 3.13
// on localdicts (Modules/_threadmodule.c).
func (r *Reader) localDicts() uint64 {
	if r.l.Version.Minor < 13 {
		return 48
	}
	return 40
}

// isA reports whether an object's type has a name, or one that it is made of has.
func (r *Reader) isA(object uint64, name string) bool {
	typ, err := cpython.ReadWord(r.mem, object+objectType)
	for n := 0; err == nil && typ != 0 && n < maxBases; n++ {
		if r.typeIs(typ, name) {
			return true
		}
		typ, err = cpython.ReadWord(r.mem, typ+typeBase)
	}
	return false
}

// typeIs reports whether a type has a name.
func (r *Reader) typeIs(typ uint64, name string) bool {
	at, err := cpython.ReadWord(r.mem, typ+r.l.TypeName)
	if err != nil {
		return false
	}
	text := make([]byte, len(name)+1)
	return cpython.ReadAt(r.mem, at, text) == nil && string(text) == name+"\x00"
}
