package pytasks

import (
	"errors"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
	"github.com/omni-perf/omni-perf/sidecar/measure/pystack"
)

// State is what a task does.
type State uint8

const (
	Waiting State = iota // for what its innermost coroutine awaits
	Ready                // its loop will go on with it
	Created              // likewise, but it has not begun yet
	Running              // its coroutine is on a thread's stack, and has no Frames
)

// Task is one task of a loop that runs.
type Task struct {
	Addr   uint64 // of the task object
	Loop   uint64 // of trio: the Runner
	Name   string
	State  State
	Frames []Frame // of its coroutines, its own first
	// Cut says that more coroutines may follow the last of Frames: they changed under the read.
	Cut bool
	// Waiter is the future that it waits for; 0 if it does not wait, and of trio.
	Waiter uint64
	// Awaiter is the place in Snapshot.Tasks of the task that waits for this one; -1: none is known.
	Awaiter int
	// ForTasks says that what it waits for is another task, or several.
	ForTasks bool
	// Wake is when the timer of the sleep that it awaits is due, or a time limit of trio's, by CLOCK_MONOTONIC; 0: it
	// awaits none.
	Wake int64
	// Turns is how often it had waited before, where that is counted; else 0.
	Turns uint32
}

// Frame is a coroutine, generator or asynchronous generator, and the line it is suspended at.
type Frame struct {
	Code *cpython.Code
	Line int32
}

// Snapshot is what one read showed.
type Snapshot struct {
	Tasks []Task // they and their Frames are used again by the next read
	Lost  int    // tasks of which nothing could be read that is sure
	// Unread says of loops that run why their tasks are not read.
	Unread []error
}

// Wake makes those ready whose sleep has ended by a time, and reports whether there are any.
func (s *Snapshot) Wake(at int64) (any bool) {
	for i := range s.Tasks {
		if t := &s.Tasks[i]; t.State == Waiting && t.Wake > 0 && t.Wake+timerSlack < at {
			t.State, any = Ready, true
		}
	}
	return any
}

// sum is a number that changes when a task goes on.
func (s *Snapshot) sum() uint64 {
	const prime = 1099511628211 // FNV-1a's
	sum := uint64(len(s.Tasks))
	for i := range s.Tasks {
		t := &s.Tasks[i]
		for _, v := range [...]uint64{t.Addr, t.Waiter, uint64(t.Wake), uint64(t.Turns), uint64(t.State), uint64(len(t.Frames))} {
			sum = (sum ^ v) * prime
		}
		for _, f := range t.Frames {
			sum = (sum ^ uint64(f.Line)) * prime
		}
	}
	return sum
}

// Reader reads the tasks of one process. One goroutine at a time.
type Reader struct {
	mem          cpython.Memory
	l            *cpython.Layout
	objects      *cpython.Objects
	runtime      uint64
	asyncioDebug func() (uint64, error)
	pid          int
	inside       int // what the process calls itself; 0: not asked

	found    *found
	failures int // to list the tasks, in a row
	modules  modules
	locals   map[string]uint64 // of other libraries: the threading.local that their loops are found by
	torn     int               // reads of trio's tasks that failed, in a row
	slots    map[slot]uint64
	none     uint64 // address of None, and of the type float; 0: not met so far
	float    uint64
	batch    batch
	again    batch // of the second read
	nodes    []uint64
	tasks    []Task
	work     chains
	kinds    map[uint64]kind // by type
	codes    map[uint64]*code
	names    map[uint64]name // by task
	timer    timerSlots
	wakes    map[uint64]int64 // by future
}

// New makes a reader of the process that an interpreter runs in.
func New(i pystack.Interpreter) *Reader {
	r := newReader(i.Memory, i.Layout, i.Runtime, i.AsyncioDebug)
	r.pid = i.PID
	return r
}

func newReader(mem cpython.Memory, l *cpython.Layout, runtime uint64, asyncioDebug func() (uint64, error)) *Reader {
	return &Reader{
		mem: mem, l: l, objects: cpython.NewObjects(mem, l), runtime: runtime, asyncioDebug: asyncioDebug,
		batch: batch{mem: mem}, again: batch{mem: mem},
		kinds: make(map[uint64]kind), codes: make(map[uint64]*code), names: make(map[uint64]name), wakes: make(map[uint64]int64), locals: make(map[string]uint64),
		slots: make(map[slot]uint64),
	}
}

const (
	pending     = 0  // enum fut_state of Modules/_asynciomodule.c …
	stateSize   = 4  // … and its bytes
	maxLoops    = 64 // threads whose loops of other libraries are read
	maxFailures = 20 // to list the tasks, before asyncio is looked for again
	maxNames    = 1 << 14
	maxNameSize = 128 // characters
)

// Read reads all tasks of the loops that run. ErrNoLoops says that nothing that has event loops is imported so far.
func (r *Reader) Read() (s Snapshot, err error) {
	if err := r.readModules(); err != nil {
		return Snapshot{}, err
	}
	s.Lost, err = r.readAsyncio()
	switch {
	case errors.Is(err, errNoAsyncio):
		if r.tasks = r.tasks[:0]; len(r.modules.at) == 0 {
			return Snapshot{}, ErrNoLoops
		}
	case errors.Is(err, ErrUnknownLists):
		r.tasks = r.tasks[:0]
		s.Unread = append(s.Unread, err)
	case err != nil:
		return Snapshot{}, err
	}
	if err := r.readOthers(&s); err != nil {
		return Snapshot{}, err
	}
	s.Tasks = r.tasks
	return s, nil
}

// readAsyncio reads the tasks of asyncio's loops.
func (r *Reader) readAsyncio() (lost int, err error) {
	if r.found == nil {
		f, err := r.find()
		if err != nil {
			return 0, err
		}
		r.found = f
	}
	addrs, running, err := r.list(r.found)
	if err != nil {
		if r.failures++; r.failures > maxFailures {
			r.found, r.failures, r.modules = nil, 0, modules{} // all of it is looked for again
		}
		return 0, err
	}
	r.failures = 0
	if r.tasks = r.tasks[:0]; len(addrs) == 0 {
		return 0, nil
	}
	if lost, err = r.readTasks(addrs, running); err == nil {
		r.joinAwaiters()
	}
	return lost, err
}

// readTasks reads the task objects, twice, and their chains.
func (r *Reader) readTasks(addrs []uint64, running map[uint64]bool) (lost int, err error) {
	size := int(r.l.Task.Size)
	if err := r.batch.read(addrs, size); err != nil {
		return 0, err
	}
	w := &r.work
	w.reset()
	var kept []uint64
	for i, addr := range addrs {
		b := r.batch.of(i, size)
		if b == nil || r.kindOf(cpython.Word(b, objectType), addr) != kindTask {
			continue
		}
		loop := cpython.Word(b, r.l.Task.Loop)
		if cpython.Half(b, r.l.Task.State) != pending || !running[loop] {
			continue
		}
		kept = append(kept, addr)
		w.add(taskWords{loop, cpython.Word(b, r.l.Task.Waiter), cpython.Word(b, r.l.Task.Coro), cpython.Word(b, r.l.Task.Name)})
	}
	if err := r.follow(w); err != nil {
		return 0, err
	}
	if err := r.readWaiters(w); err != nil { // before the tasks' second read, which says that they still await these
		return 0, err
	}
	clear(r.wakes)
	for loop := range running {
		if err := r.readTimers(loop, r.wakes); err != nil {
			return 0, err
		}
	}
	if err := r.again.read(kept, size); err != nil {
		return 0, err
	}
	if err := r.confirm(w); err != nil {
		return 0, err
	}
	for i, addr := range kept {
		b, was := r.again.of(i, size), w.tasks[i]
		if b == nil || cpython.Word(b, r.l.Task.Coro) != was.coro || cpython.Half(b, r.l.Task.State) != pending {
			lost++
			continue
		}
		t := r.append(addr, was, w.chains[i], cpython.Word(b, r.l.Task.Waiter) != was.waiter, was.waiter != 0 && !w.chains[i].ready)
		if t.Waiter = was.waiter; t.State == Waiting {
			t.Wake = r.wakes[was.waiter]
		}
	}
	return lost, nil
}

// append takes a task into the snapshot; waits says that it waits where its coroutine is suspended, goesOn that it has
// ceased to under the read.
func (r *Reader) append(addr uint64, was taskWords, c *chain, goesOn, waits bool) *Task {
	n := len(r.tasks)
	if n < cap(r.tasks) {
		r.tasks = r.tasks[:n+1]
	} else {
		r.tasks = append(r.tasks, Task{})
	}
	t := &r.tasks[n]
	*t = Task{Addr: addr, Loop: was.loop, Awaiter: -1, Frames: t.Frames[:0], Cut: c.cut || goesOn, ForTasks: c.tasks}
	t.Name = r.name(addr, was)
	switch {
	case len(c.links) == 0 && c.cut:
	case c.runs:
		t.State = Running
		return t
	case c.created:
		t.State = Created
	case !waits:
		t.State = Ready
	}
	for _, link := range c.links {
		t.Frames = append(t.Frames, Frame{Code: link.object.Code, Line: link.object.Line(link.index)})
	}
	return t
}

// name is a task's, kept by the task and its coroutine.
type name struct {
	coro, object uint64
	text         string
}

func (r *Reader) name(addr uint64, was taskWords) string {
	if n, ok := r.names[addr]; ok && n.coro == was.coro && n.object == was.name {
		return n.text
	}
	if len(r.names) >= maxNames {
		clear(r.names)
	}
	n := name{coro: was.coro, object: was.name}
	if r.objects.TypeName(was.name) == "int" { // from 3.12 on: nobody has asked for it yet
		if number := r.objects.SmallInt(was.name); number > 0 {
			n.text = taskNumber(number)
		}
	} else if text, err := r.objects.TextUpTo(was.name, maxNameSize); err == nil {
		n.text = text
	}
	r.names[addr] = n
	return n.text
}
