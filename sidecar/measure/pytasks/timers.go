package pytasks

import (
	"encoding/binary"
	"math"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
)

// A sleep awaits a future that a timer of the loop sets: the loop looks at its timers once in each turn, so that
// a sleep that should have ended while the loop was busy has a future that is not done. Its task is ready all the
// same. The timers are in the list BaseEventLoop._scheduled (Lib/asyncio/base_events.py); a sleep's has the
// future as its first argument (Lib/asyncio/tasks.py).

// Layout of PyListObject, PyTupleObject and PyFloatObject (cpython/listobject.h, tupleobject.h, floatobject.h).
const (
	listSize   = 16
	listItems  = 24
	floatValue = 16
	tupleItems = 24
	// tupleItems314 is where they are from 3.14 on, where a tuple keeps its hash.
	tupleItems314 = 32

	handleSize = 128 // bytes of a TimerHandle that are looked at
	// maxTimers bounds those that are read of a loop: with more, sleeps count as waits until the loop has looked.
	maxTimers = 2048
	// timerSlack is by how much later than its time a timer may be looked at by a loop that is not busy, in ns.
	timerSlack = 1_000_000
)

// timerSlots is where TimerHandle has its fields.
type timerSlots struct{ class, when, args uint64 }

// readTimers returns when each future of a loop's sleeps will be set, by CLOCK_MONOTONIC in nanoseconds. Loops that
// have no such list, as uvloop's, have none.
func (r *Reader) readTimers(loop uint64, wakes map[uint64]int64) error {
	list, err := r.objects.Attribute(loop, "_scheduled")
	if err != nil || r.objects.TypeName(list) != "list" {
		return nil //nolint:nilerr // another kind of loop
	}
	var head [listItems + cpython.WordSize]byte
	if err := cpython.ReadAt(r.mem, list, head[:]); err != nil {
		return err
	}
	count := cpython.Word(head[:], listSize)
	if count == 0 || count > maxTimers {
		return nil
	}
	words := make([]byte, count*cpython.WordSize)
	if err := cpython.ReadAt(r.mem, cpython.Word(head[:], listItems), words); err != nil {
		return err
	}
	handles := make([]uint64, count)
	for i := range handles {
		handles[i] = cpython.Word(words, uint64(i)*cpython.WordSize)
	}
	return r.timersOf(handles, wakes)
}

// timersOf reads the timers of a list, their times and their arguments.
func (r *Reader) timersOf(handles []uint64, wakes map[uint64]int64) error {
	if err := r.batch.read(handles, handleSize); err != nil {
		return err
	}
	var whens, tuples []uint64
	for i := range handles {
		b := r.batch.of(i, handleSize)
		if b == nil || !r.isTimer(cpython.Word(b, objectType), handles[i]) {
			continue
		}
		whens, tuples = append(whens, cpython.Word(b, r.timer.when)), append(tuples, cpython.Word(b, r.timer.args))
	}
	if len(whens) == 0 {
		return nil
	}
	const size = floatValue + cpython.WordSize
	if err := r.batch.read(whens, size); err != nil {
		return err
	}
	times := make([]float64, len(whens))
	for i := range whens {
		if b := r.batch.of(i, size); b != nil {
			times[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[floatValue:]))
		}
	}
	items := uint64(tupleItems)
	if r.l.Version.Minor >= 14 {
		items = tupleItems314
	}
	if err := r.batch.read(tuples, int(items+cpython.WordSize)); err != nil {
		return err
	}
	for i := range tuples {
		b := r.batch.of(i, int(items+cpython.WordSize))
		if b == nil || cpython.Word(b, listSize) == 0 || !(times[i] > 0 && times[i] < math.MaxInt64/2e9) {
			continue // no arguments, as None has when the timer is cancelled
		}
		wakes[cpython.Word(b, items)] = int64(times[i] * 1e9)
	}
	return nil
}

// isTimer reports whether a type is TimerHandle, and learns where that has its fields.
func (r *Reader) isTimer(class, object uint64) bool {
	if class == r.timer.class {
		return r.timer.when != 0
	}
	if r.objects.TypeName(object) != "TimerHandle" {
		return false
	}
	r.timer = timerSlots{class: class}
	base, err := cpython.ReadWord(r.mem, class+typeBase) // Handle
	if err != nil {
		return false
	}
	when, err := r.objects.Slot(class, "_when")
	if err != nil {
		return false
	}
	args, err := r.objects.Slot(base, "_args")
	if err != nil || when+cpython.WordSize > handleSize || args+cpython.WordSize > handleSize {
		return false
	}
	r.timer.when, r.timer.args = when, args
	return true
}
