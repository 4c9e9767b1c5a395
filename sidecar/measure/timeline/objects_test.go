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
