package pytasks

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
)

// Where the tasks are, by version:
//   - 3.11: the WeakSet asyncio.tasks._all_tasks;
//   - 3.12, 3.13: the state of the module _asyncio has a WeakSet, and a set of those that
//     are in their first, eager step;
//   - 3.14 and later: a linked list for each thread, and one for the interpreter with the
//     tasks of threads that have ended.

// asyncio_state of Modules/_asynciomodule.c in 3.12 and 3.13, and where a module object
// has its state and dictionary (struct PyModuleObject, Objects/moduleobject.c).
const (
	moduleDict     = 16
	moduleState    = 32
	scheduledTasks = 56
	eagerTasks     = 64
)

// lists is what .AsyncioDebug says in 3.14 and later (Modules/_asynciomodule.c,
// Py_AsyncioModuleDebugOffsets): 13 words.
type lists struct {
	node, size         uint64 // in a task
	interpTasks        uint64 // heads of the lists
	runningLoop, tasks uint64 // in a thread state
}

const (
	debugWords   = 13
	maxInterps   = 64
	maxThreads   = 4096
	maxStateSize = 1 << 20
)

// ErrNoLoops: nothing that has event loops is imported, so far.
var ErrNoLoops = errors.New("no library with event loops is imported")

// errNoAsyncio: asyncio is not imported, so far.
var errNoAsyncio = errors.New("asyncio is not imported")

// ErrUnknownLists: where this CPython's asyncio has its tasks cannot be read.
var ErrUnknownLists = errors.New("where asyncio keeps its tasks is not known")

// readLists reads the description; task is the layout's.
func readLists(mem cpython.Memory, addr uint64, l *cpython.Layout) (*lists, error) {
	var b [debugWords * cpython.WordSize]byte
	if err := cpython.ReadAt(mem, addr, b[:]); err != nil {
		return nil, err
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[i*cpython.WordSize:]) }
	out := &lists{size: word(0), node: word(6), interpTasks: word(8), runningLoop: word(10), tasks: word(12)}
	if word(0) != l.Task.Size || word(1) != l.Task.Name || word(5) != l.Task.Coro || out.node >= out.size ||
		out.interpTasks > maxStateSize || out.runningLoop > maxStateSize || out.tasks > maxStateSize {
		return nil, fmt.Errorf("%w: tasks of %d bytes", ErrUnknownLists, word(0))
	}
	return out, nil
}

// found is where asyncio's tasks are; its words are addresses.
type found struct {
	interp      uint64
	weak, eager uint64 // sets; 0: there is none
	lists       *lists
}

// find looks for asyncio among the modules.
func (r *Reader) find() (*found, error) {
	f := &found{interp: r.modules.interp}
	name := asyncioModule
	if r.l.Version.Minor == 11 {
		name = asyncioTasks
	}
	module := r.modules.at[name]
	if module == 0 {
		return nil, errNoAsyncio
	}
	if r.l.Version.Minor < 14 {
		return f, r.findSets(f, module)
	}
	if r.modules.unknown == module {
		return nil, ErrUnknownLists
	}
	addr, err := r.asyncioDebug()
	if err != nil {
		return nil, err
	}
	if addr == 0 {
		err = ErrUnknownLists
	} else {
		f.lists, err = readLists(r.mem, addr, r.l)
	}
	if errors.Is(err, ErrUnknownLists) {
		r.modules.unknown = module
	}
	return f, err
}

// findSets looks in asyncio's module for the sets of tasks. While it is being imported it has none.
func (r *Reader) findSets(f *found, module uint64) (err error) {
	if r.l.Version.Minor == 11 {
		dict, err := cpython.ReadWord(r.mem, module+moduleDict)
		if err != nil {
			return err
		}
		if f.weak, err = r.lookup(dict, "_all_tasks"); err == nil && f.weak == 0 {
			err = errNoAsyncio
		}
		return err
	}
	state, err := cpython.ReadWord(r.mem, module+moduleState)
	if err != nil {
		return err
	}
	if state == 0 {
		return errNoAsyncio
	}
	if f.weak, err = cpython.ReadWord(r.mem, state+scheduledTasks); err != nil {
		return err
	}
	if f.weak == 0 {
		return errNoAsyncio
	}
	f.eager, err = cpython.ReadWord(r.mem, state+eagerTasks)
	return err
}

// modules are those of sys.modules that event loops are found by.
type modules struct {
	interp  uint64 // the interpreter whose they are; 0: it was not looked up
	keys    uint64 // table of the dictionary …
	seen    uint64 // … and how many of its entries were looked at: new ones follow
	at      map[string]uint64
	unknown uint64 // the module _asyncio of which it is not known where the tasks are
}

const (
	asyncioModule = "_asyncio"
	asyncioTasks  = "asyncio.tasks"
)

// readModules looks for the modules of event loops among those imported since it was called last.
func (r *Reader) readModules() error {
	m := &r.modules
	if m.interp == 0 {
		interp, err := r.mainInterpreter()
		if err != nil {
			return err
		}
		m.interp, m.at = interp, make(map[string]uint64)
	}
	dict, err := cpython.ReadWord(r.mem, m.interp+r.l.Interp.Modules)
	if err != nil {
		return err
	}
	keys, fresh, count, err := r.itemsSince(dict, m.keys, m.seen)
	if err != nil || count == m.seen && keys == m.keys {
		return err
	}
	names := []string{asyncioModule, asyncioTasks}
	for _, l := range others {
		names = append(names, l.module)
	}
	found, err := r.named(fresh, names)
	if err != nil {
		return err
	}
	for i, name := range names {
		if found[i] != 0 {
			m.at[name] = found[i]
		}
	}
	m.keys, m.seen = keys, count
	return nil
}

// mainInterpreter returns the address of the interpreter that was made first: new ones
// go to the front.
func (r *Reader) mainInterpreter() (uint64, error) {
	at, err := cpython.ReadWord(r.mem, r.runtime+r.l.Runtime.InterpretersHead)
	for range maxInterps {
		if err != nil || at == 0 {
			break
		}
		next, err := cpython.ReadWord(r.mem, at+r.l.Interp.Next)
		if err != nil || next == 0 {
			return at, err
		}
		at = next
	}
	if err == nil {
		err = ErrNoLoops
	}
	return 0, err
}

// list returns the addresses of all tasks, and the loops that run.
func (r *Reader) list(f *found) (tasks []uint64, running map[uint64]bool, err error) {
	running, threads, err := r.runningLoops(f)
	if err != nil || len(running) == 0 {
		return nil, running, err
	}
	if f.lists != nil {
		tasks, err = r.listed(f, threads)
		return tasks, running, err
	}
	tasks, err = r.living(f.weak)
	if err != nil {
		return nil, nil, err
	}
	if f.eager != 0 {
		eager, err := r.members(f.eager)
		if err == nil {
			tasks = append(tasks, eager...)
		}
	}
	slices.Sort(tasks) // a task may be in both
	tasks = slices.Compact(tasks)
	return tasks[:min(len(tasks), maxTasks)], running, nil
}

// listed walks the lists of 3.14 and later.
func (r *Reader) listed(f *found, threads []uint64) (tasks []uint64, err error) {
	heads := []uint64{f.interp + f.lists.interpTasks}
	for _, thread := range threads {
		heads = append(heads, thread+f.lists.tasks)
	}
	next, err := r.knownNodes(f)
	if err != nil {
		return nil, err
	}
	seen := make(map[uint64]bool)
	for _, head := range heads {
		at, err := cpython.ReadWord(r.mem, head)
		for err == nil && at != head && at != 0 && !seen[at] && len(tasks) < maxTasks {
			seen[at] = true
			tasks = append(tasks, at-f.lists.node)
			on, known := next[at]
			if !known {
				on, err = cpython.ReadWord(r.mem, at)
			}
			at = on
		}
	}
	return tasks, nil
}

// knownNodes reads what follows each of the tasks that were there before, by one call.
// The next of a task that has ended since is 0.
func (r *Reader) knownNodes(f *found) (map[uint64]uint64, error) {
	r.nodes = r.nodes[:0]
	for i := range r.tasks {
		r.nodes = append(r.nodes, r.tasks[i].Addr+f.lists.node)
	}
	if err := r.batch.read(r.nodes, cpython.WordSize); err != nil {
		return nil, err
	}
	next := make(map[uint64]uint64, len(r.nodes))
	for i, node := range r.nodes {
		if b := r.batch.of(i, cpython.WordSize); b != nil && cpython.Word(b, 0) != 0 {
			next[node] = cpython.Word(b, 0)
		}
	}
	return next, nil
}
