// Package pystack samples the Python stacks of a running CPython 3.11 to 3.15
// from outside, without stopping it.
//
// In flow a process id and a Sink, normally a *timeline.Builder; out flow the
// stack and state of every thread, each time they change, and the GIL's tracks.
// The package knows process_vm_readv and /proc, and how to walk stacks that change
// meanwhile; what CPython's structures look like is package cpython's. It does not
// know notebooks, reports or who asked.
//
//	p, err := pystack.Attach(pid, pystack.Options{})
//	stats, err := p.Sample(ctx, builder, pystack.SampleOptions{}) // until ctx is done
//
// How a stack can be right without stopping the target: the thread's data-stack
// chunk and generator frames are copied several times by one system call, with
// the thread state in between (plan.go). What such a read shows is an attempt
// (attempt.go), of which a sample makes some if need be (reader.go). A frame counts if
// its copies agree, up to the first caller that has run meanwhile (walk.go, decode.go).
// Above that, one copy is followed as far as it shows frames in calls that copies
// which agree have shown before (calls.go); so is the thread's leaf where it has called
// something since its state was read, else lines of microseconds would lose a part of
// their time to the lines that call. What is not sure is cut off and the sample
// marked truncated; nothing is guessed.
//
// Which code a frame runs: code objects are freed and the next one takes the address,
// and often the frame's place. From 3.12 on a number distinguishes them, before that
// the contents of their names and line tables (cpython.Identity, codes.go). From 3.14 on no code
// object is mistaken for another. Up to 3.13 only a function that was there for at
// least 0.2 s can be, when it is freed and another function takes its address while it
// is in use: the stack then names the old one until its turn comes to be compared,
// which is one sample for each frame of the stack. A program that does nothing but
// replace such functions, each twice a second in the last one's memory, has 0.2 % of
// its samples at the wrong one, 0.6 % at most (churn_test.go); modules, statements of
// cells, and functions that are younger are compared at each sample.
//
// What a coroutine that awaits waits for is found from the coroutine object that its
// event loop is run for, and shown in place of the loop's selector (await.go). While gevent's hub has a thread, the
// stack is that of the thread's main greenlet (greenlets.go). The thread states of subinterpreters are of the
// thread that runs them (osthread.go).
//
// How 159 idle threads cost nothing: the GIL counts its hand-overs, so that
// without one only its holder can have changed, and with one only the last two.
// With more, one read of all thread states shows who has, but for those that wait
// again where they did, called from elsewhere: the thread that runs the cell is
// read in any case, the others one a tick until all have been (gil.go).
//
// A process in which nothing runs is looked at less often, after 1.3 seconds
// every 5 ms (rest.go).
//
// What is not known is said: a process that was stopped or has become another one has
// no stacks meanwhile (standstill.go, lane.go), and of a deep recursion the middle is
// left out, whether of calls (plan.go), generators (generators.go) or coroutines that
// await each other (await.go); so it is in the tree of stacks (nodes.go).
//
// What a thread does that runs no Python code is asked of the kernel, less often
// the longer the answer stays the same: a thread that has been asleep for long is
// found working in C up to two and a half seconds late (probe.go, state.go, kernel.go).
//
// The clock is a raw clock_nanosleep on a locked thread. Being a raw call it keeps a P of
// the Go scheduler, which has eight at least meanwhile (clock.go). Where no CPU is free all
// of the process is done by one thread, at the ticks of the target's sampler (worker.go).
//
// Recorded memory (Image) takes the place of a process in tests and fuzz targets.
package pystack
