// Package pystack samples the Python stacks of a running CPython 3.11 to 3.15
// from outside, without stopping it.
//
// In flow a process id and a Sink, normally a *timeline.Builder; out flow the
// stack and state of every thread, each time they change, and the GIL's tracks.
// The package knows CPython's memory layout, process_vm_readv and /proc; it does
// not know notebooks, reports or who asked.
//
//	p, err := pystack.Attach(pid, pystack.Options{})
//	stats, err := p.Sample(ctx, builder, pystack.SampleOptions{}) // until ctx is done
//
// How a stack can be right without stopping the target: the thread's data-stack
// chunk and generator frames are copied at least twice by one system call, with
// the thread state in between (plan.go). A frame counts if its copies agree, up
// to the first caller that has run meanwhile (walk.go, reader.go). What is not
// sure is cut off and the sample marked truncated; nothing is guessed.
//
// How 159 idle threads cost nothing: the GIL counts its hand-overs, so that
// without one only its holder can have changed (gil.go).
package pystack
