// Package pytasks reads the tasks of asyncio's and trio's event loops from outside: which there are,
// whether each waits, is ready or runs, and the chain of coroutines and lines that it is
// suspended in.
//
// In flow a process that package pystack is attached to; out flow Snapshots, and with a
// Collector, of all processes of a recording, the series Recording.Awaits: how many tasks waited in which chain of
// coroutines over time. The package knows asyncio's C structures of CPython 3.11 to 3.15,
// and trio's fields by their names (trio.go); it does not know whose code a line is, nor who asked.
//
// Nothing is stopped or injected: a snapshot is read twice, and of each chain the part
// from the task's own coroutine on is kept on which both reads agree (chain.go). What a
// Python-only task class does is not looked into, nor is who will set a future that no task
// belongs to; of curio's loops a Snapshot says that they run.
package pytasks
