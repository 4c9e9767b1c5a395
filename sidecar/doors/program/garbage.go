package program

import "runtime"

// spared is the garbage that may lie about before it is collected.
const spared = 48 << 20

// spareCPUs lets the garbage collector begin later: it takes CPUs from the program, several at once. A block that is never
// touched, and so takes no memory, makes the heap look larger, by as much as there may then be more of garbage; where the heap is
// large, hardly anything changes. The block is there until done is called.
func spareCPUs() (done func()) {
	block := make([]byte, spared)
	return func() { runtime.KeepAlive(block) }
}
