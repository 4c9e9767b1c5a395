package wording

import (
	"cmp"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

// prepositions of system calls; of the others it is "of".
var prepositions = map[string]string{
	"read": "from", "recv": "from", "write": "to", "send": "to", "sendfile": "to", "connect": "to", "accept": "at", "ioctl": "on",
}

// queues are what calls of a queue wait for.
var queues = map[string]string{
	"get":  "it is empty",
	"put":  "it is full",
	"join": "not all items are done",
}

// BlockedOn is what a thread waited for in a system call: "recv from 10.0.0.5:5432 (PostgreSQL)", "fsync of ~/ckpt.pt";
// who had a lock, or was to end; or what other threads were to do.
func BlockedOn(call, kind, object string) string {
	switch timeline.ObjectKind(kind) {
	case timeline.ObjectLock:
		switch object {
		case "":
			return "lock whose holder is not known"
		case "MainThread":
			return "lock held by the main thread"
		}
		return "lock held by '" + object + "'"
	case timeline.ObjectThread:
		switch object {
		case "":
			return "end of a thread"
		case activity.SeveralThreads:
			return "end of threads"
		}
		return "end of thread '" + object + "'"
	case timeline.ObjectFuture:
		switch {
		case call == "wait":
			return "Futures to be done"
		case object == "":
			return "result of a Future"
		}
		return "result of a Future, computed by '" + object + "'"
	case timeline.ObjectEvent:
		return "Event to be set"
	case timeline.ObjectCondition:
		return "Condition to be notified"
	case timeline.ObjectSemaphore:
		return "Semaphore to be released"
	case timeline.ObjectBarrier:
		return "other threads at a Barrier"
	case timeline.ObjectQueue:
		object = cmp.Or(object, "queue.Queue")
		if why := queues[call]; why != "" {
			return object + "." + call + ": " + why
		}
		return call + " of a " + object
	case timeline.ObjectProcess:
		if object == "" {
			return "end of a child process"
		}
		return "end of process '" + object + "'"
	case timeline.ObjectDatabase:
		return "lock of " + cmp.Or(object, "a database") + " (SQLite)"
	case timeline.ObjectFolder:
		object = "files in " + cmp.Or(object, "a folder")
	case timeline.ObjectPipe, timeline.ObjectSocket, timeline.ObjectFile:
		object = cmp.Or(object, "a "+kind)
	}
	return call + " " + cmp.Or(prepositions[call], "of") + " " + object
}
