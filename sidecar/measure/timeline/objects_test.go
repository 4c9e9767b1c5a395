package timeline

import (
	"fmt"
	"testing"
)

// The first files are listed, then the folders that they are in; all of them fit.
func TestObjectsAreFew(t *testing.T) {
	b := NewBuilder(Options{Origin: 1})
	var last ObjectID
	for i := range 10_000 {
		id := b.Object(Object{Call: "read", Kind: ObjectFile, Name: fmt.Sprintf("/data/%d/%d.jpg", i%50, i)})
		if id == 0 {
			t.Fatalf("file %d is not known", i)
		}
		last = id
	}
	socket := b.Object(Object{Call: "recv", Kind: ObjectSocket, Name: "10.0.0.5:443"})
	objects := b.Snapshot(1).Objects
	if objects[1].Name != "/data/0/0.jpg" || objects[last] != (Object{Call: "read", Kind: ObjectFolder, Name: "/data/49"}) || objects[socket].Kind != ObjectSocket {
		t.Errorf("%v, %v of %d", objects[last], objects[socket], len(objects))
	}
	for i := range 1000 {
		b.Object(Object{Call: "recv", Kind: ObjectSocket, Name: fmt.Sprint(i)})
	}
	if objects := b.Snapshot(1).Objects; len(objects) != maxObjects+1 || b.Object(Object{Call: "recv", Kind: ObjectSocket, Name: "one more"}) != 0 {
		t.Errorf("%d objects", len(objects))
	}
}

// A part of a recording has fewer threads: a lock is still of the one that has it.
func TestALockIsOfItsThreadInAPart(t *testing.T) {
	b := NewBuilder(Options{Origin: 1})
	ended := b.Thread(Thread{PID: 7, NativeID: 6, Name: "ended"})
	main := b.Thread(Thread{PID: 7, NativeID: 7, Main: true})
	holder := b.Thread(Thread{PID: 7, NativeID: 8, Name: "holder"})
	b.Set(ended, 0, RootNode, StatePython, false)
	b.End(ended, 10)
	b.Set(holder, 0, RootNode, StatePython, false)
	b.Set(main, 0, RootNode, StateWaiting, false)
	b.SetWait(main, 0, WaitLock, b.Object(Object{Call: "lock", Kind: ObjectLock, Holder: ended}))
	b.SetWait(main, 10, WaitLock, b.Object(Object{Call: "lock", Kind: ObjectLock, Holder: holder}))
	whole := b.Snapshot(100)
	part := whole.Slice(50, 100)
	if on := part.Objects[part.Threads[0].Spans[0].On]; len(part.Threads) != 2 || part.Threads[on.Holder].Name != "holder" {
		t.Errorf("%d threads, the lock is of %d", len(part.Threads), on.Holder)
	}
	if part.Objects[1].Holder != -1 || whole.Objects[1].Holder != ended {
		t.Errorf("a thread that is not in the part is %d, and %d in the whole", part.Objects[1].Holder, whole.Objects[1].Holder)
	}
}

// Connections are kept apart up to a bound, and take no room of the files' names.
func TestConnectionsAreKeptApartUpToABound(t *testing.T) {
	b := NewBuilder(Options{Origin: 1})
	for i := range 200 {
		b.Object(Object{Call: "recv", Kind: ObjectSocket, Name: "10.0.0.5:80", Connection: i + 1})
	}
	b.Object(Object{Call: "read", Kind: ObjectFile, Name: "/u/a.txt"})
	list := b.Snapshot(1).Objects
	if len(list) != 1+maxConnections+2 {
		t.Fatalf("%d objects", len(list))
	}
	if last := list[len(list)-2]; last.Connection != 0 || list[len(list)-3].Connection != maxConnections {
		t.Errorf("%+v", list[len(list)-3:])
	}
	if file := list[len(list)-1]; file.Kind != ObjectFile {
		t.Errorf("%+v, want the file by its name", file)
	}
}
