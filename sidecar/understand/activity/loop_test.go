package activity

import (
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// inAsyncio and inTrio are a turn of an event loop, and its selector.
var (
	inAsyncio = [2]timeline.Frame{
		{Function: "BaseEventLoop._run_once", File: "/usr/lib/python3.12/asyncio/base_events.py", Line: 1},
		{Function: "EpollSelector.select", File: "/usr/lib/python3.12/selectors.py", Line: 1},
	}
	inTrio = [2]timeline.Frame{
		{Function: "unrolled_run", File: trioAt + "_core/_run.py", Line: 1},
		{Function: "EpollIOManager.get_events", File: trioAt + "_core/_io_epoll.py", Line: 1},
	}
)

const trioAt = "/usr/lib/python3.12/site-packages/trio/"

// scriptInLoop is a script's thread in its event loop: in each stretch of 100 ms with one of the stacks, given from the
// task's own coroutine on; an empty one is the loop's selector.
func scriptInLoop(stacks ...[]timeline.Frame) *timeline.Builder {
	return scriptIn(inAsyncio, stacks...)
}

func scriptIn(loop [2]timeline.Frame, stacks ...[]timeline.Frame) *timeline.Builder {
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	b.Describe(func(r *timeline.Recording) {
		r.Target = timeline.Target{PID: 7, Argv: []string{"app.py"}}
		r.Processes = []timeline.Process{{PID: 7, ParentIndex: -1, Role: timeline.RoleScript, CPU: -1}}
	})
	id := b.Thread(timeline.Thread{PID: 7, NativeID: 7, Main: true, OnCPU: -1})
	for i, frames := range stacks {
		state := timeline.StatePython
		all := []timeline.Frame{{Function: "<module>", File: "app.py", Line: 30}, loop[0]}
		if len(frames) == 0 {
			all, state = append(all, loop[1]), timeline.StateWaiting
		}
		node := timeline.RootNode
		for _, f := range append(all, frames...) {
			node = b.Child(node, b.Frame(f))
		}
		b.Set(id, timeline.Nanos(i)*100*timeline.Nanos(time.Millisecond), node, state, false)
	}
	return b
}

// What keeps a loop from tasks that are ready is what the innermost coroutine called, at its line; while none is
// ready, nothing does.
func TestWhatHoldsALoopIsWhatACoroutineCalled(t *testing.T) {
	for name, loop := range map[string][2]timeline.Frame{"asyncio": inAsyncio, "trio": inTrio} {
		t.Run(name, func(t *testing.T) { whatHolds(t, loop) })
	}
}

func whatHolds(t *testing.T, loop [2]timeline.Frame) {
	t.Helper()
	const ms = timeline.Nanos(time.Millisecond)
	client := timeline.Frame{Function: "client", File: "app.py", Line: 9, FirstLine: 7}
	checksum := []timeline.Frame{client, {Function: "checksum", File: "app.py", Line: 5, FirstLine: 4}, {Function: "inner", File: "app.py", Line: 2, FirstLine: 1}}
	alone := []timeline.Frame{{Function: "client", File: "app.py", Line: 10, FirstLine: 7}}
	b := scriptIn(loop, checksum, checksum, nil, checksum, alone, checksum)
	waits := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "client", File: "app.py", Line: 8, FirstLine: 7, Suspended: true}))
	b.AddAwaits(0, 0, 150*ms, timeline.AwaitsTurn, map[timeline.NodeID]int{waits: 3}, nil)
	b.AddAwaits(0, 150*ms, 500*ms, timeline.AwaitsTurn, map[timeline.NodeID]int{waits: 2}, nil)
	rec := b.Snapshot(600 * ms)
	s := NewStacks(rec, NewSource(rec, nil))
	main, _ := s.Explain(AnyDevice, 0)
	ready, ok := s.ReadyTasks(0)
	if !ok || ready.Most != 3 || ready.Some != 500*ms {
		t.Fatalf("ready are %+v", ready)
	}
	held, ok := main.LoopHeld(&ready)
	if !ok || held.Function != "checksum" || held.Place != (Place{"app.py", 9}) || held.Total != 300*ms || held.Longest != 150*ms {
		t.Errorf("held by %+v", held)
	}
	if idle := main.LoopIdle(); len(idle) != 1 || idle[0] != timeline.Between(200*ms, 300*ms) {
		t.Errorf("idle %v", idle)
	}
}

// An awaited library is named by what the line called: of a sleep it is said that it is one.
func TestWhatALineAwaits(t *testing.T) {
	asyncio := "/usr/lib/python3.12/asyncio/"
	traps := []timeline.Frame{{Function: "wait_task_rescheduled", File: trioAt + "_core/_traps.py"}, {Function: "_real_async_yield", File: trioAt + "_core/_traps.py"}}
	sleep := append([]timeline.Frame{{Function: "sleep", File: trioAt + "_timeouts.py"}, {Function: "sleep_until", File: trioAt + "_timeouts.py"},
		{Function: "sleep_forever", File: trioAt + "_timeouts.py"}}, traps...)
	park := append([]timeline.Frame{{Function: "ParkingLot.park", File: trioAt + "_core/_parking_lot.py"}}, traps...)
	anyio := "/usr/lib/python3.12/site-packages/anyio/"
	for _, c := range []struct {
		frames []timeline.Frame
		want   Call
		sleeps bool
		none   bool // it awaits other tasks
	}{
		{nil, Call{}, false, false},
		{[]timeline.Frame{{Function: "sleep", File: asyncio + "tasks.py"}}, Call{"asyncio", "sleep"}, true, false},
		{[]timeline.Frame{{Function: "_ContextManagerMixin.__aenter__", File: asyncio + "mixins.py"}, {Function: "Lock.acquire", File: asyncio + "locks.py"}}, Call{"asyncio", "Lock.acquire"}, false, false},
		{[]timeline.Frame{{Function: "StreamReader.readline", File: asyncio + "streams.py"}, {Function: "StreamReader._wait_for_data", File: asyncio + "streams.py"}}, Call{"asyncio", "StreamReader.readline"}, false, false},
		{[]timeline.Frame{{Function: "TaskGroup.__aexit__", File: asyncio + "taskgroups.py"}}, Call{}, false, true},
		{traps, Call{}, false, false},
		{sleep, Call{"trio", "sleep"}, true, false},
		{append([]timeline.Frame{{Function: "sleep", File: anyio + "_core/_eventloop.py"}, {Function: "TrioBackend.sleep", File: anyio + "_backends/_trio.py"}}, sleep...),
			Call{"anyio", "sleep"}, true, false},
		{append([]timeline.Frame{{Function: "AsyncContextManagerMixin.__aenter__", File: trioAt + "_sync.py"}, {Function: "_LockImpl.acquire", File: trioAt + "_sync.py"}}, park...),
			Call{"trio", "Lock.acquire"}, false, false},
		{append([]timeline.Frame{{Function: "NurseryManager.__aexit__", File: trioAt + "_core/_run.py"}, {Function: "Nursery._nested_child_finished", File: trioAt + "_core/_run.py"}}, traps...),
			Call{}, false, true},
		{[]timeline.Frame{{Function: "TaskGroup.__aexit__", File: anyio + "_backends/_asyncio.py"}}, Call{}, false, true},
		{[]timeline.Frame{{Function: "wait", File: asyncio + "tasks.py"}, {Function: "_wait", File: asyncio + "tasks.py"}}, Call{}, false, true},
	} {
		b := scriptInLoop(nil)
		node := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "fetch", File: "app.py", Line: 3, FirstLine: 2, Suspended: true}))
		for _, f := range c.frames {
			f.Line, f.Suspended = 1, true
			node = b.Child(node, b.Frame(f))
		}
		b.AddAwaits(0, 0, 100, timeline.AwaitsOther, map[timeline.NodeID]int{node: 1}, nil)
		rec := b.Snapshot(100)
		s := NewStacks(rec, NewSource(rec, nil))
		lines := s.TasksAt(0)
		if c.none {
			if len(lines) != 0 {
				t.Errorf("%v: got %+v, want none", c.frames, lines)
			}
			continue
		}
		if len(lines) != 1 {
			t.Fatalf("got %+v", lines)
		}
		if call, sleeps := s.Awaited(&lines[0]); call != c.want || sleeps != c.sleeps {
			t.Errorf("got %+v, %v, want %+v, %v", call, sleeps, c.want, c.sleeps)
		}
	}
}

// A line that sleeps with a lock that others wait for there: they wait for the lock, and one of them sleeps.
func TestALineThatSleepsWithALockIsTwo(t *testing.T) {
	const asyncio = "/usr/lib/python3.12/asyncio/"
	b := scriptInLoop(nil)
	own := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "hold", File: "app.py", Line: 3, FirstLine: 2, Suspended: true}))
	sleep := b.Child(own, b.Frame(timeline.Frame{Function: "sleep", File: asyncio + "tasks.py", Line: 1, Suspended: true}))
	lock := b.Child(own, b.Frame(timeline.Frame{Function: "Lock.acquire", File: asyncio + "locks.py", Line: 1, Suspended: true}))
	b.AddAwaits(0, 0, 100, timeline.AwaitsOther, map[timeline.NodeID]int{sleep: 1, lock: 3}, nil)
	rec := b.Snapshot(100)
	s := NewStacks(rec, NewSource(rec, nil))
	lines := s.TasksAt(0)
	if len(lines) != 2 || lines[0].Most != 3 || lines[1].Most != 1 {
		t.Fatalf("%+v, want three tasks and one", lines)
	}
	if call, _ := s.Awaited(&lines[0]); call.Function != "Lock.acquire" {
		t.Errorf("three wait for %v", call)
	}
}
