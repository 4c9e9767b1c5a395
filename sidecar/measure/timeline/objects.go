package timeline

import (
	"cmp"
	"path"
	"slices"
)

// Object is what a thread that is blocked in a system call waits for, as far as the system, or the interpreter, shows it.
type Object struct {
	Call   string // "recv", "fsync"
	Kind   ObjectKind
	Name   string   // of a file its path, of a socket its peer; empty: not known, or not to be shown
	Holder ThreadID // of a lock, who has it; of a thread that is to end, that one; of a future, who computes it; -1: not known, or not in the recording
	// Connection counts a process's sockets with one peer, from 1 on; 0: of another kind, or there were too many to keep apart.
	Connection int
	// Owner is the process that has a lock of a file or a database; 0: of another kind, or not known.
	Owner int
}

// IsOfThread reports whether it is another thread that is waited for, by its lock, to end, or for the future that it computes.
func (o *Object) IsOfThread() bool {
	return o.Kind == ObjectLock || o.Kind == ObjectThread || o.Kind == ObjectFuture
}

// renumbered are objects with the new indices of the threads that they are of; -1 where one was left out.
func renumbered(all []Object, threads func(int) int) []Object {
	out := slices.Clone(all)
	for i := range out {
		if o := &out[i]; o.IsOfThread() {
			o.Holder = ThreadID(threads(int(o.Holder)))
		}
	}
	return out
}

// ObjectKind is what a file descriptor stands for, one of the standard library's means to wait for threads, a thread or a process.
type ObjectKind string

// The kinds. A folder stands for files in it, where there are too many to list.
const (
	ObjectFile      ObjectKind = "file"
	ObjectFolder    ObjectKind = "folder"
	ObjectSocket    ObjectKind = "socket"
	ObjectPipe      ObjectKind = "pipe"
	ObjectLock      ObjectKind = "lock"
	ObjectThread    ObjectKind = "thread"
	ObjectFuture    ObjectKind = "future"
	ObjectEvent     ObjectKind = "event"
	ObjectCondition ObjectKind = "condition"
	ObjectSemaphore ObjectKind = "semaphore"
	ObjectBarrier   ObjectKind = "barrier"
	ObjectQueue     ObjectKind = "queue" // of threads
	ObjectProcess   ObjectKind = "process"
	ObjectDatabase  ObjectKind = "database" // of SQLite
)

// StandardInput is the name of the pipe that a program's own input comes from; others have none.
const StandardInput = "standard input"

// ObjectKinds lists them.
func ObjectKinds() []ObjectKind {
	return []ObjectKind{ObjectFile, ObjectFolder, ObjectSocket, ObjectPipe, ObjectLock, ObjectThread, ObjectFuture, ObjectEvent,
		ObjectCondition, ObjectSemaphore, ObjectBarrier, ObjectQueue, ObjectProcess, ObjectDatabase}
}

// ObjectID indexes Recording.Objects; 0: not known.
type ObjectID uint8

const (
	maxObjects = 1<<8 - 1
	// maxFiles is how many are listed by name; from then on the folder stands for a file, and nobody is said to have a lock of one.
	maxFiles = 128
	// maxConnections is how many are kept apart; from then on a peer stands for its connections.
	maxConnections = 64
)

// objects interns Objects; the first one stands for none.
type objects struct {
	list []Object
	ids  map[Object]ObjectID
	// connections is how many have a number.
	connections int
}

// id of an object; 0 where there are too many.
func (o *objects) id(what Object) ObjectID {
	what.Name = clip(what.Name)
	if id, ok := o.ids[what]; ok {
		return id
	}
	if what.Connection > 0 && o.connections == maxConnections {
		what.Connection = 0
		return o.id(what)
	}
	if what.Kind == ObjectFile && what.Name != "" && len(o.list) > maxFiles {
		return o.id(Object{Call: what.Call, Kind: ObjectFolder, Name: cmp.Or(path.Dir(what.Name), "/")})
	}
	if what.Owner > 0 && len(o.list) > maxFiles {
		what.Owner = 0
		return o.id(what)
	}
	if len(o.list) == 0 {
		o.list, o.ids = make([]Object, 1), make(map[Object]ObjectID)
	}
	if len(o.list) > maxObjects {
		return 0
	}
	if what.Connection > 0 {
		o.connections++
	}
	id := ObjectID(len(o.list))
	o.list = append(o.list, what)
	o.ids[what] = id
	return id
}

// Object interns what threads wait for.
func (b *Builder) Object(what Object) ObjectID {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.objects.id(what)
}
