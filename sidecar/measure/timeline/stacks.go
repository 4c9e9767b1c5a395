package timeline

import "strings"

// Limits of one recording's stack tree. 65,536 nodes are some hundred times
// what a training loop has; a node costs 8 bytes and its map entry about 40.
const (
	maxNodes    = 1 << 16
	maxFrames   = 1 << 15
	maxNameSize = 512 // bytes of a function or file name that are kept
)

// stacks interns frames and the tree of stacks made of them.
type stacks struct {
	frames   []Frame
	frameIDs map[Frame]FrameID
	nodes    []Node
	nodeIDs  map[Node]NodeID
	full     bool // a limit was met: something was counted for its caller
}

func newStacks() *stacks {
	return &stacks{
		frameIDs: make(map[Frame]FrameID),
		nodes:    []Node{{}},
		nodeIDs:  make(map[Node]NodeID),
	}
}

// frame interns f; ok is false when the table is full.
func (s *stacks) frame(f Frame) (id FrameID, ok bool) {
	f.Function = clip(f.Function)
	f.File = clip(f.File)
	if id, ok := s.frameIDs[f]; ok {
		return id, true
	}
	if len(s.frames) >= maxFrames {
		s.full = true
		return 0, false
	}
	id = FrameID(len(s.frames))
	s.frames = append(s.frames, f)
	s.frameIDs[f] = id
	return id, true
}

// child interns the stack that is parent with frame f called from it. When the
// tree is full it is parent itself.
func (s *stacks) child(parent NodeID, f FrameID) NodeID {
	key := Node{Parent: parent, Frame: f}
	if id, ok := s.nodeIDs[key]; ok {
		return id
	}
	if len(s.nodes) >= maxNodes || int(f) >= len(s.frames) {
		s.full = true
		return parent
	}
	id := NodeID(len(s.nodes))
	s.nodes = append(s.nodes, key)
	s.nodeIDs[key] = id
	return id
}

// clip bounds a name and gives it memory of its own, so that a short name does
// not keep a large buffer alive.
func clip(name string) string {
	if len(name) <= maxNameSize {
		return name
	}
	return strings.ToValidUTF8(name[:maxNameSize-3], "") + "…"
}
