package pytasks

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
)

// trio's Runner has the set of its Tasks. Classes of trio (trio/_core/_run.py, 0.22 to 0.35) have slots: where each has a
// field is looked up by the field's name, so that another version's order does no harm. Which task runs shows its coroutine,
// as of asyncio. A task that is to go on has in _next_send_fn what will be called, one that waits None; _schedule_points
// counts how often it has waited.
//
// A sleep is a cancel scope with a deadline, as a time limit is. One that has passed while the loop is busy ends what the
// task waits for, as a sleep's timer does: read are the innermost scope of each task, and of the clocks trio's own, which is
// CLOCK_MONOTONIC and an offset.

// errTrio: a class or field of trio is not there.
var errTrio = errors.New("this version of trio keeps them elsewhere")

const intDigit = 24 // PyLongObject.long_value.ob_digit[0], of 30 bits (cpython/longintrepr.h)

// trioTask is where trio's class of tasks has its fields.
type trioTask struct {
	class                            uint64
	coro, name, next, points, status uint64
	size                             int // up to the end of the last of these
}

// trioWords are the fields of a task of trio that are not among taskWords; deadline is that of its innermost cancel scope.
type trioWords struct {
	next, points, status uint64
	turns                uint32
	wake                 int64
}

// slot is where the objects of a class have a field, kept by class and name.
type slot struct {
	class uint64
	name  string
}

const (
	maxSlots = 256
	noSlot   = ^uint64(0)
)

// field returns where an object of a class of this name has a field.
func (r *Reader) field(class uint64, of, name string) (uint64, error) {
	at, known := r.slots[slot{class, name}]
	if !known {
		at = noSlot
		if offset, err := r.objects.Slot(class, name); err == nil && r.typeIs(class, of) {
			at = offset
		}
		if len(r.slots) >= maxSlots {
			clear(r.slots)
		}
		r.slots[slot{class, name}] = at
	}
	if at == noSlot {
		return 0, errTrio
	}
	return at, nil
}

// valueOf returns the value of a field of one object.
func (r *Reader) valueOf(object uint64, of, name string) (uint64, error) {
	class, err := cpython.ReadWord(r.mem, object+objectType)
	if err != nil {
		return 0, err
	}
	at, err := r.field(class, of, name)
	if err != nil {
		return 0, err
	}
	return cpython.ReadWord(r.mem, object+at)
}

// readTrio reads the tasks of a Runner.
func (r *Reader) readTrio(runner uint64) (lost int, err error) {
	set, err := r.valueOf(runner, "Runner", "tasks")
	if err != nil {
		return 0, err
	}
	if r.objects.TypeName(set) != "set" {
		return 0, errTrio
	}
	return r.trioTasks(runner, set)
}

// trioTasks reads the tasks in a Runner's set, twice, and their chains.
func (r *Reader) trioTasks(runner, set uint64) (lost int, err error) {
	addrs, err := r.members(set)
	if addrs = addrs[:min(len(addrs), maxTasks)]; err != nil || len(addrs) == 0 {
		return 0, err
	}
	at, err := r.trioTask(addrs[0])
	if err != nil {
		return 0, err
	}
	if err := r.batch.read(addrs, at.size); err != nil {
		return 0, err
	}
	w := &r.work
	w.reset()
	var kept []uint64
	var more []trioWords
	for i, addr := range addrs {
		b := r.batch.of(i, at.size)
		if b == nil || cpython.Word(b, objectType) != at.class {
			lost++
			continue
		}
		kept = append(kept, addr)
		w.add(taskWords{loop: runner, coro: cpython.Word(b, at.coro), name: cpython.Word(b, at.name)})
		more = append(more, trioWords{next: cpython.Word(b, at.next), points: cpython.Word(b, at.points), status: cpython.Word(b, at.status)})
	}
	if err := r.follow(w); err != nil {
		return 0, err
	}
	if err := r.readTurns(more); err != nil {
		return 0, err
	}
	if err := r.readDeadlines(runner, more); err != nil {
		return 0, err
	}
	if err := r.again.read(kept, at.size); err != nil {
		return 0, err
	}
	if err := r.confirm(w); err != nil {
		return 0, err
	}
	for i, addr := range kept {
		b, was := r.again.of(i, at.size), more[i]
		if b == nil || cpython.Word(b, objectType) != at.class || cpython.Word(b, at.coro) != w.tasks[i].coro {
			lost++
			continue
		}
		goesOn := cpython.Word(b, at.next) != was.next || cpython.Word(b, at.points) != was.points
		t := r.append(addr, w.tasks[i], w.chains[i], goesOn, r.isNone(was.next))
		if t.Turns = was.turns; t.State == Waiting {
			t.Wake = was.wake
		}
	}
	return lost, nil
}

// trioTask returns where the class of a task has its fields.
func (r *Reader) trioTask(task uint64) (at trioTask, err error) {
	if at.class, err = cpython.ReadWord(r.mem, task+objectType); err != nil {
		return at, err
	}
	for _, f := range []struct {
		name string
		at   *uint64
	}{{"coro", &at.coro}, {"name", &at.name}, {"_next_send_fn", &at.next}, {"_schedule_points", &at.points}, {"_cancel_status", &at.status}} {
		if *f.at, err = r.field(at.class, "Task", f.name); err != nil {
			return at, err
		}
		at.size = max(at.size, int(*f.at)+cpython.WordSize)
	}
	return at, nil
}

// isNone reports whether an object is None.
func (r *Reader) isNone(object uint64) bool {
	if r.none == 0 && r.objects.TypeName(object) == "NoneType" {
		r.none = object
	}
	return object == r.none && object != 0
}

// readTurns reads how often each task has waited so far.
func (r *Reader) readTurns(tasks []trioWords) error {
	const size = intDigit + 4
	numbers := make([]uint64, len(tasks))
	for i := range tasks {
		numbers[i] = tasks[i].points
	}
	if err := r.batch.read(numbers, size); err != nil {
		return err
	}
	for i := range tasks {
		if b := r.batch.of(i, size); b != nil {
			tasks[i].turns = binary.LittleEndian.Uint32(b[intDigit:])
		}
	}
	return nil
}

// readDeadlines finds when the innermost cancel scope of each task that waits ends. Of another clock, or where trio has
// them elsewhere, none is known.
func (r *Reader) readDeadlines(runner uint64, tasks []trioWords) error {
	clock, err := r.valueOf(runner, "Runner", "clock")
	if err != nil {
		return nil //nolint:nilerr // as of another clock
	}
	at, err := r.valueOf(clock, "SystemClock", "offset")
	if err != nil {
		return nil //nolint:nilerr // a test's
	}
	offset, err := r.numbers([]uint64{at})
	if err != nil {
		return err
	}
	addrs := make([]uint64, len(tasks))
	for i := range tasks {
		if r.isNone(tasks[i].next) && !r.isNone(tasks[i].status) {
			addrs[i] = tasks[i].status
		}
	}
	for _, f := range []struct{ of, name string }{{"CancelStatus", "_scope"}, {"CancelScope", "_registered_deadline"}} {
		if addrs, err = r.fieldsOf(addrs, f.of, f.name); err != nil {
			return err
		}
	}
	deadlines, err := r.numbers(addrs)
	if err != nil {
		return err
	}
	for i := range tasks {
		if at := deadlines[i] - offset[0]; at > 0 && at < math.MaxInt64/2e9 { // no limit is infinite
			tasks[i].wake = int64(at * 1e9)
		}
	}
	return nil
}

// fieldsOf returns the values of a field of many objects that are of a class of this name; 0 of others.
func (r *Reader) fieldsOf(objects []uint64, of, name string) ([]uint64, error) {
	out := make([]uint64, len(objects))
	if err := r.batch.read(objects, objectType+cpython.WordSize); err != nil {
		return nil, err
	}
	places := make([]uint64, len(objects))
	for i := range objects {
		b := r.batch.of(i, objectType+cpython.WordSize)
		if b == nil {
			continue
		}
		if at, err := r.field(cpython.Word(b, objectType), of, name); err == nil {
			places[i] = objects[i] + at
		}
	}
	if err := r.batch.read(places, cpython.WordSize); err != nil {
		return nil, err
	}
	for i := range places {
		if b := r.batch.of(i, cpython.WordSize); b != nil {
			out[i] = cpython.Word(b, 0)
		}
	}
	return out, nil
}

// numbers returns the values of float objects; NaN for any other.
func (r *Reader) numbers(objects []uint64) ([]float64, error) {
	const size = floatValue + cpython.WordSize
	if err := r.batch.read(objects, size); err != nil {
		return nil, err
	}
	out := make([]float64, len(objects))
	for i := range objects {
		out[i] = math.NaN()
		if b := r.batch.of(i, size); b != nil && r.isFloat(cpython.Word(b, objectType)) {
			out[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[floatValue:]))
		}
	}
	return out, nil
}

// isFloat reports whether a type is float.
func (r *Reader) isFloat(typ uint64) bool {
	if r.float == 0 && r.typeIs(typ, "float") {
		r.float = typ
	}
	return typ == r.float && typ != 0
}
