// Package waiter keeps what waits for a program apart from what profiles it, so that the
// program goes on, and its exit code is passed on, whatever becomes of the profiler.
//
// Whoever imports it has a constructor of C, which runs before the Go runtime. Where the
// arguments mean `omni-perf run`, it forks: the first process, whose id the user knows,
// never becomes a Go program. It waits, and is what its children's orphans get as parent
// (PR_SET_CHILD_SUBREAPER). Its child is the profiler, which starts the program and is its
// parent, as Yama's scope 1 demands of whoever reads it. The profiler writes for the waiting
// process, into memory that both share, which process the program is and how it ended; the
// waiting process writes into a pipe which signals it got.
//
//   - The profiler ends as it means to: the waiting process ends likewise.
//   - It dies: the program becomes the waiting process's child, which says that the
//     recording is lost, passes signals on and ends as the program does.
//   - It dies before it has started the program, or a limit leaves no room for a Go
//     program: the waiting process says so and executes the program in its own place.
package waiter
