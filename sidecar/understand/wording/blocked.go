package wording

import (
	"cmp"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// prepositions of system calls; of the others it is "of".
var prepositions = map[string]string{
	"read": "from", "recv": "from", "write": "to", "send": "to", "sendfile": "to", "connect": "to", "accept": "at", "ioctl": "on",
}

// BlockedOn is what a thread waited for in a system call: "recv from 10.0.0.5:5432 (PostgreSQL)", "fsync of ~/ckpt.pt";
// or who had a lock, or was to end.
func BlockedOn(call, kind, object string) string {
	switch timeline.ObjectKind(kind) {
	case timeline.ObjectLock:
		switch object {
		case "":
			return "lock held by a thread"
		case "MainThread":
			return "lock held by the main thread"
		}
		return "lock held by '" + object + "'"
	case timeline.ObjectThread:
		if object == "" {
			return "end of a thread"
		}
		return "end of thread '" + object + "'"
	case timeline.ObjectFolder:
		object = "files in " + cmp.Or(object, "a folder")
	case timeline.ObjectPipe, timeline.ObjectSocket, timeline.ObjectFile:
		object = cmp.Or(object, "a "+kind)
	}
	return call + " " + cmp.Or(prepositions[call], "of") + " " + object
}
