package pystack

import (
	"encoding/binary"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// collects reports whether a thread that has the GIL runs the garbage collector: its interpreter says so while one
// does. A finalizer that runs meanwhile and gives the GIL away lends that to who takes it.
func (s *session) collects(t *thread, g *gilGroup) bool {
	at := s.p.l.Interp.Collecting
	if at == 0 || !g.locked || g.held != t.addr {
		return false
	}
	var collecting [4]byte
	n, err := s.p.mem.Read(collecting[:], []Range{{Addr: t.interp + at, Len: len(collecting)}})
	return err == nil && n == len(collecting) && binary.NativeEndian.Uint32(collecting[:]) == 1
}

// collection is the garbage collector above a stack: a box of its own.
func (s *session) collection(parent timeline.NodeID) timeline.NodeID {
	key := nodeKey{parent: parent, line: -1}
	node, ok := s.nodes[key]
	if !ok {
		node = s.sink.Child(parent, s.sink.Frame(timeline.GarbageCollection))
		s.nodes[key] = node
	}
	return node
}
