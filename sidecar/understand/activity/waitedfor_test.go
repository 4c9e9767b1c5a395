package activity

import "testing"

// Each case of a wait is reached by its own facts, which are beside those of a case that
// comes before it where these nearly hold.
func TestForWhomAWaitWas(t *testing.T) {
	type facts struct {
		threads, processes, covered, native float64
		children, pipe, anyPipe             bool
	}
	reached := make(map[string]bool)
	for _, test := range []struct {
		cause Cause
		facts facts
		name  string
		want  Cause // empty: the stack's
	}{
		{EventLoop, facts{threads: 1, native: 3}, "executors work for the tasks", Thread},
		{EventLoop, facts{threads: 1, processes: 2, children: true}, "processes work for the tasks", Child},
		{EventLoop, facts{threads: 0.4, processes: 0.4, native: 3, children: true}, "every task waits", EventLoop},
		{pool, facts{threads: 4, processes: 2, children: true}, "the pool has processes", Child},
		{pool, facts{processes: 0, children: true}, "the pool has processes", Child},
		{pool, facts{threads: 4, processes: 1, children: true}, "the pool's threads are busy", Thread},
		{pool, facts{threads: 4, native: 1}, "the pool's threads are busy", Thread},
		{pool, facts{threads: 0.1}, "the pool has threads", Thread},
		{pool, facts{threads: 0.1, native: 1}, "a library's own threads compute", Native},
		{pool, facts{}, byStack.name, ""},
		{InOut, facts{processes: 0.5, children: true}, "processes work while it reads", Child},
		{InOut, facts{processes: 0.5}, "files, pipes or sockets", InOut},
		{InOut, facts{threads: 1, pipe: true}, "a thread writes the pipe", Thread},
		{InOut, facts{threads: 1, covered: 1}, "files, pipes or sockets", InOut},
		{InOut, facts{covered: 0.6, children: true, pipe: true}, "a process writes the pipe", Child},
		{InOut, facts{covered: 0.6, children: true, anyPipe: true}, "a process writes the pipe", Child},
		{InOut, facts{threads: 1, anyPipe: true}, "files, pipes or sockets", InOut},
		{InOut, facts{native: 3}, "files, pipes or sockets", InOut},
		{Database, facts{native: 0.5}, "a library's own threads compute", Native},
		{Database, facts{threads: 2, processes: 2, children: true}, "a database", Database},
		{Lock, facts{threads: 1, processes: 1, children: true}, "threads are busy", Thread},
		{Lock, facts{threads: 1, native: 1}, "a library's own threads compute", Native},
		{Lock, facts{threads: 0.4, processes: 0.5, children: true}, "processes are busy", Child},
		{Waiting, facts{threads: 1, processes: 2, children: true}, "processes are busy", Child},
		{Waiting, facts{threads: 0.4, processes: 0.4, native: 0.4, children: true}, byStack.name, ""},
	} {
		f := test.facts
		w := wait{
			cause: test.cause, threads: f.threads, processes: f.processes, children: f.children,
			covered: func() float64 { return f.covered }, native: func() float64 { return f.native }, pipe: func() bool { return f.pipe },
			anyPipe: func() bool { return f.anyPipe },
		}
		got := w.decide()
		if got.name != test.name || got.is != test.want {
			t.Errorf("%s, %+v: %q, %s; want %q, %s", test.cause, f, got.name, got.is, test.name, test.want)
		}
		reached[got.name] = true
	}
	for _, c := range append(waitCases, byStack) {
		if !reached[c.name] {
			t.Errorf("no facts lead to %q", c.name)
		}
	}
}
