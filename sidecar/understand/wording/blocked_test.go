package wording

import (
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

func TestWhatACallWaitsFor(t *testing.T) {
	for _, test := range []struct{ call, kind, object, want string }{
		{"recv", "socket", "10.0.0.5:5432 (PostgreSQL)", "recv from 10.0.0.5:5432 (PostgreSQL)"},
		{"fsync", "file", "~/ckpt.pt", "fsync of ~/ckpt.pt"},
		{"read", "folder", "~/data", "read from files in ~/data"},
		{"accept", "socket", ":8000", "accept at :8000"},
		{"read", "pipe", "", "read from a pipe"},
		{"read", "pipe", timeline.StandardInput, "read from standard input"},
		{"connect", "socket", "", "connect to a socket"},
		{"lock", "lock", "loader", "lock held by 'loader'"},
		{"lock", "lock", "MainThread", "lock held by the main thread"},
		{"lock", "lock", "", "lock whose holder is not known"},
		{"result", "future", "pool_0", "result of a Future, computed by 'pool_0'"},
		{"result", "future", "", "result of a Future"},
		{"wait", "future", "", "Futures to be done"},
		{"wait", "event", "", "Event to be set"},
		{"wait", "condition", "", "Condition to be notified"},
		{"acquire", "semaphore", "", "Semaphore to be released"},
		{"wait", "barrier", "", "other threads at a Barrier"},
		{"get", "queue", "", "queue.Queue.get: it is empty"},
		{"put", "queue", "", "queue.Queue.put: it is full"},
		{"put", "queue", "multiprocessing.Queue", "multiprocessing.Queue.put: it is full"},
		{"join", "thread", "threads", "end of threads"},
		{"wait", "process", "sleep", "end of process 'sleep'"},
		{"wait", "process", "", "end of a child process"},
		{"sleep", "database", "~/x.db", "lock of ~/x.db (SQLite)"},
		{"sleep", "database", "", "lock of a database (SQLite)"},
		{"select", "pipe", "", "select of a pipe"},
		{"join", "thread", "loader", "end of thread 'loader'"},
		{"join", "thread", "", "end of a thread"},
		{"a call of a later version", "a kind of one", "x", "a call of a later version of x"},
	} {
		if got := BlockedOn(test.call, test.kind, test.object); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}
